"""Link prediction as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from heterformer.report.sheet import Sheet, four_digits
from heterformer.tasks.link_prediction import LinkPrediction

FIGURES = ("PREC", "MRR", "NDCG", "full MRR", "Hits@1", "@10", "@100")
SEEN = "†"


def link_prediction_table(rows: Mapping[str, Sequence[LinkPrediction]], title: str) -> Sheet:
    """One row per model and part: in-batch PREC, MRR, NDCG beside the filtered full ranking."""
    lines = [(name, one.part, *_figures(one)) for name, results in rows.items() for one in results]
    some = next(iter(rows.values()))[0]
    among = f"among all {some.full.candidates:,} candidates, other true keys left out"
    return Sheet(title, ("", "part", *FIGURES), tuple(lines), _note(some, among), words=2)


def relations_table(results: Sequence[LinkPrediction], seen: Collection[str], title: str) -> Sheet:
    """One row per relation and part of a single model's; ``seen`` relations are marked."""
    lines = [
        (SEEN * (one.relation in seen) + one.relation, one.part, f"{one.full.candidates:,}", *_figures(one))
        for one in results
    ]
    note = _note(results[0], "among so many candidates, other true keys left out")
    if len({one.relation for one in results}) > 1:
        note += "; but for the predicted relation's they are left out of PREC, MRR, NDCG too"
    if seen:
        note += f". {SEEN}: training saw these pairs (--split.also {','.join(seen)} would hide them)"
    return Sheet(title, ("relation", "part", "among", *FIGURES), tuple(lines), note, words=2)


def _figures(result: LinkPrediction) -> tuple[str, ...]:
    found = (*asdict(result.in_batch).values(), result.full.mrr, *result.full.hits.values())
    return tuple(map(four_digits, found))


def _note(some: LinkPrediction, among: str) -> str:
    return f"PREC, MRR, NDCG: among the keys of {some.batch_size} pairs; full MRR, Hits: {among}"


def as_json(results: Sequence[LinkPrediction]) -> dict[str, Any]:
    """The same figures, by relation and part."""
    found: dict[str, Any] = {}
    for result in results:
        found.setdefault(result.relation, {})[result.part] = asdict(result)
    return found
