"""What the map's picture and its page have in common: colours of groups, markers of types, short names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from heterformer.maps.core import Group, NodeMap
from heterformer.maps.palette import CLASSES, OTHER, TYPE, UNLABELLED, Color
from heterformer.network.schema import NodeType

MARKERS = ("circle", "square", "diamond", "triangle", "wedge", "plus", "cross")  # of types; then again


def colors_of_groups(groups: Sequence[Group]) -> dict[Group, Color]:
    """Classes are coloured or, if there are none, types are; beside classes, types are dark grey."""
    colored = [g for g in groups if g.kind == "class"] or [g for g in groups if g.kind == "type"]
    colors = {group: CLASSES[i % len(CLASSES)] for i, group in enumerate(colored)}
    greys = {"type": TYPE, "other": OTHER, "unlabelled": UNLABELLED}
    return {group: colors.get(group) or greys[group.kind] for group in groups}


@dataclass(frozen=True)
class Key:
    """A line of the legend, which tells what a colour stands for (of a group) or a marker (of a type)."""

    kind: Literal["group", "type"]
    number: int  # among the map's groups or types
    name: str
    color: Color
    marker: str


def legend_of(node_map: NodeMap) -> list[Key]:
    """Classes and greys, then types, unless there is one only, beside its classes."""
    colors, markers = colors_of_groups(node_map.groups), markers_of(node_map.types)
    keys = [
        Key("group", i, g.name, colors[g], MARKERS[0])
        for i, g in enumerate(node_map.groups)
        if g.kind != "type"
    ]
    if len(node_map.types) > 1 or not keys:
        keys += [
            Key("type", i, t, colors.get(Group(t, "type"), TYPE), markers[t])
            for i, t in enumerate(node_map.types)
        ]
    return keys


def markers_of(types: Sequence[NodeType]) -> dict[NodeType, str]:
    """A marker for each type; after seven they come again."""
    return {node_type: MARKERS[i % len(MARKERS)] for i, node_type in enumerate(types)}


def shortened(text: str, letters: int) -> str:
    """On one line, and cut if need be."""
    line = " ".join(text.split())
    return line if len(line) <= letters else line[: letters - 1].rstrip() + "…"
