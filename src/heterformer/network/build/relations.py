"""Relations: from pairs of ids to pairs of rows, with every dropped pair counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.network.build.report import EXAMPLES, Tally
from heterformer.network.ids import IdIndex
from heterformer.network.spec import RelationSpec
from heterformer.network.tables import Column, Table

Edges = tuple[NDArray[np.int32], NDArray[np.int32]]
BLOCK = 1 << 22  # rows whose ids are looked up at a time


def read_relation(
    table: Table, relation: RelationSpec, ends: Endpoints, advance: Callable[[float], None]
) -> Edges:
    """The edges of a relation that has its own table."""
    assert relation.columns is not None
    source, target = (Column(path, "id") for path in relation.columns)
    pieces: list[pl.DataFrame] = []
    edges: list[Edges] = []
    waiting = 0
    for chunk in table.chunks([source, target]):
        pieces.append(pl.DataFrame({"source": chunk.columns[0], "target": chunk.columns[1]}))
        waiting += len(chunk)
        # Each look-up hashes all known ids: with blocks that grow with them the total cost stays linear.
        if waiting >= max(BLOCK, 2 * ends.known):
            edges.append(ends.looked_up(pl.concat(pieces), table.where))
            pieces, waiting = [], 0
        advance(chunk.done)
    if waiting or not edges:
        edges.append(ends.looked_up(pl.concat(pieces), table.where) if pieces else _no_edges())
    return ends.distinct(edges, table.where)


@dataclass
class Endpoints:
    """The two ends of one relation while it is read."""

    name: str
    relation: RelationSpec
    source: IdIndex
    target: IdIndex
    tally: Tally

    @property
    def known(self) -> int:
        return len(self.source) + len(self.target)

    def from_columns(self, rows: pl.Series, ids: pl.Series, where: str) -> Edges:
        """The edges of a relation that stands in a column of the source nodes' own table."""
        pairs = pl.DataFrame({"source": self.source.ids.gather(rows), "target": ids, "row": rows})
        return self.distinct([self.looked_up(pairs, where)], where)

    def looked_up(self, pairs: pl.DataFrame, where: str) -> Edges:
        """Row numbers of both ends of those pairs whose ends are there and known."""
        pairs = pairs.with_row_index("place", offset=self.tally.read + 1)
        self.tally.read += len(pairs)
        missing = pl.any_horizontal(pl.col("source", "target").str.strip_chars().fill_null("") == "")
        pairs = self._without(pairs, pairs.select(missing).to_series(), "missing id")
        if "row" not in pairs.columns:
            pairs = pairs.with_columns(self.source.rows(pairs["source"]).alias("row"))
            pairs = self._without_unknown(pairs, "row", self.relation.source, "source", where)
        pairs = pairs.with_columns(self.target.rows(pairs["target"]).alias("other"))
        pairs = self._without_unknown(pairs, "other", self.relation.target, "target", where)
        if self.relation.source == self.relation.target:
            pairs = self._without(pairs, pairs["row"] == pairs["other"], "self-loop")
        return pairs["row"].to_numpy(), pairs["other"].to_numpy()

    def distinct(self, edges: list[Edges], where: str) -> Edges:
        """All edges, each once, sorted by source and target."""
        width = max(len(self.target), 1)
        keys = np.concatenate([source.astype(np.int64) * width + target for source, target in edges])
        keys.sort()
        first = np.ones(len(keys), dtype=bool)
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        again = keys[~first][:EXAMPLES]
        shown = zip(
            self.source.ids.gather(again // width), self.target.ids.gather(again % width), strict=True
        )
        self.tally.drop("duplicate", int(len(keys) - first.sum()), (f"{s} -> {t}" for s, t in shown))
        keys = keys[first]
        self.tally.kept = len(keys)
        self._check_any(where)
        return (keys // width).astype(np.int32), (keys % width).astype(np.int32)

    def _without_unknown(
        self, pairs: pl.DataFrame, column: str, node_type: str, end: str, where: str
    ) -> pl.DataFrame:
        unknown = pairs[column].is_null()
        if self.relation.unknown == "error" and unknown.any():
            first = pairs.filter(unknown).row(0, named=True)
            place = f"row {first['place']}" if self.relation.file else f"{end} of {first['source']!r}"
            found = f"relation {self.name!r} names the {node_type} {first[end]!r}"
            raise InputError(f"{where}: {place}: {found}, which the {node_type} table does not have.")
        return self._without(pairs, unknown, f"unknown {node_type}")

    def _without(self, pairs: pl.DataFrame, wrong: pl.Series, reason: str) -> pl.DataFrame:
        count = int(wrong.sum())
        if not count:
            return pairs
        examples = pairs.filter(wrong).head(EXAMPLES)
        shown = (f"{s} -> {t}" for s, t in zip(examples["source"], examples["target"], strict=True))
        self.tally.drop(reason, count, shown)
        return pairs.filter(~wrong)

    def _check_any(self, where: str) -> None:
        if self.tally.kept or not self.tally.read:
            return
        reason, finding = max(self.tally.dropped.items(), key=lambda item: item[1].count)
        example = f"{reason}, for example {finding.examples[0]}"
        remedy = "check the order of 'columns' and that both tables use the same ids"
        raise InputError(f"{where}: relation {self.name!r} keeps none of its rows ({example}); {remedy}.")


def _no_edges() -> Edges:
    return np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32)
