"""An explanation in the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from heterformer.explanation.core import (
    KINDS,
    Explanation,
    Neighbor,
    ReadoutPart,
    TextExplanation,
    TextlessExplanation,
    VirtualToken,
)
from heterformer.explanation.effects import LeaveOneOut
from heterformer.tables import short

NAME = 100  # letters of a name: a node's text may be a whole abstract
BAR = 12  # letters of a bar for 1
WORDS = 3  # of the text that a layer looks at most
BLOCKS, STEPS = " ▏▎▍▌▋▊▉█", "▁▂▃▄▅▆▇█"


def explanation_tables(explanation: Explanation, top: int) -> RenderableType:
    """What there is to see: attention and shares of a node with text, close neighbours of one without."""
    if isinstance(explanation, TextlessExplanation):
        return _closest(explanation, top)
    return Group(
        _attention(explanation),
        *(_shares(explanation, token, top) for token in explanation.virtual_tokens),
        *(_readout(explanation, part, top) for part in explanation.readout),
    )


def _attention(explanation: TextExplanation) -> Table:
    title = f"Attention {_asking(explanation)} {_node(explanation)}"
    caption = "mean over heads; the first layer has no virtual neighbour tokens"
    table = _table(title, caption if explanation.virtual_tokens else "mean over heads")
    table.add_column("layer", justify="right")
    for token in explanation.virtual_tokens:
        table.add_column(f"{KINDS[token.kind]} neighbours")
    table.add_column("text")
    table.add_column("most attended tokens")
    for layer in explanation.layers:
        virtual = [_measured(layer.virtual.get(token.kind)) for token in explanation.virtual_tokens]
        words = _most_seen(explanation.tokens, layer.tokens)
        table.add_row(str(layer.number), *virtual, _measured(layer.text), words)
    return table


def _asking(explanation: TextExplanation) -> str:
    return "of [CLS] in" if explanation.queries == "cls" else "of all tokens of"


def _node(explanation: Explanation) -> str:
    return f"{_named(explanation.node.node_type, explanation.node.name)} ({explanation.run})"


def _named(node_type: str, name: str) -> str:
    return f"{node_type}: {short(name, NAME)}"


def _most_seen(tokens: Sequence[str], attention: Sequence[float]) -> Text:
    best = sorted(range(len(tokens)), key=lambda i: -attention[i])[:WORDS]
    return Text(", ".join(f"{tokens[i]} {attention[i]:.2f}" for i in best))


def _shares(explanation: TextExplanation, token: VirtualToken, top: int) -> Table:
    layers = f"layers {token.layers[0]} to {token.layers[-1]}"
    sampled = f"{len(token.neighbors):,} of {token.edges:,} neighbours sampled, as 'heterformer embed' does"
    table = _table(f"Shares in the virtual token of {KINDS[token.kind]} neighbours", sampled)
    table.add_column("share (mean)")
    table.add_column(layers, no_wrap=True)
    table.add_column("relation", no_wrap=True)
    table.add_column("neighbour")
    top_neighbors, rest = token.neighbors[:top], token.neighbors[top:]
    highest = max(max(shares) for shares in (token.own_shares, *(n.shares for n in top_neighbors)))
    own = Text(f"the {explanation.node.node_type} itself", style="italic")
    rows = [(token.own_share, token.own_shares, Text(), own)]
    rows += [(n.share, n.shares, _relation(n), _neighbor(n)) for n in top_neighbors]
    rows.sort(key=lambda row: -row[0])
    for share, shares, relation, name in rows:
        table.add_row(_measured(share), _steps(shares, highest), relation, name)
    if rest:
        others = f"{len(rest):,} {'other' if len(rest) == 1 else 'others'}"
        table.add_row(_measured(sum(n.share for n in rest)), "", "", others)
    return table


def _readout(explanation: TextExplanation, part: ReadoutPart, top: int) -> Table:
    added = f"what it adds is {part.weight:.2f} times as long as the vector"
    table = _table(f"Shares in the network readout of {KINDS[part.kind]} neighbours", added)
    table.add_column("share")
    table.add_column("relation", no_wrap=True)
    table.add_column("neighbour")
    own = Text(f"the {explanation.node.node_type} itself", style="italic")
    rows = [(part.own_share, Text(), own)] if part.own_share else []  # a mean is of neighbours alone
    rows += [(n.share, _relation(n), _neighbor(n)) for n in part.neighbors[:top]]
    for share, relation, name in sorted(rows, key=lambda row: -row[0]):
        table.add_row(_measured(share), relation, name)
    return table


def _closest(explanation: TextlessExplanation, top: int) -> RenderableType:
    if not explanation.closest:
        return Text(f"{_node(explanation)} has no neighbours with text.")
    count, edges = len(explanation.closest), explanation.edges
    considered = f"inner products of vectors; {count:,} of {edges:,} neighbours considered"
    table = _table(f"Neighbours with text closest to {_node(explanation)}", considered)
    table.add_column("", justify="right")
    table.add_column("score", justify="right")
    table.add_column("relation", no_wrap=True)
    table.add_column("neighbour")
    for number, neighbor in enumerate(explanation.closest[:top], 1):
        table.add_row(str(number), f"{neighbor.score:#.4g}", _relation(neighbor), _neighbor(neighbor))
    return table


def _table(title: str, caption: str) -> Table:
    heading = Text(title, style="table.title")
    return Table(title=heading, title_justify="left", caption=caption, caption_justify="left")


def _relation(neighbor: Neighbor) -> Text:
    """With an arrow from the relation's source to its target; the neighbour stands at the right."""
    return Text(f"{neighbor.relation} →" if neighbor.direction == "out" else f"← {neighbor.relation}")


def _neighbor(neighbor: Neighbor) -> Text:
    named = _named(neighbor.node_type, neighbor.name)
    return Text(named) if neighbor.name == neighbor.id else Text.assemble(named, (f" {neighbor.id}", "dim"))


def _measured(share: float | None) -> str:
    return "" if share is None else f"{share:.3f} {bar(share)}".rstrip()


def bar(share: float, width: int = BAR) -> str:
    """A bar of eighths of letters, ``width`` letters for 1."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return (BLOCKS[8] * (eighths // 8) + BLOCKS[eighths % 8]).rstrip()


def _steps(shares: Sequence[float], highest: float) -> str:
    """A letter per layer, as high as the share."""
    return "".join(STEPS[min(7, int(8 * share / highest))] for share in shares)


def as_json(
    explanations: Sequence[Explanation],
    figure: Path | None,
    effects: LeaveOneOut | None = None,
    effects_figure: Path | None = None,
) -> dict[str, Any]:
    """The run's explanation, whole; that of the run it is held against; effects; where the figures are."""
    first, *others = [asdict(explanation) for explanation in explanations] or [{}]
    against = {"against": others[0]} if others else {}
    figures = {"figure": _spelled(figure), "leave_one_out_figure": _spelled(effects_figure)}
    return {**first, **against, "leave_one_out": effects and asdict(effects), **figures}


def _spelled(path: Path | None) -> str | None:
    return None if path is None else str(path)
