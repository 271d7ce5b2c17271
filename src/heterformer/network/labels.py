"""The classes of nodes: their own labels, and those that textless nodes have from their neighbours.

Classes are the strings that a build keeps: whole numbers and truth values are names as well ("3", "true"),
and gaps in a list of labels are gone. A node without any of the chosen classes is not a class of its own:
it is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import AnyFloats, Bools, Ints
from heterformer.errors import InputError, OptionError
from heterformer.network.label_options import LabelOptions
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

MOST_CELLS = 1 << 31  # of a matrix of nodes by classes: 2 GB
NAMED = 3  # classes that a sentence names


@dataclass(frozen=True)
class LeftOut:
    """Classes excluded for one reason, and the nodes that have no other class."""

    reason: str
    classes: int
    nodes: int
    such_as: tuple[str, ...] = ()
    """Examples: the most frequent of the classes."""

    @classmethod
    def between(cls, reason: str, before: pl.DataFrame, after: pl.DataFrame) -> tuple[LeftOut, ...]:
        """The difference between two frames of (row, label), if there is any."""
        lost = before.group_by("label").agg(members=pl.len()).join(after, on="label", how="anti")
        names = lost.sort("members", "label", descending=[True, False])["label"]
        nodes = before["row"].n_unique() - after["row"].n_unique()
        left_out = cls(reason, len(names), nodes, tuple(names.head(NAMED)))
        return (left_out,) if left_out.classes or left_out.nodes else ()

    def __str__(self) -> str:
        named = ", ".join(map(repr, self.such_as)) + (", …" if self.classes > len(self.such_as) else "")
        parts = []
        if self.classes:
            parts.append(f"{self.classes:,} {'class' if self.classes == 1 else 'classes'} ({named})")
        if self.nodes:
            other = "no other class" if self.classes else "no class"
            parts.append(f"{self.nodes:,} {'node' if self.nodes == 1 else 'nodes'} with {other}")
        return f"{' and '.join(parts)} left out: {self.reason}"


@dataclass(frozen=True)
class Labels:
    """The labelled nodes of one type. Every node has a class and every class a node; there may be none."""

    rows: Ints  # (n,) ascending
    classes: tuple[str, ...]  # the C classes, most frequent first, equally frequent ones by name
    matrix: Bools  # (n, C)
    multi: bool
    """Whether a node may have several of the classes; a part of the nodes is of the kind of the whole."""
    node_type: NodeType = "node"
    left_out: tuple[LeftOut, ...] = ()
    """What the type's nodes have of labels besides."""

    @classmethod
    def from_matrix(
        cls,
        rows: Ints,
        classes: Collection[str],
        matrix: Bools,
        multi: bool,
        node_type: str,
        left_out: tuple[LeftOut, ...] = (),
    ) -> Labels:
        """Bring classes into order; leave out classes without nodes and nodes without classes."""
        members, names = matrix.sum(0), list(classes)
        order = sorted(np.flatnonzero(members), key=lambda c: (-members[c], names[c]))
        kept = matrix.any(1)
        matrix = matrix[kept][:, np.array(order, dtype=np.int64)]  # (n, C)
        return cls(rows[kept], tuple(names[c] for c in order), matrix, multi, node_type, left_out)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def members(self) -> Ints:
        """(C,) how many nodes each class has."""
        members: Ints = self.matrix.sum(0, dtype=np.int64)
        return members

    @property
    def codes(self) -> Ints:
        """(n,) the number of each node's one class."""
        if len(self) and self.matrix.sum(1).max() > 1:
            raise ValueError("some nodes have several classes; take single() first")
        return np.nonzero(self.matrix)[1]

    def single(self) -> Labels:
        """The nodes that have exactly one of the classes."""
        one = self.matrix.sum(1) == 1
        return self._part(self.rows[one], self.classes, self.matrix[one], multi=False)

    def restricted(self, rows: NDArray[np.integer[Any]]) -> Labels:
        """The nodes among the given rows."""
        kept = np.isin(self.rows, rows)
        return self._part(self.rows[kept], self.classes, self.matrix[kept], self.multi)

    def of_classes(self, names: Collection[str]) -> Labels:
        """Only these classes, and the nodes that have one of them."""
        kept = [c for c, name in enumerate(self.classes) if name in set(names)]
        chosen = [self.classes[c] for c in kept]
        return self._part(self.rows, chosen, self.matrix[:, kept], self.multi)

    def _part(self, rows: Ints, classes: Collection[str], matrix: Bools, multi: bool) -> Labels:
        return Labels.from_matrix(rows, classes, matrix, multi, self.node_type, self.left_out)

    def with_members(self, least: int) -> Labels:
        """Only the classes with at least this number of nodes."""
        return self.of_classes([self.classes[c] for c in np.flatnonzero(self.members >= least)])

    def sample(self, count: int | None, rng: np.random.Generator) -> Labels:
        """So many nodes at random, or all if there are no more."""
        if count is None or count >= len(self):
            return self
        return self.restricted(rng.choice(self.rows, count, replace=False))

    def check_classes(self) -> None:
        """That there are two classes to tell apart."""
        if len(self.classes) < 2:
            kind = "nodes that are left" if self.left_out else "labelled nodes"
            one = f"all {len(self):,} {kind} have the class {self.classes[0]!r}" if len(self) else None
            problem = one or f"no node has a class{' that counts' if self.left_out else ''}"
            hint = "the options min_members and top_classes of labels say which classes count"
            besides = f" ({'; '.join(map(str, self.left_out))}; {hint})" if self.left_out else ""
            raise InputError(f"{self.node_type}: {problem}{besides}, expected at least two classes.")

    def vectors_by(self, lookup: Callable[[Ints], AnyFloats]) -> AnyFloats:
        """(n, d): what ``lookup`` gives for the nodes' rows, if that is a sound vector for each."""
        vectors = lookup(self.rows)
        if vectors.ndim != 2 or len(vectors) != len(self):
            problem = f"found an array of shape {vectors.shape} for {len(self):,} labelled nodes"
            raise InputError(f"{self.node_type}: {problem}, expected a vector for each.")
        broken = ~np.isfinite(vectors).all(1)
        if broken.any():
            row = self.rows[broken.argmax()]
            problem = (
                f"{broken.sum():,} of {len(self):,} vectors hold NaN or infinity, the first that of row {row}"
            )
            raise InputError(f"{self.node_type}: {problem}; expected numbers.")
        return vectors


def labelled_types(network: Network) -> tuple[NodeType, ...]:
    """The types that have labels of their own or from their neighbours."""
    if not network.label_kinds:
        raise InputError(f"{network.path}: no node type has a 'label' column in its specification.")
    textless = network.schema.textless
    return tuple(
        t
        for t in network.schema.node_types
        if t in network.label_kinds or (t in textless and _label_sources(network, t))
    )


def labels_of_type(network: Network, node_type: NodeType, options: LabelOptions) -> Labels:
    """The labels of one of the labelled types.

    A textless type next to several labelled ones has all of their labels together: one name is one class.
    """
    if node_type in network.label_kinds:
        return own_labels(network, node_type, options)
    return neighbor_labels(network, node_type, _label_sources(network, node_type), options)


def _label_sources(network: Network, node_type: NodeType) -> tuple[NodeType, ...]:
    return tuple(t for t in network.schema.neighbor_types_of(node_type) if t in network.label_kinds)


def own_labels(
    network: Network, node_type: NodeType, options: LabelOptions, most_cells: int = MOST_CELLS
) -> Labels:
    """The labels that the user's table gives to nodes of this type."""
    pairs = _pairs(network, node_type, options)
    chosen, left_out = _chosen(pairs, options.min_members, options.top_classes)
    return _labels(pairs, chosen, node_type, left_out, most_cells)


def neighbor_labels(
    network: Network, node_type: NodeType, from_type: NodeType | tuple[NodeType, ...], options: LabelOptions
) -> Labels:
    """The labels of textless nodes from those of their neighbours (the paper: an author's from the papers').

    ``top_classes`` are the most frequent among the neighbours; ``min_members`` is asked of them and of the
    result. A neighbour counts once, however many edges lead to it. Of classes that equally many neighbours
    of a node have, the majority is the one that is more frequent in all of the neighbours' type, then the
    first by name.
    """
    sources = (from_type,) if isinstance(from_type, str) else from_type
    elected, lost = _elected(network, node_type, sources, options)
    chosen, left_out = _chosen(elected, options.min_members)
    return _labels(elected, chosen, node_type, (*lost, *left_out))


def label_lists(network: Network, node_type: NodeType) -> pl.Series | None:
    """A list of labels for each node, its own or the one that most of its neighbours have; or no labels."""
    if node_type in network.label_kinds:
        return network.labels(node_type)
    sources = _label_sources(network, node_type)
    if node_type not in network.schema.textless or not sources:
        return None
    elected, _ = _elected(network, node_type, sources, LabelOptions(min_members=1))
    rows = pl.DataFrame({"row": pl.int_range(network.schema.counts[node_type], eager=True)})
    lists = rows.join(elected.group_by("row").agg("label"), on="row", how="left", maintain_order="left")
    return lists["label"].fill_null(pl.Series([[]], dtype=pl.List(pl.String)))


def _elected(
    network: Network, node_type: NodeType, sources: tuple[NodeType, ...], options: LabelOptions
) -> tuple[pl.DataFrame, tuple[LeftOut, ...]]:
    """(row, label) that neighbours vote for, and what is lost of their labels."""
    pairs = _one_after_another(network, {t: _pairs(network, t, options) for t in sources}, "row")
    classes, _ = _chosen(pairs, options.min_members, options.top_classes)
    labelled = pairs.rename({"row": "neighbor"}).join(classes, on="label")  # neighbor, label, class
    edges = _one_after_another(network, {t: _edges(network, node_type, t) for t in sources}, "neighbor")
    all_labels = edges.join(pairs.rename({"row": "neighbor"}), on="neighbor").select("row", "label").unique()
    votes = edges.join(labelled, on="neighbor").group_by("row", "label", "class").agg(votes=pl.len())
    if options.textless == "majority":
        best_first = votes.sort("votes", "class", descending=[True, False])
        elected = best_first.unique("row", keep="first")
    else:
        voters = edges.join(labelled, on="neighbor", how="semi").group_by("row").agg(voters=pl.len())
        share = pl.col("votes") / pl.col("voters")
        elected = votes.join(voters, on="row").filter(share >= options.textless_share)
    rare = LeftOut.between("not among the classes that count of its neighbours", all_labels, votes)
    not_elected = f"not the {options.textless} of any node's neighbours"
    lost = LeftOut.between(not_elected, votes.select("row", "label"), elected)
    return elected, (*rare, *lost)


def _one_after_another(network: Network, frames: dict[NodeType, pl.DataFrame], column: str) -> pl.DataFrame:
    """One frame of several types' nodes; the numbers in ``column`` go on from type to type."""
    counts = [network.schema.counts[node_type] for node_type in frames]
    starts = np.cumsum([0, *counts[:-1]]).tolist()
    moved = zip(frames.values(), starts, strict=True)
    return pl.concat([frame.with_columns(pl.col(column) + start) for frame, start in moved])


def _pairs(network: Network, node_type: NodeType, options: LabelOptions) -> pl.DataFrame:
    """(row, label), each once."""
    lists = network.labels(node_type)
    if options.label == "first":
        lists = lists.list.head(1)
    frame = pl.DataFrame({"row": pl.int_range(len(lists), eager=True), "label": lists})
    return frame.explode("label").drop_nulls().unique()


def _edges(network: Network, center: NodeType, neighbor: NodeType) -> pl.DataFrame:
    """(row, neighbor), each once: several relations may join two nodes."""
    adjacency = network.adjacency(center, neighbor)
    rows = np.repeat(np.arange(len(adjacency.degrees)), adjacency.degrees)
    return pl.DataFrame({"row": rows, "neighbor": adjacency.neighbor.astype(np.int64)}).unique()


def _chosen(
    pairs: pl.DataFrame, least: int, top: int | None = None
) -> tuple[pl.DataFrame, tuple[LeftOut, ...]]:
    """(class, label, members), most frequent first; and what is left out."""
    counts = pairs.group_by("label").agg(members=pl.len()).filter(pl.col("members") >= least)
    counts = counts.sort("members", "label", descending=[True, False])
    chosen = counts if top is None else counts.head(top)
    enough = pairs.join(counts, on="label", how="semi")
    left_out = LeftOut.between(f"fewer than {least} nodes", pairs, enough)
    left_out += LeftOut.between(f"not among the {top} most frequent", enough, pairs.join(chosen, on="label"))
    return chosen.with_row_index("class"), left_out


def _labels(
    pairs: pl.DataFrame,
    classes: pl.DataFrame,
    node_type: NodeType,
    left_out: tuple[LeftOut, ...],
    most_cells: int = MOST_CELLS,
) -> Labels:
    coded = pairs.select("row", "label").join(classes, on="label")
    rows, position = np.unique(coded["row"].to_numpy(), return_inverse=True)
    if len(rows) * len(classes) > most_cells:
        reason = f"{len(classes):,} classes of {len(rows):,} nodes are too many to tell apart"
        problem = f"{reason}; choose fewer with {{top_classes}} or {{min_members}}."
        raise OptionError(LabelOptions, (), problem, place=f"{node_type}: ")
    matrix = np.zeros((len(rows), len(classes)), dtype=bool)  # (n, C)
    matrix[position, coded["class"].to_numpy()] = True
    several = bool((matrix.sum(1) > 1).any())
    return Labels(rows.astype(np.int64), tuple(classes["label"]), matrix, several, node_type, left_out)
