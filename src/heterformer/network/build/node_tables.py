"""Node tables: every column of the specification, copied into one Arrow file per node type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow as pa

from heterformer.errors import InputError
from heterformer.network.attributes import AttributeKind, KindGuess
from heterformer.network.build.missing import is_spelled_missing, note_spellings, without_spellings
from heterformer.network.build.report import EXAMPLES, Tally
from heterformer.network.columns import NODE_COLUMNS, NodeColumn
from heterformer.network.spec import NodeSpec
from heterformer.network.tables import Chunk, Column, Place, Table
from heterformer.untrusted import short_repr


@dataclass
class NodeTable:
    """What a build keeps in memory of a node table once its file is written."""

    ids: pl.Series
    related: dict[str, tuple[pl.Series, pl.Series]]  # relation -> (row numbers, ids at the other end)
    label_kind: str | None
    attribute_kinds: dict[str, AttributeKind] = field(default_factory=dict)


@dataclass(frozen=True)
class _StoredColumn:
    """A column of the Arrow file: its entry, its name, and the table's columns it is made of."""

    column: NodeColumn
    name: str
    paths: tuple[str, ...]


@dataclass
class _TableFacts:
    """What is known of a table only when all its chunks are read."""

    ids: list[pl.Series] = field(default_factory=list)
    related: dict[str, list[tuple[pl.Series, pl.Series]]] = field(default_factory=dict)
    most_labels: int = 0  # of one node
    paths_with_letters: set[str] = field(default_factory=set)  # text columns that hold words, as they should
    kinds: dict[str, KindGuess] = field(default_factory=dict)  # of attributes, by the table's column


def read_node_table(
    table: Table,
    spec: NodeSpec,
    relations: Mapping[str, tuple[str, str | None]],
    out: Path,
    tally: Tally,
    advance: Callable[[float], None],
    missing: Sequence[str] = (),
) -> NodeTable:
    """Read one node table, write its Arrow file, and return its ids and the relations it holds.

    ``relations`` gives the column and separator of each relation that is a column of this table, ``missing``
    the spellings of missing values.
    """
    stored = [
        _StoredColumn(column, name, paths)
        for column in NODE_COLUMNS
        for name, paths in column.stored(spec.columns.get(column.key, ())).items()
    ]
    columns = _table_columns(stored, relations, spec.separator, tuple(missing))
    guesses = {c: KindGuess(spec.attribute_kinds.get(c)) for c in spec.columns.get("attributes", ())}
    seen = _TableFacts(related={name: [] for name in relations}, kinds=guesses)
    with pa.OSFile(str(out), "wb") as file:
        writer = None
        for chunk in table.chunks(list(columns.values())):
            series = dict(zip(columns, chunk.columns, strict=True))
            frame = _converted(series, stored, chunk, table.where, seen, tally, missing)
            for name in relations:
                seen.related[name].append(_exploded(series["relation", name], chunk.first_row))
            batch = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            writer = writer or pa.ipc.new_file(file, batch.schema)
            writer.write_table(batch)
            advance(chunk.done)
        if writer is not None:
            writer.close()
    if not seen.ids or not tally.read:
        raise InputError(f"{table.where}: the table has no rows.")
    for path in spec.text:
        if path not in seen.paths_with_letters:
            problem = f"column {path!r} holds no letters, only numbers or nothing"
            raise InputError(f"{table.where}: {problem}; expected text.")
    ids = pl.concat(seen.ids, rechunk=True)
    _check_unique(ids, spec.columns["id"][0], table.where)
    related = {
        name: (pl.concat([rows for rows, _ in pieces]), pl.concat([others for _, others in pieces]))
        for name, pieces in seen.related.items()
    }
    kind = None if "label" not in spec.columns else ("multi" if seen.most_labels > 1 else "single")
    return NodeTable(ids, related, kind, {column: guess.kind for column, guess in guesses.items()})


def write_ids(out: Path, ids: pl.Series) -> None:
    """The Arrow file of a type that has no table: its ids."""
    table = ids.alias("id").to_frame().to_arrow(compat_level=pl.CompatLevel.oldest())
    with pa.OSFile(str(out), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _table_columns(
    stored: list[_StoredColumn],
    relations: Mapping[str, tuple[str, str | None]],
    separator: str | None,
    missing: tuple[str, ...],
) -> dict[tuple[str, str], Column]:
    """What to read, by (stored column, path) and by ("relation", its name)."""
    columns = {
        (target.name, path): Column(
            path, target.column.kind, separator if target.column.is_list else None, missing
        )
        for target in stored
        for path in target.paths
    }
    return columns | {("relation", name): Column(path, "ids", sep) for name, (path, sep) in relations.items()}


def _converted(
    series: Mapping[tuple[str, str], pl.Series],
    stored: list[_StoredColumn],
    chunk: Chunk,
    where: str,
    seen: _TableFacts,
    tally: Tally,
    missing: Sequence[str],
) -> pl.DataFrame:
    """The stored columns of one chunk, checked and counted."""
    frame: dict[str, pl.Series] = {}
    for target in stored:
        column, sources = target.column, {path: series[target.name, path] for path in target.paths}
        place = Place(where, target.paths[0], chunk.first_row)
        if column.spelled and missing:
            ids = frame.get("id")
            sources = {
                p: _without_spellings(v, column, place, ids, missing, tally) for p, v in sources.items()
            }
        values = column.convert([sources[path] for path in target.paths], place)
        frame[target.name] = values
        if column.key == "text":
            for path in sources.keys() - seen.paths_with_letters:
                if sources[path].str.contains(r"\p{L}").any():
                    seen.paths_with_letters.add(path)
        if column.key == "label":
            seen.most_labels = max(seen.most_labels, max(values.list.len(), default=0))
        if column.key == "attributes":
            seen.kinds[target.paths[0]].add(values, place)
        if column.missing:
            absent = column.is_missing(values)
            tally.note(column.missing, int(absent.sum()), frame["id"].filter(absent).head(EXAMPLES))
    seen.ids.append(frame["id"])
    tally.read += len(chunk)
    tally.kept += len(chunk)
    return pl.DataFrame(frame)


def _without_spellings(
    values: pl.Series,
    column: NodeColumn,
    place: Place,
    ids: pl.Series | None,
    missing: Sequence[str],
    tally: Tally,
) -> pl.Series:
    """Values without those that spell "missing"; as an id such a value is an error, else it is counted."""
    if not isinstance(values.dtype, (pl.String, pl.List)):
        return values  # times are numbers by now
    spelled = is_spelled_missing(values, missing)
    if not spelled.any():
        return values
    if ids is None:
        row = int(spelled.arg_max() or 0)
        remedy = "if it is an id, set 'missing' in the specification"
        raise place.error(
            row, f"found {values[row]!r}, which means a missing value, expected an id; {remedy}"
        )
    note_spellings(f"no {column.key},", values.filter(spelled), ids.filter(spelled), missing, tally)
    return without_spellings(values, missing)


def _exploded(values: pl.Series, first_row: int) -> tuple[pl.Series, pl.Series]:
    """A list-valued relation column as pairs of row number and id; rows without any give none."""
    rows = pl.int_range(first_row, first_row + len(values), eager=True, dtype=pl.Int32)
    pairs = pl.DataFrame({"row": rows, "id": values}).filter(pl.col("id").list.len() > 0).explode("id")
    if isinstance(values.dtype, pl.List):  # a single missing value is not an edge to report as dropped
        lengths = values.list.len().gather(pairs["row"] - first_row)
        pairs = pairs.filter(pairs["id"].is_not_null() | (lengths > 1))
    return pairs["row"], pairs["id"]


def _check_unique(ids: pl.Series, column: str, where: str) -> None:
    if ids.n_unique() == len(ids):
        return
    row = int(ids.is_duplicated().arg_max() or 0)
    second = int((ids.slice(row + 1) == ids[row]).arg_max() or 0) + row + 1
    duplicate = f"duplicate id {short_repr(ids[row])} in row {second + 1} (first seen in row {row + 1})"
    raise InputError(f"{where}: column {column!r}: {duplicate}; expected one row per node.")
