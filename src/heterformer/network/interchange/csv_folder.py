"""A network as CSV tables and the specification from which ``heterformer build`` makes it again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from heterformer.errors import InputError
from heterformer.network.build.node_tables import ATTRIBUTE
from heterformer.network.interchange.rows import edge_ids, free_name, node_rows
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

NEEDS_QUOTES = re.compile('[",\r\n]')
SEPARATORS = (";", "|", " / ", "\x1f")  # of several labels in one field; the first that no label has in it


def write_tables(network: Network, folder: Path) -> None:
    """``network.yaml``, ``nodes/TYPE.csv`` with every stored column and ``relations/NAME.csv``.

    Each type gets a table, also those that were built without: so rows keep their order.
    """
    schema = network.schema
    for part in ("nodes", "relations"):
        (folder / part).mkdir()
    nodes, relations = {}, {}
    for node_type in schema.node_types:
        file = f"nodes/{node_type}.csv"
        table = _NodeTable(network, node_type)
        _write(folder / file, table.columns.values(), table.rows())
        nodes[node_type] = {"file": file, **table.spec()}
    for relation in schema.relations:
        file = f"relations/{relation.name}.csv"
        _write(folder / file, ("source", "target"), edge_ids(network, relation))
        ends = {"from": relation.source, "to": relation.target}
        relations[relation.name] = {**ends, "file": file, "columns": ["source", "target"]}
    spec = {
        "name": network.name,
        "nodes": nodes,
        "relations": relations,
        "predict": schema.predict,
        "neighbors": dict(schema.neighbors),
        "max_tokens": schema.max_tokens,
        "test_batch_size": schema.test_batch_size,
    }
    text = yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    (folder / "network.yaml").write_text(text, encoding="utf-8")


class _NodeTable:
    """One node type as a table: attributes keep their names, the other columns give way."""

    def __init__(self, network: Network, node_type: NodeType) -> None:
        self.network, self.node_type = network, node_type
        attributes = set(network.attributes(node_type))
        self.columns = {  # stored column -> heading
            c: c.removeprefix(ATTRIBUTE) if c.startswith(ATTRIBUTE) else free_name(c, attributes)
            for c in network.columns(node_type)
        }
        several = network.label_kinds.get(node_type) == "multi"
        self.separator = self._separator() if several else None

    def spec(self) -> dict[str, Any]:
        single = ("id", "label", "name", "time", "split")
        spec: dict[str, Any] = {key: self.columns[key] for key in single if key in self.columns}
        if "text" in self.columns:
            spec["text"] = [self.columns["text"]]
        if attributes := self.network.attributes(self.node_type):
            spec["keep"] = list(attributes)
        return spec | ({"separator": self.separator} if self.separator else {})

    def rows(self) -> Iterator[list[Any]]:
        for row in node_rows(self.network, self.node_type):
            if "label" in row:
                row["label"] = (self.separator or "").join(row["label"])
            yield [row[column] for column in self.columns]

    def _separator(self) -> str:
        possible = list(SEPARATORS)
        for row in node_rows(self.network, self.node_type):
            for label in row["label"]:
                possible = [s for s in possible if s not in label and label == label.strip()]
                if not possible:
                    found = f"the {self.node_type} label {label!r} cannot stand in one CSV field with others"
                    raise InputError(f"{self.network.path}: {found}; take --to hetero-data.")
        return possible[0]


def _write(path: Path, heading: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for row in chain([heading], rows):
            file.write(",".join(map(_field, row)) + "\n")


def _field(value: Any) -> str:
    """A value as CSV writes it. Python's own writer leaves a lone carriage return unquoted."""
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if NEEDS_QUOTES.search(text) else text
