"""Predictions as a table."""

from __future__ import annotations

import polars as pl

from heterformer.tables import Sheet, four_digits


def prediction_table(frame: pl.DataFrame) -> Sheet:
    """A row for each node."""
    if "prediction" in frame.columns:
        rows = tuple((name, f"{number:.6g}") for name, number in frame.select("id", "prediction").iter_rows())
        return Sheet("predictions", ("id", "prediction"), rows, "", text_columns=1)
    several = "classes" in frame.columns
    lines = []
    for row in frame.iter_rows(named=True):
        best = zip(row["top_classes"], row["top_probabilities"], strict=True)
        probable = ", ".join(f"{name} {four_digits(share)}" for name, share in best)
        lines.append((row["id"], ", ".join(row["classes"]) if several else row["class"], probable))
    headings = ("id", "classes" if several else "class", "most probable")
    return Sheet("predictions", headings, tuple(lines), "probabilities are calibrated", text_columns=3)
