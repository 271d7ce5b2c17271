"""What both demos share: commands as a user types them, and two models under one budget."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from heterformer import Network, Run, evaluate, train

console = Console()
# Heterformer, and the same model without neighbours.
MODELS = {"Heterformer": {}, "text only": {"virtual_tokens": "none"}}

METRICS = {"PREC": "prec", "MRR": "mrr", "NDCG": "ndcg", "full MRR": "full_mrr", "Hits@10": "hits_10"}


def heterformer(*words: object) -> None:
    """Show a command and run it."""
    arguments = [str(word) for word in words]
    console.print(f"$ heterformer {shlex.join(arguments)}", style="bold", markup=False, highlight=False)
    if subprocess.run([sys.executable, "-m", "heterformer", *arguments], check=False).returncode:
        sys.exit(1)  # the command has said why


def train_both(network: Network, folder: Path, steps: int) -> dict[str, Run]:
    """A run of each model in ``folder``."""
    runs = {}
    for name, options in MODELS.items():
        path = folder / name.replace(" ", "-").lower()
        console.print(f"{name}: training in {path}")
        runs[name] = train(network, path, max_steps=steps, evaluate_every=steps // 2, **options)
    return runs


def show_link_prediction(runs: dict[str, Run]) -> None:
    """The test figures of both models."""
    table = Table(title="test pairs, which no model has seen", title_justify="left")
    table.add_column()
    for heading in METRICS:
        table.add_column(heading, justify="right")
    for name, run in runs.items():
        result = evaluate(run.path, tasks=("link_prediction",), parts=("test",)).link_prediction[0]
        table.add_row(name, *(f"{result.metrics[metric]:.4f}" for metric in METRICS.values()))
    console.print(table)
    console.print(
        f"PREC, MRR, NDCG: among the keys of {result.batch_size} pairs; full MRR, Hits: among all "
        f"{result.candidates:,} candidates."
    )
