"""Classification and clustering as tables."""

from __future__ import annotations

from collections.abc import Sequence

from heterformer.evaluation.classification import CLASSIFIERS
from heterformer.evaluation.core import Classified, Clustered
from heterformer.metrics import Repeated
from heterformer.tables import Sheet, four_digits

NAMES = {"mlp": "MLP", "logistic_regression": "log. regression", "majority": "majority class"}


def classification_table(results: Sequence[Classified], title: str) -> Sheet:
    """A row for each type, setting and classifier: micro and macro F1."""
    rows = []
    for one in results:
        found = one.result
        for name in CLASSIFIERS:
            scores = found.scores[name]
            about = (one.node_type, one.setting, NAMES[name], f"{found.nodes:,}", f"{len(found.classes)}")
            rows.append((*about, _cell(scores.micro), _cell(scores.macro)))
    headings = ("nodes", "setting", "classifier", "labelled", "classes", "micro F1", "macro F1")
    repeats = len(results[0].result.parts)
    note = f"on the test part of {_times(repeats, 'division')} 7:1:2, of fixed vectors{_spread(repeats)}"
    return Sheet(title, headings, tuple(rows), note, words=3)


def clustering_table(results: Sequence[Clustered], title: str) -> Sheet:
    """A row for each type: NMI and ARI of k-means."""
    rows = [
        (one.node_type, f"{one.result.nodes:,}", f"{len(one.result.classes)}", *map(_cell, _both(one)))
        for one in results
    ]
    runs = len(results[0].result.nmi.values)
    starts = f"{_times(runs, 'start')}{_spread(runs)}"
    note = f"k-means, as many clusters as classes, {starts}; nodes with one class"
    return Sheet(title, ("nodes", "clustered", "classes", "NMI", "ARI"), tuple(rows), note, words=1)


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _spread(count: int) -> str:
    return "" if count == 1 else ", ± standard deviation"


def _both(one: Clustered) -> tuple[Repeated, Repeated]:
    return one.result.nmi, one.result.ari


def _cell(figure: Repeated) -> str:
    spread = "" if figure.deviation is None else f" ±{four_digits(figure.deviation)}"
    return f"{four_digits(figure.mean)}{spread}"
