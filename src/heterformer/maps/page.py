"""The map as one HTML file that opens anywhere without a network: hover, search, pan, zoom, hide."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.files import write_text
from heterformer.maps.core import Group, NodeMap, Point
from heterformer.maps.style import colors_of_groups, legend_of, markers_of, shortened

TEMPLATE = "page.html"
EXTENT = 10_000  # coordinates are whole numbers up to this
LETTERS, TEXT_LETTERS, NEIGHBOR_LETTERS = 200, 400, 60  # of a name, which may be a whole text, and so on
# In a script element only '<' can end it or begin a comment; the others are for whatever reads it otherwise.
ESCAPED = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})


def write_map_page(node_map: NodeMap, path: Path) -> Path:
    """Write the page; its template is the file ``page.html`` beside this one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, map_page(node_map))
    return path


def map_page(node_map: NodeMap) -> str:
    """The page's HTML. Whatever nodes and labels are called, it stays text."""
    template = (files("heterformer.maps") / TEMPLATE).read_text(encoding="utf-8")
    filled = {
        "title": escape(shortened(f"{node_map.network}: map of nodes", LETTERS)),
        "about": escape(f"{node_map.contents}: {node_map.caption}"),
        "policy": escape(_policy(template)),
        "data": as_json(node_map),
    }
    # In one pass, so that a network called '{{data}}' is not filled in as well.
    return re.sub(r"\{\{(\w+)\}\}", lambda field: filled[field[1]], template)


def as_json(node_map: NodeMap) -> str:
    """The map as JSON that may stand in a script element; a node is a list, as ``page.html`` reads it."""
    colors, markers = colors_of_groups(node_map.groups), markers_of(node_map.types)
    group_number = {group: i for i, group in enumerate(node_map.groups)}
    type_number = {node_type: i for i, node_type in enumerate(node_map.types)}
    places = _whole_numbers(node_map)
    names: dict[str, int] = {}  # each once, by its number
    width, height = places.max(0).tolist() if len(places) else (0, 0)
    values: dict[str, Any] = {
        "network": node_map.network,
        "extent": EXTENT,
        "width": width,
        "height": height,
        "types": [{"name": t, "marker": markers[t]} for t in node_map.types],
        "groups": [colors[g]._asdict() for g in node_map.groups],
        "legend": [
            {"kind": key.kind, "number": key.number, "name": key.name, "marker": key.marker}
            | key.color._asdict()
            for key in legend_of(node_map)
        ],
        "nodes": [
            [
                *(x, y, type_number[p.node_type], group_number[p.group], p.id, shortened(p.name, LETTERS)),
                "; ".join(p.labels) or p.label,
                *_details(p, names, group_number),
            ]
            for (x, y), p in zip(places.tolist(), node_map.points, strict=True)
        ],
        "names": list(names),  # of neighbours; after the nodes, which fill it
    }
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).translate(ESCAPED)


def _details(point: Point, names: dict[str, int], groups: Mapping[Group, int]) -> list[Any]:
    """Text, number of neighbours, some of their names, further groups; nothing of a node without any."""
    near = [names.setdefault(shortened(name, NEIGHBOR_LETTERS), len(names)) for name in point.neighbors]
    details = [shortened(point.text, TEXT_LETTERS), point.degree, near, [groups[g] for g in point.others]]
    return details if any(details) else []


def _whole_numbers(node_map: NodeMap) -> NDArray[np.int64]:
    """(n, 2): the places from 0 to ``EXTENT``, in proportion."""
    places = np.array([(p.x, p.y) for p in node_map.points], dtype=np.float64).reshape(-1, 2)
    places = places - places.min(0, initial=np.inf)
    largest = places.max(initial=0)
    scaled: NDArray[np.float64] = places * (EXTENT / largest if largest else 1.0)
    return np.rint(scaled).astype(np.int64)


def _policy(template: str) -> str:
    """Nothing may be loaded, and no script may run but the template's own."""
    (script,) = re.findall(r"<script>(.*?)</script>", template, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        f"base-uri 'none'; form-action 'none'"
    )
