"""Recommendations in the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType

from heterformer.recommendation.core import Recommendations
from heterformer.search.table import LONGEST, NEIGHBOR, named_node, ranking_table


def recommendation_tables(answers: Sequence[Recommendations]) -> RenderableType:
    """A table per user."""
    return Group(*(ranking_table(_whom(answer), answer.ranking) for answer in answers))


def _whom(answer: Recommendations) -> str:
    if answer.user is not None:
        return f"for {named_node(answer.user, LONGEST)}"
    return "for somebody with " + ", ".join(named_node(item, NEIGHBOR) for item in answer.likes)


def as_json(answers: Sequence[Recommendations]) -> list[dict[str, Any]]:
    """The same with whole names, and the neighbours' own scores."""
    return [asdict(answer) for answer in answers]
