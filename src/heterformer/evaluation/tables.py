"""The results of an evaluation as tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from heterformer.evaluation.classification import CLASSIFIERS
from heterformer.evaluation.core import NodeClassification, NodeClustering
from heterformer.evaluation.link_prediction import LinkPrediction
from heterformer.evaluation.recommendation import RecommendationResult
from heterformer.metrics import (
    ALONE_WITH_LINKS_METRICS,
    CLASSIFICATION_METRICS,
    CLUSTERING_METRICS,
    QUERY_ALONE_METRICS,
    RANKING_METRICS,
    RECOMMENDATION_METRICS,
    WITH_LINKS_METRICS,
    MetricSummary,
    RankingMetric,
)
from heterformer.tables import Sheet, four_digits, listed

RANKING_HEADINGS = tuple(metric.narrow_heading or metric.heading for metric in RANKING_METRICS)
SEEN, IN_SIGHT = "†", "‡"
SEEN_BY_VECTORS = "these pairs were visible when the vectors were made, which inflates the metrics"
HIDE_SPLIT = "'heterformer embed' with hide_split hides a run's held-out pairs"
ALONE, POPULARITY, CHANCE = "alone", "popular", "chance"  # rows below a part's
ALONE_NOTE = "alone: queries are read without their neighbours, as a search reads a text; keys with theirs"
WITH_LINKS = "+ links"
LINKS_ADDED = (
    "the log of a candidate's number of links is added to its score, which then says how likely a link is, "
    "not how much likelier than usual"
)
REFERENCE_NOTE = f"{POPULARITY}: the same keys ranked by their number of edges; {CHANCE}: by guessing"
SHORT_PARTS = {"validation": "valid."}  # eleven columns must fit into eighty characters
CLASSIFIER_NAMES = {"mlp": "MLP", "logistic_regression": "log. regression", "majority": "majority class"}


def relations_table(
    results: Sequence[LinkPrediction],
    seen: Collection[str],
    title: str,
    seen_by_vectors: Collection[str] = (),
) -> Sheet:
    """Of a single model, by relation and part; relations whose pairs training or the vectors saw are marked.

    A row for each reading of the queries, then what popularity and chance give for the relation, of its last
    part; pairs of new nodes are others, and have their own.
    """
    lines = []
    last = {(one.relation, one.part == "new"): one for one in results}
    for one in results:
        name = SEEN * (one.relation in seen) + IN_SIGHT * (one.relation in seen_by_vectors) + one.relation
        sizes = (f"{one.pairs:,}", f"{one.candidates:,}")
        for part, cells in _readings(one, SHORT_PARTS.get(one.part, one.part)):
            lines.append((name, part, *sizes, *cells))
            name, sizes = "", ("", "")
        if one is last[one.relation, one.part == "new"]:
            lines += [("", part, "", "", *cells) for part, cells in _references(one)]
    note = f"{_note(results, 'all candidates')}. {REFERENCE_NOTE}"
    if len({one.relation for one in results}) > 1:
        without = "the query's other true keys are left out of the batch too"
        note += f". For relations besides the predicted one, {without}"
    if any(one.part == "new" for one in results):
        note += ". new: pairs of nodes that the network has got since training, one for each query"
    if seen:
        note += (
            f". {SEEN}: training saw these pairs, except those of held-out nodes; "
            f"train with split.also set to {','.join(seen)} to hide them"
        )
    if seen_by_vectors:
        note += f". {IN_SIGHT}: {SEEN_BY_VECTORS}. {HIDE_SPLIT}"
    headings = ("relation", "part", "pairs", "among", *RANKING_HEADINGS)
    return Sheet(title, headings, tuple(lines), note, text_columns=2)


def widths_table(by_width: Mapping[int, Sequence[LinkPrediction]], title: str) -> Sheet:
    """Of a model that was trained at several widths: the predicted relations' pairs at each of them."""
    lines = []
    for number, whole in enumerate(next(iter(by_width.values()))):
        name, label = whole.relation, SHORT_PARTS.get(whole.part, whole.part)
        for width, results in by_width.items():
            for part, cells in _readings(results[number], label):
                lines.append((name, str(width) if part == label else "", part, *cells))
                name = ""
    note = "vectors are cut to their first numbers, as 'heterformer embed' with width cuts them"
    return Sheet(title, ("relation", "width", "part", *RANKING_HEADINGS), tuple(lines), note, text_columns=3)


def _readings(result: LinkPrediction, part: str) -> list[tuple[str, tuple[str, ...]]]:
    """The metrics of queries with neighbours, under the name of the part, and of queries alone.

    Below each those of the full ranking with the links of candidates, if there are such.
    """
    rows = [(part, _ranking_cells(result.metrics, RANKING_METRICS))]
    if result.with_links:
        rows.append((WITH_LINKS, _full_cells(result.metrics, WITH_LINKS_METRICS)))
    if result.query_alone:
        rows.append((ALONE, _ranking_cells(result.metrics, QUERY_ALONE_METRICS)))
        if result.with_links:
            rows.append((WITH_LINKS, _full_cells(result.metrics, ALONE_WITH_LINKS_METRICS)))
    return rows


def _references(result: LinkPrediction) -> list[tuple[str, tuple[str, ...]]]:
    """What knows nothing of the query."""
    return [
        (POPULARITY, _ranking_cells(result.popularity, RANKING_METRICS)),
        (CHANCE, _ranking_cells(result.chance, RANKING_METRICS)),
    ]


def _note(results: Sequence[LinkPrediction], candidates: str) -> str:
    size = results[0].batch_size
    most = "" if all(one.pairs >= size for one in results) else "at most "
    note = ranking_note(f"{most}{size} pairs", candidates)
    note += f". {ALONE_NOTE}" if any(one.query_alone for one in results) else ""
    return f"{note}. {WITH_LINKS}: {LINKS_ADDED}" if any(one.with_links for one in results) else note


def ranking_note(batch: str, candidates: str) -> str:
    """What keys are ranked among, for every table of ranking metrics."""
    in_batch = listed([metric.heading for metric in RANKING_METRICS if metric.ranking == "in_batch"])
    others = f"the other metrics among {candidates}, without the query's other true keys"
    return f"{in_batch} rank each key among the different keys of {batch}, {others}"


def _ranking_cells(values: Mapping[str, float], metrics: Sequence[RankingMetric]) -> tuple[str, ...]:
    return tuple(four_digits(values[metric.name]) for metric in metrics)


def _full_cells(values: Mapping[str, float], metrics: Sequence[RankingMetric]) -> tuple[str, ...]:
    """Below the columns of the full ranking; those of the ranking in batches are empty."""
    in_batch = len(RANKING_METRICS) - len(metrics)
    return (*[""] * in_batch, *_ranking_cells(values, metrics))


def classification_table(results: Sequence[NodeClassification], title: str) -> Sheet:
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


def clustering_table(results: Sequence[NodeClustering], title: str) -> Sheet:
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


def recommendation_table(results: Sequence[RecommendationResult], title: str) -> Sheet:
    """By relation, part and group of pairs; below each, what popularity gives."""
    lines = []
    for one in results:
        names = (one.relation, SHORT_PARTS.get(one.part, one.part), one.group)
        sizes = (f"{one.queries:,}", f"{one.candidates:,}")
        for words, metrics in ((names, one.metrics), (("", "", POPULARITY), one.popularity)):
            cells = (four_digits(metrics[metric.name]) for metric in RECOMMENDATION_METRICS)
            lines.append((*words, *(sizes if words is names else ("", "")), *cells))
    note = (
        "each query's list of all targets that it is not linked to; means over queries. "
        f"{POPULARITY}: the list by numbers of edges"
    )
    if any(one.group == "cold targets" for one in results):
        note += ". Cold targets have no visible edge of the relation and are ranked among each other"
    if any(one.group == "cold queries" for one in results):
        note += ". Cold queries are those that training has not seen"
    headings = (
        "relation",
        "part",
        "pairs of",
        "queries",
        "among",
        *(m.heading for m in RECOMMENDATION_METRICS),
    )
    return Sheet(title, headings, tuple(lines), note, text_columns=3)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _spread(count: int) -> str:
    return "" if count == 1 else " (mean ± standard deviation)"


def _repeated_cell(metric: MetricSummary) -> str:
    spread = "" if metric.deviation is None else f" ±{four_digits(metric.deviation)}"
    return f"{four_digits(metric.mean)}{spread}"
