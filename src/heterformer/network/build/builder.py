"""From the user's tables to a network folder: checked, indexed, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from heterformer.digests import tree_digests, write_digests
from heterformer.errors import InputError
from heterformer.files import new_folder
from heterformer.network.adjacency import Adjacency
from heterformer.network.build.node_tables import NodeTable, read_node_table, write_ids
from heterformer.network.build.relations import Edges, Endpoints, read_relation
from heterformer.network.build.report import BuildReport, Tally
from heterformer.network.description import write_description
from heterformer.network.ids import IdIndex
from heterformer.network.schema import NodeType, Relation, Schema
from heterformer.network.spec import NetworkSpec
from heterformer.network.store import Network
from heterformer.network.tables import Table, open_table
from heterformer.progress import Bar, progress_bar


def build_network(
    spec: NetworkSpec,
    out: Path | str,
    *,
    data: Path | str = ".",
    node_tables: Mapping[NodeType, Table] | None = None,
    relation_tables: Mapping[str, Table] | None = None,
) -> Network:
    """Build a network into the new folder ``out``; if anything fails, nothing is left behind.

    Args:
        spec: The specification, such as ``NetworkSpec.load("network.yaml")``.
        out: The network folder to write; it must not exist.
        data: The folder that the specification's file names are relative to.
        node_tables: Tables by node type that replace files.
        relation_tables: Tables by relation that replace files.

    Example::

        network = build_network(NetworkSpec.load("data/network.yaml"), "papers.net", data="data")
    """
    out = Path(out)
    nodes = dict(node_tables or {})
    relations = dict(relation_tables or {})
    for node_type, node in spec.nodes.items():
        if node.file and node_type not in nodes:
            nodes[node_type] = open_table(Path(data) / node.file, node.delimiter)
    for name, relation in spec.relations.items():
        if relation.file and name not in relations:
            relations[name] = open_table(Path(data) / relation.file, relation.delimiter)
    total = sum(t.size for t in [*nodes.values(), *relations.values()])
    with new_folder(out) as folder, progress_bar("reading", total, "bytes") as bar:
        _Builder(spec, folder, nodes, relations, bar).build()
    return Network.open(out)


class _Builder:
    """A build in progress: the tables, the ids read so far, and the report."""

    def __init__(
        self,
        spec: NetworkSpec,
        folder: Path,
        nodes: Mapping[NodeType, Table],
        relations: Mapping[str, Table],
        bar: Bar,
    ) -> None:
        self.spec, self.folder, self.bar = spec, folder, bar
        self.nodes, self.relations = nodes, relations
        self.report = BuildReport()
        self.ids: dict[NodeType, IdIndex] = {t: IdIndex() for t in spec.nodes}
        self.tables: dict[NodeType, NodeTable] = {}

    def build(self) -> None:
        (self.folder / "nodes").mkdir()
        for node_type in self.nodes:
            self._read_nodes(node_type)
        edges = {name: self._read_relation(name) for name in self.spec.relations}
        for name in [self.spec.predict] if isinstance(self.spec.predict, str) else self.spec.predict:
            if not len(edges[name].source):
                raise InputError(f"{self.spec.where}: the predicted relation {name!r} has no rows.")
        for node_type, index in self.ids.items():
            if node_type not in self.nodes:
                write_ids(self.folder / "nodes" / f"{node_type}.arrow", index.ids)
                self.report.nodes[node_type] = Tally(read=len(index), kept=len(index))
            if not len(index):
                reason = "its table is empty or no relation names any"
                raise InputError(f"{self.spec.where}: node type {node_type!r} has no nodes; {reason}.")
        self.report.nodes = {t: self.report.nodes[t] for t in self.spec.nodes}
        schema = self._schema()
        self._write_adjacency(schema, edges)
        labels = {t: table.label_kind for t, table in self.tables.items() if table.label_kind}
        attributes = {t: table.attribute_kinds for t, table in self.tables.items() if table.attribute_kinds}
        digests, fingerprint = tree_digests(self.folder)
        write_description(self.folder, self.spec, schema, self.report, labels, attributes, fingerprint)
        write_digests(self.folder, known=digests)

    def _read_nodes(self, node_type: NodeType) -> None:
        table = self.nodes[node_type]
        self.bar.describe(f"reading {node_type} nodes")
        self.report.nodes[node_type] = Tally()
        self.tables[node_type] = read_node_table(
            table,
            self.spec.nodes[node_type],
            relations={
                n: (r.column or "", r.separator) for n, r in self.spec.column_relations(node_type).items()
            },
            out=self.folder / "nodes" / f"{node_type}.arrow",
            tally=self.report.nodes[node_type],
            advance=self._advance(table),
            missing=self.spec.missing,
        )
        self.ids[node_type] = IdIndex(self.tables[node_type].ids)

    def _read_relation(self, name: str) -> Edges:
        relation = self.spec.relations[name]
        self.bar.describe(f"reading relation {name}")
        tally = self.report.relations[name] = Tally()
        source, target = self.ids[relation.source], self.ids[relation.target]
        ends = Endpoints(name, relation, source, target, tally, self.spec.missing)
        if relation.column:
            sources, targets = self.tables[relation.source].related.pop(name)
            return ends.from_columns(sources, targets, where=self.nodes[relation.source].where)
        table = self.relations[name]
        return read_relation(table, relation, ends, advance=self._advance(table))

    def _advance(self, table: Table) -> Callable[[float], None]:
        done = 0.0

        def advance(share: float) -> None:
            nonlocal done
            self.bar.advance((share - done) * table.size)
            done = share

        return advance

    def _schema(self) -> Schema:
        return Schema(
            text_rich=self.spec.text_rich,
            textless=self.spec.textless,
            counts={t: len(self.ids[t]) for t in self.spec.text_rich + self.spec.textless},
            relations=tuple(Relation(n, r.source, r.target) for n, r in self.spec.relations.items()),
            predict=self.spec.predict,
            neighbors=self.spec.neighbors,
            max_tokens=self.spec.max_tokens,
            test_batch_size=self.spec.test_batch_size,
        )

    def _write_adjacency(self, schema: Schema, edges: Mapping[str, Edges]) -> None:
        self.bar.describe("indexing")
        for center in schema.node_types:
            for neighbor in schema.neighbor_types_of(center):
                parts, weights, times = [], [], []
                for number in schema.edge_numbers(center, neighbor):
                    source, target, weight, time = edges[schema.relations[number // 2].name]
                    weights.append(weight)
                    times.append(time)
                    parts.append((number, source, target) if number % 2 == 0 else (number, target, source))
                counts = (schema.counts[center], schema.counts[neighbor], len(schema.edge_types))
                adjacency = Adjacency.from_edges(parts, *counts, weights, times)
                adjacency.save(self.folder / "adjacency" / f"{center}--{neighbor}")
