"""What is lost when labels become classes: told, never dropped in silence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

NAMED = 3  # classes that a sentence names


@dataclass(frozen=True)
class LeftOut:
    """Classes that do not count for a reason, and the nodes that have no other class."""

    reason: str
    classes: int
    nodes: int
    such_as: tuple[str, ...] = ()
    """Some of the classes, the most frequent first."""

    @classmethod
    def between(cls, reason: str, before: pl.DataFrame, after: pl.DataFrame) -> tuple[LeftOut, ...]:
        """What (row, label) ``before`` has and ``after`` has not, if anything."""
        lost = before.group_by("label").agg(members=pl.len()).join(after, on="label", how="anti")
        names = lost.sort("members", "label", descending=[True, False])["label"]
        nodes = before["row"].n_unique() - after["row"].n_unique()
        found = cls(reason, len(names), nodes, tuple(names.head(NAMED)))
        return (found,) if found.classes or found.nodes else ()

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
