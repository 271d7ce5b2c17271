"""A map of a network's nodes: which are shown, in which colour, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.embedding.node_vectors import Vectorized
from heterformer.errors import InputError, OptionError
from heterformer.maps.options import MAX_CLASSES, MapOptions
from heterformer.maps.projection import Floats, first_not_finite, place_among, project
from heterformer.network.labels import label_lists
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

Rows = NDArray[np.int64]
LISTED = 12  # labels that a message names


@dataclass(frozen=True)
class Group:
    """Nodes that have one colour: a class, a node type, or what stands behind those in grey.

    ``other`` are nodes whose labels are not among the classes, ``unlabelled`` those that lack the label
    which others of their type have. Nodes of a type without labels are a group by themselves.
    """

    name: str
    kind: Literal["class", "type", "other", "unlabelled"]

    @property
    def grey(self) -> bool:
        return self.kind in ("other", "unlabelled")


OTHER, UNLABELLED = Group("other labels", "other"), Group("no label", "unlabelled")


@dataclass(frozen=True)
class Point:
    """A node on the map."""

    x: float
    y: float
    node_type: NodeType
    id: str
    name: str
    label: str | None  # the first that is among the classes, else the first
    group: Group


@dataclass(frozen=True)
class NodeMap:
    """Points in the order in which to draw them: grey ones first, the rest at random, so that none rules."""

    network: str
    types: tuple[NodeType, ...]
    groups: tuple[Group, ...]  # that have points; classes as asked for or most frequent first
    points: tuple[Point, ...]
    nodes: int  # of which the points are all or a sample
    placed: tuple[NodeType, ...] = ()  # not by t-SNE, but at the texts that are closest to them


@dataclass(frozen=True)
class Selection:
    """What a map will show, before anything is known of vectors."""

    types: tuple[NodeType, ...]
    classes: tuple[str, ...]  # none if colours tell types
    rows: Mapping[NodeType, Rows]  # the sample, ascending
    nodes: int
    labels: Mapping[NodeType, pl.Series]  # of all nodes of the types that have some: lists

    @classmethod
    def of(
        cls,
        network: Network,
        types: Sequence[NodeType],
        options: MapOptions,
        known: Mapping[NodeType, Rows] | None = None,
    ) -> Selection:
        """Choose among the nodes of ``types``, those that have vectors, or their rows ``known``."""
        shown = _shown_types(network, types, options)
        labels = {t: lists for t in shown if (lists := label_lists(network, t)) is not None}
        classes = _classes(labels, shown, options)
        rows = {t: _eligible(network.schema.counts[t], labels.get(t), options.classes) for t in shown}
        rows = {t: np.intersect1d(rows[t], known[t]) if known and t in known else rows[t] for t in shown}
        if not any(map(len, rows.values())):
            raise InputError(f"{network.path}: there are no {' or '.join(shown)} nodes to show.")
        rng = np.random.default_rng(options.seed)
        shares = _shares({t: len(rows[t]) for t in shown}, options.max_nodes)
        sample = {t: np.sort(rng.choice(rows[t], shares[t], replace=False)) for t in shown}
        return cls(shown, classes, sample, sum(map(len, rows.values())), labels)


def map_of(network: Network, vectors: Vectorized, options: MapOptions | None = None) -> NodeMap:
    """Lay out the nodes that have vectors by these.

    Text-rich nodes are laid out by t-SNE, and textless ones placed among them if both are shown. Colours tell
    labels, and grey that a node has none of those shown; if no type shown has labels, colours tell types.
    """
    options = options or MapOptions()
    known = {t: one.rows for t, one in vectors.items()}
    chosen = Selection.of(network, tuple(vectors), options, known)
    matrices = _gathered(network, vectors, chosen)
    texts = (
        tuple(t for t in chosen.types if t in network.schema.text_rich and len(matrices[t])) or chosen.types
    )
    places = _places(matrices, texts, options)
    points = [
        Point(x, y, *node)
        for t in chosen.types
        for (x, y), node in zip(places[t].tolist(), _nodes(network, t, chosen), strict=True)
    ]
    order = np.random.default_rng(options.seed).permutation(len(points))
    drawn = sorted((points[i] for i in order), key=lambda point: not point.group.grey)
    present = {point.group for point in points}
    classes, types = (Group(c, "class") for c in chosen.classes), (Group(t, "type") for t in chosen.types)
    groups = tuple(group for group in (*classes, OTHER, UNLABELLED, *types) if group in present)
    placed = tuple(t for t in chosen.types if t not in texts)
    return NodeMap(network.name, chosen.types, groups, tuple(drawn), chosen.nodes, placed)


def _places(
    matrices: Mapping[NodeType, Floats], texts: Sequence[NodeType], options: MapOptions
) -> dict[NodeType, Floats]:
    """(r, 2) by type: those of ``texts`` together, each of the others among them."""
    anchors = np.concatenate([matrices[t] for t in texts])  # (n, d)
    plane = project(anchors, options)  # (n, 2)
    ends = np.cumsum([len(matrices[t]) for t in texts])
    places = dict(zip(texts, np.split(plane, ends[:-1]), strict=True))
    for node_type in matrices:
        if node_type not in places:
            places[node_type] = place_among(matrices[node_type], anchors, plane, options)
    return places


def _shown_types(network: Network, types: Sequence[NodeType], options: MapOptions) -> tuple[NodeType, ...]:
    for node_type in options.types:
        if node_type not in network.schema.node_types:
            known = ", ".join(map(repr, network.schema.node_types))
            raise OptionError(options, "types", f"has {node_type!r}, expected some of {known}.")
        if node_type not in types:
            known = ", ".join(map(repr, types))
            raise OptionError(options, "types", f"has {node_type!r}, but there are vectors of {known} only.")
    if options.types:
        return tuple(dict.fromkeys(options.types))
    available = tuple(t for t in network.schema.node_types if t in types)
    labelled = tuple(t for t in available if t in network.label_kinds)
    return tuple(t for t in labelled if t in network.schema.text_rich) or labelled or available


def _classes(
    labels: Mapping[NodeType, pl.Series], types: Sequence[NodeType], options: MapOptions
) -> tuple[str, ...]:
    """The labels to colour: those asked for, or the most frequent."""
    counts: Counter[str] = Counter()
    for lists in labels.values():
        counts.update(dict(lists.explode(empty_as_null=True).drop_nulls().value_counts().iter_rows()))
    frequent = sorted(counts, key=lambda label: (-counts[label], label))
    for label in options.classes:
        if label not in counts:
            known = ", ".join(map(repr, frequent[:LISTED])) + (", …" if len(frequent) > LISTED else "")
            nodes = f"{' and '.join(types)} nodes"
            expected = f"expected a label of {nodes}: {known}" if frequent else f"but {nodes} have no labels"
            problem = f"has {label!r}, {expected}."
            raise OptionError(options, "classes", problem)
    return tuple(dict.fromkeys(options.classes)) or tuple(frequent[:MAX_CLASSES])


def _eligible(count: int, lists: pl.Series | None, classes: Sequence[str]) -> Rows:
    """The rows that may be shown: if classes were asked for, of a type with labels only theirs."""
    if not classes or lists is None:
        return np.arange(count)
    labels = pl.DataFrame({"row": pl.int_range(len(lists), eager=True), "label": lists}).explode("label")
    wanted = labels.filter(pl.col("label").is_in(classes))["row"].unique().sort()
    return wanted.to_numpy().astype(np.int64)


def _shares(counts: Mapping[NodeType, int], most: int) -> dict[NodeType, int]:
    """How many nodes of each type: equally many, and what a small type lacks goes to the others."""
    shares, left = {}, most
    for number, node_type in enumerate(sorted(counts, key=lambda t: counts[t])):
        shares[node_type] = min(counts[node_type], left // (len(counts) - number))
        left -= shares[node_type]
    return shares


def _gathered(network: Network, vectors: Vectorized, chosen: Selection) -> dict[NodeType, Floats]:
    """(r, d) by type: the vectors of the nodes shown."""
    matrices = {}
    for node_type, rows in chosen.rows.items():
        matrices[node_type] = vectors[node_type].of(rows)
        bad = first_not_finite(matrices[node_type])
        if bad is not None:
            node_id = network.ids(node_type, [rows[bad]])[0]
            problem = f"the vector of {node_type} {node_id!r} has a value that is NaN or infinite"
            raise InputError(f"{problem}; train or embed again.")
    widths = sorted({part.shape[1] for part in matrices.values()})
    if len(widths) > 1:
        raise InputError(f"vectors of different types have {widths} numbers, expected equally many.")
    return matrices


def _nodes(
    network: Network, node_type: NodeType, chosen: Selection
) -> list[tuple[NodeType, str, str, str | None, Group]]:
    """What to say of each node shown, and its group."""
    rows = chosen.rows[node_type]
    ids, names = network.ids(node_type, rows), network.names(node_type, rows)
    if node_type in chosen.labels and chosen.classes:
        labels_and_groups = [
            _label(own, chosen.classes) for own in chosen.labels[node_type].gather(rows).to_list()
        ]
    else:
        labels_and_groups = [(None, Group(node_type, "type"))] * len(rows)
    return [(node_type, i, name, *one) for i, name, one in zip(ids, names, labels_and_groups, strict=True)]


def _label(own: Sequence[str], classes: Sequence[str]) -> tuple[str | None, Group]:
    for label in own:
        if label in classes:
            return label, Group(label, "class")
    return (own[0], OTHER) if own else (None, UNLABELLED)
