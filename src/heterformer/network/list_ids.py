"""Ids that look like lists: a relation whose separator was forgotten makes one node of "Ada;Bo"."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

SEPARATORS = (";", "|", ",")  # a comma is also a part of names, so it counts only if its parts are ids
LIST_SHARE = 0.01  # of the ids; fewer may be names


@dataclass(frozen=True)
class ListIds:
    """Ids of one type that hold a separator."""

    separator: str
    count: int
    example: str


def find_list_ids(ids: pl.Series) -> ListIds | None:
    """The ids that look like several, by the separator that most of them have; None if there are few."""
    candidates = []
    for separator in SEPARATORS:
        joined = ids.filter(ids.str.contains(separator, literal=True))
        parts = joined.str.split(separator).list.eval(pl.element().str.strip_chars())
        several = parts.list.eval(pl.element().filter(pl.element() != "")).list.len() > 1
        joined, parts = joined.filter(several), parts.filter(several)
        known = bool(parts.explode().is_in(ids.implode()).any()) if len(joined) else False
        if len(joined) and (known or (separator != "," and len(joined) > LIST_SHARE * len(ids))):
            candidates.append(ListIds(separator, len(joined), joined[0]))
    return max(candidates, key=lambda list_ids: list_ids.count, default=None)
