"""The demo on real data: the packages of this Debian or Ubuntu machine, from the lists that APT keeps.

Builds a network of multimedia programs, text tools and libraries, trains Heterformer and its text-only form
under the same budget, predicts dependencies, classifies sections and searches with both. Nothing is
downloaded. Lists that are elsewhere: 'make demo-debian LISTS=FOLDER'.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from rich.table import Table
from rich.text import Text
from transformers.utils import logging
from two_models import console, heterformer, show_link_prediction, train_both

from heterformer import Network, Searcher

FOLDER = Path("demo") / "debian"
SECTIONS = ("graphics", "libs", "sound", "text", "video")  # a sixth of Debian: ten minutes instead of an hour
STEPS, TOKENS = 120, 32
QUERIES = ("read pdf in the terminal", "cut and join pieces of music", "photos straight from the camera")


def main(*lists: str) -> None:
    """Five parts, each under its own heading."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    console.rule("1. a network from APT's package lists")
    FOLDER.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".debian-", dir=FOLDER.parent) as temporary:
        # First, so that missing lists do not cost the last results.
        built = Path(temporary) / "debian.net"
        options = ("--sections", *SECTIONS, "--max-tokens", TOKENS, *(("--lists", *lists) if lists else ()))
        heterformer("dataset", "debian", built, *options)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        built.rename(FOLDER / "debian.net")
    heterformer("describe", FOLDER / "debian.net")
    network = Network.open(FOLDER / "debian.net")
    console.rule(f"2. two models, {STEPS} steps each")
    runs = train_both(network, FOLDER, STEPS)
    console.rule("3. link prediction: which package does a package need?")
    show_link_prediction(runs)
    console.rule("4. classification: which section is a package in?")
    for run in runs.values():
        heterformer("evaluate", run.path, "--tasks", "classification", "--classification.repeats", 2)
    console.rule("5. search")
    searchers = {name: Searcher(run.path) for name, run in runs.items()}
    for query in QUERIES:
        console.print(side_by_side(searchers, query))
    console.rule("what to try next")
    run = runs["Heterformer"].path
    console.print(
        f".venv/bin/heterformer search {run} 'some words' --tag interface::text-mode\n"
        f".venv/bin/heterformer explain {run} mpv\n"
        ".venv/bin/heterformer dataset debian debian.net    # all of Debian",
        highlight=False,
    )


def side_by_side(searchers: dict[str, Searcher], query: str, count: int = 7) -> Table:
    """The best packages under each model."""
    table = Table(title=f'"{query}"', title_justify="left")
    columns = []
    for name, searcher in searchers.items():
        table.add_column(name)
        hits = searcher.search(query, types=("package",), top=count).rankings[0].hits
        columns.append([Text.assemble((hit.id, "bold"), " ", hit.name[:60]) for hit in hits])
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    main(*sys.argv[1:])
