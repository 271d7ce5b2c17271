"""Link prediction in the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from heterformer.tasks.link_prediction import LinkPrediction


def link_prediction_table(rows: Mapping[str, Sequence[LinkPrediction]], title: str) -> Table:
    """One row per name and part: in-batch PREC, MRR, NDCG beside the filtered full ranking."""
    some = next(iter(rows.values()))[0]
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("part")
    for heading in ("PREC", "MRR", "NDCG"):
        table.add_column(f"{heading}\n(of {some.batch_size})", justify="right")
    for heading in ("MRR", "Hits@1", "Hits@10", "Hits@100"):
        table.add_column(f"{heading}\n(of {some.full.candidates:,})", justify="right")
    for name, results in rows.items():
        for result in results:
            figures = (*asdict(result.in_batch).values(), result.full.mrr, *result.full.hits.values())
            table.add_row(name, result.part, *(f"{figure:.4f}" for figure in figures))
    return table


def as_json(results: Sequence[LinkPrediction]) -> dict[str, Any]:
    """The same figures under the names of their parts."""
    return {result.part: asdict(result) for result in results}
