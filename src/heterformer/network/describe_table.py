"""A network's statistics in the terminal.

The user's strings are ``Text``: rich interprets markup and emoji codes in a plain string.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from heterformer.network.describe import Degrees, Description, NodeSummary

LISTED_CLASSES = 8
SEPARATOR = " · "  # of names, which may have commas
LONGEST_NAME = 50  # letters of a node's name


def description(statistics: Description) -> RenderableType:
    """The paper's data table, degrees, labels and warnings."""
    parts: list[RenderableType] = [_nodes(statistics), _relations(statistics)]
    if any(n.classes for n in statistics.nodes):
        parts.append(_labels(statistics))
    if any(n.attributes for n in statistics.nodes):
        parts.append(_attributes(statistics))
    parts += [Text(line) for line in _edge_ranges(statistics)]
    parts += [_nodes_by_name(node) for node in statistics.nodes]
    too_small = (f"too small to train: {statistics.too_small}",) if statistics.too_small else ()
    for warning in (*statistics.warnings, *too_small):
        parts.append(Text.assemble(("warning: ", "bold yellow"), warning))
    return Group(*parts)


def _nodes(statistics: Description) -> Table:
    title = Text(f"{statistics.name}: nodes (*: text-rich)", style="table.title")
    table = Table(title=title, title_justify="left")
    table.add_column("type")
    for heading in ("nodes", "isolated", "words: mean", "median", "longest", "empty texts"):
        table.add_column(heading, justify="right")
    for node in statistics.nodes:
        texts = node.texts
        lengths = (
            (f"{texts.mean:.1f}", f"{texts.median:.0f}", f"{texts.longest:,}", f"{texts.empty:,}")
            if texts
            else ("", "", "", "")
        )
        star = "*" if texts else ""
        table.add_row(node.node_type + star, f"{node.count:,}", f"{node.isolated:,}", *lengths)
    return table


def _relations(statistics: Description) -> Table:
    table = Table(title="relations (edges per node that has any)", title_justify="left")
    table.add_column("relation")
    table.add_column("joins")
    table.add_column("edges", justify="right")
    for heading in ("per source: mean / median / max", "per target: mean / median / max"):
        table.add_column(heading, justify="right")
    for summary in statistics.relations:
        relation = summary.relation
        predicted = " (predicted)" if relation.name in statistics.predicted else ""
        table.add_row(
            relation.name + predicted,
            f"{relation.source} → {relation.target}",
            f"{summary.edges:,}",
            _degrees(summary.source),
            _degrees(summary.target),
        )
    return table


def _attributes(statistics: Description) -> Table:
    table = Table(title="attributes", title_justify="left")
    for heading in ("type", "attribute", "kind"):
        table.add_column(heading)
    for heading in ("missing", "distinct"):
        table.add_column(heading, justify="right")
    table.add_column("range or most frequent")
    for node in statistics.nodes:
        for a in node.attributes:
            values = ", ".join(f"{_name(name)} {count:,}" for name, count in a.frequent)
            limits = f"{a.range[0]:g} to {a.range[1]:g}" if a.range else values
            counts = f"{a.missing:,}", f"{a.distinct:,}"
            table.add_row(node.node_type, Text(a.name), a.kind, *counts, Text(limits))
    return table


def _edge_ranges(statistics: Description) -> Iterator[str]:
    """A line for each relation that has weights or times."""
    for summary in statistics.relations:
        if ranges := [f"{column}s {low:g} to {high:g}" for column, (low, high) in summary.ranges.items()]:
            yield f"{summary.relation.name}: {', '.join(ranges)}"


def _nodes_by_name(node: NodeSummary) -> Text:
    """The most linked nodes of a type and some others, and for textless nodes how many have one edge."""
    linked = SEPARATOR.join(f"{_name(name)} ({edges:,})" for name, edges in node.most_linked) or "none"
    parts = [f"most linked: {linked}", "for example: " + SEPARATOR.join(map(_name, node.examples))]
    if node.texts is None:
        parts.insert(0, f"{node.single_edge / node.count:.0%} have one edge")
    return Text.assemble((f"{node.node_type}: ", "bold"), "; ".join(parts))


def _name(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "…"


def _degrees(degrees: Degrees) -> str:
    return f"{degrees.mean:.1f} / {degrees.median:.0f} / {degrees.highest:,}"


def _labels(statistics: Description) -> Table:
    table = Table(title="labels", title_justify="left")
    table.add_column("type")
    table.add_column("labelled", justify="right")
    table.add_column("per node")
    table.add_column("classes", justify="right")
    table.add_column("most frequent")
    for node in statistics.nodes:
        if node.labelled is not None:
            several = "several" if node.label_kind == "multi" else "one"
            counts = (f"{node.labelled:,}", several, f"{len(node.classes):,}")
            table.add_row(node.node_type, *counts, _frequent(node))
    return table


def _frequent(node: NodeSummary) -> Text:
    counts = [f"{name} {count:,}" for name, count in list(node.classes.items())[:LISTED_CLASSES]]
    return Text(", ".join(counts) + (", …" if len(node.classes) > LISTED_CLASSES else ""))
