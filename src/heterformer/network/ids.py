"""From the user's ids to row numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray


def known_rows(ids: pl.Series, known: pl.Series) -> NDArray[np.int64]:
    """The row of each of ``ids`` in ``known``, or -1."""
    rows = known.alias("id").to_frame().with_row_index("row").drop_nulls()
    matches = ids.alias("id").to_frame().join(rows, on="id", how="left", maintain_order="left")
    return matches["row"].cast(pl.Int64).fill_null(-1).to_numpy()


class IdIndex:
    """The rows of one node type by id. An index that ``grows`` gives each new id the next row."""

    def __init__(self, ids: pl.Series | None = None) -> None:
        self.grows = ids is None
        self.ids = pl.Series("id", [], dtype=pl.String) if ids is None else ids.alias("id")

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, ids: pl.Series) -> pl.Series:
        """The row of each id; null where the id is missing or unknown."""
        if self.grows:
            self._grow(ids)
        known = pl.DataFrame({"id": self.ids, "row": pl.int_range(len(self), eager=True, dtype=pl.Int32)})
        return ids.alias("id").to_frame().join(known, on="id", how="left", maintain_order="left")["row"]

    def as_known(self, ids: pl.Series) -> pl.Series:
        """``ids`` with "1" for an unknown "1.0", or "1.0" for an unknown "1", if that is known.

        pandas writes 1 as 1.0 beside gaps. In an index that grows, "1" among ``ids`` counts as known.
        """
        if not any(series.str.ends_with(".0").any() for series in (ids, self.ids)):  # nearly always: be quick
            return ids
        distinct = ids.drop_nulls().unique()
        new = distinct.filter(~distinct.is_in(self.ids.implode()))
        floats, wholes = new.filter(new.str.contains(r"^-?\d+\.0$")), new.filter(new.str.contains(r"^-?\d+$"))
        known = pl.concat([self.ids, wholes]) if self.grows else self.ids
        other = pl.concat([floats.str.strip_suffix(".0"), wholes + ".0"])
        is_known = other.is_in(known.implode())
        return ids.replace(pl.concat([floats, wholes]).filter(is_known), other.filter(is_known))

    def _grow(self, ids: pl.Series) -> None:
        distinct = ids.drop_nulls().unique(maintain_order=True).alias("id").to_frame()
        new = distinct.join(self.ids.to_frame(), on="id", how="anti", maintain_order="left")["id"]
        self.ids = pl.concat([self.ids, new], rechunk=True)
