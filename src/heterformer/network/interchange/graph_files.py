"""A network as one directed multigraph: GraphML (networkx, Gephi) and networkx's node-link JSON.

A node's key is ``TYPE:ID``, since two types may share an id; a type has no colon in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TextIO
from xml.sax.saxutils import escape, quoteattr

from heterformer.network.columns import DISPLAYED, NODE_COLUMNS, node_column, own_name
from heterformer.network.interchange.rows import edge_columns, edge_rows, node_rows, unused_name
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # not allowed in XML
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""


def write_node_link(network: Network, file: TextIO) -> None:
    """A MultiDiGraph for ``networkx.node_link_graph``; its edge keys are the relations.

    A node has ``type``, its own ``id`` as ``node``, and every stored column.
    """
    graph = {"name": network.name, "predict": network.schema.predict, "fingerprint": network.fingerprint}
    file.write(f'{{"directed": true, "multigraph": true, "graph": {_json(graph)},\n"nodes": [')
    nodes = ((t, row) for t in network.schema.node_types for row in node_rows(network, t))
    _write_items(file, (_node(node_type, row) for node_type, row in nodes))
    file.write('],\n"edges": [')
    _write_items(file, ({"source": a, "target": b, "key": r, **more} for a, b, r, more in _edges(network)))
    file.write("]}\n")


def write_graphml(network: Network, file: TextIO) -> None:
    """Nodes with ``type``, ``label`` (what Gephi shows), ``node`` (the id), ``class`` and so on."""
    attributes = dict.fromkeys(("type", "label"), "string")  # name -> GraphML type
    for column in NODE_COLUMNS:
        if column.graphml:
            attributes[column.graphml] = "double" if column.dtype.is_float() else "string"
    for node_type in network.schema.node_types:
        attributes |= dict.fromkeys(_kept_columns(network, node_type).values(), "string")
    keys = {name: f"n{number}" for number, name in enumerate(attributes)}
    file.write(GRAPHML)
    for name, kind in attributes.items():
        declared = f"attr.name={quoteattr(_xml(name))} attr.type={quoteattr(kind)}"
        file.write(f'<key id="{keys[name]}" for="node" {declared}/>\n')
    file.write('<key id="e" for="edge" attr.name="relation" attr.type="string"/>\n')
    for name in dict.fromkeys(name for names in network.edge_columns.values() for name in names):
        file.write(f'<key id="{name}" for="edge" attr.name="{name}" attr.type="double"/>\n')
    file.write('<graph edgedefault="directed">\n')
    for node_type in network.schema.node_types:
        kept = _kept_columns(network, node_type)
        for row in node_rows(network, node_type):
            values = _graphml_values(node_type, row) | {kept[c]: row[c] for c in kept}
            data = "".join(
                f'<data key="{keys[name]}">{_escaped(str(value))}</data>'
                for name, value in values.items()
                if value is not None
            )
            file.write(f"<node id={_quoted(_key(node_type, row))}>{data}</node>\n")
    for source, target, relation, more in _edges(network):
        ends = f"source={_quoted(source)} target={_quoted(target)}"
        numbers = "".join(f'<data key="{name}">{value!r}</data>' for name, value in more.items())
        file.write(f'<edge {ends}><data key="e">{_escaped(relation)}</data>{numbers}</edge>\n')
    file.write("</graph>\n</graphml>\n")


def _node(node_type: NodeType, row: dict[str, Any]) -> dict[str, Any]:
    """A node's values for JSON; a kept column is renamed if its name is taken."""
    taken = {"type", "node", *(c.key for c in NODE_COLUMNS if not c.prefix)}
    node = {"id": _key(node_type, row), "type": node_type, "node": row["id"]}
    for column, value in row.items():
        if node_column(column).prefix:
            node[unused_name(own_name(column), taken)] = value
        elif column != "id":
            node[column] = value
    return {key: value for key, value in node.items() if value is not None}


def _graphml_values(node_type: NodeType, row: dict[str, Any]) -> dict[str, Any]:
    values = {"type": node_type, "label": next(filter(None, (row.get(key) for key in DISPLAYED)))}
    for column in NODE_COLUMNS:
        if column.graphml:
            value = row.get(column.key)
            values[column.graphml] = "; ".join(value) if isinstance(value, list) else value
    return values


def _kept_columns(network: Network, node_type: NodeType) -> dict[str, str]:
    """The GraphML attribute of each kept column."""
    taken = {"type", "label", "id", *(c.graphml for c in NODE_COLUMNS if c.graphml)}
    kept = (c for c in network.columns(node_type) if node_column(c).prefix)
    return {c: unused_name(own_name(c), taken) for c in kept}


def _key(node_type: NodeType, row: dict[str, Any]) -> str:
    return f"{node_type}:{row['id']}"


def _edges(network: Network) -> Iterator[tuple[str, str, str, dict[str, float]]]:
    """Both ends, the relation, and the edge's weight and time if it has them."""
    for relation in network.schema.relations:
        names = tuple(edge_columns(network, relation))
        for source, target, *values in edge_rows(network, relation):
            more = dict(zip(names, values, strict=True))
            yield f"{relation.source}:{source}", f"{relation.target}:{target}", relation.name, more


def _write_items(file: TextIO, items: Iterator[dict[str, Any]]) -> None:
    for number, item in enumerate(items):
        file.write(f"{',' if number else ''}\n{_json(item)}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _xml(text: str) -> str:
    return NO_XML.sub("\ufffd", text)


def _escaped(text: str) -> str:
    return escape(_xml(text), {"\r": "&#13;"})


def _quoted(text: str) -> str:
    return quoteattr(_xml(text))
