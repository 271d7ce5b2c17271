"""Node classification on fixed vectors (Section 4.3): do they predict classes that training did not use?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from heterformer.arrays import AnyFloats, Ints
from heterformer.errors import InputError
from heterformer.evaluation.options import ClassificationOptions
from heterformer.metrics import MetricSummary, classification_metrics
from heterformer.network.labels import NAMED, Labels, LeftOut
from heterformer.network.stratified import LEAST_MEMBERS, PARTS, stratified_parts
from heterformer.progress import progress_bar

if TYPE_CHECKING:
    from heterformer.evaluation.classifiers import Examples, Predictor

CLASSIFIERS = ("mlp", "logistic_regression", "majority")


@dataclass(frozen=True)
class ClassificationResult:
    """How well classes are predicted, beside the baselines for it."""

    nodes: int
    classes: dict[str, int]
    """Class to number of nodes, most frequent first."""
    left_out: tuple[LeftOut, ...]
    """Of the type's labels; the last for having fewer nodes than there are parts, if some have."""
    multi: bool
    labels_per_node: float
    parts: tuple[tuple[int, int, int], ...]
    """Nodes in the training, validation and test part of each repeat."""
    learning_rate: float
    scores: dict[str, dict[str, MetricSummary]]
    """By classifier and metric, on the test part of each repeat; 'majority' ignores the vectors."""


def classify(
    lookup: Callable[[Ints], AnyFloats],
    labels: Labels,
    options: ClassificationOptions,
    learning_rate: float,
    progress: str | None = None,
) -> ClassificationResult:
    """Train classifiers on the vectors of labelled nodes and score them on unseen ones.

    ``lookup`` gives the vectors (n, d) of nodes in some rows, and is asked for those that are drawn. Classes
    with fewer nodes than parts are left out, and so are nodes with no other class. The parts depend on the
    labels and the seed alone: models are compared on the same nodes. ``progress`` names the bar.
    """
    labels.check_classes()
    chosen, left_out = _chosen(labels, options)
    known = chosen.vectors_by(lookup)  # (n, d)
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in CLASSIFIERS}
    sizes = []
    with progress_bar(
        progress or f"classifying {labels.node_type}", options.repeats * len(measured), "fits"
    ) as bar:
        for repeat in range(options.repeats):
            rng = np.random.default_rng([options.seed, repeat + 1])
            part = stratified_parts(chosen.matrix, rng)  # (n,)
            train, validation, test = ((known[part == p], chosen.matrix[part == p]) for p in PARTS)
            sizes.append((len(train[0]), len(validation[0]), len(test[0])))
            fits = _fits(train, validation, chosen.multi, options, learning_rate, int(rng.integers(1 << 31)))
            for name, fit in fits.items():
                measured[name].append(classification_metrics(test[1], fit()(test[0])))
                bar.advance()
    return ClassificationResult(
        nodes=len(chosen),
        classes=dict(zip(chosen.classes, chosen.members.tolist(), strict=True)),
        left_out=left_out,
        multi=chosen.multi,
        labels_per_node=float(chosen.matrix.sum(1).mean()),
        parts=tuple(sizes),
        learning_rate=learning_rate,
        scores={name: MetricSummary.from_repeats(repeats) for name, repeats in measured.items()},
    )


def _chosen(labels: Labels, options: ClassificationOptions) -> tuple[Labels, tuple[LeftOut, ...]]:
    """The nodes to classify, and the classes that are too rare among them or were so before."""
    sample = labels.sample(options.max_nodes, np.random.default_rng(options.seed))
    chosen = sample.with_members(LEAST_MEMBERS)
    if len(chosen.classes) < 2:
        problem = (
            f"found {len(chosen.classes)} of {len(labels.classes)} classes with {LEAST_MEMBERS} nodes or more"
        )
        raise InputError(f"{labels.node_type}: {problem} to divide 7:1:2, expected at least two.")
    rare = tuple(name for name in sample.classes if name not in chosen.classes)
    if not rare:
        return chosen, labels.left_out
    lost = LeftOut(
        f"fewer than {LEAST_MEMBERS} nodes here", len(rare), len(sample) - len(chosen), rare[:NAMED]
    )
    return chosen, (*labels.left_out, lost)


def _fits(
    train: Examples,
    validation: Examples,
    multi: bool,
    options: ClassificationOptions,
    learning_rate: float,
    seed: int,
) -> dict[str, Callable[[], Predictor]]:
    """How to fit each classifier; the test part is nobody's argument."""
    from heterformer.evaluation.classifiers import MLP, fit_logistic_regression, fit_majority  # take seconds

    mlp = MLP(options.hidden, learning_rate, options.batch_size, options.patience, options.max_epochs)
    return {
        "mlp": lambda: mlp.fit(train, validation, multi, seed),
        "logistic_regression": lambda: fit_logistic_regression(train, multi),
        "majority": lambda: fit_majority(train, multi),
    }
