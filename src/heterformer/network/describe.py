"""Statistics of a network (the paper's data table), and warnings about what harms training or evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.network.attributes import AttributeKind, numbers
from heterformer.network.leaks import leak_warnings
from heterformer.network.list_ids import find_list_ids
from heterformer.network.schema import EdgeColumn, NodeType, Relation
from heterformer.network.split.draw import make_split
from heterformer.network.store import Network
from heterformer.untrusted import short_repr

HUB_SHARE, HUB_DEGREE = 0.1, 100  # a hub is linked to this share of a type, and to this many nodes at least
SMALL = 100  # query nodes; only with fewer can the default split fail
EXAMPLES = 3  # nodes of each type that are named


@dataclass(frozen=True)
class TextLengths:
    """Words per text."""

    mean: float
    median: float
    longest: int
    empty: int
    repeated: int  # copies of a text beyond its first
    over_limit: int  # texts of more words than ``max_tokens``, which are truncated


@dataclass(frozen=True)
class NodeSummary:
    """One node type."""

    node_type: NodeType
    count: int
    isolated: int
    texts: TextLengths | None
    label_kind: str | None  # "single" or "multi"
    labelled: int | None
    classes: dict[str, int]  # label -> nodes, most frequent first
    single_edge: int  # nodes with exactly one edge
    most_linked: tuple[tuple[str, int], ...]  # names and edges
    examples: tuple[str, ...]  # names of nodes from all over the table
    attributes: tuple[AttributeSummary, ...] = ()


@dataclass(frozen=True)
class AttributeSummary:
    """One attribute of a node type."""

    name: str
    kind: AttributeKind
    missing: int
    distinct: int
    range: tuple[float, float] | None  # of a number
    frequent: tuple[tuple[str, int], ...]  # values of another kind, and their nodes


@dataclass(frozen=True)
class Degrees:
    """Edges per node at one end of a relation, over nodes that have any."""

    nodes: int
    mean: float
    median: float
    highest: int
    hub: str  # the id of the node with the highest degree


@dataclass(frozen=True)
class RelationSummary:
    """One relation and its degrees at both ends."""

    relation: Relation
    edges: int
    source: Degrees
    target: Degrees
    ranges: dict[EdgeColumn, tuple[float, float]] = field(default_factory=dict)  # of weights and times


@dataclass(frozen=True)
class Description:
    """The statistics and warnings of ``heterformer describe``."""

    name: str
    predicted: tuple[str, ...]
    """The names of the predicted relations."""
    nodes: tuple[NodeSummary, ...]
    relations: tuple[RelationSummary, ...]
    warnings: tuple[str, ...]
    too_small: str | None = None
    """Why the network cannot be trained on, if it cannot."""


def describe(network: Network) -> Description:
    """Summarise every node type and relation, and check for common problems."""
    nodes = tuple(_node_summary(network, t) for t in network.schema.node_types)
    relations = tuple(_relation_summary(network, r) for r in network.schema.relations)
    warnings = [w for n in nodes for w in _node_warnings(network, n)]
    warnings += [w for r in relations for w in _hub_warnings(network, r)]
    warnings += [w for n in nodes if n.classes for w in leak_warnings(network, n.node_type)]
    name, predicted = network.name, tuple(network.schema.shares)
    return Description(name, predicted, nodes, relations, tuple(warnings), _too_small(network))


def _too_small(network: Network) -> str | None:
    relations = network.schema.predicted
    queries = {r.name: len(np.unique(network.edges(r.name)[0])) for r in relations}
    smallest = min(queries, key=lambda name: queries[name])
    if queries[smallest] >= SMALL:
        return None
    try:
        make_split(network)
    except InputError:
        problem = f"relation {smallest!r} has {queries[smallest]:,} query nodes"
        return f"{problem}, too few for a train, a validation and a test part; training needs more data."
    return None


def _node_summary(network: Network, node_type: NodeType) -> NodeSummary:
    count = network.schema.counts[node_type]
    degrees = np.zeros(count, dtype=np.int64)
    for neighbor in network.schema.neighbor_types_of(node_type):
        degrees += network.adjacency(node_type, neighbor).degrees
    labelled, classes = None, dict[str, int]()
    if node_type in network.label_kinds:
        labels = network.labels(node_type)
        labelled = int((labels.list.len() > 0).sum())
        frequent = labels.explode(empty_as_null=True).drop_nulls().value_counts(sort=True)
        classes = dict(frequent.iter_rows())
    texts = _text_lengths(network, node_type) if node_type in network.schema.text_rich else None
    kind = network.label_kinds.get(node_type)
    hubs = np.argsort(-degrees, kind="stable")[:EXAMPLES]
    hubs = hubs[degrees[hubs] > 0]
    spread = np.unique(np.linspace(0, count - 1, EXAMPLES).astype(int))
    return NodeSummary(
        node_type,
        count,
        isolated=int((degrees == 0).sum()),
        texts=texts,
        label_kind=kind,
        labelled=labelled,
        classes=classes,
        single_edge=int((degrees == 1).sum()),
        most_linked=tuple(zip(network.names(node_type, hubs), degrees[hubs].tolist(), strict=True)),
        examples=tuple(network.names(node_type, spread)),
        attributes=tuple(
            _attribute_summary(network.attribute(node_type, name), name, kind)
            for name, kind in network.attribute_kinds.get(node_type, {}).items()
        ),
    )


def _attribute_summary(values: pl.Series, name: str, kind: AttributeKind) -> AttributeSummary:
    present = values.drop_nulls()
    counts = present.value_counts(sort=True)
    limits = None
    if kind == "number" and len(present):
        parsed = numbers(present)
        limits = float(parsed.min()), float(parsed.max())
    frequent = tuple(counts.head(EXAMPLES).iter_rows()) if kind != "number" else ()
    return AttributeSummary(name, kind, values.null_count(), len(counts), limits, frequent)


def _text_lengths(network: Network, node_type: NodeType) -> TextLengths:
    words, hashes = [], []
    for texts in network.text_batches(node_type):
        series = pl.Series(texts, dtype=pl.String)
        words.append(series.str.count_matches(r"\S+").to_numpy())
        hashes.append(series.hash().to_numpy())
    lengths, hashed = np.concatenate(words), np.concatenate(hashes)
    hashed = hashed[lengths > 0]
    return TextLengths(
        mean=float(lengths.mean()),
        median=float(np.median(lengths)),
        longest=int(lengths.max()),
        empty=int((lengths == 0).sum()),
        repeated=len(hashed) - len(np.unique(hashed)),
        over_limit=int((lengths > network.schema.max_tokens).sum()),
    )


def _relation_summary(network: Network, relation: Relation) -> RelationSummary:
    source, target = network.edges(relation.name)
    return RelationSummary(
        relation,
        len(source),
        _degrees(network, relation.source, source),
        _degrees(network, relation.target, target),
        {
            column: (float(values.min()), float(values.max()))
            for column in network.edge_columns.get(relation.name, ())
            if (values := network.edge_values(relation.name, column)) is not None and len(values)
        },
    )


def _degrees(network: Network, node_type: NodeType, rows: NDArray[np.int64] | NDArray[np.int32]) -> Degrees:
    counts = np.bincount(rows, minlength=network.schema.counts[node_type])
    hub, positive = int(counts.argmax()), counts[counts > 0]
    if not len(positive):
        return Degrees(0, 0.0, 0.0, 0, "")
    hub_id = network.ids(node_type, [hub])[0]
    return Degrees(
        len(positive), float(positive.mean()), float(np.median(positive)), int(counts[hub]), hub_id
    )


def _node_warnings(network: Network, node: NodeSummary) -> list[str]:
    warnings = []
    if node.isolated:
        share = node.isolated / node.count
        warnings.append(f"{node.isolated:,} {node.node_type} nodes ({share:.1%}) have no edges.")
    if list_ids := find_list_ids(network.id_series(node.node_type)):
        problem = f"{list_ids.count:,} {node.node_type} ids look like lists ({short_repr(list_ids.example)})"
        warnings.append(f"{problem}: set separator: {list_ids.separator!r} in the relations that name them.")
    if node.labelled and len(node.classes) == 1:
        problem = (
            f"all labelled {node.node_type} nodes have the one class {short_repr(next(iter(node.classes)))}"
        )
        warnings.append(f"{problem}: there is nothing to classify.")
    if node.texts is None:
        return warnings
    if node.texts.empty:
        share = node.texts.empty / node.count
        warnings.append(f"{node.texts.empty:,} {node.node_type} nodes ({share:.1%}) have an empty text.")
    if node.texts.repeated > 0.01 * node.count:
        share = node.texts.repeated / node.count
        warnings.append(f"{share:.1%} of the {node.node_type} texts are exact copies of another node's text.")
    if node.texts.over_limit > 0.1 * node.count:
        share, limit = node.texts.over_limit / node.count, network.schema.max_tokens
        problem = f"at least {share:.0%} of the {node.node_type} texts are truncated"
        warnings.append(f"{problem}: they have more words than max_tokens = {limit}.")
    return warnings


def _hub_warnings(network: Network, summary: RelationSummary) -> list[str]:
    relation = summary.relation
    warnings = []
    for ends, node_type, others in (
        (summary.source, relation.source, relation.target),
        (summary.target, relation.target, relation.source),
    ):
        share = ends.highest / network.schema.counts[others]
        if share > HUB_SHARE and ends.highest >= HUB_DEGREE:
            hub = f"{node_type} {ends.hub!r} is a hub of {relation.name!r}: it has {ends.highest:,} edges"
            warnings.append(f"{hub} ({share:.0%} of all {others} nodes) and says little about any of them.")
    return warnings
