"""The demo: is a network worth more than its texts alone?

Writes and builds a small synthetic academic network, trains Heterformer and its text-only form under the
same budget, shows what the neighbours are worth, writes a report with a map and explains one vector. A few
minutes on two cores; nothing is downloaded.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from rich.table import Table
from transformers.utils import logging
from two_models import show_link_prediction, train_both

from heterformer.batches.pairs import evaluation_sampler
from heterformer.datasets.synthetic import SyntheticOptions, write_synthetic
from heterformer.datasets.synthetic_ceiling import planted_ceiling
from heterformer.datasets.synthetic_words import AMBIGUOUS
from heterformer.evaluation.open_run import OpenRun
from heterformer.evaluation.options import EvaluateOptions
from heterformer.evaluation.page import PAGE, sheets
from heterformer.evaluation.report import report_on_run
from heterformer.explanation.core import explain_runs
from heterformer.explanation.options import ExplainOptions
from heterformer.explanation.table import explanation_tables
from heterformer.models.inference import center_vectors
from heterformer.network.build import build_network
from heterformer.network.describe import describe
from heterformer.network.describe_table import description
from heterformer.network.spec import NetworkSpec
from heterformer.network.store import Network
from heterformer.progress import console

FOLDER = Path("demo")
PAPERS, STEPS = 2000, 100


def main() -> None:
    """Six parts, each under its own heading."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    shutil.rmtree(FOLDER, ignore_errors=True)
    tables = FOLDER / "academic"
    console.rule("1. a network from tables")
    spec = write_synthetic(tables, SyntheticOptions(papers=PAPERS))
    network = build_network(NetworkSpec.load(spec), FOLDER / "academic.net", data=tables)
    console.print(description(describe(network)))
    console.rule(f"2. two models, {STEPS} steps each")
    runs = train_both(network, FOLDER, STEPS)
    console.rule("3. link prediction: which paper does a paper cite?")
    show_link_prediction(runs)
    best = planted_ceiling(tables, network.schema.test_batch_size)
    console.print(
        f"The most that this network's planted truth allows: PREC {best['network']:.2f} with neighbours, "
        f"{best['text']:.2f} from titles alone."
    )
    console.rule("4. the nearest papers of a title that could be of two fields")
    paper = ambiguous_paper(network)
    console.print(nearest(runs, paper))
    run = runs["Heterformer"].run.path
    console.rule("5. the report: what else are the vectors worth?")
    found, _ = report_on_run(run, EvaluateOptions(parts=("test",)))
    for sheet in sheets(found):
        console.print(sheet.table())
    console.print(f"All of it: {run / PAGE}, and a map to explore: {run / 'figures' / 'map.html'}")
    console.rule("6. what that title's vector is made of")
    (node,) = network.ids("paper", [paper])
    (explanation,) = explain_runs(run, node, ExplainOptions())
    console.print(explanation_tables(explanation, 5))
    console.rule("what to try next")
    console.print(
        f".venv/bin/heterformer search {run} 'some words of a title'\n"
        f".venv/bin/heterformer explain {run} {node} --against {runs['text only'].run.path}\n"
        f"Describe your own tables as {spec} does, then: heterformer build, train, evaluate.",
        highlight=False,
    )


def ambiguous_paper(network: Network) -> int:
    """A well-connected paper whose title has words of two fields and of none alone."""
    words = {word for shared in AMBIGUOUS.values() for word in shared.split()}
    degrees = network.adjacency("paper", "paper").degrees
    titles = network.texts("paper")
    shared = [sum(word in words for word in title.lower().split()) for title in titles]
    return max(range(len(titles)), key=lambda row: (shared[row], degrees[row]))


def nearest(runs: dict[str, OpenRun], paper: int, count: int = 5) -> Table:
    """The nearest papers under each model, with their fields; the right field is marked."""
    network = next(iter(runs.values())).network
    fields = [labels[0] for labels in network.labels("paper").to_list()]
    title = network.texts("paper", [paper])[0]
    table = Table(title=f'"{title}" ({fields[paper]})', title_justify="left")
    columns = []
    for name, run in runs.items():
        table.add_column(name)
        rows = torch.arange(network.schema.counts["paper"]).numpy()
        vectors = center_vectors(run.model, run.batcher, "paper", rows, evaluation_sampler(run.seed))
        scores = run.model.scores(vectors[paper : paper + 1], vectors)[0]
        scores[paper] = float("-inf")
        found = scores.topk(count).indices.tolist()
        marks = ["[green]✓[/]" if fields[row] == fields[paper] else "[red]✗[/]" for row in found]
        titles = network.texts("paper", found)
        columns.append(
            [f"{m} {t} [dim]({fields[r]})[/]" for m, t, r in zip(marks, titles, found, strict=True)]
        )
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    main()
