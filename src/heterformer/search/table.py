"""Search results in the terminal, and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from heterformer.search.searcher import Answer, Hit, NamedNode, Ranking
from heterformer.tables import short

LONGEST, NEIGHBOR = 100, 60  # letters of a name, and of a neighbour's: a node's text may be a whole abstract


def search_tables(answer: Answer) -> RenderableType:
    """A table per node type: their inner products do not compare."""
    return Group(*(ranking_table(_query(answer), ranking) for ranking in answer.rankings))


def _query(answer: Answer) -> str:
    if answer.like is not None:
        return f"like {named_node(answer.like, LONGEST)}"
    neighbors = ", ".join(named_node(n, NEIGHBOR) for n in answer.neighbors)
    return f"for {short(answer.text, LONGEST)!r}" + (f" with {neighbors}" if neighbors else "")


def ranking_table(query: str, ranking: Ranking) -> Table:
    """The best nodes of a type; ``query`` says for what."""
    title = Text(f"{ranking.node_type} nodes {query}", style="table.title")
    score = (
        f"inner product and links, weight {ranking.link_weight:g}" if ranking.link_weight else "inner product"
    )
    searched = f"{score}, {ranking.index} search among {ranking.candidates:,} nodes"
    known = "; *: already a neighbour of the query" if any(hit.known for hit in ranking.hits) else ""
    table = Table(title=title, title_justify="left", caption=searched + known, caption_justify="left")
    table.add_column("", justify="right")
    table.add_column("score", justify="right")
    table.add_column(Text(ranking.node_type))
    table.add_column("supporting neighbours")
    for number, hit in enumerate(ranking.hits, 1):
        table.add_row(f"{number}{'*' * hit.known}", f"{hit.score:#.4g}", _name(hit), _neighbors(hit))
    return table


def _name(hit: Hit) -> Text:
    if hit.name == hit.id:
        return Text(hit.id)
    return Text.assemble(short(hit.name, LONGEST), (f" {hit.id}", "dim"))


def _neighbors(hit: Hit) -> Text:
    lines = "\n".join(named_node(n, NEIGHBOR) for n in hit.neighbors)
    return Text(lines, no_wrap=True, overflow="ellipsis")


def named_node(node: NamedNode, longest: int) -> str:
    """A node's type and name, of which at most ``longest`` letters."""
    return f"{node.node_type}: {short(node.name, longest)}"


def as_json(answer: Answer) -> dict[str, Any]:
    """The same with whole names, and the neighbours' own scores."""
    return asdict(answer)
