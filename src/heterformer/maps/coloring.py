"""What colours of the explorer's map tell: types, labels, or the values of any column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.maps.options import MAX_CLASSES
from heterformer.maps.palette import CLASSES, OTHER, RAMP, UNLABELLED, Color
from heterformer.network.labels import label_lists
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.search.filters import Columns

TYPE = "type"
UNCOLORED = ("id", "name", "text", "split")  # columns that tell nodes apart, or that are not about them
OTHER_CODE, NONE_CODE = 254, 255

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class ColorKey:
    """A line of the legend."""

    code: int
    name: str
    nodes: int
    light: str
    dark: str


@dataclass(frozen=True)
class Coloring:
    """A colour for every node: ``codes`` are in the order of the types given, then of rows."""

    by: str
    kind: Literal["categories", "numbers"]
    keys: tuple[ColorKey, ...]
    codes: Codes


def color_choices(network: Network, types: Sequence[NodeType]) -> tuple[str, ...]:
    """What can be coloured by: the type, then labels, then all other columns of any of the types."""
    names = dict.fromkeys(name for t in types for name in Columns(network, t).names if name not in UNCOLORED)
    first = [name for name in ("label", "time") if name in names]
    return (TYPE, *first, *(name for name in names if name not in first))


def color_by(network: Network, types: Sequence[NodeType], by: str) -> Coloring:
    """The colours of all nodes of some types by ``by``, one of ``color_choices``.

    Numbers are divided into eight parts of equally many nodes. Of all else the eight most frequent values
    have a colour; of several values of one node the first that has one counts.
    """
    choices = color_choices(network, types)
    if by not in choices:
        raise InputError(f"there is no column {by!r} to colour by, expected one of {', '.join(choices)}.")
    if by == TYPE:
        counts = [network.schema.counts[t] for t in types]
        codes = np.repeat(np.arange(len(types)) % OTHER_CODE, counts).astype(np.uint8)
        return _coloring(
            by, "categories", codes, list(types), [CLASSES[i % len(CLASSES)] for i in range(len(types))]
        )
    columns = [_values(network, t, by) for t in types]
    present = [column for column in columns if column is not None]
    if all(column.dtype.is_numeric() for column in present):
        return _numbers(by, columns, [network.schema.counts[t] for t in types])
    return _categories(by, columns, [network.schema.counts[t] for t in types])


def _values(network: Network, node_type: NodeType, by: str) -> pl.Series | None:
    if by == "label":  # of a textless node without one, that of most of its neighbours
        return label_lists(network, node_type)
    columns = Columns(network, node_type)
    stored = columns.get(by) if by in columns.names else None
    if stored is None:
        return None
    values = columns.used[stored]
    if values.dtype == pl.String:  # as kept columns are, whatever they hold
        numbers = values.cast(pl.Float64, strict=False)
        if numbers.null_count() == values.null_count() < len(values):
            return numbers
    return values


def _numbers(by: str, columns: list[pl.Series | None], counts: list[int]) -> Coloring:
    parts = [
        np.full(n, np.nan) if c is None else c.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        for c, n in zip(columns, counts, strict=True)
    ]
    values = np.concatenate(parts)
    known = values[np.isfinite(values)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, len(RAMP) + 1))) if len(known) else np.zeros(1)
    inner = edges[1:-1]
    codes = np.searchsorted(inner, values, side="right").astype(np.uint8)
    codes[~np.isfinite(values)] = NONE_CODE
    # Whole numbers that are few: each its own colour and name.
    steps = max(1, len(edges) - 1)
    positions = np.linspace(0, len(RAMP) - 1, steps).round().astype(int)
    names = [_range(codes, values, step) for step in range(steps)]
    return _coloring(by, "numbers", codes, names, [RAMP[i] for i in positions])


def _range(codes: Codes, values: NDArray[np.float64], code: int) -> str:
    """The least and the greatest number of a part."""
    own = values[codes == code]
    if not len(own):
        return ""
    least, most = f"{own.min():.6g}", f"{own.max():.6g}"
    return least if least == most else f"{least} to {most}"


def _categories(by: str, columns: list[pl.Series | None], counts: list[int]) -> Coloring:
    frames, start = [], 0
    for column, count in zip(columns, counts, strict=True):
        if column is not None:
            lists = (
                column
                if isinstance(column.dtype, pl.List)
                else column.cast(pl.String).reshape((-1, 1)).arr.to_list()
            )
            rows = pl.int_range(start, start + count, eager=True)
            frame = pl.DataFrame({"node": rows, "value": lists}).explode("value").drop_nulls()
            frames.append(frame.with_columns(pl.col("value").cast(pl.String)))
        start += count
    values = pl.concat(frames) if frames else pl.DataFrame({"node": [], "value": []})
    frequent = values.group_by("value").len().sort("len", "value", descending=[True, False]).head(MAX_CLASSES)
    names = frequent["value"].to_list()
    codes = np.full(start, NONE_CODE, np.uint8)
    codes[values["node"].to_numpy()] = OTHER_CODE
    numbered = pl.DataFrame(
        {"value": names, "code": range(len(names))}, schema={"value": pl.String, "code": pl.UInt8}
    )
    chosen = values.join(numbered, on="value", maintain_order="left").unique("node", keep="first")
    codes[chosen["node"].to_numpy()] = chosen["code"].to_numpy()
    return _coloring(by, "categories", codes, names, list(CLASSES[: len(names)]))


def _coloring(
    by: str, kind: Literal["categories", "numbers"], codes: Codes, names: list[str], colors: list[Color]
) -> Coloring:
    nodes = np.bincount(codes, minlength=NONE_CODE + 1)
    keys = [ColorKey(i, name, int(nodes[i]), *colors[i]) for i, name in enumerate(names)]
    for code, name, color in ((OTHER_CODE, "other", OTHER), (NONE_CODE, "no value", UNLABELLED)):
        if nodes[code] and len(names) <= code:
            keys.append(ColorKey(code, name, int(nodes[code]), *color))
    return Coloring(by, kind, tuple(key for key in keys if key.nodes), codes)
