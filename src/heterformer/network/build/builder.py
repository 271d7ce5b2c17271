"""From the user's tables to a network folder: checked, indexed, written whole or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from heterformer.errors import InputError
from heterformer.files import new_folder
from heterformer.network.adjacency import Adjacency
from heterformer.network.build.node_tables import NodeTable, read_node_table, write_ids
from heterformer.network.build.relations import Edges, Endpoints, read_relation
from heterformer.network.build.report import BuildReport, Tally
from heterformer.network.ids import IdIndex
from heterformer.network.schema import NodeType, Schema
from heterformer.network.spec import NetworkSpec, relations_of
from heterformer.network.store import Network, write_description
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
    """Build ``spec`` into the new folder ``out``.

    ``data`` is the folder that the specification's file names are relative to; tables given
    directly take the place of files. If anything fails, nothing is left behind.
    """
    out = Path(out)
    nodes = dict(node_tables or {})
    relations = dict(relation_tables or {})
    for node_type, node in spec.nodes.items():
        if node.file and node_type not in nodes:
            nodes[node_type] = open_table(Path(data) / node.file)
    for name, relation in spec.relations.items():
        if relation.file and name not in relations:
            relations[name] = open_table(Path(data) / relation.file)
    total = sum(t.size for t in [*nodes.values(), *relations.values()])
    with new_folder(out) as folder, progress_bar("reading", total) as bar:
        _Builder(spec, folder, nodes, relations, bar).build()
    return Network.open(out)


class _Builder:
    """One build under way: the tables, the ids known so far, and the report."""

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
        if not len(edges[self.spec.predict][0]):
            reason = f"relation {self.spec.predict!r}, which is to be predicted, has no rows"
            raise InputError(f"{self.spec.where}: {reason}.")
        for node_type, index in self.ids.items():
            if node_type not in self.nodes:
                write_ids(self.folder / "nodes" / f"{node_type}.arrow", index.ids)
                self.report.nodes[node_type] = Tally(read=len(index), kept=len(index))
            if not len(index):
                reason = f"node type {node_type!r} has no nodes"
                raise InputError(f"{self.spec.where}: {reason}: its table is empty or no relation names one.")
        self.report.nodes = {t: self.report.nodes[t] for t in self.spec.nodes}
        schema = self._schema()
        self._write_adjacency(schema, edges)
        labels = {t: table.label_kind for t, table in self.tables.items() if table.label_kind}
        write_description(
            self.folder, self.spec, schema, self.report, labels, fingerprint=_fingerprint(self.folder)
        )

    def _read_nodes(self, node_type: NodeType) -> None:
        table = self.nodes[node_type]
        self.bar.describe(f"reading {node_type} nodes")
        self.report.nodes[node_type] = Tally()
        self.tables[node_type] = read_node_table(
            table,
            self.spec.nodes[node_type],
            columns={
                n: (r.column or "", r.separator) for n, r in self.spec.column_relations(node_type).items()
            },
            out=self.folder / "nodes" / f"{node_type}.arrow",
            tally=self.report.nodes[node_type],
            advance=self._advance(table),
        )
        self.ids[node_type] = IdIndex(self.tables[node_type].ids)

    def _read_relation(self, name: str) -> Edges:
        relation = self.spec.relations[name]
        self.bar.describe(f"reading relation {name}")
        tally = self.report.relations[name] = Tally()
        ends = Endpoints(name, relation, self.ids[relation.source], self.ids[relation.target], tally)
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
            relations=relations_of(self.spec),
            predict=self.spec.predict,
            neighbors=self.spec.neighbors,
            max_tokens=self.spec.max_tokens,
            test_batch_size=self.spec.test_batch_size,
        )

    def _write_adjacency(self, schema: Schema, edges: Mapping[str, Edges]) -> None:
        self.bar.describe("indexing")
        for center in schema.node_types:
            for neighbor in schema.neighbor_types_of(center):
                parts = []
                for number, edge_type in enumerate(schema.edge_types):
                    if (edge_type.center, edge_type.neighbor) != (center, neighbor):
                        continue
                    source, target = edges[schema.relations[number // 2].name]
                    parts.append((number, source, target) if number % 2 == 0 else (number, target, source))
                adjacency = Adjacency.from_edges(
                    parts, schema.counts[center], schema.counts[neighbor], len(schema.edge_types)
                )
                adjacency.save(self.folder / "adjacency" / f"{center}--{neighbor}")


def _fingerprint(folder: Path) -> str:
    """A digest of the contents, by which a run knows that its network has not changed."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            while block := file.read(1 << 24):
                digest.update(block)
    return digest.hexdigest()
