"""What a distillation gave, as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from heterformer.distillation.core import Distillation
from heterformer.metrics import RANKING_METRICS
from heterformer.tables import Sheet, four_digits

READERS = {"student": "student", "model": "the run's model"}


def distillation_table(result: Distillation) -> Sheet:
    """One row for each reader of the queries."""
    headings = tuple(metric.narrow_heading or metric.heading for metric in RANKING_METRICS)
    rows = tuple(
        (words, *(four_digits(result.test[who][metric.name]) for metric in RANKING_METRICS))
        for who, words in READERS.items()
    )
    note = f"{result.pairs:,} test pairs; queries are texts without neighbours, keys the run's vectors"
    return Sheet("Link prediction", ("queries read by", *headings), rows, note, text_columns=1)


def as_json(result: Distillation) -> dict[str, Any]:
    """For other programs."""
    return asdict(result) | {"path": str(result.path)}
