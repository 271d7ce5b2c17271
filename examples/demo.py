"""The demo: is a network worth more than its texts alone?

Writes and builds a small synthetic academic network, trains Heterformer and its text-only form under the
same budget, shows what the neighbours are worth, writes a report with a map and explains one vector. A few
minutes on two cores; nothing is downloaded.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from rich.table import Table
from transformers.utils import logging
from two_models import console, heterformer, show_link_prediction, train_both

from heterformer import Network, Run, datasets, embed

FOLDER = Path("demo")
PAPERS, STEPS = 2000, 100


def main() -> None:
    """Six parts, each under its own heading."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    tables, spec = FOLDER / "academic", FOLDER / "academic" / "network.yaml"
    console.rule("1. a network from tables")
    heterformer("synth", tables, "--papers", PAPERS)
    heterformer("build", spec, FOLDER / "academic.net")
    heterformer("describe", FOLDER / "academic.net")
    network = Network.open(FOLDER / "academic.net")
    console.rule(f"2. two models, {STEPS} steps each")
    runs = train_both(network, FOLDER, STEPS)
    console.rule("3. link prediction: which paper does a paper cite?")
    show_link_prediction(runs)
    best = datasets.planted_ceiling(tables, network.schema.test_batch_size)
    console.print(
        f"Who knows each paper's group and sub-topic, but not its year, has a PREC of {best['network']:.2f}; "
        f"who knows its title alone, {best['text']:.2f}."
    )
    console.rule("4. the nearest papers of a title that fits two fields")
    paper = ambiguous_paper(network)
    console.print(nearest(network, runs, paper))
    run = runs["Heterformer"].path
    console.rule("5. the report: what else are the vectors good for?")
    heterformer("evaluate", run, "--parts", "test")
    console.print(f"A map to explore: {run / 'figures' / 'map.html'}")
    console.rule("6. why: attention and neighbours behind this title's vector")
    (node,) = network.ids("paper", [paper])
    heterformer("explain", run, node, "--top", 5)
    console.rule("what to try next")
    console.print(
        f"make explore    # a map to search and look around in, in a browser: heterformer serve {run}\n"
        f".venv/bin/heterformer search {run} 'some words of a title'\n"
        f".venv/bin/heterformer explain {run} {node} --against {runs['text only'].path}\n"
        f"Describe your own tables as {spec} does, then: heterformer build, train, evaluate.",
        highlight=False,
    )


def ambiguous_paper(network: Network) -> int:
    """A well-connected paper whose title has the most words that two fields share."""
    words = {word for shared in datasets.AMBIGUOUS.values() for word in shared.split()}
    sources, targets = network.edges("cites")
    titles = network.texts("paper")
    degrees = np.bincount(np.concatenate([sources, targets]), minlength=len(titles))
    shared = [sum(word in words for word in title.lower().split()) for title in titles]
    return max(range(len(titles)), key=lambda row: (shared[row], degrees[row]))


def nearest(network: Network, runs: dict[str, Run], paper: int, count: int = 5) -> Table:
    """The nearest papers under each model, with their fields; the right field is marked."""
    fields = [labels[0] for labels in network.labels("paper").to_list()]
    title = network.texts("paper", [paper])[0]
    table = Table(title=f'"{title}" ({fields[paper]})', title_justify="left")
    columns = []
    for name, run in runs.items():
        table.add_column(name)
        vectors = embed(run.model(), network)["paper"]  # (n, d)
        scores = vectors @ vectors[paper]
        scores[paper] = -np.inf
        best = np.argsort(-scores)[:count]
        marks = ["[green]✓[/]" if fields[row] == fields[paper] else "[red]✗[/]" for row in best]
        titles = network.texts("paper", best)
        columns.append(
            [f"{m} {t} [dim]({fields[r]})[/]" for m, t, r in zip(marks, titles, best, strict=True)]
        )
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    main()
