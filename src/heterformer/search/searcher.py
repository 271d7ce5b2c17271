"""Search: from a text or a node to the nodes with the highest inner products, and what speaks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heterformer.device import Device
from heterformer.embedding.unseen import check_schema
from heterformer.errors import InputError
from heterformer.network.lookup import Node, find_node
from heterformer.network.schema import NodeType, Schema
from heterformer.network.store import Network
from heterformer.search.index import Rows
from heterformer.search.options import IndexChoice, SearchOptions
from heterformer.search.query_encoder import QueryEncoder
from heterformer.search.run_weights import RunWeights
from heterformer.search.store import SearchStore
from heterformer.training.run import Run

CONSIDERED = 200  # neighbours of each type that may speak for a result
SPEAKING = 3  # that are shown
TYPICAL = 1024  # nodes that tell what inner products are usual among a type's


@dataclass(frozen=True)
class Query:
    """What is searched for: a vector, and the nodes known to be next to it."""

    vector: NDArray[np.float32]  # (d,)
    node: Node | None = None  # whose vector it is, if it is a node's
    given: tuple[Node, ...] = ()  # neighbours that came with the text


@dataclass(frozen=True)
class Named:
    """A node as a person knows it."""

    node_type: NodeType
    id: str
    name: str

    @classmethod
    def of(cls, network: Network, node: Node) -> Named:
        (identity,), (name,) = (f(node.node_type, [node.row]) for f in (network.ids, network.names))
        return cls(node.node_type, identity, name)


@dataclass(frozen=True)
class SupportingNeighbor(Named):
    """A neighbour of a result that speaks for it."""

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
    candidates: int
    index: str  # exact or approximate
    hits: tuple[Hit, ...]


@dataclass(frozen=True)
class Answer:
    """What was asked, with a text or with a node, and what was found."""

    text: str
    neighbors: tuple[Named, ...]  # that came with the text
    like: Named | None
    rankings: tuple[Ranking, ...]


class Searcher:
    """A run opened for searching its network, or another one of the same types.

    The model is read only if a text is to be encoded, and then without the tables of textless nodes.
    """

    def __init__(
        self,
        path: Path | str,
        vectors: Path | None = None,
        network: Path | str | None = None,
        device: Device = "auto",
    ) -> None:
        self.run = Run(path)
        self.network = self.run.network() if network is None else self._other(network)
        self.schema = self.network.schema
        self._vectors, self.device = vectors, device

    def _other(self, path: Path | str) -> Network:
        """Another network than the run's own, with nodes that training did not see."""
        network = Network.open(path)
        self.run.config()  # a folder that is no run is told so
        check_schema(self.run.schema(), network.schema)
        return network

    @cached_property
    def store(self) -> SearchStore:
        """The vectors; making them can take long, so that a question is looked at before."""
        return SearchStore.open(self.run, self.network, self._vectors, self.device)

    @cached_property
    def encoder(self) -> QueryEncoder:
        """The model, for texts."""
        return QueryEncoder(self.run, self.network, lambda t: self.store.h0(t), self.device)

    def text(self, text: str, neighbors: Sequence[Node] = ()) -> Query:
        """A text that is no node of the network, alone or with neighbours, as the model sees it."""
        vector = self.encoder.encode(text, neighbors)
        found = self.store.matrix(self.store.types[0]).shape[1]
        if len(vector) != found:
            at = self.store.vectors.path
            raise InputError(f"{at}: vectors have {found} numbers, the run's model makes {len(vector)}.")
        made_by = self.store.vectors.metadata.get("model")
        if self._vectors is not None and made_by not in (None, RunWeights(self.run).model):
            said = "was made by another model than the run's; a text's vector does not compare with it"
            raise InputError(f"{self._vectors}: {said}.")
        return Query(vector, given=tuple(neighbors))

    def like(self, node: Node) -> Query:
        """A node of the network: its own vector."""
        return Query(self.store.matrix(node.node_type)[node.row].astype(np.float32), node=node)

    def rank(
        self,
        query: Query,
        node_type: NodeType,
        top: int = 10,
        *,
        exclude_known: bool = False,
        index: IndexChoice = "auto",
    ) -> Ranking:
        """The best nodes of one type, the query's own node left out."""
        searched, known = self.store.index(node_type, index), self.known(query, node_type)
        own = [query.node.row] if query.node is not None and query.node.node_type == node_type else []
        without = np.union1d(np.array(own, dtype=np.int64), known if exclude_known else known[:0])
        (found,) = searched.search(query.vector[None], top, without)
        ids, names = self.network.ids(node_type, found.rows), self.network.names(node_type, found.rows)
        speakers = _SupportingNeighbors(self.store, self.network, query)
        hits = [
            Hit(i, name, float(score), bool(np.isin(row, known)), speakers.of(Node(node_type, int(row))))
            for i, name, score, row in zip(ids, names, found.scores, found.rows, strict=True)
        ]
        return Ranking(node_type, self.schema.counts[node_type], searched.name, tuple(hits))

    def known(self, query: Query, node_type: NodeType) -> Rows:
        """The rows of a type's nodes that are neighbours of the query."""
        if query.node is not None:
            return _neighbors(self.network, query.node, node_type)
        return np.unique(np.array([n.row for n in query.given if n.node_type == node_type], dtype=np.int64))

    def default_types(self, query: Query) -> tuple[NodeType, ...]:
        """What is looked for unless it is said: for a text, what it may be linked to; for a node, texts."""
        if query.node is None:
            return (self.schema.predicted.target,)
        own = query.node.node_type
        if own in self.schema.text_rich:
            return (own,)
        near = tuple(t for t in self.schema.neighbor_types_of(own) if t in self.schema.text_rich)
        return near or self.schema.text_rich


class _SupportingNeighbors:
    """The neighbours that speak for a result: those whose own vectors say what the query says.

    Inner products with nodes of different types do not compare, so each is held against what is usual
    among its type; a neighbour below that does not speak for anything.
    """

    def __init__(self, store: SearchStore, network: Network, query: Query) -> None:
        self.store, self.network, self.query = store, network, query
        self._usual: dict[NodeType, tuple[float, float]] = {}

    def of(self, node: Node) -> tuple[SupportingNeighbor, ...]:
        found: list[tuple[float, Node, float]] = []
        for node_type in self.network.schema.neighbor_types_of(node.node_type):
            if node_type in self.store.types:
                found += self._among(node, node_type)
        found.sort(key=lambda one: -one[0])
        return tuple(
            SupportingNeighbor(**vars(Named.of(self.network, neighbor)), score=score)
            for _, neighbor, score in found[:SPEAKING]
        )

    def _among(self, node: Node, node_type: NodeType) -> list[tuple[float, Node, float]]:
        rows = _neighbors(self.network, node, node_type)[:CONSIDERED]
        if self.query.node is not None and self.query.node.node_type == node_type:
            rows = rows[rows != self.query.node.row]
        scores = self._scores(node_type, rows)  # (r,)
        mean, deviation = self._usual_scores(node_type)
        above = (scores - mean) / deviation
        best = np.argsort(-above, kind="stable")[:SPEAKING]
        chosen = [i for i in best if above[i] > 0]
        return [(float(above[i]), Node(node_type, int(rows[i])), float(scores[i])) for i in chosen]

    def _usual_scores(self, node_type: NodeType) -> tuple[float, float]:
        if node_type not in self._usual:
            count = self.network.schema.counts[node_type]
            some = np.linspace(0, count - 1, min(count, TYPICAL)).astype(np.int64)
            scores = self._scores(node_type, some)
            self._usual[node_type] = (float(scores.mean()), float(scores.std()) or 1.0)
        return self._usual[node_type]

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
    _check_question(text, options)
    searcher = Searcher(path, options.vectors, options.network, options.device)
    network = searcher.network
    types = tuple(node_type_named(network.schema, t, "--type") for t in options.types)
    node = _like(network, options) if options.like else None
    given = tuple(_given(network, words) for words in options.neighbors)
    query = searcher.text(text, given) if node is None else searcher.like(node)
    rankings = tuple(
        searcher.rank(query, t, options.top, exclude_known=options.exclude_known, index=options.index)
        for t in dict.fromkeys(types or searcher.default_types(query))
    )
    return Answer(
        text=text,
        neighbors=tuple(Named.of(network, n) for n in given),
        like=None if node is None else Named.of(network, node),
        rankings=rankings,
    )


def _check_question(text: str, options: SearchOptions) -> None:
    if options.like and (text.strip() or options.neighbors):
        raise InputError("--like asks with a node; give no query text and no neighbours with it.")
    if options.like_type and not options.like:
        raise InputError("--like-type says what type the --like node has; give --like as well.")
    if not options.like and not text.strip() and not options.neighbors:
        raise InputError("there is nothing to search for: give a query text, --like, or neighbours.")


def _like(network: Network, options: SearchOptions) -> Node:
    schema = network.schema
    types = (
        (node_type_named(schema, options.like_type, "--like-type"),)
        if options.like_type
        else schema.node_types
    )
    return find_node(network, options.like, types)


def _given(network: Network, words: str) -> Node:
    name, equals, value = words.partition("=")
    if not equals:
        raise InputError(f"--with is {words!r}, expected TYPE=NAME, such as --with author='Jane Doe'.")
    return find_node(network, value, [node_type_named(network.schema, name)])


def node_type_named(schema: Schema, name: str, flag: str = "") -> NodeType:
    """A node type by its name, in which '-' may stand for '_'."""
    known = {t.replace("_", "-"): t for t in schema.node_types} | {t: t for t in schema.node_types}
    if name in known:
        return known[name]
    listed = ", ".join(map(repr, schema.node_types))
    if flag:
        raise InputError(f"{flag} is {name!r}, the node types are {listed}.")
    raise InputError(f"{name!r} is neither an option of search nor a node type; the node types are {listed}.")
