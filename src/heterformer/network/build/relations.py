"""Relations: from pairs of ids to pairs of row numbers. Every dropped pair is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.errors import LONGEST_VALUE, InputError
from heterformer.network.build.missing import by_spelling, is_spelled_missing, written
from heterformer.network.build.report import EXAMPLES, Tally
from heterformer.network.ids import IdIndex
from heterformer.network.schema import EdgeColumn
from heterformer.network.spec import RelationSpec
from heterformer.network.tables import Column, Place, Table
from heterformer.network.tables.column import A_TIME, A_WEIGHT
from heterformer.untrusted import short_repr


class Edges(NamedTuple):
    """The edges of a relation, by rows; weights and times only if its specification names columns."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    weight: NDArray[np.float64] | None = None
    time: NDArray[np.float64] | None = None


LARGEST_WEIGHT = 1e30  # of an edge, after weights of duplicates are added up
BLOCK_ROWS = 1 << 22  # pairs whose ids are looked up together, at least


def read_relation(
    table: Table,
    relation: RelationSpec,
    ends: Endpoints,
    advance: Callable[[float], None],
    block_rows: int | None = None,
) -> Edges:
    """The edges of a relation that has its own table; ids are looked up for ``block_rows`` pairs at once."""
    assert relation.columns is not None
    columns: dict[str, Column] = {"source": Column(relation.columns[0], "id")}
    columns["target"] = Column(relation.columns[1], "id")
    for key, path in relation.edge_columns.items():
        columns[key] = Column(path, key, missing=ends.missing)
    pieces: list[pl.DataFrame] = []
    edges: list[Edges] = []
    waiting = 0
    for chunk in table.chunks(list(columns.values())):
        pieces.append(pl.DataFrame(dict(zip(columns, chunk.columns, strict=True))))
        for key, path in relation.edge_columns.items():
            _check_complete(pieces[-1][key], key, Place(table.where, path, chunk.first_row))
        waiting += len(chunk)
        # Each look-up hashes all known ids: with blocks that grow with them the total cost stays linear.
        if waiting >= (block_rows or max(BLOCK_ROWS, 2 * ends.known_ids)):
            edges.append(ends.look_up(pl.concat(pieces), table.where))
            pieces, waiting = [], 0
        advance(chunk.done)
    if waiting or not edges:
        edges.append(ends.look_up(pl.concat(pieces), table.where) if pieces else _no_edges(relation))
    return ends.distinct(edges, table.where)


@dataclass
class Endpoints:
    """Both ends of a relation while it is read: the ids of either node type, and what was dropped."""

    name: str
    relation: RelationSpec
    source: IdIndex
    target: IdIndex
    tally: Tally
    missing: tuple[str, ...] = ()
    """Spellings of missing ids."""

    @property
    def known_ids(self) -> int:
        return len(self.source) + len(self.target)

    def from_columns(self, rows: pl.Series, ids: pl.Series, where: str) -> Edges:
        """The edges of a relation that is a column of the source nodes' own table."""
        pairs = pl.DataFrame({"source": self.source.ids.gather(rows), "target": ids, "row": rows})
        return self.distinct([self.look_up(pairs, where)], where)

    def look_up(self, pairs: pl.DataFrame, where: str) -> Edges:
        """The row numbers of pairs; pairs with a missing or unknown id and self-loops are dropped."""
        pairs = pairs.with_row_index("table_row", offset=self.tally.read + 1)
        self.tally.read += len(pairs)
        missing = pl.any_horizontal(pl.col("source", "target").str.strip_chars().fill_null("") == "")
        pairs = self._without(pairs, pairs.select(missing).to_series(), "missing id")
        pairs = self._without_spellings(pairs)
        if "row" not in pairs.columns:
            pairs = pairs.with_columns(self._rows(self.source, pairs["source"]).alias("row"))
            pairs = self._without_unknown(pairs, "row", self.relation.source, "source", where)
        pairs = pairs.with_columns(self._rows(self.target, pairs["target"]).alias("other"))
        pairs = self._without_unknown(pairs, "other", self.relation.target, "target", where)
        if self.relation.source == self.relation.target:
            pairs = self._without(pairs, pairs["row"] == pairs["other"], "self-loop")
        more = {key: pairs[key].to_numpy() for key in self.relation.edge_columns}
        return Edges(pairs["row"].to_numpy(), pairs["other"].to_numpy(), **more)

    def _rows(self, index: IdIndex, ids: pl.Series) -> pl.Series:
        """The row of each id; how many are known by another spelling of a whole number is noted."""
        spelled = index.as_known(ids)
        other = (spelled != ids).fill_null(False)
        self.tally.note("known with or without '.0'", int(other.sum()), ids.filter(other).head(EXAMPLES))
        return index.rows(spelled)

    def _without_spellings(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Pairs without those of which an id spells "missing", each spelling counted by itself."""
        ends = ["target"] if "row" in pairs.columns else ["source", "target"]  # a row's own id is one
        for end in ends if self.missing else ():
            spelled = is_spelled_missing(pairs[end], self.missing)
            if spelled.any():
                for spelling, rows in by_spelling(pairs, end, self.missing):
                    self.tally.drop(written("missing id", spelling), len(rows), _arrows(rows))
                pairs = pairs.filter(~spelled)
        return pairs

    def distinct(self, edges: list[Edges], where: str) -> Edges:
        """All edges without duplicates, sorted by source and target.

        Of duplicates the weights are added up, and the earliest time counts.
        """
        width = max(len(self.target), 1)
        keys = np.concatenate([part.source.astype(np.int64) * width + part.target for part in edges])
        order = np.argsort(keys, kind="stable") if self.relation.edge_columns else None
        keys.sort()
        is_new = np.ones(len(keys), dtype=bool)
        np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
        examples = keys[~is_new][:EXAMPLES]
        sources, targets = self.source.ids.gather(examples // width), self.target.ids.gather(examples % width)
        arrows = (_arrow(s, t) for s, t in zip(sources, targets, strict=True))
        self.tally.drop("duplicate", int(len(keys) - is_new.sum()), arrows)
        keys = keys[is_new]
        self.tally.kept = len(keys)
        self._check_any(where)
        more: dict[str, NDArray[np.float64]] = {}
        for key in self.relation.edge_columns:
            values = np.concatenate([getattr(part, key) for part in edges])[order]
            together = np.add if key == "weight" else np.minimum
            more[key] = together.reduceat(values, np.flatnonzero(is_new)) if len(values) else values
        if "weight" in more:
            self._check_weights(more["weight"], where)
        return Edges((keys // width).astype(np.int32), (keys % width).astype(np.int32), **more)

    def _check_weights(self, weights: NDArray[np.float64], where: str) -> None:
        """Refuse weights that 32 bits would turn into nothing or infinity."""
        extreme = (weights > LARGEST_WEIGHT) | ((weights > 0) & (weights < 1 / LARGEST_WEIGHT))
        if extreme.any():
            found = f"found a weight of {weights[extreme][0]:g} in relation {self.name!r}"
            expected = f"expected 0 or {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}"
            raise InputError(f"{where}: {found}, {expected}; choose another unit.")

    def _without_unknown(
        self, pairs: pl.DataFrame, column: str, node_type: str, end: str, where: str
    ) -> pl.DataFrame:
        unknown = pairs[column].is_null()
        if self.relation.unknown == "error" and unknown.any():
            pair = pairs.filter(unknown).row(0, named=True)
            place = (
                f"row {pair['table_row']}" if self.relation.file else f"{end} of {short_repr(pair['source'])}"
            )
            problem = f"unknown {node_type} {short_repr(pair[end])} in relation {self.name!r}"
            raise InputError(f"{where}: {place}: {problem}, expected an id of the {node_type} table.")
        return self._without(pairs, unknown, f"unknown {node_type}")

    def _without(self, pairs: pl.DataFrame, dropped: pl.Series, reason: str) -> pl.DataFrame:
        count = int(dropped.sum())
        if not count:
            return pairs
        self.tally.drop(reason, count, _arrows(pairs.filter(dropped)))
        return pairs.filter(~dropped)

    def _check_any(self, where: str) -> None:
        if self.tally.kept or not self.tally.read:
            return
        reason, finding = max(self.tally.dropped.items(), key=lambda item: item[1].count)
        example = f"{reason}, for example {finding.examples[0]}"
        remedy = "check the order of 'columns' and that both tables use the same ids"
        raise InputError(f"{where}: all rows of relation {self.name!r} are dropped ({example}); {remedy}.")


def _arrows(pairs: pl.DataFrame) -> Iterator[str]:
    """The first pairs, as the build report shows them."""
    examples = pairs.head(EXAMPLES)
    return (_arrow(s, t) for s, t in zip(examples["source"], examples["target"], strict=True))


def _arrow(source: str | None, target: str | None) -> str:
    ends = (
        end if end is None or len(end) <= LONGEST_VALUE else end[:LONGEST_VALUE] + "…"
        for end in (source, target)
    )
    return " -> ".join(map(str, ends))


def _check_complete(values: pl.Series, key: EdgeColumn, place: Place) -> None:
    if values.null_count():
        expected = {"weight": A_WEIGHT, "time": A_TIME}[key]
        raise place.error(int(values.is_null().arg_max() or 0), f"found nothing, expected {expected}")


def _no_edges(relation: RelationSpec) -> Edges:
    more = {key: np.empty(0) for key in relation.edge_columns}
    return Edges(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int32), **more)
