"""A network as CSV tables and the specification from which ``heterformer build`` makes it again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from heterformer.errors import InputError
from heterformer.escapes import spreadsheet_text
from heterformer.network.columns import NODE_COLUMNS, node_column, own_name
from heterformer.network.interchange.rows import edge_columns, edge_rows, node_rows, unused_name
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

NEEDS_QUOTES = re.compile('[",\r\n]')
SEPARATORS = (";", "|", " / ", "\x1f")  # between the labels of a field: the first that occurs in no label


def write_tables(network: Network, folder: Path, safe: bool = False) -> None:
    """``network.yaml``, ``nodes/TYPE.csv`` with every stored column and ``relations/NAME.csv``.

    Each type gets a table, even if it was built without one, so that rows keep their order. With ``safe`` a
    spreadsheet takes no cell for a formula.
    """
    schema = network.schema
    for part in ("nodes", "relations"):
        (folder / part).mkdir()
    nodes, relations = {}, {}
    for node_type in schema.node_types:
        file = f"nodes/{node_type}.csv"
        table = _NodeTable(network, node_type)
        _write(folder / file, table.columns.values(), table.rows(), safe)
        nodes[node_type] = {"file": file, **table.spec()}
    for relation in schema.relations:
        file = f"relations/{relation.name}.csv"
        more: tuple[str, ...] = tuple(edge_columns(network, relation))
        _write(folder / file, ("source", "target", *more), edge_rows(network, relation), safe)
        ends = {"from": relation.source, "to": relation.target}
        places = {"file": file, "columns": ["source", "target"], **{column: column for column in more}}
        relations[relation.name] = ends | places
    spec = {
        "name": network.name,
        "nodes": nodes,
        "relations": relations,
        "predict": schema.predict,
        "neighbors": dict(schema.neighbors),
        "max_tokens": schema.max_tokens,
        "test_batch_size": schema.test_batch_size,
        "missing": [],  # what is an id here is one
    }
    text = yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    (folder / "network.yaml").write_text(text, encoding="utf-8")


class _NodeTable:
    """One node type as a table. Kept columns have their own names; others are renamed if names collide."""

    def __init__(self, network: Network, node_type: NodeType) -> None:
        self.network, self.node_type = network, node_type
        kept = set(network.attributes(node_type))
        self.columns = {  # stored column -> heading
            c: own_name(c) if node_column(c).prefix else unused_name(c, kept)
            for c in network.columns(node_type)
        }
        multi_label = network.label_kinds.get(node_type) == "multi"
        self.separator = self._separator() if multi_label else None

    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for column in NODE_COLUMNS:
            headings = [heading for c, heading in self.columns.items() if node_column(c) is column]
            if headings:
                spec[column.key] = headings if column.several else headings[0]
        if kinds := self.network.attribute_kinds.get(self.node_type):
            spec["attributes"] = dict(kinds)
        if self.node_type in self.network.text_from:
            spec["text_from"] = self.network.text_from[self.node_type]
        return spec | ({"separator": self.separator} if self.separator else {})

    def rows(self) -> Iterator[list[Any]]:
        separator = self.separator or ""
        for row in node_rows(self.network, self.node_type):
            values = (row[column] for column in self.columns)
            yield [separator.join(value) if isinstance(value, list) else value for value in values]

    def _separator(self) -> str:
        possible = list(SEPARATORS)
        for row in node_rows(self.network, self.node_type):
            for label in row["label"]:
                possible = [s for s in possible if s not in label and label == label.strip()]
                if not possible:
                    problem = f"the {self.node_type} label {label!r} cannot be one of several in a CSV field"
                    raise InputError(f"{self.network.path}: {problem}; export to hetero-data instead.")
        return possible[0]


def _write(path: Path, heading: Iterable[str], rows: Iterable[Iterable[Any]], safe: bool) -> None:
    field = _safe_field if safe else _field
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(",".join(map(_field, heading)) + "\n")
        for row in rows:
            file.write(",".join(map(field, row)) + "\n")


def _field(value: Any) -> str:
    """A value as CSV writes it. Python's own writer leaves a lone carriage return unquoted."""
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if NEEDS_QUOTES.search(text) else text


def _safe_field(value: Any) -> str:
    return _field(spreadsheet_text(value) if isinstance(value, str) else value)
