"""From the user's ids to row numbers."""

from __future__ import annotations

import polars as pl


class IdIndex:
    """The rows of one node type by id. One that ``grows`` gives an id met for the first time the next row."""

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
        wanted = ids.alias("id").to_frame()
        return wanted.join(known, on="id", how="left", maintain_order="left")["row"]

    def _grow(self, ids: pl.Series) -> None:
        met = ids.drop_nulls().unique(maintain_order=True).alias("id").to_frame()
        new = met.join(self.ids.to_frame(), on="id", how="anti", maintain_order="left")["id"]
        self.ids = pl.concat([self.ids, new], rechunk=True)
