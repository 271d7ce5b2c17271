from __future__ import annotations

from pathlib import Path

from heterformer.network.store import Network
from heterformer.training.model_card import write_model_card
from tests.learning import tiny_network, tiny_reader
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


def test_the_name_of_a_network_is_text(tmp_path: Path) -> None:
    run, network = trained(tmp_path / "run", max_steps=1), Network.open(tiny_network().path)
    network.name = "<b>|`x`"
    write_model_card(run, network, run.model(), run.progress()[1], "of a test")
    assert '# Heterformer for the network "\\<b\\>\\|\\`x\\`"' in (run.path / "README.md").read_text()
