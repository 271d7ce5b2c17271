from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError
from heterformer.plan.throughput import measured_throughput
from heterformer.training.loop import Trainer
from tests.learning import tiny_network, tiny_options, tiny_reader
from tests.plan.planning import planned


@pytest.mark.parametrize(
    ("changes", "sizes"),
    [
        ({}, 16),
        ({"neighbor_states": "cached"}, 16),
        ({"batch_size": 24, "micro_batch": 4}, 8),  # two parts tell as much as six
        ({"model": "bert"}, 16),
    ],
)
def test_takes_real_steps_and_leaves_nothing(
    changes: dict[str, Any], sizes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, options = tiny_network(), tiny_options(tiny_reader(), **changes)  # made elsewhere, for all tests
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    taken = []
    take_step = Trainer.take_step

    def counted(self: Trainer, number: int) -> int:
        taken.append(pairs := take_step(self, number))
        return pairs

    monkeypatch.setattr(Trainer, "take_step", counted)
    found = measured_throughput(network, options, EmbedOptions(), embedded_nodes=20)
    assert taken[:2] == [sizes, sizes]
    assert found.pairs > 0
    assert found.nodes > 0
    assert found.device == "1 CPU thread"
    assert list(tmp_path.iterdir()) == []


def test_speeds_that_are_given_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("measured")

    monkeypatch.setattr("heterformer.plan.core.measured_throughput", never)
    plan = planned(measure=True, pairs_per_second=3.0, nodes_per_second=4.0)
    assert (plan.speed.pairs, plan.speed.nodes) == (3.0, 4.0)
    with pytest.raises(AssertionError, match="measured"):
        planned(measure=True, pairs_per_second=3.0)


def test_a_backbone_must_be_there(tmp_path: Path) -> None:
    options = tiny_options(str(tmp_path / "none"))
    with pytest.raises(InputError, match="cannot be loaded"):
        measured_throughput(tiny_network(), options, EmbedOptions())
