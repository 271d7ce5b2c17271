from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from heterformer.distillation.card import student_card
from heterformer.distillation.options import DistillOptions
from heterformer.metrics import RANKING_METRICS
from heterformer.models.student import Student
from tests.distillation.students import tiny_distillation


def test_the_card_has_the_figures_of_both_readers_under_the_headings_of_all_tables() -> None:
    result = tiny_distillation()
    lines = (result.path / "README.md").read_text(encoding="utf-8").splitlines()
    heading = next(line for line in lines if line.startswith("| queries read by |"))
    names = [metric.name for metric in RANKING_METRICS]
    assert heading == f"| queries read by | {' | '.join(metric.heading for metric in RANKING_METRICS)} |"
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith(("| this", "| the model"))]
    assert [row[0] for row in rows] == ["this encoder", "the model"]
    for row, reader in zip(rows, ("student", "model"), strict=True):
        assert [float(cell) for cell in row[1:]] == [round(result.test[reader][name], 4) for name in names]


def test_names_are_text_and_no_markdown() -> None:
    """Of the network and of its node types."""
    result, hostile = tiny_distillation(), "<img src=x> | `a` \x1b[31m"
    relation = SimpleNamespace(source="pa|per*", target="<b>")
    schema = SimpleNamespace(predicted=(relation,))
    trained = SimpleNamespace(backbone="minilm", display_name="Heterformer")
    opened: Any = SimpleNamespace(
        network=SimpleNamespace(name=hostile, schema=schema),
        run=SimpleNamespace(options=lambda: SimpleNamespace(model=trained)),
    )
    student = cast(Student, SimpleNamespace(similarity="cosine", normalize=True, max_tokens=8, width=4))
    card = student_card(result, student, opened, DistillOptions())
    body = card.split("---\n", 2)[2]
    assert '# Text encoder for the network "\\<img src=x\\> \\| \\`a\\` \\\\x1b[31m"\n' in body
    assert "vectors of pa\\|per\\* and \\<b\\> nodes" in body
    assert "\x1b" not in card
