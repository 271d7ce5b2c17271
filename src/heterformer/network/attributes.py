"""Attributes of nodes: of what kind a column of a table is, and its values as numbers or categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.network.tables.column import Place, time_value
from heterformer.untrusted import short_repr

AttributeKind = Literal["number", "boolean", "category"]
KINDS: tuple[AttributeKind, ...] = get_args(AttributeKind)
EXPECTED = {"number": "a number or a date", "boolean": "true or false"}
BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}


class KindGuess:
    """The kind of a column whose values are read chunk by chunk: the narrowest that fits all of them."""

    def __init__(self, declared: AttributeKind | None = None) -> None:
        self.declared = declared
        self._possible: list[AttributeKind] = ["boolean", "number"]
        self._any = False

    def add(self, values: pl.Series, place: Place) -> None:
        """Look at some values; one that is not of the declared kind is an error."""
        for kind in ("boolean", "number"):
            if self.declared not in (None, kind) or (self.declared is None and kind not in self._possible):
                continue
            parsed = booleans(values) if kind == "boolean" else numbers(values)
            wrong = values.is_not_null().to_numpy() & np.isnan(parsed)
            if wrong.any() and self.declared is not None:
                row = int(wrong.argmax())
                raise place.error(row, f"found {short_repr(values[row])}, expected {EXPECTED[kind]}")
            if wrong.any():
                self._possible.remove(kind)
        self._any |= values.null_count() < len(values)

    @property
    def kind(self) -> AttributeKind:
        if self.declared is not None:
            return self.declared
        return next(iter(self._possible), "category") if self._any else "category"


def without_blanks(values: Sequence[pl.Series], place: Place) -> pl.Series:
    """Stripped values, null where nothing is left."""
    stripped = values[0].str.strip_chars()
    return stripped.set(stripped == "", None)


def numbers(values: pl.Series) -> NDArray[np.float64]:
    """Numbers, and dates as decimal years; NaN where there is no value or no number."""
    parsed = values.cast(pl.Float64, strict=False)
    left = parsed.is_null() & values.is_not_null()
    if left.any():
        dates = values.filter(left).map_elements(time_value, return_dtype=pl.Float64)
        parsed = parsed.scatter(left.arg_true(), dates)
    result: NDArray[np.float64] = parsed.fill_null(float("nan")).to_numpy().copy()
    result[~np.isfinite(result)] = np.nan
    return result


def booleans(values: pl.Series) -> NDArray[np.float64]:
    """1 for true, 0 for false, NaN where there is no value or another one."""
    words = values.str.to_lowercase().replace_strict(BOOLEANS, default=None, return_dtype=pl.Boolean)
    result: NDArray[np.float64] = words.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return result
