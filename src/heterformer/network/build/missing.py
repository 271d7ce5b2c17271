"""Spellings of "missing", such as ``NaN`` or ``N/A``, which other programs write where there is no value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from heterformer.network.build.report import EXAMPLES, Tally


def is_spelled_missing(values: pl.Series, spellings: Sequence[str]) -> pl.Series:
    """Which texts are a spelling of "missing"; of a list, whether any of its elements is."""
    if isinstance(values.dtype, pl.List):
        return values.list.eval(_is_spelling(pl.element(), spellings)).list.any().fill_null(False)
    return values.to_frame("value").select(_is_spelling(pl.col("value"), spellings))["value"]


def without_spellings(values: pl.Series, spellings: Sequence[str]) -> pl.Series:
    """The values, null where they are a spelling of "missing"; a list loses such elements."""
    if isinstance(values.dtype, pl.List):
        element = pl.element()
        return values.list.eval(element.filter(~_is_spelling(element, spellings)))
    return values.set(is_spelled_missing(values, spellings), None)


def note_spellings(
    what: str, values: pl.Series, examples: pl.Series, spellings: Sequence[str], tally: Tally
) -> None:
    """Count each spelling among ``values`` in the build report; ``examples`` name the rows."""
    frame = pl.DataFrame({"value": values, "example": examples})
    if isinstance(values.dtype, pl.List):
        frame = frame.explode("value")
    for spelling, rows in by_spelling(frame, "value", spellings):
        tally.note(written(what, spelling), len(rows), rows["example"].head(EXAMPLES))


def by_spelling(
    frame: pl.DataFrame, column: str, spellings: Sequence[str]
) -> Iterable[tuple[str, pl.DataFrame]]:
    """The rows of a frame whose ``column`` spells "missing", one frame per spelling."""
    spelled = frame.filter(_is_spelling(pl.col(column), spellings))
    if spelled.is_empty():
        return
    parts = spelled.with_columns(pl.col(column).str.strip_chars().alias("__spelling"))
    for (spelling,), rows in parts.group_by("__spelling", maintain_order=True):
        yield str(spelling), rows.drop("__spelling")


def written(what: str, spelling: str) -> str:
    """The reason in the build report."""
    return f"{what} written {spelling!r}"


def _is_spelling(values: pl.Expr, spellings: Sequence[str]) -> pl.Expr:
    return values.str.strip_chars().is_in(list(spellings)).fill_null(False)
