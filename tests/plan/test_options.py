from __future__ import annotations

import math
from typing import Any

import pytest

from heterformer.errors import InputError
from heterformer.plan.options import PlanOptions

COUNTS = {"paper": 200, "author": 50, "venue": 3}


def test_counts_as_given_and_the_rest_in_proportion() -> None:
    options = PlanOptions(counts=("paper=1e8", "author=70"), scale=10)
    assert options.counts_for(COUNTS) == {"paper": 100_000_000, "author": 70, "venue": 30}
    assert PlanOptions().counts_for(COUNTS) == COUNTS


@pytest.mark.parametrize("words", ["papers=5", "paper", "paper=", "paper=many", "paper=-1", "paper=inf"])
def test_refuses_counts_that_are_none(words: str) -> None:
    with pytest.raises(InputError, match="counts has"):
        PlanOptions(counts=(words,)).counts_for(COUNTS)


@pytest.mark.parametrize(
    "options",
    [PlanOptions(counts=("paper=3e9",)), PlanOptions(counts=("paper=0",)), PlanOptions(scale=0.001)],
)
def test_refuses_networks_that_cannot_be(options: PlanOptions) -> None:
    with pytest.raises(InputError, match="nodes, expected 1 to 2,147,483,647 nodes of a type"):
        options.counts_for(COUNTS)


@pytest.mark.parametrize(
    "options",
    [
        {"processes": ()},
        {"processes": (1, 0)},
        {"scale": 0.0},
        {"pairs": -1.0},
        {"bandwidth": math.nan},
        {"pairs_per_second": math.inf},
    ],
)
def test_refuses_what_no_plan_can_have(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(InputError, match=f"^{name} is"):
        PlanOptions(**options)
