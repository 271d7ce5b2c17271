"""Classes and nodes that are excluded when labels become classes, for the report."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

NAMED = 3  # classes that a sentence names


@dataclass(frozen=True)
class LeftOut:
    """Classes excluded for one reason, and the nodes that have no other class."""

    reason: str
    classes: int
    nodes: int
    such_as: tuple[str, ...] = ()
    """Examples: the most frequent of the classes."""

    @classmethod
    def between(cls, reason: str, before: pl.DataFrame, after: pl.DataFrame) -> tuple[LeftOut, ...]:
        """The difference between two frames of (row, label), if there is any."""
        lost = before.group_by("label").agg(members=pl.len()).join(after, on="label", how="anti")
        names = lost.sort("members", "label", descending=[True, False])["label"]
        nodes = before["row"].n_unique() - after["row"].n_unique()
        left_out = cls(reason, len(names), nodes, tuple(names.head(NAMED)))
        return (left_out,) if left_out.classes or left_out.nodes else ()

    def __str__(self) -> str:
        named = ", ".join(map(repr, self.such_as)) + (", …" if self.classes > len(self.such_as) else "")
        parts = []
        if self.classes:
            parts.append(f"{self.classes:,} {'class' if self.classes == 1 else 'classes'} ({named})")
        if self.nodes:
            other = "no other class" if self.classes else "no class"
            parts.append(f"{self.nodes:,} {'node' if self.nodes == 1 else 'nodes'} with {other}")
        return f"{' and '.join(parts)} left out: {self.reason}"


def told(left_out: Iterable[LeftOut]) -> str:
    """All of it in one sentence's part."""
    return "; ".join(map(str, left_out))
