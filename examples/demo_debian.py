"""The demo on real data: the packages of this Debian or Ubuntu machine, from the lists that APT keeps.

Builds a network of multimedia programs, text tools and libraries, trains Heterformer and its text-only form
under the same budget, predicts dependencies, tells sections and searches with both. Nothing is downloaded.
Lists that are elsewhere: 'make demo-debian LISTS=FOLDER'.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from rich.table import Table
from rich.text import Text
from transformers.utils import logging
from two_models import show_link_prediction, train_both

from heterformer.datasets.debian import DebianOptions, build_debian
from heterformer.errors import InputError
from heterformer.evaluation.core import Classified, evaluate_run
from heterformer.evaluation.open_run import OpenRun
from heterformer.evaluation.options import ClassificationOptions, EvaluateOptions
from heterformer.evaluation.tables import classification_table
from heterformer.network.describe import describe
from heterformer.network.describe_table import description
from heterformer.network.store import Network
from heterformer.progress import console
from heterformer.search.searcher import Searcher
from heterformer.tables import short

FOLDER = Path("demo") / "debian"
SECTIONS = ("graphics", "libs", "sound", "text", "video")  # a sixth of Debian: ten minutes instead of an hour
STEPS, TOKENS = 120, 32
QUERIES = ("read pdf in the terminal", "cut and join pieces of music", "photos straight from the camera")


def main(lists: Path | None = None) -> None:
    """Five parts, each under its own heading."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    console.rule("1. a network from APT's package lists")
    options = DebianOptions(lists=lists or DebianOptions.lists, sections=SECTIONS, max_tokens=TOKENS)
    FOLDER.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".debian-", dir=FOLDER.parent) as temporary:
        # First, lest missing lists cost the last results.
        build_debian(Path(temporary) / "debian.net", options)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        (Path(temporary) / "debian.net").rename(FOLDER / "debian.net")
    network = Network.open(FOLDER / "debian.net")
    console.print(description(describe(network)))
    console.rule(f"2. two models, {STEPS} steps each")
    runs = train_both(network, FOLDER, STEPS)
    console.rule("3. link prediction: which package does a package need?")
    show_link_prediction(runs)
    console.rule("4. classification: which section is a package in?")
    for name, run in runs.items():
        console.print(classification_table(sections(run), f"sections told by the vectors of {name}").table())
    console.rule("5. search")
    searchers = {name: Searcher(run.run.path) for name, run in runs.items()}
    for query in QUERIES:
        console.print(side_by_side(searchers, query))
    console.rule("what to try next")
    run = runs["Heterformer"].run.path
    console.print(
        f".venv/bin/heterformer search {run} 'some words' --tag interface::text-mode\n"
        f".venv/bin/heterformer explain {run} mpv\n"
        ".venv/bin/heterformer dataset debian debian.net    # all of Debian",
        highlight=False,
    )


def sections(run: OpenRun) -> list[Classified]:
    """How well a run's vectors tell the sections, which it was never told."""
    options = EvaluateOptions(tasks=("classification",), classification=ClassificationOptions(repeats=2))
    found, _ = evaluate_run(run, options)
    return [one for one in found.classification if one.node_type == "package"]


def side_by_side(searchers: dict[str, Searcher], query: str, count: int = 7) -> Table:
    """The best packages under each model."""
    table = Table(title=f'"{query}"', title_justify="left")
    columns = []
    for name, searcher in searchers.items():
        table.add_column(name)
        hits = searcher.rank(searcher.text(query), "package", count).hits
        columns.append([Text.assemble((hit.id, "bold"), " ", short(hit.name, 60)) for hit in hits])
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return table


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    except InputError as error:
        sys.exit(f"error: {error}")
