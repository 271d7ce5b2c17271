"""Node tables: ids, texts, labels and display attributes, copied into one Arrow file per type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pyarrow as pa

from heterformer.errors import InputError
from heterformer.network.build.report import Tally
from heterformer.network.spec import NodeSpec
from heterformer.network.tables import Chunk, Column, Table

SPLITS = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
ATTRIBUTE = "attribute."  # prefix of stored columns that are kept for display


@dataclass
class NodeTable:
    """What a build keeps in memory of a node table once its file is written."""

    ids: pl.Series
    related: dict[str, tuple[pl.Series, pl.Series]]  # relation -> (row numbers, ids at the other end)
    label_kind: str | None


@dataclass
class _Parts:
    ids: list[pl.Series] = field(default_factory=list)
    related: dict[str, list[tuple[pl.Series, pl.Series]]] = field(default_factory=dict)
    labels: int = 0  # the most labels that one node has
    worded: set[str] = field(default_factory=set)  # text columns in which a letter has been seen


def read_node_table(
    table: Table,
    spec: NodeSpec,
    columns: Mapping[str, tuple[str, str | None]],
    out: Path,
    tally: Tally,
    advance: Callable[[float], None],
) -> NodeTable:
    """Read one node table, write its Arrow file, and return its ids and the relations it holds.

    ``columns`` gives the column and separator of each relation that stands in this table.
    """
    wanted = _wanted(spec, columns)
    parts = _Parts(related={name: [] for name in columns})
    with pa.OSFile(str(out), "wb") as file:
        writer = None
        for chunk in table.chunks(list(wanted.values())):
            series = dict(zip(wanted, chunk.columns, strict=True))
            record = _record(series, chunk, spec, table.where, parts, tally)
            for name in columns:
                parts.related[name].append(_exploded(series[f"relation {name}"], chunk.first))
            batch = record.to_arrow(compat_level=pl.CompatLevel.oldest())
            writer = writer or pa.ipc.new_file(file, batch.schema)
            writer.write_table(batch)
            advance(chunk.done)
        if writer is not None:
            writer.close()
    if not parts.ids or not tally.read:
        raise InputError(f"{table.where}: the table has no rows.")
    for path in spec.text:
        if path not in parts.worded:
            found = f"column {path!r} holds no letters, only numbers or nothing"
            raise InputError(f"{table.where}: {found}; expected text to read.")
    ids = pl.concat(parts.ids, rechunk=True)
    _check_unique(ids, spec.id, table.where)
    related = {
        name: (pl.concat([r for r, _ in pieces]), pl.concat([v for _, v in pieces]))
        for name, pieces in parts.related.items()
    }
    kind = None if spec.label is None else ("multi" if parts.labels > 1 else "single")
    return NodeTable(ids, related, kind)


def write_ids(out: Path, ids: pl.Series) -> None:
    """The Arrow file of a type that has no table: its ids."""
    table = ids.alias("id").to_frame().to_arrow(compat_level=pl.CompatLevel.oldest())
    with pa.OSFile(str(out), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _wanted(spec: NodeSpec, columns: Mapping[str, tuple[str, str | None]]) -> dict[str, Column]:
    """What to read, by what it is for."""
    wanted = {"id": Column(spec.id, "id")}
    wanted |= {f"text {path}": Column(path, "text") for path in spec.text}
    if spec.label:
        wanted["label"] = Column(spec.label, "labels", spec.separator)
    if spec.split:
        wanted["split"] = Column(spec.split, "value")
    if spec.name:
        wanted["name"] = Column(spec.name, "value")
    if spec.time:
        wanted["time"] = Column(spec.time, "time")
    wanted |= {ATTRIBUTE + path: Column(path, "value") for path in spec.keep}
    wanted |= {f"relation {name}": Column(path, "ids", sep) for name, (path, sep) in columns.items()}
    return wanted


def _record(
    series: Mapping[str, pl.Series], chunk: Chunk, spec: NodeSpec, where: str, parts: _Parts, tally: Tally
) -> pl.DataFrame:
    ids = series["id"]
    _check_present(ids, spec.id, where, chunk.first)
    parts.ids.append(ids)
    tally.read += len(ids)
    tally.kept += len(ids)
    columns = {"id": ids}
    if spec.text:
        columns["text"] = _joined(series, spec, parts)
        empty = columns["text"] == ""
        tally.note("empty text", int(empty.sum()), ids.filter(empty).head(5))
    if spec.label:
        columns["label"] = labels = _without_gaps(series["label"])
        parts.labels = max(parts.labels, max(labels.list.len(), default=0))
        unlabelled = labels.list.len() == 0
        tally.note("no label", int(unlabelled.sum()), ids.filter(unlabelled).head(5))
    if spec.split:
        columns["split"] = _checked_split(series["split"], spec.split, where, chunk.first)
    if spec.time:
        tally.note("no time", series["time"].null_count(), ids.filter(series["time"].is_null()).head(5))
    kept = ("name", "time", *(ATTRIBUTE + path for path in spec.keep))
    columns |= {key: series[key] for key in kept if key in series}
    return pl.DataFrame(columns)


def _joined(series: Mapping[str, pl.Series], spec: NodeSpec, parts: _Parts) -> pl.Series:
    """The text columns of a node joined into its one text."""
    texts = {path: series[f"text {path}"] for path in spec.text}
    for path in spec.text:
        if path not in parts.worded and texts[path].str.contains(r"\p{L}").any():
            parts.worded.add(path)
    joined = pl.concat_str([pl.col(p) for p in spec.text], separator=" ", ignore_nulls=True)
    return pl.DataFrame(texts).select(joined.str.strip_chars().fill_null("").alias("text"))["text"]


def _without_gaps(values: pl.Series) -> pl.Series:
    """Lists without nulls and empty strings; no list at all is an empty one."""
    element = pl.element()
    filled = values.fill_null(pl.Series([[]], dtype=pl.List(pl.String)))
    return filled.list.eval(element.filter(element.is_not_null() & (element.str.strip_chars() != "")))


def _exploded(values: pl.Series, first: int) -> tuple[pl.Series, pl.Series]:
    """A list-valued relation column as pairs of row number and id; rows without any give none."""
    rows = pl.int_range(first, first + len(values), eager=True, dtype=pl.Int32)
    pairs = pl.DataFrame({"row": rows, "id": values}).filter(pl.col("id").list.len() > 0).explode("id")
    if isinstance(values.dtype, pl.List):  # a single missing value is not an edge to report as dropped
        lengths = values.list.len().gather(pairs["row"] - first)
        pairs = pairs.filter(pairs["id"].is_not_null() | (lengths > 1))
    return pairs["row"], pairs["id"]


def _check_present(ids: pl.Series, column: str, where: str, first: int) -> None:
    missing = ids.is_null() | (ids.str.strip_chars() == "")
    if missing.any():
        row = int(missing.arg_max() or 0)
        found = "nothing" if ids[row] is None else repr(ids[row])
        raise InputError(f"{where}: row {first + row + 1}, column {column!r}: found {found}, expected an id.")


def _check_unique(ids: pl.Series, column: str, where: str) -> None:
    if ids.n_unique() == len(ids):
        return
    row = int(ids.is_duplicated().arg_max() or 0)
    again = int((ids.slice(row + 1) == ids[row]).arg_max() or 0) + row + 1
    found = f"the id {ids[row]!r} stands there again (first in row {row + 1})"
    raise InputError(f"{where}: row {again + 1}, column {column!r}: {found}; expected one row per node.")


def _checked_split(values: pl.Series, column: str, where: str, first: int) -> pl.Series:
    words = values.str.strip_chars().str.to_lowercase()
    known = words.replace_strict(SPLITS, default=None)
    wrong = known.is_null() & (words != "")
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        found = f"found {values[row]!r}, expected 'train', 'validation' or 'test' (or nothing)"
        raise InputError(f"{where}: row {first + row + 1}, column {column!r}: {found}.")
    return known
