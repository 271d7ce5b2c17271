from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer.errors import InputError
from heterformer.network.store import Network
from heterformer.network.stratified import PARTS, TEST, TRAIN, VALIDATION
from heterformer.network.target_options import TargetOptions
from heterformer.network.targets import NOT_USED, Targets, check_attributes, class_weights, node_targets

COUNT = 60


def papers(
    labels: list[Any], spec: dict[str, Any] | None = None, columns: dict[str, list[Any]] | None = None
) -> Network:
    """Papers in a ring, with these labels, and venues that tell nothing."""
    ids = [f"p{i:03}" for i in range(len(labels))]
    table = pl.DataFrame(
        {"id": ids, "text": [f"paper {i}" for i in range(len(ids))], "label": labels, **(columns or {})},
        strict=False,
    )
    ring = pl.DataFrame({"a": ids, "b": ids[1:] + ids[:1]})
    relations = {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}}
    nodes = {"paper": {"text": ["text"], "label": "label", **(spec or {})}}
    return Network.from_frames({"nodes": nodes, "relations": relations}, {"paper": table}, {"cites": ring})


@pytest.fixture(scope="module")
def single() -> Network:
    columns = {
        "year": [1990 + i // 6 for i in range(COUNT)],
        "part": ["train"] * 40 + ["valid"] * 8 + ["test"] * 8 + [""] * 4,
        "words": ["many"] * COUNT,
        "length": [None if i % 10 == 0 else i / 2 for i in range(COUNT)],
    }
    spec = {"time": "year", "split": "part", "keep": ["length", "words"]}
    return papers(["ab"[i % 3 == 0] for i in range(COUNT)], spec, columns)


def sizes(targets: Targets) -> list[int]:
    return [int((targets.part == part).sum()) for part in PARTS]


def test_classes_in_stratified_parts(single: Network) -> None:
    targets = node_targets(single, "classification", TargetOptions())
    assert (targets.node_type, targets.kind, targets.classes) == ("paper", "single", ("a", "b"))
    assert sizes(targets) == [42, 6, 12]
    for part in PARTS:
        share = targets.of_part(part).values.mean(0)
        np.testing.assert_allclose(share, [2 / 3, 1 / 3], atol=0.05)
    names = [targets.classes[code] for code in targets.values.argmax(1)]
    assert names == [single.labels("paper")[int(row)][0] for row in targets.rows]
    again, other = (node_targets(single, "classification", TargetOptions(split_seed=s)) for s in (0, 1))
    assert (again.part == targets.part).all()
    assert (other.part != targets.part).any()


def test_the_users_own_parts(single: Network) -> None:
    targets = node_targets(single, "classification", TargetOptions(split_by="column"))
    expected = [TRAIN] * 40 + [VALIDATION] * 8 + [TEST] * 8 + [NOT_USED] * 4
    assert targets.part.tolist() == expected


def test_later_nodes_are_the_test(single: Network) -> None:
    targets = node_targets(single, "classification", TargetOptions(split_by="time"))
    times = single.times("paper")[targets.rows]
    assert times[targets.part == TRAIN].max() < times[targets.part == VALIDATION].min()
    assert times[targets.part == VALIDATION].max() < times[targets.part == TEST].min()


def test_some_of_the_labels(single: Network) -> None:
    whole = node_targets(single, "classification", TargetOptions())
    few = node_targets(single, "classification", TargetOptions(fraction=0.25))
    fewest = node_targets(single, "classification", TargetOptions(fraction=0.001))
    assert sizes(few)[1:] == sizes(whole)[1:]
    assert set(few.of_part(TRAIN).rows) < set(whole.of_part(TRAIN).rows)
    assert few.of_part(TRAIN).values.sum(0).tolist() == [7, 4]  # a quarter of 28 and of 14
    assert fewest.of_part(TRAIN).values.sum(0).tolist() == [1, 1]


def test_several_classes_of_a_node() -> None:
    network = papers([["x", "y"] if i % 2 else ["x"] for i in range(COUNT)])
    targets = node_targets(network, "classification", TargetOptions())
    assert targets.kind == "multi"
    assert targets.values.sum(0).tolist() == [60, 30]


def test_numbers(single: Network) -> None:
    targets = node_targets(single, "regression", TargetOptions(column="length"))
    assert (targets.kind, targets.classes) == ("number", ("length",))
    assert targets.rows.tolist() == [i for i in range(COUNT) if i % 10]
    assert targets.values[:, 0].tolist() == [row / 2 for row in targets.rows]
    assert sizes(targets) == [38, 5, 11]


def test_weights_of_classes(single: Network) -> None:
    targets = node_targets(single, "classification", TargetOptions())
    weights = class_weights(targets)
    assert weights.mean() == pytest.approx(1)
    assert weights[1] / weights[0] == pytest.approx(28 / 14)


@pytest.mark.parametrize(
    ("task", "options", "problem"),
    [
        ("regression", {}, "is not given, expected the numeric column"),
        ("regression", {"column": "size"}, "is 'size', the columns are 'length', 'words'"),
        ("regression", {"column": "words"}, "which holds 'many', expected numbers"),
        ("classification", {"type": "author"}, "is 'author', expected one of the labelled types 'paper'"),
        ("classification", {"min_members": 30}, "have 1 class of 3 nodes or more"),
    ],
)
def test_what_cannot_be_learnt(single: Network, task: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        node_targets(single, task, TargetOptions(**options))


def test_a_class_of_the_test_part_alone() -> None:
    parts = ["train"] * 30 + ["valid"] * 10 + ["test"] * 20
    labels = ["ab"[i % 2] for i in range(40)] + ["c"] * 20
    network = papers(labels, {"split": "part"}, {"part": parts})
    with pytest.raises(InputError, match="class 'c' of paper nodes has no node in the training part"):
        node_targets(network, "classification", TargetOptions(split_by="column"))


def test_an_empty_part() -> None:
    network = papers(["ab"[i % 2] for i in range(40)], {"split": "part"}, {"part": ["train"] * 40})
    with pytest.raises(InputError, match="the validation part has no labelled paper node"):
        node_targets(network, "classification", TargetOptions(split_by="column"))


def test_no_labels_at_all() -> None:
    table = pl.DataFrame({"id": ["a", "b"], "text": ["one", "two"]})
    relations = {"cites": {"from": "paper", "to": "paper", "columns": ["x", "y"]}}
    edges = {"cites": pl.DataFrame({"x": ["a"], "y": ["b"]})}
    network = Network.from_frames(
        {"nodes": {"paper": {"text": ["text"]}}, "relations": relations}, {"paper": table}, edges
    )
    with pytest.raises(InputError, match="no node type has a 'label' column"):
        node_targets(network, "classification", TargetOptions())


def test_a_label_in_plain_sight() -> None:
    """A relation that tells the label is refused, unless it is wanted."""
    labels = ["abc"[i % 3] for i in range(COUNT)]
    ids = [f"p{i:03}" for i in range(COUNT)]
    table = pl.DataFrame({"id": ids, "text": ["some words"] * COUNT, "label": labels, "field": labels})
    nodes = {"paper": {"text": ["text"], "label": "label"}, "field": {}}
    relations = {
        "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
        "is_in": {"from": "paper", "to": "field", "column": "field"},
    }
    ring = pl.DataFrame({"a": ids, "b": ids[1:] + ids[:1]})
    network = Network.from_frames({"nodes": nodes, "relations": relations}, {"paper": table}, {"cites": ring})
    with pytest.raises(InputError, match="relation 'is_in' leaks the label"):
        node_targets(network, "classification", TargetOptions(type="paper"))
    assert len(node_targets(network, "classification", TargetOptions(type="paper", visible_labels=True)))


def test_a_label_among_the_attributes_that_a_model_reads() -> None:
    labels = ["abc"[i % 3] for i in range(COUNT)]
    columns = {"code": [f"code {label}" for label in labels], "size": [i / 2 for i in range(COUNT)]}
    network = papers(labels, {"attributes": ["code", "size"]}, columns)
    for task, options, problem in (
        ("classification", TargetOptions(), "attribute 'code' leaks the label of paper nodes"),
        ("regression", TargetOptions(column="size"), "attribute 'size' of paper nodes is read by the model"),
    ):
        with pytest.raises(InputError, match=problem) as caught:
            check_attributes(network, task, options, ("paper",))
        assert str(caught.value).endswith("or set visible_labels to train all the same.")
        check_attributes(network, task, options, ())  # a model that reads none
        check_attributes(network, task, replace(options, visible_labels=True), ("paper",))
        assert len(node_targets(network, task, options))


def test_a_number_in_plain_sight() -> None:
    size = [float(i % 4) for i in range(COUNT)]
    ids = [f"p{i:03}" for i in range(COUNT)]
    table = pl.DataFrame({"id": ids, "text": ["some words"] * COUNT, "size": size})
    nodes = {"paper": {"text": ["text"], "keep": ["size"]}, "shelf": {}}
    relations = {
        "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
        "is_on": {"from": "paper", "to": "shelf", "column": "size"},
    }
    ring = pl.DataFrame({"a": ids, "b": ids[1:] + ids[:1]})
    network = Network.from_frames({"nodes": nodes, "relations": relations}, {"paper": table}, {"cites": ring})
    with pytest.raises(InputError, match="relation 'is_on' leaks the number of paper nodes"):
        node_targets(network, "regression", TargetOptions(column="size"))
    assert len(node_targets(network, "regression", TargetOptions(column="size", visible_labels=True)))


def test_rows_that_a_part_must_not_have(single: Network) -> None:
    every = node_targets(single, "classification", TargetOptions())
    hidden = every.rows[::4]
    targets = node_targets(single, "classification", TargetOptions(), {TRAIN: {"paper": hidden}})
    learnt, before = (t.of_part(TRAIN).rows for t in (targets, every))
    assert np.array_equal(learnt, np.setdiff1d(before, hidden))
    assert len(learnt) < len(before)
    for part in (VALIDATION, TEST):
        assert np.array_equal(targets.of_part(part).rows, every.of_part(part).rows)
    with pytest.raises(InputError, match="the train part has no labelled paper node"):
        node_targets(single, "classification", TargetOptions(), {TRAIN: {"paper": every.rows}})


@pytest.mark.parametrize(
    "options", [{"fraction": 0.0}, {"fraction": 1.1}, {"split_seed": -1}, {"min_members": 0}]
)
def test_odd_options(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        TargetOptions(**options)
