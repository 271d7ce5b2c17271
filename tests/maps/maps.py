"""Maps that nobody had to lay out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heterformer.maps.core import OTHER, UNLABELLED, Group, NodeMap, Point


def random_map(
    count: int, groups: Sequence[Group], types: Sequence[str] = ("paper",), seed: int = 0
) -> NodeMap:
    """Points anywhere, of all groups and types in turn."""
    rng = np.random.default_rng(seed)
    points = []
    for i, (x, y) in enumerate(rng.normal(0, 20, (count, 2)).tolist()):
        group, node_type = groups[i % len(groups)], types[i % len(types)]
        label = group.name if group.kind == "class" else None
        points.append(Point(x, y, node_type, f"id {i}", f"Node number {i}", label, group))
    return NodeMap("small", tuple(types), tuple(groups), tuple(points), count)


def classes(*names: str) -> list[Group]:
    return [Group(name, "class") for name in names]


def types(*names: str) -> list[Group]:
    return [Group(name, "type") for name in names]


GREY = [OTHER, UNLABELLED]
