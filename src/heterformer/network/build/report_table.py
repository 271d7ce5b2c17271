"""The build report in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from heterformer.network.build.report import BuildReport, Tally
from heterformer.progress import say


def build_report(report: BuildReport) -> RenderableType:
    """Rows read, kept and dropped, with reasons and examples."""
    return tally_table("Build report", _tallies(report))


def _tallies(report: BuildReport) -> dict[str, Tally]:
    nodes = {f"node {name}": tally for name, tally in report.nodes.items()}
    return nodes | {f"relation {name}": tally for name, tally in report.relations.items()}


def tally_table(title: str, tallies: Mapping[str, Tally]) -> Table:
    """A row per table or relation. Names are ``Text``: rich interprets markup in a plain string."""
    table = Table(title=title, title_justify="left")
    for heading in ("", "read", "kept"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_column("dropped or noted")
    for name, tally in tallies.items():
        findings = Text("\n".join(_findings(tally)))
        table.add_row(Text(name), f"{tally.read:,}", f"{tally.kept:,}", findings)
    return table


def say_findings(report: BuildReport) -> None:
    """Tell on standard error what was dropped or noted, a line for each table that has any."""
    for name, tally in _tallies(report).items():
        if findings := "; ".join(_findings(tally)):
            say(f"{name}: {tally.read:,} rows read, {tally.kept:,} kept: {findings}")


def _findings(tally: Tally) -> Iterator[str]:
    for verb, findings in (("dropped", tally.dropped), ("kept", tally.noted)):
        for reason, finding in findings.items():
            examples = "; ".join(finding.examples)
            yield f"{verb} {finding.count:,}: {reason} ({examples})"
