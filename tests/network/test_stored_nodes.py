"""The columns of a stored network's nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heterformer.errors import InputError
from heterformer.network.store import Network
from tests.networks import Tables


@pytest.fixture
def network(tables: Tables) -> Network:
    return tables.build()


@pytest.mark.parametrize("rows", [[4], [-1], [0, 17], ["p1"], [1.5], np.array([-2])])
def test_a_row_that_the_type_does_not_have(rows: Any, network: Network) -> None:
    for values in (network.ids, network.texts, network.names):
        with pytest.raises(InputError) as caught:
            values("paper", rows)
        start, _, end = str(caught.value).partition(" of ")
        assert start.startswith(f"{network.path}: row ")
        assert end == "'paper', expected 0 to 3; 'rows' gives those of ids."


def test_a_mask_is_not_taken_for_rows(network: Network) -> None:
    with pytest.raises(InputError, match=r": row .*True.* of 'paper', expected 0 to 3"):
        network.ids("paper", np.array([True, False, False, True]))


def test_batches_hold_the_columns_that_are_asked_for(network: Network) -> None:
    (batch,) = network._nodes.batches("paper", ["text"])
    assert batch.column_names == ["text"]
    assert [b.column_names for b in network.batches("paper")] == [list(network.columns("paper"))]
