"""Search: from a text or a node to the nodes with the highest inner products, with supporting neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heterformer.device import Device
from heterformer.errors import InputError
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
    """What is searched for: a vector, and the nodes known to be next to it."""

    vector: NDArray[np.float32]  # (d,)
    node: Node | None = None  # whose vector it is, if it is a node's
    neighbors: tuple[Node, ...] = ()  # of a query text


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
        self.network = self.run.network() if network is None else self._other(network)
        self.schema = self.network.schema
        self._vectors, self.device = vectors, device

    def _other(self, path: Path | str) -> Network:
        """Another network than the run's own, with nodes that training did not see."""
        network = Network.open(path)
        self.run.config()  # refuses a folder that is no run
        check_schema(self.run.schema(), network.schema)
        return network

    @cached_property
    def store(self) -> SearchStore:
        """The vectors. Making them can take long, so a query is checked before."""
        return SearchStore.open(self.run, self.network, self._vectors, self.device)

    @cached_property
    def encoder(self) -> QueryEncoder:
        """The model, for texts."""
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
        chosen = tuple(node_type_named(self.schema, t, "--type") for t in types)
        node = self._like(like, like_type) if like else None
        near = tuple(self._neighbor(words) for words in neighbors)
        query = self.text(text, near) if node is None else self.like(node)
        rankings = tuple(
            self.rank(query, t, top, exclude_known=exclude_known, index=index, where=where)
            for t in dict.fromkeys(chosen or self.default_types(query))
        )
        return Answer(
            text=text,
            neighbors=tuple(Named.of(self.network, n) for n in near),
            like=None if node is None else Named.of(self.network, node),
            rankings=rankings,
        )

    def _like(self, name: str, node_type: str) -> Node:
        types = (node_type_named(self.schema, node_type, "--like-type"),) if node_type else ()
        return find_node(self.network, name, types or self.schema.node_types)

    def _neighbor(self, words: str) -> Node:
        node_type, equals, name = words.partition("=")
        if not equals:
            raise InputError(f"--with is {words!r}, expected TYPE=NAME, such as --with author='Jane Doe'.")
        return find_node(self.network, name, [node_type_named(self.schema, node_type)])

    def text(self, text: str, neighbors: Sequence[Node] = ()) -> Query:
        """A text that is no node of the network, alone or with neighbours, as the model sees it."""
        vector = self.encode(text, neighbors)
        found = self.store.matrix(self.store.types[0]).shape[1]
        if len(vector) != found:
            at = self.store.vectors.path
            raise InputError(f"{at}: vectors have {found} numbers, the run's model makes {len(vector)}.")
        made_by = self.store.vectors.metadata.get("model")
        if self._vectors is not None and made_by not in (None, RunWeights(self.run).model):
            said = "was made by another model than the run's; a text's vector does not compare with it"
            raise InputError(f"{self._vectors}: {said}.")
        return Query(vector, neighbors=tuple(neighbors))

    def encode(self, text: str, neighbors: Sequence[Node] = ()) -> NDArray[np.float32]:
        """(d,): the vector of a query text."""
        return self.encoder.encode(text, neighbors)

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
        where: str = "",
        considered: int = CONSIDERED,
    ) -> Ranking:
        """The best nodes of one type, the query's own node left out.

        ``considered`` is how many neighbours of each type may support a result.
        """
        rows = matching_rows(self.network, node_type, where) if where else None
        searched, known = self.store.index(node_type, index), self.known(query, node_type)
        own = [query.node.row] if query.node is not None and query.node.node_type == node_type else []
        without = np.union1d(np.array(own, dtype=np.int64), known if exclude_known else known[:0])
        if rows is None:
            (found,) = searched.search(query.vector[None], top, without)
        else:
            found = search_among(searched, self.store.matrix(node_type), query.vector, top, rows, without)
        ids, names = self.network.ids(node_type, found.rows), self.network.names(node_type, found.rows)
        supporting = _SupportingNeighbors(self.store, self.network, query, considered)
        hits = [
            Hit(i, name, float(score), bool(np.isin(row, known)), supporting.of(Node(node_type, int(row))))
            for i, name, score, row in zip(ids, names, found.scores, found.rows, strict=True)
        ]
        candidates = self.schema.counts[node_type] if rows is None else len(rows)
        return Ranking(node_type, candidates, searched.name, tuple(hits))

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
        near = tuple(t for t in self.schema.neighbor_types_of(own) if t in self.schema.text_rich)
        return near or self.schema.text_rich


class _SupportingNeighbors:
    """The neighbours of a result whose own inner products with the query are highest.

    Inner products with nodes of different types do not compare, so each is taken relative to the mean and
    deviation of its type; a neighbour below the mean supports nothing.
    """

    def __init__(self, store: SearchStore, network: Network, query: Query, considered: int) -> None:
        self.store, self.network, self.query, self.considered = store, network, query, considered
        self._usual: dict[NodeType, tuple[float, float]] = {}

    def of(self, node: Node) -> tuple[SupportingNeighbor, ...]:
        found: list[tuple[float, Node, float]] = []
        for node_type in self.network.schema.neighbor_types_of(node.node_type):
            if node_type in self.store.types:
                found += self._among(node, node_type)
        found.sort(key=lambda one: -one[0])
        return tuple(
            SupportingNeighbor(**vars(Named.of(self.network, neighbor)), score=score)
            for _, neighbor, score in found[:SUPPORTING]
        )

    def _among(self, node: Node, node_type: NodeType) -> list[tuple[float, Node, float]]:
        rows = _neighbors(self.network, node, node_type)[: self.considered]
        if self.query.node is not None and self.query.node.node_type == node_type:
            rows = rows[rows != self.query.node.row]
        scores = self._scores(node_type, rows)  # (r,)
        mean, deviation = self._usual_scores(node_type)
        above = (scores - mean) / deviation
        best = np.argsort(-above, kind="stable")[:SUPPORTING]
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
        raise InputError("--like asks with a node; give no query text and no neighbours with it.")
    if like_type and not like:
        raise InputError("--like-type says what type the --like node has; give --like as well.")
    if not like and not text.strip() and not neighbors:
        raise InputError("there is nothing to search for: give a query text, --like, or neighbours.")


def node_type_named(schema: Schema, name: str, flag: str = "") -> NodeType:
    """A node type by its name, in which '-' may stand for '_'."""
    known = {t.replace("_", "-"): t for t in schema.node_types} | {t: t for t in schema.node_types}
    if name in known:
        return known[name]
    listed = ", ".join(map(repr, schema.node_types))
    if flag:
        raise InputError(f"{flag} is {name!r}, the node types are {listed}.")
    raise InputError(f"{name!r} is neither an option of search nor a node type; the node types are {listed}.")
