"""A map of a network's nodes: which are shown, in which colour, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import Float32s, Ints
from heterformer.errors import InputError, OptionError
from heterformer.maps.options import MAX_CLASSES, MapOptions
from heterformer.maps.projection import expected_seconds, first_not_finite, place_among, project
from heterformer.network.labels import label_lists
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.progress import say
from heterformer.tables import listed

if TYPE_CHECKING:  # it takes seconds to import, and choosing nodes needs none of it
    from heterformer.embedding.node_vectors import Vectorized

LISTED = 12  # labels that a message names
LONG = 20_000  # nodes whose layout takes minutes
TOLD_NEIGHBORS = 2  # of each type, that are named with a node


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
    others: tuple[Group, ...] = ()  # further classes that it has
    labels: tuple[str, ...] = ()  # all that it has
    text: str = ""  # if its name is another
    neighbors: tuple[str, ...] = ()  # names of some
    degree: int = 0  # how many neighbours there are


@dataclass(frozen=True)
class NodeMap:
    """Points in the order in which to draw them: grey ones first, the rest at random, so that none rules."""

    network: str
    types: tuple[NodeType, ...]
    groups: tuple[Group, ...]  # that have points; classes as asked for or most frequent first
    points: tuple[Point, ...]
    nodes: int  # of which the points are all or a sample
    placed: tuple[NodeType, ...] = ()  # not by t-SNE, but at the texts that are closest to them

    @property
    def contents(self) -> str:
        """Which nodes are shown, and how many of how many."""
        count = f"{len(self.points):,}"
        sample = count if len(self.points) == self.nodes else f"{count} of {self.nodes:,}"
        return f"t-SNE of {sample} {listed(self.types)} nodes"

    @property
    def caption(self) -> str:
        """What a place on the map means."""
        meaning = "close nodes have similar vectors; large distances mean little"
        if not self.placed:
            return meaning
        return f"{meaning}; {listed(self.placed)} nodes are placed among the texts closest to them"


@dataclass(frozen=True)
class Selection:
    """What a map will show, before anything is known of vectors."""

    types: tuple[NodeType, ...]
    classes: tuple[str, ...]  # none if colours tell types
    rows: Mapping[NodeType, Ints]  # the sample, ascending
    nodes: int
    labels: Mapping[NodeType, pl.Series]  # of all nodes of the types that have some: lists

    @classmethod
    def choose(
        cls,
        network: Network,
        types: Sequence[NodeType],
        options: MapOptions,
        known: Mapping[NodeType, Ints] | None = None,
    ) -> Selection:
        """Choose among the nodes of ``types``, those that have vectors, or their rows ``known``."""
        kinds = _shown_types(network, types, options)
        labels = {t: lists for t in kinds if (lists := label_lists(network, t)) is not None}
        classes = _classes(labels, kinds, options)
        rows = {t: _eligible(network.schema.counts[t], labels.get(t), options.classes) for t in kinds}
        rows = {t: np.intersect1d(rows[t], known[t]) if known and t in known else rows[t] for t in kinds}
        if not any(map(len, rows.values())):
            raise InputError(f"{network.path}: there are no {' or '.join(kinds)} nodes to show.")
        rng = np.random.default_rng(options.seed)
        shares = _shares({t: len(rows[t]) for t in kinds}, options.max_nodes)
        sample = {t: np.sort(rng.choice(rows[t], shares[t], replace=False)) for t in kinds}
        return cls(kinds, classes, sample, sum(map(len, rows.values())), labels)


def map_of(
    network: Network,
    vectors: Vectorized,
    options: MapOptions | None = None,
    announce_from: int = LONG,
    advance: Callable[[int], object] | None = None,
) -> NodeMap:
    """Lay out the nodes that have vectors by these; from ``announce_from`` nodes on, say how long it takes.

    Text-rich nodes are laid out by t-SNE, and textless ones placed among them if both are shown. Colours tell
    labels, and grey that a node has none of those shown; if no type shown has labels, colours tell types.
    ``advance`` counts t-SNE's iterations.
    """
    options = options or MapOptions()
    known = {t: one.rows for t, one in vectors.items()}
    chosen = Selection.choose(network, tuple(vectors), options, known)
    matrices = _gathered(network, vectors, chosen)
    texts = (
        tuple(t for t in chosen.types if t in network.schema.text_rich and len(matrices[t])) or chosen.types
    )
    places = _places(matrices, texts, options, announce_from, advance)
    points = [
        replace(node, x=x, y=y)
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
    matrices: Mapping[NodeType, Float32s],
    texts: Sequence[NodeType],
    options: MapOptions,
    announce_from: int,
    advance: Callable[[int], object] | None,
) -> dict[NodeType, Float32s]:
    """(r, 2) by type: those of ``texts`` together, each of the others among them."""
    anchors = np.concatenate([matrices[t] for t in texts])  # (n, d)
    if len(anchors) >= announce_from:
        minutes = expected_seconds(len(anchors), anchors.shape[1], options) / 60
        say(f"laying out {len(anchors):,} nodes takes about {max(1, round(minutes)):,} minutes")
    plane = project(anchors, options, advance)  # (n, 2)
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


def _eligible(count: int, lists: pl.Series | None, classes: Sequence[str]) -> Ints:
    """The rows that may be shown: if classes were asked for, of a type with labels only theirs."""
    if not classes or lists is None:
        return np.arange(count)
    labels = pl.DataFrame({"row": pl.int_range(len(lists), eager=True), "label": lists}).explode("label")
    rows = labels.filter(pl.col("label").is_in(classes))["row"].unique().sort()
    return rows.to_numpy().astype(np.int64)


def _shares(counts: Mapping[NodeType, int], most: int) -> dict[NodeType, int]:
    """How many nodes of each type: equally many, and what a small type lacks goes to the others."""
    shares, left = {}, most
    for number, node_type in enumerate(sorted(counts, key=lambda t: counts[t])):
        shares[node_type] = min(counts[node_type], left // (len(counts) - number))
        left -= shares[node_type]
    return shares


def _gathered(network: Network, vectors: Vectorized, chosen: Selection) -> dict[NodeType, Float32s]:
    """(r, d) by type: the vectors of the nodes shown."""
    matrices = {}
    for node_type, rows in chosen.rows.items():
        matrices[node_type] = vectors[node_type].lookup(rows)
        bad = first_not_finite(matrices[node_type])
        if bad is not None:
            node_id = network.ids(node_type, [rows[bad]])[0]
            problem = f"the vector of {node_type} {node_id!r} has a value that is NaN or infinite"
            raise InputError(f"{problem}; train or embed again.")
    widths = sorted({part.shape[1] for part in matrices.values()})
    if len(widths) > 1:
        raise InputError(f"vectors of different types have {widths} numbers, expected equally many.")
    return matrices


def _nodes(network: Network, node_type: NodeType, chosen: Selection) -> list[Point]:
    """What to say of each node shown, and its groups; where it lies is not known yet."""
    rows = chosen.rows[node_type]
    ids, names = network.ids(node_type, rows), network.names(node_type, rows)
    has_text = node_type in network.schema.text_rich
    texts = network.texts(node_type, rows) if has_text else [""] * len(rows)
    if node_type in chosen.labels and chosen.classes:
        labels = chosen.labels[node_type].gather(rows).to_list()
        described = [(*_label(own, chosen.classes), tuple(own)) for own in labels]
    else:
        described = [(None, Group(node_type, "type"), (), ())] * len(rows)
    around = _neighbors(network, node_type, rows)
    return [
        Point(
            0.0, 0.0, node_type, i, name, *about, text="" if text == name else text, neighbors=near, degree=n
        )
        for i, name, text, about, (near, n) in zip(ids, names, texts, described, around, strict=True)
    ]


def _label(own: Sequence[str], classes: Sequence[str]) -> tuple[str | None, Group, tuple[Group, ...]]:
    """The label that decides a node's colour, its group, and further groups that it is counted in."""
    groups = tuple(Group(label, "class") for label in own if label in classes)
    if groups:
        return groups[0].name, groups[0], groups[1:]
    return (own[0], OTHER, ()) if own else (None, UNLABELLED, ())


def _neighbors(network: Network, node_type: NodeType, rows: Ints) -> list[tuple[tuple[str, ...], int]]:
    """Of each node the names of some neighbours, of all types in turn, and how many it has."""
    some: list[list[str]] = [[] for _ in rows]
    degrees = np.zeros(len(rows), dtype=np.int64)
    for other in network.schema.neighbor_types_of(node_type):
        adjacency = network.adjacency(node_type, other)
        starts, ends = adjacency.indptr[rows].astype(np.int64), adjacency.indptr[rows + 1].astype(np.int64)
        degrees += ends - starts
        counts = np.minimum(ends - starts, TOLD_NEIGHBORS)
        places = np.repeat(starts, counts) + _ranks(counts)
        names = network.names(other, adjacency.neighbor[places].astype(np.int64).tolist())
        for number, name in zip(np.repeat(np.arange(len(rows)), counts).tolist(), names, strict=True):
            if name not in some[number]:
                some[number].append(name)
    return [(tuple(names), int(degree)) for names, degree in zip(some, degrees.tolist(), strict=True)]


def _ranks(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, 1, … for each count, one after the other."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
