"""What fine-tuning leaves beside its runs: tables in Markdown, and a figure of the learning curve."""

from __future__ import annotations

from pathlib import Path

from heterformer.files import write_text
from heterformer.finetuning.core import FinetuneResult
from heterformer.finetuning.curve import LearningCurve
from heterformer.finetuning.figure import draw_curve
from heterformer.finetuning.table import curve_table, result_table
from heterformer.tables import Sheet


def write_result(result: FinetuneResult, folder: Path) -> Sheet:
    """Write ``finetune.md``; gives its table."""
    sheet = result_table(result)
    write_text(folder / "finetune.md", f"# {sheet.title}\n\n{sheet.markdown()}\n")
    return sheet


def write_curve(curve: LearningCurve, folder: Path) -> Sheet:
    """Write ``curve.md`` and ``curve.png``; gives its table."""
    sheet = curve_table(curve)
    figure = draw_curve(curve, folder / "curve.png")
    page = f"# {sheet.title}\n\n{sheet.markdown()}\n\n![Metrics against labels]({figure.name})\n"
    write_text(folder / "curve.md", page)
    return sheet
