"""The page of a report."""

from __future__ import annotations

from heterformer.evaluation.core import Evaluation
from heterformer.evaluation.page import as_markdown
from tests.learning import tiny_network


def test_names_and_notes_are_text() -> None:
    about = {
        "title": "Heterformer on <b>|`x`",
        "vectors": "vectors.parquet",
        "figures": [],
        "evaluation": {"command": "heterformer evaluate", "all_flags": "", "precision": None},
    }
    page = as_markdown(Evaluation(tiny_network(), notes=["class '<script>' is left out"]), about)
    assert page.startswith("# Heterformer on \\<b\\>\\|\\`x\\`\n")
    assert "- class '\\<script\\>' is left out" in page
    assert "computed in" not in page  # nobody knows
