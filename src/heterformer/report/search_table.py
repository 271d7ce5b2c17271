"""Search results in the terminal, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from heterformer.tasks.search import Answer, Hit, Ranking

LONGEST = 100  # letters of a name: a node's text may be a whole abstract


def search_tables(answer: Answer) -> RenderableType:
    """A table per node type: their inner products do not compare."""
    return Group(*(_table(answer.query, ranking) for ranking in answer.rankings))


def _table(query: str, ranking: Ranking) -> Table:
    title = Text(f"{ranking.node_type} nodes for {query}", style="table.title")
    searched = f"inner product, {ranking.index} search among {ranking.candidates:,} nodes"
    known = "; *: known to be a neighbour" if any(hit.known for hit in ranking.hits) else ""
    table = Table(title=title, title_justify="left", caption=searched + known, caption_justify="left")
    table.add_column("", justify="right")
    table.add_column("score", justify="right")
    table.add_column(Text(ranking.node_type), ratio=1)
    table.add_column("neighbours that speak for it", ratio=1)
    for number, hit in enumerate(ranking.hits, 1):
        table.add_row(f"{number}{'*' * hit.known}", f"{hit.score:.4g}", _name(hit), _neighbors(hit))
    return table


def _name(hit: Hit) -> Text:
    if hit.name == hit.id:
        return Text(hit.id)
    return Text.assemble(_short(hit.name), (f" {hit.id}", "dim"))


def _neighbors(hit: Hit) -> Text:
    return Text("\n".join(f"{n.node_type}: {_short(n.name)}" for n in hit.neighbors))


def _short(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def as_json(answer: Answer) -> dict[str, Any]:
    """The same with whole names, and the neighbours' own scores."""
    return asdict(answer)
