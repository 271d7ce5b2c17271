"""Link prediction in the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from heterformer.tasks.link_prediction import LinkPrediction


def link_prediction_table(rows: Mapping[str, Sequence[LinkPrediction]], title: str) -> Table:
    """One row per name and part: in-batch PREC, MRR, NDCG beside the filtered full ranking."""
    some = next(iter(rows.values()))[0]
    in_batch = f"PREC, MRR, NDCG: among the keys of {some.batch_size} pairs"
    full = f"full MRR, Hits: among all {some.full.candidates:,} candidates, other true keys left out"
    table = Table(
        title=Text(title), title_justify="left", caption=f"{in_batch}; {full}", caption_justify="left"
    )
    table.add_column("")
    table.add_column("part")
    for heading in ("PREC", "MRR", "NDCG", "full MRR", "Hits@1", "@10", "@100"):
        table.add_column(heading, justify="right")
    for name, results in rows.items():
        for result in results:
            figures = (*asdict(result.in_batch).values(), result.full.mrr, *result.full.hits.values())
            table.add_row(Text(name), result.part, *(f"{figure:.4f}" for figure in figures))
    return table


def as_json(results: Sequence[LinkPrediction]) -> dict[str, Any]:
    """The same figures under the names of their parts."""
    return {result.part: asdict(result) for result in results}
