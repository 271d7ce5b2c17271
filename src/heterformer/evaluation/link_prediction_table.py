"""Link prediction as a table, and as JSON."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from heterformer.evaluation.link_prediction import LinkPrediction
from heterformer.tables import Sheet, four_digits

FIGURES = ("PREC", "MRR", "NDCG", "full MRR", "Hits@1", "@10", "@100")
SEEN = "†"
SHORT = {"validation": "valid."}  # eleven columns must fit into eighty characters


def link_prediction_table(rows: Mapping[str, Sequence[LinkPrediction]], title: str) -> Sheet:
    """One row per model and part: in-batch PREC, MRR, NDCG beside the filtered full ranking."""
    lines = [(name, one.part, *_figures(one)) for name, results in rows.items() for one in results]
    results = [one for several in rows.values() for one in several]
    among = f"among all {results[0].full.candidates:,} candidates, other true keys left out"
    return Sheet(title, ("", "part", *FIGURES), tuple(lines), _note(results, among), words=2)


def relations_table(results: Sequence[LinkPrediction], seen: Collection[str], title: str) -> Sheet:
    """One row per relation and part of a single model's; ``seen`` relations are marked."""
    lines = [
        (
            SEEN * (one.relation in seen) + one.relation,
            SHORT.get(one.part, one.part),
            *_counts(one),
            *_figures(one),
        )
        for one in results
    ]
    note = _note(results, "among so many candidates, other true keys left out")
    if len({one.relation for one in results}) > 1:
        note += "; but for the predicted relation's they are left out of PREC, MRR, NDCG too"
    if seen:
        hiding = f"--split.also {','.join(seen)} would hide them"
        note += f". {SEEN}: training saw these pairs, those of held-out nodes excepted ({hiding})"
    return Sheet(title, ("relation", "part", "pairs", "among", *FIGURES), tuple(lines), note, words=2)


def _figures(result: LinkPrediction) -> tuple[str, ...]:
    found = (*asdict(result.in_batch).values(), result.full.mrr, *result.full.hits.values())
    return tuple(map(four_digits, found))


def _counts(result: LinkPrediction) -> tuple[str, str]:
    return f"{result.pairs:,}", f"{result.full.candidates:,}"


def _note(results: Sequence[LinkPrediction], among: str) -> str:
    size = results[0].batch_size
    most = "" if all(one.pairs >= size for one in results) else "at most "
    return f"PREC, MRR, NDCG: among the keys of {most}{size} pairs; full MRR, Hits: {among}"


def as_json(results: Sequence[LinkPrediction]) -> dict[str, Any]:
    """The same figures, by relation and part."""
    found: dict[str, Any] = {}
    for result in results:
        found.setdefault(result.relation, {})[result.part] = asdict(result)
    return found
