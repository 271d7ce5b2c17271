"""The columns that a node table can have.

One entry says all about a column: its key in the specification, how its values are read, checked and stored,
and what exports make of them. A new kind of column is an entry here and a row in docs/specification.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from heterformer.network.attributes import without_blanks
from heterformer.network.tables.column import DTYPES, Kind, Place
from heterformer.untrusted import short_repr

PARTS_BY_WORD = {  # how users write the parts of a split
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}


def _unchanged(values: Sequence[pl.Series], place: Place) -> pl.Series:
    return values[0]


def _checked_ids(values: Sequence[pl.Series], place: Place) -> pl.Series:
    (ids,) = values
    missing = ids.is_null() | (ids.str.strip_chars() == "")
    if missing.any():
        row = int(missing.arg_max() or 0)
        raise place.error(row, f"found {_or_nothing(ids[row])}, expected an id")
    return ids


def _joined_text(values: Sequence[pl.Series], place: Place) -> pl.Series:
    """The text columns of a node as its one text, empty if all are."""
    frame = pl.DataFrame({str(number): series for number, series in enumerate(values)})
    joined = pl.concat_str(pl.all(), separator=" ", ignore_nulls=True)
    return frame.select(joined.str.strip_chars().fill_null("").alias("text"))["text"]


def _without_gaps(values: Sequence[pl.Series], place: Place) -> pl.Series:
    """Lists without nulls and empty strings; a missing list is an empty one."""
    element = pl.element()
    lists = values[0].fill_null(pl.Series([[]], dtype=pl.List(pl.String)))
    return lists.list.eval(element.filter(element.is_not_null() & (element.str.strip_chars() != "")))


def _checked_parts(values: Sequence[pl.Series], place: Place) -> pl.Series:
    words = values[0].str.strip_chars().str.to_lowercase()
    parts = words.replace_strict(PARTS_BY_WORD, default=None)
    unknown = parts.is_null() & (words != "")
    if unknown.any():
        row = int(unknown.arg_max() or 0)
        expected = "expected 'train', 'validation' or 'test' (or nothing)"
        raise place.error(row, f"found {short_repr(values[0][row])}, {expected}")
    return parts


def _or_nothing(value: str | None) -> str:
    return "nothing" if value is None else short_repr(value)


@dataclass(frozen=True)
class NodeColumn:
    """One kind of column of a node table."""

    key: str
    """Its key in the specification, and its name in ``nodes/TYPE.arrow`` unless it has a ``prefix``."""
    kind: Kind
    """How values are read from tables, and with that the stored type."""
    several: bool = False
    """Whether the key may name several columns of the table."""
    default: str | None = None
    """The table's column if the specification names none; without a default the column is optional."""
    prefix: str = ""
    """If set, each column that the key names is stored on its own, under this prefix and its own name."""
    convert: Callable[[Sequence[pl.Series], Place], pl.Series] = _unchanged
    """Checks the table's values and makes the stored ones of them."""
    missing: str | None = None
    """What the build report calls nodes without a value; None if they are not counted."""
    spelled: bool = False
    """Whether a spelling of "missing" (see ``NetworkSpec.missing``) is no value; in a text it is a word."""
    graphml: str | None = None
    """Its attribute in GraphML, where ``label`` is what Gephi shows: a node's name, text or id."""

    @property
    def dtype(self) -> pl.DataType:
        return DTYPES[self.kind]

    @property
    def is_list(self) -> bool:
        return isinstance(self.dtype, pl.List)

    def stored(self, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The stored columns that come from these columns of a table, each with those it is made of."""
        if self.prefix:
            return {self.prefix + column: (column,) for column in columns}
        return {self.key: tuple(columns)} if columns else {}

    def is_missing(self, values: pl.Series) -> pl.Series:
        """Which stored values are none: null, an empty text, an empty list."""
        if self.is_list:
            return values.list.len() == 0
        return values.is_null() if values.dtype != pl.String else values.fill_null("") == ""


FEATURE = "feature."  # before the names of stored attributes

# In the order in which they are stored.
NODE_COLUMNS = (
    NodeColumn("id", "id", default="id", convert=_checked_ids, spelled=True, graphml="node"),
    NodeColumn("text", "text", several=True, convert=_joined_text, missing="empty text", graphml="text"),
    NodeColumn("label", "labels", convert=_without_gaps, missing="no label", spelled=True, graphml="class"),
    NodeColumn("split", "value", convert=_checked_parts, spelled=True, graphml="split"),
    NodeColumn("name", "value"),
    NodeColumn("time", "time", missing="no time", spelled=True, graphml="time"),
    NodeColumn("keep", "value", several=True, prefix="attribute."),
    NodeColumn("attributes", "attribute", several=True, prefix=FEATURE, convert=without_blanks, spelled=True),
)
KEYS = tuple(column.key for column in NODE_COLUMNS)
DISPLAYED = ("name", "text", "id")  # what a person is shown of a node: the first of these that is not empty


def node_column(stored: str) -> NodeColumn:
    """The entry of a stored column."""
    return next(
        column
        for column in NODE_COLUMNS
        if (stored.startswith(column.prefix) if column.prefix else stored == column.key)
    )


def own_name(stored: str) -> str:
    """A stored column's name without its prefix: for a kept column the name it has in the user's table."""
    return stored.removeprefix(node_column(stored).prefix)


def fits_type(stored: str, kind: pa.DataType) -> bool:
    """Whether a stored column is one of ours and has the Arrow type of its entry."""
    entries = [c for c in NODE_COLUMNS if (stored.startswith(c.prefix) if c.prefix else stored == c.key)]
    if not entries:
        return False
    empty = pl.Series([], dtype=entries[0].dtype)
    return bool(empty.to_arrow(compat_level=pl.CompatLevel.oldest()).type == kind)
