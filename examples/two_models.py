"""What both demos do: train Heterformer and its text-only form under one budget, and predict links."""

from __future__ import annotations

from pathlib import Path

from heterformer.evaluation.open_run import OpenRun, link_prediction_of, open_run
from heterformer.evaluation.tables import link_prediction_table
from heterformer.models.options import HeterformerOptions
from heterformer.network.store import Network
from heterformer.progress import console
from heterformer.training.loop import train
from heterformer.training.options import TrainingOptions

MODELS = {"Heterformer": HeterformerOptions(), "text only": HeterformerOptions(virtual_tokens="none")}


def train_both(network: Network, folder: Path, steps: int) -> dict[str, OpenRun]:
    """A run of each model in ``folder``, opened."""
    runs = {}
    for name, model in MODELS.items():
        path = folder / name.replace(" ", "-").lower()
        console.print(f"{name}: training in {path}")
        # Stored neighbour states: the same figures, within noise, in a third of the time.
        options = TrainingOptions(
            model=model, max_steps=steps, evaluate_every=steps // 2, neighbor_states="cached"
        )
        train(network, path, options)
        runs[name] = open_run(path)
    return runs


def show_link_prediction(runs: dict[str, OpenRun]) -> None:
    """The test figures of both."""
    rows = {name: link_prediction_of(run, ("test",)) for name, run in runs.items()}
    console.print(link_prediction_table(rows, "test pairs that no model has seen").table())
