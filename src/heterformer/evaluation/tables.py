"""The results of an evaluation as tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from heterformer.evaluation.classification import CLASSIFIERS
from heterformer.evaluation.core import Classified, Clustered
from heterformer.evaluation.link_prediction import LinkPrediction
from heterformer.metrics import CLASSIFICATION_METRICS, CLUSTERING_METRICS, RANKING_METRICS, Repeated
from heterformer.tables import Sheet, four_digits, listed

RANKING_HEADINGS = tuple(metric.narrow_heading or metric.heading for metric in RANKING_METRICS)
SEEN = "†"
SHORT_PARTS = {"validation": "valid."}  # eleven columns must fit into eighty characters
CLASSIFIER_NAMES = {"mlp": "MLP", "logistic_regression": "log. regression", "majority": "majority class"}


def link_prediction_table(rows: Mapping[str, Sequence[LinkPrediction]], title: str) -> Sheet:
    """One row per model and part: the metrics of the in-batch ranking, then those of the full ranking."""
    lines = [(name, one.part, *_ranking_cells(one)) for name, results in rows.items() for one in results]
    results = [one for several in rows.values() for one in several]
    note = _note(results, f"all {results[0].candidates:,} candidates")
    return Sheet(title, ("", "part", *RANKING_HEADINGS), tuple(lines), note, text_columns=2)


def relations_table(results: Sequence[LinkPrediction], seen: Collection[str], title: str) -> Sheet:
    """One row per relation and part of a single model; relations whose pairs training saw are marked."""
    lines = [
        (
            SEEN * (one.relation in seen) + one.relation,
            SHORT_PARTS.get(one.part, one.part),
            f"{one.pairs:,}",
            f"{one.candidates:,}",
            *_ranking_cells(one),
        )
        for one in results
    ]
    note = _note(results, "so many candidates")
    if len({one.relation for one in results}) > 1:
        note += ". For relations besides the predicted one, these are left out of the batch too"
    if seen:
        note += (
            f". {SEEN}: training saw these pairs, except those of held-out nodes; "
            f"train with --split.also {','.join(seen)} to hide them"
        )
    headings = ("relation", "part", "pairs", "among", *RANKING_HEADINGS)
    return Sheet(title, headings, tuple(lines), note, text_columns=2)


def _note(results: Sequence[LinkPrediction], candidates: str) -> str:
    size = results[0].batch_size
    most = "" if all(one.pairs >= size for one in results) else "at most "
    return ranking_note(f"{most}{size} pairs", candidates)


def ranking_note(batch: str, candidates: str) -> str:
    """What keys are ranked among, for every table of ranking metrics."""
    in_batch = listed([metric.heading for metric in RANKING_METRICS if metric.ranking == "in_batch"])
    others = f"the other metrics among {candidates}, without the query's other true keys"
    return f"{in_batch} rank each key among the keys of {batch}, {others}"


def _ranking_cells(result: LinkPrediction) -> tuple[str, ...]:
    return tuple(four_digits(result.metrics[metric.name]) for metric in RANKING_METRICS)


def classification_table(results: Sequence[Classified], title: str) -> Sheet:
    """One row per node type, setting and classifier."""
    rows = []
    for one in results:
        size = (f"{one.result.nodes:,}", f"{len(one.result.classes)}")
        for name in CLASSIFIERS:
            scores = one.result.scores[name]
            cells = [_repeated_cell(scores[metric.name]) for metric in CLASSIFICATION_METRICS]
            rows.append((one.node_type, one.setting, CLASSIFIER_NAMES[name], *size, *cells))
    metrics = (metric.heading for metric in CLASSIFICATION_METRICS)
    repeats = len(results[0].result.parts)
    note = (
        f"classifiers on fixed vectors, on the test part of {_counted(repeats, 'split')} 7:1:2"
        f"{_spread(repeats)}"
    )
    headings = ("nodes", "setting", "classifier", "labelled", "classes", *metrics)
    return Sheet(title, headings, tuple(rows), note, text_columns=3)


def clustering_table(results: Sequence[Clustered], title: str) -> Sheet:
    """One row per node type."""
    rows = []
    for one in results:
        cells = [_repeated_cell(one.result.metrics[metric.name]) for metric in CLUSTERING_METRICS]
        rows.append((one.node_type, f"{one.result.nodes:,}", f"{len(one.result.classes)}", *cells))
    runs = len(results[0].result.metrics[CLUSTERING_METRICS[0].name].values)
    note = (
        f"k-means with as many clusters as classes, {_counted(runs, 'run')}{_spread(runs)}; "
        "only nodes with exactly one class"
    )
    headings = ("nodes", "clustered", "classes", *(metric.heading for metric in CLUSTERING_METRICS))
    return Sheet(title, headings, tuple(rows), note, text_columns=1)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _spread(count: int) -> str:
    return "" if count == 1 else " (mean ± standard deviation)"


def _repeated_cell(metric: Repeated) -> str:
    spread = "" if metric.deviation is None else f" ±{four_digits(metric.deviation)}"
    return f"{four_digits(metric.mean)}{spread}"
