"""Comparisons without training: a runner that writes finished runs whose figures a test chooses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from heterformer.comparison.core import compare
from heterformer.comparison.job import COST, RANKING_RULES, RANKS, RESULT, Cost, Job, RunResult
from heterformer.comparison.results import Comparison
from heterformer.files import CARD
from heterformer.network.store import Network
from heterformer.training.run import Run
from tests.learning import tiny_network, tiny_options, tiny_reader

QUERIES = 400
COMMAND = "heterformer compare NET OUT"
Skill = Mapping[str, float]  # by variant: how often the key is ranked first


def pretended(skill: Skill, spread: float = 0.01, steps: int = 6) -> Callable[[Job], None]:
    """A runner that leaves what training and evaluation would; a variant without a skill fails."""

    def run(job: Job) -> None:
        if job.variant.name not in skill:
            job.note_failure("it was not meant to be")
            return
        rng = np.random.default_rng([job.seed, len(job.variant.name), ord(job.variant.name[-1])])
        level = float(np.clip(skill[job.variant.name] + spread * rng.standard_normal(), 0.01, 0.95))
        path, run = job.path, Run(job.path)
        run.start(Network.open(job.network), job.options())
        for step in range(1, steps + 1):
            prec = level * (1 - np.exp(-step / 2)) + 0.003 * rng.standard_normal()
            run.log(step=50 * step, epoch=0, loss=float(3 / step))
            run.log(step=50 * step, epoch=0, validation={"prec": prec, "mrr": prec + 0.1, "ndcg": prec + 0.2})
        ranks = np.where(rng.random(QUERIES) < level, 1, rng.integers(2, 100, QUERIES))
        save_result(path, ranks)
        (path / CARD).write_text("done")

    return run


def figures_of(ranks: np.ndarray[Any, Any], full: np.ndarray[Any, Any], prefix: str = "") -> dict[str, float]:
    hits = {f"hits_{k}": float((full <= k).mean()) for k in (1, 10, 100)}
    figures = {
        "prec": float((ranks == 1).mean()),
        "mrr": float((1 / ranks).mean()),
        "ndcg": float((1 / np.log2(1 + ranks)).mean()),
        "full_mrr": float((1 / full).mean()),
    }
    return {prefix + name: value for name, value in (figures | hits).items()}


def with_links(full: np.ndarray[Any, Any], prefix: str = "") -> dict[str, float]:
    figures = figures_of(full, full)
    names = ("full_mrr", "hits_1", "hits_10", "hits_100")
    return {f"{prefix}{name}_with_links": figures[name] for name in names}


def save_result(path: Path, ranks: np.ndarray[Any, Any], outdated: bool = False) -> None:
    """The files that ranking the test pairs leaves, the full ranks being ten times those in the batch.

    Every other query that is read alone ranks its key one place lower. An ``outdated`` result has none.
    """
    full = 10 * ranks - 9
    arrays = {"in_batch": ranks, "full": full}
    figures, references = figures_of(ranks, full), {}
    if not outdated:
        odd = np.arange(len(ranks)) % 2
        arrays |= {"alone_in_batch": ranks + odd, "alone_full": full + odd}
        figures |= figures_of(ranks + odd, full + odd, "alone_")
        arrays |= {"full_with_links": full + odd, "alone_full_with_links": full + 2 * odd}
        figures |= with_links(full + odd) | with_links(full + 2 * odd, "alone_")
        references = {"chance": figures_of(ranks + 50, full + 500)}
        references["popularity"] = figures_of(ranks + 5, full + 50)
    result = RunResult(
        figures=figures,
        pairs=len(ranks),
        full_queries=len(ranks),
        candidates=1000,
        batch_size=100,
        validation_prec=0.5,
        best_step=300,
        steps=300,
        seconds_per_step=0.25,
        parameters=22_700_000,
        textless_parameters=830_000,
        cost=Cost(75.0, 1234.5, None),
        **references,
        rules=1 if outdated else RANKING_RULES,
    )
    np.savez(path / RANKS, **arrays)
    (path / RESULT).write_text(json.dumps(asdict(result)))
    (path / COST).write_text(json.dumps(asdict(result.cost)))


def pretended_comparison(
    out: Path,
    skill: Skill,
    models: tuple[str, ...] | None = None,
    seeds: tuple[int, ...] = (0, 1),
    **more: Any,
) -> Comparison:
    """A comparison on ``tiny_network`` of the variants with a skill, or of ``models``."""
    options = tiny_options(tiny_reader(), max_steps=300, **more)
    return compare(tiny_network(), out, models or tuple(skill), seeds, options, runner=pretended(skill))
