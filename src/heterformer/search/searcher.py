"""Search: from a text or a node to the nodes with the highest inner products, with supporting neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heterformer.device import Device
from heterformer.errors import InputError, OptionError
from heterformer.network.lookup import Node, find_node
from heterformer.network.schema import NodeType, Schema
from heterformer.network.store import Network
from heterformer.search.filtered import search_among
from heterformer.search.filters import check_filter, matching_rows
from heterformer.search.index import Rows
from heterformer.search.options import IndexChoice, SearchOptions
from heterformer.search.query_encoder import QueryEncoder
from heterformer.search.run_weights import RunWeights
from heterformer.search.store import SearchStore
from heterformer.training.run import Run
from heterformer.training.unseen import check_schema

CONSIDERED = 200  # neighbours of each type that may support a result
SUPPORTING = 3  # of them that a result has at most
TYPICAL = 1024  # nodes that a type's usual inner products are estimated from


@dataclass(frozen=True)
class Query:
    """The vector to search with, and the nodes known to be its neighbours."""

    vector: NDArray[np.float32]  # (d,)
    node: Node | None = None  # the node that the vector belongs to, if any
    neighbors: tuple[Node, ...] = ()  # of a query text


@dataclass(frozen=True)
class Named:
    """A node by type, id and display name."""

    node_type: NodeType
    id: str
    name: str

    @classmethod
    def of(cls, network: Network, node: Node) -> Named:
        (node_id,), (name,) = (f(node.node_type, [node.row]) for f in (network.ids, network.names))
        return cls(node.node_type, node_id, name)


@dataclass(frozen=True)
class SupportingNeighbor(Named):
    """A neighbour of a result whose own vector is close to the query."""

    score: float  # its own inner product with the query


@dataclass(frozen=True)
class Hit:
    """One result."""

    id: str
    name: str
    score: float  # the inner product with the query
    known: bool  # whether it is a neighbour of the query already
    neighbors: tuple[SupportingNeighbor, ...]


@dataclass(frozen=True)
class Ranking:
    """The best nodes of one type. Inner products with nodes of different types do not compare."""

    node_type: NodeType
    candidates: int  # nodes of the type, or those that meet the filter
    index: str  # exact or approximate
    hits: tuple[Hit, ...]


@dataclass(frozen=True)
class Answer:
    """The query, a text or a node, and the best nodes of each type."""

    text: str
    neighbors: tuple[Named, ...]  # of the query text
    like: Named | None
    rankings: tuple[Ranking, ...]


class Searcher:
    """Search the nodes of a run's network, or of another network of the same types.

    The vectors of all nodes are computed on the first search and kept in ``RUN/search``. The model is read
    only to encode a query text, and then without the tables of textless nodes.

    Args:
        path: A folder that ``train`` wrote.
        vectors: Search in these vectors, which ``embed`` wrote, instead of those that the run keeps.
        network: Search another network of the same types, with nodes that training did not see.
        device: Where to compute: "auto" takes a GPU if there is one; or "cpu".

    Example:
        >>> searcher = Searcher("runs/papers")
        >>> answer = searcher.search("personalised news", neighbors=["author=Jane Doe"], top=5)
        >>> [hit.name for hit in answer.rankings[0].hits]
    """

    def __init__(
        self,
        path: Path | str,
        vectors: Path | None = None,
        network: Path | str | None = None,
        device: Device = "auto",
    ) -> None:
        self.run = Run(path)
        self.network = self.run.network() if network is None else self._open_other(network)
        self.schema = self.network.schema
        self._vectors, self.device = vectors, device

    def _open_other(self, path: Path | str) -> Network:
        """Another network than the run's own, with nodes that training did not see."""
        network = Network.open(path)
        self.run.config()  # refuses a folder that is no run
        check_schema(self.run.schema(), network.schema)
        return network

    @cached_property
    def store(self) -> SearchStore:
        """The vectors. The first time they are computed, which can take long, so check the query before."""
        return SearchStore.open(self.run, self.network, self._vectors, self.device)

    @cached_property
    def encoder(self) -> QueryEncoder:
        """The model, for query texts."""
        return QueryEncoder(self.run, self.network, lambda t: self.store.h0(t), self.device)

    def search(
        self,
        text: str = "",
        *,
        neighbors: Sequence[str] = (),
        like: str = "",
        like_type: str = "",
        types: Sequence[NodeType] = (),
        top: int = 10,
        exclude_known: bool = False,
        index: IndexChoice = "auto",
        where: str = "",
    ) -> Answer:
        """Rank nodes by a query text or by another node.

        Args:
            text: The query text.
            neighbors: Neighbours of the query by id or name, each as ``"TYPE=NAME"``.
            like: Instead of a text, the id or name of a node to search with.
            like_type: The type of that node, if nodes of several types have its id or name.
            types: Rank nodes of these types; unless given, what a query text may link to or, with ``like``,
                nodes with text.
            top: How many nodes of each type to return.
            exclude_known: Leave out nodes that are neighbours of the query already.
            index: Exact search, an approximate index, or ("auto") an index for types of a million nodes.
            where: A filter over the columns of the ranked types: ``"year >= 2015 and venue == 'ACL'"``.
        """
        _check_query(text, neighbors, like, like_type)
        if where:
            check_filter(where)
        node_types = tuple(node_type_named(self.schema, t, SearchOptions, "types") for t in types)
        node = self._like(like, like_type) if like else None
        neighbor_nodes = tuple(self._neighbor(value) for value in neighbors)
        query = self.text(text, neighbor_nodes) if node is None else self.like(node)
        rankings = tuple(
            self.rank(query, t, top, exclude_known=exclude_known, index=index, where=where)
            for t in dict.fromkeys(node_types or self.default_types(query))
        )
        return Answer(
            text=text,
            neighbors=tuple(Named.of(self.network, n) for n in neighbor_nodes),
            like=None if node is None else Named.of(self.network, node),
            rankings=rankings,
        )

    def _like(self, name: str, node_type: str) -> Node:
        types = self.schema.node_types
        if node_type:
            types = (node_type_named(self.schema, node_type, SearchOptions, "like_type"),)
        return find_node(self.network, name, types, SearchOptions, "like_type")

    def _neighbor(self, value: str) -> Node:
        name_of_type, equals, name = value.partition("=")
        if not equals:
            problem = f"has {value!r}, expected TYPE=NAME, such as 'author=Jane Doe'."
            raise OptionError(SearchOptions, "neighbors", problem)
        node_type = _node_type(self.schema, name_of_type)
        if node_type is None:
            known = ", ".join(map(repr, self.schema.node_types))
            problem = f"has {value!r}, but {name_of_type!r} is no node type; expected one of {known}."
            raise OptionError(SearchOptions, "neighbors", problem)
        return find_node(self.network, name, [node_type])

    def text(self, text: str, neighbors: Sequence[Node] = ()) -> Query:
        """The query for a text, encoded alone or with neighbours."""
        vector = self.encode(text, neighbors)
        width = self.store.matrix(self.store.types[0]).shape[1]
        if len(vector) != width:
            path = self.store.vectors.path
            raise InputError(f"{path}: vectors have dimension {width}, expected the model's {len(vector)}.")
        made_by = self.store.vectors.metadata.get("model")
        if self._vectors is not None and made_by not in (None, RunWeights(self.run).model):
            problem = "was written by another model, whose vectors do not compare with a query text's"
            raise InputError(f"{self._vectors}: {problem}; use the vectors of {self.run.path}.")
        return Query(vector, neighbors=tuple(neighbors))

    def encode(self, text: str, neighbors: Sequence[Node] = ()) -> NDArray[np.float32]:
        """(d,): the vector of a query text."""
        return self.encoder.encode(text, neighbors)

    def like(self, node: Node) -> Query:
        """The query for a node: its own vector."""
        return Query(self.store.matrix(node.node_type)[node.row].astype(np.float32), node=node)

    def rank(
        self,
        query: Query,
        node_type: NodeType,
        top: int = 10,
        *,
        exclude_known: bool = False,
        index: IndexChoice = "auto",
        where: str = "",
        considered: int = CONSIDERED,
    ) -> Ranking:
        """The best nodes of one type, the query's own node left out.

        ``considered`` is how many neighbours of each type may support a result.
        """
        rows = matching_rows(self.network, node_type, where) if where else None
        node_index, known = self.store.index(node_type, index), self.known(query, node_type)
        own = [query.node.row] if query.node is not None and query.node.node_type == node_type else []
        without = np.union1d(np.array(own, dtype=np.int64), known if exclude_known else known[:0])
        if rows is None:
            (best,) = node_index.search(query.vector[None], top, without)
        else:
            best = search_among(node_index, self.store.matrix(node_type), query.vector, top, rows, without)
        ids, names = self.network.ids(node_type, best.rows), self.network.names(node_type, best.rows)
        supporting = _SupportingNeighbors(self.store, self.network, query, considered)
        hits = [
            Hit(
                i,
                name,
                float(score),
                bool(np.isin(row, known)),
                supporting.neighbors(Node(node_type, int(row))),
            )
            for i, name, score, row in zip(ids, names, best.scores, best.rows, strict=True)
        ]
        candidates = self.schema.counts[node_type] if rows is None else len(rows)
        return Ranking(node_type, candidates, node_index.name, tuple(hits))

    def known(self, query: Query, node_type: NodeType) -> Rows:
        """The rows of a type's nodes that are neighbours of the query."""
        if query.node is not None:
            return _neighbors(self.network, query.node, node_type)
        return np.unique(
            np.array([n.row for n in query.neighbors if n.node_type == node_type], dtype=np.int64)
        )

    def default_types(self, query: Query) -> tuple[NodeType, ...]:
        """The types to rank by default: for a text, what it may be linked to; for a node, text-rich ones."""
        if query.node is None:
            return (self.schema.predicted.target,)
        own = query.node.node_type
        if own in self.schema.text_rich:
            return (own,)
        adjacent = tuple(t for t in self.schema.neighbor_types_of(own) if t in self.schema.text_rich)
        return adjacent or self.schema.text_rich


class _SupportingNeighbors:
    """The neighbours of a result whose own inner products with the query are highest.

    Inner products with nodes of different types do not compare, so each is taken relative to the mean and
    deviation of its type; a neighbour below the mean supports nothing.
    """

    def __init__(self, store: SearchStore, network: Network, query: Query, considered: int) -> None:
        self.store, self.network, self.query, self.considered = store, network, query, considered
        self._typical: dict[NodeType, tuple[float, float]] = {}

    def neighbors(self, node: Node) -> tuple[SupportingNeighbor, ...]:
        """At most ``SUPPORTING`` neighbours of a result, the best first."""
        scored: list[tuple[float, Node, float]] = []
        for node_type in self.network.schema.neighbor_types_of(node.node_type):
            if node_type in self.store.types:
                scored += self._of_type(node, node_type)
        scored.sort(key=lambda entry: -entry[0])
        return tuple(
            SupportingNeighbor(**vars(Named.of(self.network, neighbor)), score=score)
            for _, neighbor, score in scored[:SUPPORTING]
        )

    def _of_type(self, node: Node, node_type: NodeType) -> list[tuple[float, Node, float]]:
        """(standard score, neighbour, inner product) of the best neighbours of one type."""
        rows = _neighbors(self.network, node, node_type)[: self.considered]
        if self.query.node is not None and self.query.node.node_type == node_type:
            rows = rows[rows != self.query.node.row]
        scores = self._scores(node_type, rows)  # (r,)
        mean, deviation = self._typical_scores(node_type)
        standard = (scores - mean) / deviation
        best = np.argsort(-standard, kind="stable")[:SUPPORTING]
        return [
            (float(standard[i]), Node(node_type, int(rows[i])), float(scores[i]))
            for i in best
            if standard[i] > 0
        ]

    def _typical_scores(self, node_type: NodeType) -> tuple[float, float]:
        if node_type not in self._typical:
            count = self.network.schema.counts[node_type]
            rows = np.linspace(0, count - 1, min(count, TYPICAL)).astype(np.int64)
            scores = self._scores(node_type, rows)
            self._typical[node_type] = (float(scores.mean()), float(scores.std()) or 1.0)
        return self._typical[node_type]

    def _scores(self, node_type: NodeType, rows: Rows) -> NDArray[np.float32]:
        vectors = self.store.matrix(node_type)[rows].astype(np.float32)  # (r, d)
        return vectors @ self.query.vector


def _neighbors(network: Network, node: Node, node_type: NodeType) -> Rows:
    """The rows of all neighbours of one type, ascending."""
    if node_type not in network.schema.neighbor_types_of(node.node_type):
        return np.empty(0, dtype=np.int64)
    adjacency = network.adjacency(node.node_type, node_type)
    entries = slice(adjacency.indptr[node.row], adjacency.indptr[node.row + 1])
    return np.unique(adjacency.neighbor[entries]).astype(np.int64)


def search_run(path: Path | str, text: str, options: SearchOptions) -> Answer:
    """What ``heterformer search`` does."""
    _check_query(text, options.neighbors, options.like, options.like_type)  # before the run is opened
    return Searcher(path, options.vectors, options.network, options.device).search(
        text,
        neighbors=options.neighbors,
        like=options.like,
        like_type=options.like_type,
        types=options.types,
        top=options.top,
        exclude_known=options.exclude_known,
        index=options.index,
        where=options.where,
    )


def _check_query(text: str, neighbors: Sequence[str], like: str, like_type: str) -> None:
    if like and (text.strip() or neighbors):
        problem = "searches with a node; leave out the query text and {neighbors}."
        raise OptionError(SearchOptions, "like", problem)
    if like_type and not like:
        raise OptionError(SearchOptions, "like_type", "is the type of the node {like}; give {like} as well.")
    if not like and not text.strip() and not neighbors:
        raise InputError("there is nothing to search for: give a query text, a node or neighbours.")


def node_type_named(schema: Schema, name: str, options: object, field: str) -> NodeType:
    """A node type by its name, which is the value of ``field``; '-' may replace '_'."""
    node_type = _node_type(schema, name)
    if node_type is None:
        known = ", ".join(map(repr, schema.node_types))
        raise OptionError(options, field, f"is {name!r}, expected one of {known}.")
    return node_type


def _node_type(schema: Schema, name: str) -> NodeType | None:
    known = {t.replace("_", "-"): t for t in schema.node_types} | {t: t for t in schema.node_types}
    return known.get(name)
