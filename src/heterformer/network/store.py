"""A built network on disk, opened memory-mapped: nothing is read until it is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from heterformer.digests import check_sizes
from heterformer.errors import InputError
from heterformer.files import damaged, reading
from heterformer.network.adjacency import REBUILD, Adjacency
from heterformer.network.attributes import AttributeKind
from heterformer.network.build.report import BuildReport
from heterformer.network.columns import DISPLAYED, FEATURE, node_column, own_name
from heterformer.network.description import DESCRIPTION, read_description
from heterformer.network.schema import EdgeColumn, NodeType, Relation, Schema
from heterformer.network.spec import NetworkSpec
from heterformer.network.stored_nodes import StoredNodes
from heterformer.untrusted import check_fingerprint, checked_path, short_repr


class Network:
    """A heterogeneous text-rich network, opened memory-mapped.

    A node is a row of its type, from 0; its id is the user's own string. ``Network.open`` opens a built
    network, ``Network.build`` and ``Network.from_frames`` make one of tables.

    Example:
        >>> from heterformer import Network
        >>> network = Network.build("network.yaml", "papers.net")
        >>> network = Network.open("papers.net")
        >>> network.ids("author", [0, 1]), network.texts("paper", [0])
        >>> sources, targets = network.edges("cites")  # rows
    """

    def __init__(self, path: Path, values: Mapping[str, Any]) -> None:
        self.path = path
        self.name: str = values["name"]
        where = path / DESCRIPTION
        self.fingerprint = check_fingerprint(values["fingerprint"], where)
        self.schema = Schema.from_dict(values["schema"], str(where))
        self.label_kinds: dict[NodeType, str] = values["labels"]
        self.attribute_kinds: dict[NodeType, dict[str, AttributeKind]] = values.get("attributes", {})
        self.edge_columns: dict[str, list[EdgeColumn]] = values.get("edge_columns", {})
        self.text_from: dict[NodeType, str] = values.get("text_from", {})
        self.report = BuildReport.from_dict(values["report"])
        self._nodes = StoredNodes(path, self.schema)
        self._adjacency: dict[tuple[NodeType, NodeType], Adjacency] = {}

    @classmethod
    def open(cls, path: Path | str) -> Network:
        """Open a built network, memory-mapped: nothing is read until it is used.

        Args:
            path: A folder that ``heterformer build`` or ``Network.build`` wrote.

        Example:
            >>> network = Network.open("papers.net")
            >>> network.schema.node_types, network.schema.predict
        """
        path = checked_path(path, "the network")
        values = read_description(path)
        check_sizes(path, REBUILD, without=(DESCRIPTION,))
        with reading(path / DESCRIPTION, REBUILD):
            return cls(path, values)

    @classmethod
    def build(cls, spec: Path | str, out: Path | str, data: Path | str | None = None) -> Network:
        """Build a network from the tables that a YAML specification names; what was dropped is printed.

        Args:
            spec: The YAML file (docs/specification.md).
            out: The network folder to write; it must not exist.
            data: The folder with the tables, if it is not the specification's own.

        Example:
            >>> network = Network.build("network.yaml", "papers.net")
            >>> network.report.relations["cites"].dropped
        """
        from heterformer.network.build import build_network

        spec = checked_path(spec, "the specification", "the path of a YAML file")
        return _reported(
            build_network(NetworkSpec.load(spec), out, data=spec.parent if data is None else data)
        )

    @classmethod
    def from_frames(
        cls,
        spec: Mapping[str, Any],
        nodes: Mapping[NodeType, Any],
        relations: Mapping[str, Any] | None = None,
        out: Path | str | None = None,
    ) -> Network:
        """Build a network from polars or pandas frames, Arrow tables or dicts of columns.

        What was dropped and why is printed on standard error, and is in ``network.report``.

        Args:
            spec: The specification as a dict, without ``file`` for tables that are frames.
            nodes: Frames by node type.
            relations: Frames by relation, for relations that are not a column of a node table.
            out: The network folder to write; without it a temporary folder that is removed at exit.

        Example:
            >>> cites = {"from": "paper", "to": "paper", "columns": ["source", "target"]}
            >>> spec = {"nodes": {"paper": {"text": "title"}}, "relations": {"cites": cites}}
            >>> network = Network.from_frames(spec, {"paper": papers}, {"cites": citations})
            >>> network.report.relations["cites"].dropped  # reason -> count and examples
        """
        from heterformer.network.build.frames import build_from_frames

        relations = {} if relations is None else relations
        return _reported(build_from_frames(spec, nodes, relations, out))

    @classmethod
    def from_hetero_data(
        cls,
        data: Any,
        texts: Mapping[NodeType, Sequence[str]],
        *,
        ids: Mapping[NodeType, Sequence[Any]] | None = None,
        labels: Mapping[NodeType, Sequence[Any]] | None = None,
        columns: Mapping[str, Mapping[NodeType, Sequence[Any]]] | None = None,
        attributes: Mapping[NodeType, Mapping[str, Sequence[Any]]] | None = None,
        attribute_kinds: Mapping[NodeType, Mapping[str, str]] | None = None,
        weight: str | None = None,
        time: str | None = None,
        text_from: Mapping[NodeType, str] | None = None,
        out: Path | str | None = None,
        **spec: Any,
    ) -> Network:
        """Build a network from a PyTorch Geometric ``HeteroData``; what was dropped is printed.

        Args:
            data: Its node counts and ``edge_index`` are used. Reverse relations are left out.
            texts: The texts of each text-rich type, in row order.
            ids: Ids by node type; row numbers by default.
            labels: Labels by node type, one or a list per node.
            columns: Other node columns by key of the specification: ``name``, ``time``, ``split``.
            attributes: Attributes by node type and name, one value per node.
            attribute_kinds: The kinds of a type's attributes, by name; unless given, what fits the values.
            weight: The edge attribute that has weights, such as ``edge_weight``; edges have none without it.
            time: The edge attribute that has times.
            text_from: ``text_from`` of the specification, by textless type.
            out: The network folder to write; without it a temporary folder that is removed at exit.
            spec: ``predict``, ``neighbors``, ``max_tokens``, ``test_batch_size``, ``name``.

        Example:
            >>> network = Network.from_hetero_data(data, {"paper": titles}, out="papers.net", predict="cites")
        """
        from heterformer.network.interchange.hetero_data import from_hetero_data

        return _reported(
            from_hetero_data(
                data,
                texts,
                ids=ids,
                labels=labels,
                columns=columns,
                attributes=attributes,
                attribute_kinds=attribute_kinds,
                weight=weight,
                time=time,
                text_from=text_from,
                out=out,
                **spec,
            )
        )

    def to_hetero_data(self, vectors: Mapping[NodeType, Any] | Any = None) -> Any:
        """This network as a PyTorch Geometric ``HeteroData``, rows in network order.

        Every node type has ``num_nodes`` and its columns as lists (id, text, label, ...; not those of
        ``keep``) with ``attributes`` as a dictionary of lists, every relation its ``edge_index`` as declared,
        not reversed, and ``edge_weight`` and ``edge_time`` if it has them.

        Args:
            vectors: Features ``x`` of the nodes: what ``embed`` returned, with or without ``out``.

        Example:
            >>> network = Network.open("papers.net")
            >>> data = network.to_hetero_data(vectors=embed(load_model("runs/papers"), network))
            >>> data["paper"].x, data["paper", "cites", "paper"].edge_index
        """
        from heterformer.network.interchange.hetero_data import to_hetero_data

        return to_hetero_data(self, vectors)

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.schema.counts[t]:,} {t}" for t in self.schema.node_types)
        return f"Network({self.name}: {counts})"

    def ids(self, node_type: NodeType, rows: Iterable[int] | None = None) -> list[str]:
        """The user's ids of all nodes, or of ``rows``.

        Args:
            node_type: A node type of the network.
            rows: Rows of the type, in any order; all of them unless given.

        Example:
            >>> network.ids("author", [0, 1])
        """
        return self._nodes.values(node_type, "id", rows)

    def texts(self, node_type: NodeType, rows: Iterable[int] | None = None) -> list[str]:
        """The texts of all nodes of a text-rich type, or of ``rows``.

        Args:
            node_type: A text-rich type of the network.
            rows: Rows of the type, in any order; all of them unless given.

        Example:
            >>> network.texts("paper", [0])
        """
        return self._nodes.values(node_type, "text", rows)

    def text_batches(self, node_type: NodeType) -> Iterator[list[str]]:
        """All texts in row order, in lists of some thousands.

        Args:
            node_type: A text-rich type of the network.
        """
        for batch in self._nodes.batches(node_type, ["text"]):
            yield [str(text) for text in batch.column(0).to_pylist()]

    def names(self, node_type: NodeType, rows: Iterable[int] | None = None) -> list[str]:
        """What to show a person: a node's name, else its text, else its id.

        Args:
            node_type: A node type of the network.
            rows: Rows of the type, in any order; all of them unless given.

        Example:
            >>> network.names("author", network.rows("author", ["a17"]))
        """
        rows = None if rows is None else list(rows)
        columns = [c for c in DISPLAYED if c in self.columns(node_type)]
        values = zip(*(self._nodes.values(node_type, c, rows) for c in columns), strict=True)
        return [next(filter(None, node_values)) for node_values in values]

    def name_series(self, node_type: NodeType) -> pl.Series:
        """What ``names`` gives for all nodes, as a polars series.

        Args:
            node_type: A node type of the network.
        """
        columns = [c for c in DISPLAYED if c in self.columns(node_type)]
        frame = pl.DataFrame({c: self._nodes.series(node_type, c) for c in columns})
        first_filled = pl.coalesce(*(pl.when(pl.col(c) != "").then(pl.col(c)) for c in columns))
        return frame.select(first_filled.alias("name"))["name"]

    def attributes(self, node_type: NodeType) -> tuple[str, ...]:
        """The names of the columns kept for display (``keep`` and ``attributes`` in the specification).

        Args:
            node_type: A node type of the network.
        """
        return tuple(own_name(c) for c in self.columns(node_type) if node_column(c).prefix)

    def attribute(self, node_type: NodeType, name: str) -> pl.Series:
        """The values of one of the ``attributes`` as text, null where missing; see ``attribute_kinds``.

        Args:
            node_type: A node type of the network.
            name: One of the attributes of the type.

        Example:
            >>> network.attribute("paper", "year").cast(int).mean()
        """
        if name not in (known := self.attribute_kinds.get(node_type, {})):
            problem = f"node type {node_type!r} has no attribute {short_repr(name)}"
            raise InputError(f"{self.path}: {problem}, its attributes are {_listed(known)}.")
        return self._nodes.series(node_type, f"{FEATURE}{name}")

    def labels(self, node_type: NodeType) -> pl.Series:
        """A list of labels per node, empty where it has none; ``label_kinds`` says single or multi.

        Args:
            node_type: A node type of the network.

        Example:
            >>> network.labels("paper").explode().value_counts()
        """
        return self._specified(node_type, "label")

    def has_times(self, node_type: NodeType) -> bool:
        """Whether the specification names a column of times for the type.

        Args:
            node_type: A node type of the network.
        """
        return "time" in self.columns(node_type)

    def times(self, node_type: NodeType) -> NDArray[np.float64]:
        """The time of each node, NaN where unknown.

        Args:
            node_type: A node type of the network.
        """
        return self._specified(node_type, "time").fill_null(float("nan")).to_numpy()

    def splits(self, node_type: NodeType) -> pl.Series:
        """The user's own 'train', 'validation' or 'test' per node, null where there is none.

        Args:
            node_type: A node type of the network.
        """
        return self._specified(node_type, "split")

    def rows(self, node_type: NodeType, ids: Sequence[str]) -> NDArray[np.int64]:
        """The row of each id; an unknown id is an error.

        Args:
            node_type: A node type of the network.
            ids: Ids as they are in your tables.

        Example:
            >>> network.rows("paper", ["p01", "p02"])
        """
        if isinstance(ids, str) or not all(isinstance(i, str) for i in ids):
            wrong = ids if isinstance(ids, str) else next(i for i in ids if not isinstance(i, str))
            raise InputError(f"ids are {short_repr(wrong)}, expected a list of strings.")
        lookup = pl.DataFrame({"id": pl.Series(ids, dtype=pl.String)})
        known = self.id_series(node_type).to_frame().with_row_index("row")
        known = known.join(lookup.unique(), on="id", how="semi")
        rows = lookup.join(known, on="id", how="left", maintain_order="left")["row"]
        if rows.null_count():
            unknown = ids[int(rows.is_null().arg_max() or 0)]
            raise InputError(f"{self.path}: there is no {node_type} with the id {short_repr(unknown)}.")
        return rows.to_numpy().astype(np.int64)

    def adjacency(self, center: NodeType, neighbor: NodeType) -> Adjacency:
        """The neighbours of one type of all nodes of type ``center``, both directions of each relation.

        Args:
            center: The node type whose nodes have the neighbours.
            neighbor: The node type of the neighbours.

        Example:
            >>> adjacency = network.adjacency("paper", "author")
            >>> adjacency.neighbor[adjacency.indptr[7] : adjacency.indptr[8]]  # the authors of paper 7
        """
        key = (center, neighbor)
        for node_type in key:
            self._nodes.check_type(node_type)
        if key not in self._adjacency:
            folder = self.path / "adjacency" / f"{center}--{neighbor}"
            counts = self.schema.counts[center], self.schema.counts[neighbor]
            self._adjacency[key] = Adjacency.open(folder, *counts, self.schema.edge_numbers(center, neighbor))
        return self._adjacency[key]

    def edges(self, relation: str) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The edges of a relation as (source rows, target rows), sorted.

        Args:
            relation: A relation of the specification.

        Example:
            >>> sources, targets = network.edges("cites")
        """
        forward = self._relation(relation).forward
        number = self.schema.edge_types.index(forward)
        return self.adjacency(forward.center, forward.neighbor).entries(number)

    def edge_values(self, relation: str, column: EdgeColumn) -> NDArray[Any] | None:
        """The weights or times of a relation's edges in the order of ``edges``; None if it has none.

        Args:
            relation: A relation of the specification.
            column: "weight" or "time".
        """
        forward = self._relation(relation).forward
        if column not in self.edge_columns.get(relation, ()):
            return None
        adjacency = self.adjacency(forward.center, forward.neighbor)
        values = adjacency.weight if column == "weight" else adjacency.time
        if values is None:
            raise damaged(self.path / DESCRIPTION, f"{relation!r} has no {column} in its files", REBUILD)
        return values[adjacency.positions(self.schema.edge_types.index(forward))]

    def id_series(self, node_type: NodeType) -> pl.Series:
        """The ids of a type as a polars series, memory-mapped.

        Args:
            node_type: A node type of the network.
        """
        return self._nodes.series(node_type, "id").alias("id")

    def column(self, node_type: NodeType, name: str) -> pa.ChunkedArray:
        """A stored column (``id``, ``text``) as Arrow, memory-mapped.

        Args:
            node_type: A node type of the network.
            name: One of ``columns`` of the type.
        """
        return self._nodes.column(node_type, name)

    def columns(self, node_type: NodeType) -> tuple[str, ...]:
        """The stored columns of a type, in the order of ``network.columns``.

        Args:
            node_type: A node type of the network.
        """
        return self._nodes.columns(node_type)

    def batches(self, node_type: NodeType) -> Iterator[pa.RecordBatch]:
        """All stored columns in row order, in batches of some thousand nodes.

        Args:
            node_type: A node type of the network.
        """
        return self._nodes.batches(node_type)

    def _relation(self, name: str) -> Relation:
        known = {relation.name: relation for relation in self.schema.relations}
        if name not in known:
            problem = f"no relation {short_repr(name)}, the relations are {_listed(known)}"
            raise InputError(f"{self.path}: {problem}.")
        return known[name]

    def _specified(self, node_type: NodeType, column: str) -> pl.Series:
        if column not in self.columns(node_type):
            problem = f"node type {node_type!r} has no {column!r} column in its specification"
            raise InputError(f"{self.path}: {problem}.")
        return self._nodes.series(node_type, column)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


def _reported(network: Network) -> Network:
    """A new network, after its build report: nothing is dropped in silence."""
    network.report.say_findings()
    return network
