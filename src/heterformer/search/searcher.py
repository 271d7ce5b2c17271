"""Search: from a text or a node to the nodes with the highest inner products, with supporting neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.device import Device
from heterformer.errors import InputError, OptionError
from heterformer.network.lookup import Node, find_node
from heterformer.network.schema import NodeType, Relation
from heterformer.network.store import Network
from heterformer.options import check_argument
from heterformer.search.filtered import search_among
from heterformer.search.filters import matching_rows
from heterformer.search.index import ExactIndex
from heterformer.search.likelihood import most_likely, relation_to
from heterformer.search.options import IndexChoice, SearchOptions, check_link_weight
from heterformer.search.query_encoder import QueryEncoder, StudentQueryEncoder
from heterformer.search.resolve import default_types, resolve_query
from heterformer.search.run_weights import RunWeights
from heterformer.search.store import SearchStore
from heterformer.training.run import Run

MAX_NEIGHBORS = 200  # of each type that may support a result
SUPPORTING = 3  # of them that a result has at most


@dataclass(frozen=True)
class Query:
    """The vector to search with, and the nodes known to be its neighbours."""

    vector: NDArray[np.float32]  # (d,)
    node: Node | None = None  # the node that the vector belongs to, if any
    neighbors: tuple[Node, ...] = ()  # of a query text


@dataclass(frozen=True)
class NamedNode:
    """A node by type, id and display name."""

    node_type: NodeType
    id: str
    name: str

    @classmethod
    def from_node(cls, network: Network, node: Node) -> NamedNode:
        (node_id,), (name,) = (f(node.node_type, [node.row]) for f in (network.ids, network.names))
        return cls(node.node_type, node_id, name)


@dataclass(frozen=True)
class SupportingNeighbor(NamedNode):
    """A neighbour of a result whose own vector is close to the query."""

    score: float  # its own inner product with the query


@dataclass(frozen=True)
class Hit:
    """One result."""

    id: str
    name: str
    score: float  # the inner product with the query, and what its links add
    known: bool  # whether it is a neighbour of the query already
    neighbors: tuple[SupportingNeighbor, ...]


@dataclass(frozen=True)
class Ranking:
    """The best nodes of one type. Inner products with nodes of different types do not compare."""

    node_type: NodeType
    candidates: int  # nodes of the type, or those that meet the filter
    index: str  # exact or approximate
    hits: tuple[Hit, ...]
    link_weight: float = 0.0  # how much their links count


@dataclass(frozen=True)
class Answer:
    """The query, a text or a node, and the best nodes of each type."""

    text: str
    neighbors: tuple[NamedNode, ...]  # of the query text
    like: NamedNode | None
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
        student: Read query texts with this encoder, which ``distill`` wrote, instead of the run's model.

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
        student: Path | str | None = None,
    ) -> None:
        self.run = Run(path)
        self.network = self.run.open_network(network)
        self.schema = self.network.schema
        self._vectors, self.device, self._student = vectors, device, student
        self._links: dict[tuple[NodeType, str], NDArray[np.float32]] = {}

    @cached_property
    def store(self) -> SearchStore:
        """The vectors. The first time they are computed, which can take long, so check the query before."""
        return SearchStore.open(self.run, self.network, self._vectors, self.device)

    @cached_property
    def encoder(self) -> QueryEncoder:
        """The model, for query texts."""
        return QueryEncoder(self.run, self.network, lambda t: self.store.h0(t), self.device)

    @cached_property
    def student(self) -> StudentQueryEncoder | None:
        """The student that reads query texts in the place of the model, if one is given."""
        return None if self._student is None else StudentQueryEncoder(self._student, self.run, self.device)

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
        link_weight: float = 0.0,
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
            link_weight: How much a node's links count: 0 for what is closest to the query, 1 for what it is
                most likely linked to.
            index: Exact search, an approximate index, or ("auto") an index for types of a million nodes.
            where: A filter over the columns of the ranked types: ``"year >= 2015 and venue == 'ACL'"``.

        Example:
            >>> answer = searcher.search(like="p01", types=["author"], top=3)
            >>> [(hit.id, hit.score) for hit in answer.rankings[0].hits]
        """
        check_argument(SearchOptions, "top", top)
        if top < 1:
            raise OptionError(SearchOptions, "top", f"is {top}, expected at least 1.")
        check_argument(SearchOptions, "link_weight", link_weight)
        check_link_weight(SearchOptions, link_weight)
        resolved = resolve_query(
            self.network,
            text,
            neighbors=neighbors,
            like=like,
            like_type=like_type,
            types=types,
            where=where,
        )
        if link_weight:
            for node_type in resolved.types:
                self._linked(node_type)
        node, neighbor_nodes = resolved.node, resolved.neighbors
        query = self.text(text, neighbor_nodes) if node is None else self.like(node)
        rankings = tuple(
            self.rank(
                query, t, top, exclude_known=exclude_known, index=index, where=where, link_weight=link_weight
            )
            for t in dict.fromkeys(resolved.types or self.default_types(query))
        )
        return Answer(
            text=text,
            neighbors=tuple(NamedNode.from_node(self.network, n) for n in neighbor_nodes),
            like=None if node is None else NamedNode.from_node(self.network, node),
            rankings=rankings,
        )

    def text(self, text: str, neighbors: Sequence[Node] = ()) -> Query:
        """The query for a text, encoded alone or with neighbours.

        Args:
            text: The query text.
            neighbors: Nodes that are neighbours of the text.

        Example:
            >>> query = searcher.text("news recommendation")
            >>> searcher.rank(query, "paper", top=5).hits[0].name
        """
        vector = self.encode(text, neighbors)
        width = self.store.matrix(self.store.types[0]).shape[1]
        if len(vector) != width and width == self.store.vectors.metadata.get("width"):
            vector = self.encoder.shortened(vector, width)
        if len(vector) != width:
            path = self.store.vectors.path
            raise InputError(f"{path}: vectors have dimension {width}, expected the model's {len(vector)}.")
        made_by = self.store.vectors.metadata.get("model")
        if self._vectors is not None and made_by not in (None, RunWeights(self.run).model):
            problem = "was written by another model, whose vectors do not compare with a query text's"
            raise InputError(f"{self._vectors}: {problem}; use the vectors of {self.run.path}.")
        return Query(vector, neighbors=tuple(neighbors))

    def encode(self, text: str, neighbors: Sequence[Node] = ()) -> NDArray[np.float32]:
        """(d,): the vector of a query text.

        Args:
            text: The query text.
            neighbors: Nodes that are neighbours of the text.
        """
        encoder = self.encoder if self.student is None else self.student
        return encoder.encode(text, neighbors)

    def like(self, node: Node | str) -> Query:
        """The query for a node, which may be given by id or name: its own vector.

        Args:
            node: A node, or its id or name.

        Example:
            >>> searcher.rank(searcher.like("p01"), "author").hits
        """
        if not isinstance(node, Node):
            node = find_node(self.network, node, self.schema.node_types)
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
        max_neighbors: int = MAX_NEIGHBORS,
        link_weight: float = 0.0,
        relation: Relation | None = None,
    ) -> Ranking:
        """The best nodes of one type, the query's own node left out.

        Args:
            query: What ``text`` or ``like`` gave.
            node_type: The type whose nodes are ranked.
            top: How many nodes to return.
            exclude_known: Leave out nodes that are neighbours of the query already.
            index: Exact search, an approximate index, or ("auto") an index for a type of a million nodes.
            where: A filter over the columns of the type.
            max_neighbors: How many neighbours of each type may support a result.
            link_weight: How much a node's links count, by the log of their number; search is exact then.
            relation: The predicted relation whose links count; unless given, the first one of the type.
        """
        rows = matching_rows(self.network, node_type, where) if where else None
        matrix, known = self.store.matrix(node_type), self.known(query, node_type)
        own = [query.node.row] if query.node is not None and query.node.node_type == node_type else []
        without = np.union1d(np.array(own, dtype=np.int64), known if exclude_known else known[:0])
        # No index of vectors knows of links, so none is built for them.
        node_index = ExactIndex(matrix) if link_weight else self.store.index(node_type, index)
        if link_weight:
            added = link_weight * self.encoder.temperature * self._log_links(node_type, relation)
            best = most_likely(matrix, query.vector, top, added, rows, without)
        elif rows is None:
            (best,) = node_index.search(query.vector[None], top, without)
        else:
            best = search_among(node_index, matrix, query.vector, top, rows, without)
        ids, names = self.network.ids(node_type, best.rows), self.network.names(node_type, best.rows)
        supporting = _SupportingNeighbors(self.store, self.network, query, max_neighbors)
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
        return Ranking(node_type, candidates, node_index.name, tuple(hits), link_weight)

    def _linked(self, node_type: NodeType) -> Relation:
        """The predicted relation whose links count where nodes of a type are ranked."""
        relation = relation_to(self.network, node_type)
        if relation is None:
            problem = f"needs a predicted relation that leads to {node_type} nodes, and there is none."
            raise OptionError(SearchOptions, "link_weight", problem)
        return relation

    def _log_links(self, node_type: NodeType, relation: Relation | None) -> NDArray[np.float32]:
        relation = relation or self._linked(node_type)
        key = node_type, relation.name
        if key not in self._links:
            self._links[key] = VisibleNetwork.whole(self.network).log_links(node_type, relation)
        return self._links[key]

    def known(self, query: Query, node_type: NodeType) -> Ints:
        """The rows of a type's nodes that are neighbours of the query.

        Args:
            query: What ``text`` or ``like`` gave.
            node_type: The type of the neighbours.
        """
        if query.node is not None:
            return neighbor_rows(self.network, query.node, node_type)
        return np.unique(
            np.array([n.row for n in query.neighbors if n.node_type == node_type], dtype=np.int64)
        )

    def default_types(self, query: Query) -> tuple[NodeType, ...]:
        """The types to rank by default: for a text, what it may be linked to; for a node, text-rich ones.

        Args:
            query: What ``text`` or ``like`` gave.
        """
        return default_types(self.schema, query.node)


class _SupportingNeighbors:
    """The neighbours of a result whose own inner products with the query are highest.

    Inner products with nodes of different types do not compare, so each is taken relative to the mean and
    deviation of its type; a neighbour below the mean supports nothing.
    """

    def __init__(self, store: SearchStore, network: Network, query: Query, max_neighbors: int) -> None:
        self.store, self.network, self.query, self.max_neighbors = store, network, query, max_neighbors
        self._typical: dict[NodeType, tuple[float, float]] = {}

    def neighbors(self, node: Node) -> tuple[SupportingNeighbor, ...]:
        """At most ``SUPPORTING`` neighbours of a result, the best first."""
        scored: list[tuple[float, Node, float]] = []
        for node_type in self.network.schema.neighbor_types_of(node.node_type):
            if node_type in self.store.types:
                scored += self._of_type(node, node_type)
        scored.sort(key=lambda entry: -entry[0])
        return tuple(
            SupportingNeighbor(**vars(NamedNode.from_node(self.network, neighbor)), score=score)
            for _, neighbor, score in scored[:SUPPORTING]
        )

    def _of_type(self, node: Node, node_type: NodeType) -> list[tuple[float, Node, float]]:
        """(standard score, neighbour, inner product) of the best neighbours of one type."""
        rows = neighbor_rows(self.network, node, node_type)[: self.max_neighbors]
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
            scores = self.store.typical(node_type) @ self.query.vector
            self._typical[node_type] = (float(scores.mean()), float(scores.std()) or 1.0)
        return self._typical[node_type]

    def _scores(self, node_type: NodeType, rows: Ints) -> NDArray[np.float32]:
        vectors = self.store.matrix(node_type)[rows].astype(np.float32)  # (r, d)
        return vectors @ self.query.vector


def neighbor_rows(network: Network, node: Node, node_type: NodeType) -> Ints:
    """The rows of all neighbours of one type, ascending."""
    if node_type not in network.schema.neighbor_types_of(node.node_type):
        return np.empty(0, dtype=np.int64)
    adjacency = network.adjacency(node.node_type, node_type)
    entries = slice(adjacency.indptr[node.row], adjacency.indptr[node.row + 1])
    return np.unique(adjacency.neighbor[entries]).astype(np.int64)


def ask(searcher: Searcher, text: str, options: SearchOptions) -> Answer:
    """A search with the options of ``heterformer search``."""
    return searcher.search(
        text,
        neighbors=options.neighbors,
        like=options.like,
        like_type=options.like_type,
        types=options.types,
        top=options.top,
        exclude_known=options.exclude_known,
        link_weight=options.link_weight,
        index=options.index,
        where=options.where,
    )
