from __future__ import annotations

from pathlib import Path

from tests.learning import tiny_reader
from tests.training.runs import STEPS, trained
from tests.training.test_loop import validations


def test_the_model_card_says_what_was_trained(tmp_path: Path) -> None:
    whole = trained(tmp_path / "run")
    card = (whole.path / "README.md").read_text()
    figures = validations(whole)
    best_step = max(figures, key=lambda step: (figures[step], -step))
    assert card.startswith("---\nlibrary_name: heterformer\n")
    assert '# Heterformer for the network "synthetic"' in card
    assert f"Validation PREC {figures[best_step]:.4f} at step {best_step}, in batches of 100" in card
    assert f"the limit of {STEPS} steps is reached" in card
    assert "| author | textless | 150 |" in card
    assert f"| backbone | {tiny_reader()} |" in card
