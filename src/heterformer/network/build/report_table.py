"""The build report in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from heterformer.network.build.report import BuildReport, Tally


def build_report(report: BuildReport) -> RenderableType:
    """Rows read, kept and dropped, with reasons and examples."""
    tallies = {f"node {name}": tally for name, tally in report.nodes.items()}
    return tally_table("Build report", tallies | {f"relation {n}": t for n, t in report.relations.items()})


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


def _findings(tally: Tally) -> Iterator[str]:
    for verb, findings in (("dropped", tally.dropped), ("kept", tally.noted)):
        for reason, finding in findings.items():
            examples = "; ".join(finding.examples)
            yield f"{verb} {finding.count:,}: {reason} ({examples})"
