"""A network as one directed multigraph: GraphML (networkx, Gephi) and networkx's node-link JSON.

A node's key is ``TYPE:ID``, since two types may share an id; a type has no colon in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TextIO
from xml.sax.saxutils import escape, quoteattr

from heterformer.network.build.node_tables import ATTRIBUTE
from heterformer.network.interchange.rows import edge_ids, free_name, node_rows
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # XML cannot hold these at all
GRAPHML = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""


def write_node_link(network: Network, file: TextIO) -> None:
    """What ``networkx.node_link_graph`` makes a MultiDiGraph of; its edge keys are the relations.

    A node has ``type``, its own ``id`` as ``node``, and what is stored: text, name, labels, time, attributes.
    """
    about = {"name": network.name, "predict": network.schema.predict, "fingerprint": network.fingerprint}
    file.write(f'{{"directed": true, "multigraph": true, "graph": {_json(about)},\n"nodes": [')
    nodes = ((t, row) for t in network.schema.node_types for row in node_rows(network, t))
    _write_items(file, (_node(node_type, row) for node_type, row in nodes))
    file.write('],\n"edges": [')
    _write_items(file, ({"source": a, "target": b, "key": r} for a, b, r in _edges(network)))
    file.write("]}\n")


def write_graphml(network: Network, file: TextIO) -> None:
    """Nodes with ``type``, ``node`` (the id), ``label`` (what Gephi shows), text, ``class`` and the rest."""
    keys: dict[str, str] = {}  # attribute -> GraphML key
    headings = ["type", "node", "label", "text", "class", "time", "split"]
    for node_type in network.schema.node_types:
        headings += [h for h in _attribute_names(network, node_type).values() if h not in headings]
    file.write(GRAPHML)
    for number, heading in enumerate(headings):
        keys[heading] = f"n{number}"
        kind = "double" if heading == "time" else "string"
        named = f"attr.name={quoteattr(_xml(heading))} attr.type={quoteattr(kind)}"
        file.write(f'<key id="n{number}" for="node" {named}/>\n')
    file.write('<key id="e" for="edge" attr.name="relation" attr.type="string"/>\n')
    file.write('<graph edgedefault="directed">\n')
    for node_type in network.schema.node_types:
        names = _attribute_names(network, node_type)
        for row in node_rows(network, node_type):
            values = _shown(node_type, row) | {names[c]: row[c] for c in names}
            data = "".join(
                f'<data key="{keys[heading]}">{_escaped(str(value))}</data>'
                for heading, value in values.items()
                if value is not None
            )
            file.write(f"<node id={_quoted(_key(node_type, row))}>{data}</node>\n")
    for source, target, relation in _edges(network):
        ends = f"source={_quoted(source)} target={_quoted(target)}"
        file.write(f'<edge {ends}><data key="e">{_escaped(relation)}</data></edge>\n')
    file.write("</graph>\n</graphml>\n")


def _node(node_type: NodeType, row: dict[str, Any]) -> dict[str, Any]:
    """A node's values for JSON; attributes give way to names that are taken."""
    taken = {"id", "type", "node", "text", "name", "label", "time", "split"}
    node = {"id": _key(node_type, row), "type": node_type, "node": row["id"]}
    for column, value in row.items():
        if column.startswith(ATTRIBUTE):
            node[free_name(column.removeprefix(ATTRIBUTE), taken)] = value
        elif column != "id":
            node[column] = value
    return {key: value for key, value in node.items() if value is not None}


def _shown(node_type: NodeType, row: dict[str, Any]) -> dict[str, Any]:
    label = row.get("name") or row.get("text") or row["id"]
    classes = "; ".join(row["label"]) if "label" in row else None
    given = {key: row.get(key) for key in ("text", "time", "split")}
    return {"type": node_type, "node": row["id"], "label": label, "class": classes, **given}


def _attribute_names(network: Network, node_type: NodeType) -> dict[str, str]:
    taken = {"type", "node", "label", "text", "class", "time", "split", "id"}
    return {ATTRIBUTE + name: free_name(name, taken) for name in network.attributes(node_type)}


def _key(node_type: NodeType, row: dict[str, Any]) -> str:
    return f"{node_type}:{row['id']}"


def _edges(network: Network) -> Iterator[tuple[str, str, str]]:
    for relation in network.schema.relations:
        for source, target in edge_ids(network, relation):
            yield f"{relation.source}:{source}", f"{relation.target}:{target}", relation.name


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
