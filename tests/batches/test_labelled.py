from __future__ import annotations

import numpy as np
import pytest

from heterformer.batches.batcher import Batcher
from heterformer.batches.labelled import LabelledBatches
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.stratified import TRAIN
from heterformer.network.target_options import TargetOptions
from heterformer.network.targets import Targets, node_targets
from tests.learning import tiny_network, tiny_tokens


def targets(node_type: str = "paper") -> Targets:
    options = TargetOptions(type=node_type, min_members=5)
    return node_targets(tiny_network(), "classification", options).of_part(TRAIN)


def batches(node_type: str = "paper", size: int = 16, **more: object) -> LabelledBatches:
    batcher = Batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    return LabelledBatches(batcher, targets(node_type), size, seed=3, **more)  # type: ignore[arg-type]


def labels(made: LabelledBatches, step: int) -> np.ndarray:
    return np.concatenate([b.targets.numpy() for b in made.of_run_step(step) if b.targets is not None])


def test_targets_are_those_of_the_centers() -> None:
    made = batches()
    known = dict(zip(made.targets.rows.tolist(), made.targets.values.tolist(), strict=True))
    for step in range(made.steps_per_epoch):
        for batch in made.of_run_step(step):
            assert batch.targets is not None
            assert batch.text_rows is not None
            rows = batch.text_rows[batch.centers].tolist()  # papers are the only texts
            assert batch.targets.tolist() == [known[row] for row in rows]


def test_processes_have_their_parts_of_a_step() -> None:
    whole = batches(size=16)
    parts = [batches(size=16, share=(rank, 3)) for rank in range(3)]
    for step in range(whole.steps_per_epoch):
        together = np.concatenate([labels(part, step) for part in parts if part.of_run_step(step)])
        assert (together == labels(whole, step)).all()
    assert all(b.nodes_of_step == 16 for part in parts for b in part.of_run_step(0))


def test_a_step_in_several_batches() -> None:
    made = batches(nodes_at_once=5)
    sizes = [len(batch.centers) for batch in made.of_run_step(0)]
    assert sizes == [5, 5, 5, 1]
    assert [batch.offset for batch in made.of_run_step(0)] == [0, 5, 10, 15]
    assert (labels(made, 0) == labels(batches(), 0)).all()


@pytest.mark.parametrize("node_type", ["paper", "author"])
def test_equal_steps_are_equal(node_type: str) -> None:
    one, two = batches(node_type), batches(node_type)
    assert (labels(one, 4) == labels(two, 4)).all()
    (a,), (b,) = one.of_run_step(4), two.of_run_step(4)
    for edge_type, neighbors in a.neighbors.items():
        assert (neighbors.node == b.neighbors[edge_type].node).all()


def test_textless_nodes_are_textless_centers() -> None:
    (batch, *_) = batches("author").of_run_step(0)
    assert batch.textless_centers is not None
    assert batch.textless_centers.node_type == "author"
    assert not len(batch.centers)
