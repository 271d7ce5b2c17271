from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, replace
from json import dumps
from typing import Any

import numpy as np
import pytest
import tyro

from heterformer.arrays import AnyFloats, Ints
from heterformer.errors import InputError
from heterformer.evaluation.classification import (
    CLASSIFIERS,
    ClassificationOptions,
    ClassificationResult,
    classify,
)
from heterformer.evaluation.classifiers import MLP, Examples, Predictor, fit_majority
from heterformer.network.labels import Labels, LeftOut
from heterformer.network.stratified import TEST, stratified_parts
from tests.evaluation.planted import clusters, labelled, labelled_several, lookup_of

QUICK = ClassificationOptions(hidden=16, repeats=2, batch_size=32, max_epochs=30)


def micro(vectors: Any, labels: Labels, options: ClassificationOptions = QUICK) -> dict[str, float]:
    found = classify(lookup_of(vectors, labels), labels, options, learning_rate=0.01)
    return {name: scores["micro"].mean for name, scores in found.scores.items()}


# --- What can be learnt, is; what cannot, is not ---------------------------------------------------------


def test_classes_that_lie_apart_are_told_apart() -> None:
    vectors, labels = clusters([60, 40, 30])
    found = classify(lookup_of(vectors, labels), labels, QUICK, learning_rate=0.01)
    for name in ("mlp", "logistic_regression"):
        assert found.scores[name]["micro"].mean > 0.97
        assert found.scores[name]["macro"].mean > 0.97
    assert found.scores["majority"]["micro"].mean == pytest.approx(12 / 26)  # of 12, 8 and 6 test nodes
    assert found.scores["majority"]["macro"].mean == pytest.approx(2 * 12 / (12 + 26) / 3)


def test_noise_is_worth_no_more_than_the_majority() -> None:
    vectors, labels = clusters([300, 150, 150], apart=0)
    found = micro(vectors, labels, replace(QUICK, repeats=3))
    assert found["majority"] == pytest.approx(0.5)
    assert found["mlp"] < 0.56
    assert found["logistic_regression"] < 0.56


def test_shuffled_labels_are_worth_no_more_than_the_majority() -> None:
    vectors, labels = clusters([300, 150, 150])
    shuffled = labelled(np.random.default_rng(1).permutation(labels.codes))
    found = micro(vectors, shuffled)
    assert found["mlp"] < 0.58
    assert found["logistic_regression"] < 0.58


def test_a_feature_that_tells_the_class_in_the_test_part_alone_does_not_help() -> None:
    """The seed's parts are known: plant the answer where only a leak would find it, or everywhere."""
    _, labels = clusters([30] * 10, width=10, apart=0)
    one = replace(QUICK, repeats=1)
    part = stratified_parts(labels.matrix, np.random.default_rng([one.seed, 1]))
    tested = (part == TEST)[:, None]
    noise = np.random.default_rng(0).normal(size=(300, 10))
    planted = 5.0 * labels.matrix + noise
    for name, told in micro(planted, labels, one).items():
        assert name == "majority" or told > 0.9
    for name, told in micro(np.where(tested, planted, noise), labels, one).items():
        assert name == "majority" or told < 0.25
    for name, told in micro(np.where(tested, noise, planted), labels, one).items():  # the parts are these
        assert name == "majority" or told < 0.25


def test_several_classes_each() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 6))
    matrix = vectors[:, :3] > [0, 0.3, 1]
    matrix[:, 0] |= ~matrix.any(1)
    labels = labelled_several(matrix)
    found = classify(lookup_of(vectors, labels), labels, QUICK, learning_rate=0.01)
    assert found.multi
    assert found.labels_per_node == pytest.approx(matrix.sum() / 400)
    for name in ("mlp", "logistic_regression"):
        assert found.scores[name]["micro"].mean > 0.85
        assert found.scores[name]["macro"].mean > 0.8
    # all are said to be of class 0 alone, which more than half are
    share = labels.members[0] / 400
    assert share > 0.5
    assert found.scores["majority"]["micro"].mean == pytest.approx(
        2 * share / (1 + found.labels_per_node), abs=0.02
    )


# --- What the result says --------------------------------------------------------------------------------


def test_the_result_says_what_was_classified() -> None:
    vectors, labels = clusters([50, 30, 20])
    found = classify(lookup_of(vectors, labels), labels, QUICK, learning_rate=0.003)
    assert (found.nodes, found.classes) == (100, {"c0": 50, "c1": 30, "c2": 20})
    assert (found.multi, found.labels_per_node, found.left_out) == (False, 1, ())
    assert found.parts == ((70, 10, 20), (70, 10, 20))
    assert found.learning_rate == 0.003
    assert tuple(found.scores) == CLASSIFIERS
    for scores in found.scores.values():
        assert len(scores["micro"].values) == len(scores["macro"].values) == 2
        assert scores["micro"].mean == pytest.approx(np.mean(scores["micro"].values))
        assert scores["macro"].deviation == pytest.approx(np.std(scores["macro"].values, ddof=1))
    assert '"micro": {"values": [' in dumps(asdict(found))


def test_the_same_seed_gives_the_same_figures_and_another_others() -> None:
    vectors, labels = clusters([60, 40, 30], apart=1.5)

    def figures(seed: int) -> ClassificationResult:
        return classify(lookup_of(vectors, labels), labels, replace(QUICK, seed=seed), learning_rate=0.01)

    assert figures(3) == figures(3)
    assert figures(3).scores["mlp"] != figures(4).scores["mlp"]
    assert len(set(figures(3).scores["mlp"]["micro"].values)) == 2  # repeats divide anew


def test_every_repeat_and_every_seed_starts_the_mlp_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, labels = clusters([20, 20])
    starts = []

    def fit(mlp: MLP, train: Examples, validation: Examples, multi: bool, seed: int) -> Predictor:
        starts.append(seed)
        return fit_majority(train, multi)

    monkeypatch.setattr(MLP, "fit", fit)
    for seed in (0, 1):
        classify(lookup_of(vectors, labels), labels, replace(QUICK, seed=seed), learning_rate=0.01)
    assert len(set(starts)) == len(starts) == 4


def test_rare_classes_are_left_out_and_named() -> None:
    vectors, labels = clusters([20, 20, 3, 2, 1])
    found = classify(lookup_of(vectors, labels), labels, QUICK, learning_rate=0.01)
    assert found.classes == {"c0": 20, "c1": 20, "c2": 3}
    assert found.left_out == (LeftOut("fewer than 3 nodes here", 2, 3, ("c3", "c4")),)
    assert found.nodes == 43


def test_no_more_nodes_than_wanted() -> None:
    vectors, labels = clusters([300, 200])
    lookup, asked = lookup_of(vectors, labels), list[int]()

    def counted(rows: Ints) -> AnyFloats:
        asked.append(len(rows))
        return lookup(rows)

    found = classify(counted, labels, replace(QUICK, max_nodes=60), learning_rate=0.01)
    assert asked == [60]  # a million vectors need not be in memory for a sample of them
    assert found.nodes == sum(found.classes.values()) == 60
    assert found.scores["mlp"]["micro"].mean > 0.97  # each has its own vector still


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_vectors_of_any_precision(dtype: type) -> None:
    vectors, labels = clusters([30, 30])
    assert micro(vectors.astype(dtype), labels)["mlp"] > 0.97


def test_nodes_of_a_part_of_the_rows() -> None:
    vectors, labels = clusters([40, 40, 40])
    hidden = labels.restricted(labels.rows[::2])
    found = classify(lookup_of(vectors[::2], hidden), hidden, QUICK, learning_rate=0.01)
    assert found.nodes == 60
    assert found.scores["logistic_regression"]["micro"].mean > 0.97


# --- Mistakes and options --------------------------------------------------------------------------------


def test_vectors_of_other_nodes() -> None:
    vectors, labels = clusters([20, 20])
    with pytest.raises(InputError, match=r"^paper: found an array of shape \(39, 8\) for 40 labelled nodes"):
        classify(lambda _: vectors[1:], labels, QUICK, learning_rate=0.01)


def test_fewer_nodes_than_parts() -> None:
    vectors, labels = clusters([20, 2, 1])
    with pytest.raises(InputError) as caught:
        classify(lookup_of(vectors, labels), labels, QUICK, learning_rate=0.01)
    assert str(caught.value) == (
        "paper: found 1 of 3 classes with 3 nodes or more to divide 7:1:2, expected at least two."
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"hidden": 0}, "hidden is 0, expected more than 0."),
        ({"hidden": 10**9}, "hidden is 1000000000, expected at most 100,000."),
        ({"max_nodes": 0}, "max_nodes is 0, expected more than 0 or None."),
        ({"learning_rate": -0.1}, "learning_rate is -0.1, expected more than 0 or None."),
        ({"seed": -1}, "seed is -1, expected 0 to 2,147,483,647."),
    ],
)
def test_options_out_of_range(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        ClassificationOptions(**options)
    assert str(caught.value) == complaint


def test_the_learning_rate_is_the_papers_unless_given() -> None:
    assert ClassificationOptions().learning_rate_of(textless=False) == 0.001
    assert ClassificationOptions().learning_rate_of(textless=True) == 0.01
    assert ClassificationOptions(learning_rate=0.5).learning_rate_of(textless=True) == 0.5


def test_options_are_flags() -> None:
    found = tyro.cli(ClassificationOptions, args=["--max-nodes", "9", "--learning-rate", ".1"])
    assert found == ClassificationOptions(max_nodes=9, learning_rate=0.1)


def test_options_are_read_without_heavy_imports() -> None:
    modules = "heterformer.evaluation.classification, heterformer.evaluation.clustering"
    code = f"import sys, {modules}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "sklearn"} & set(loaded.stdout.split())
