"""The build report in the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from heterformer.network.build.report import BuildReport, Tally


def build_report(report: BuildReport) -> RenderableType:
    """Rows read, kept and dropped, with reasons and examples."""
    return tally_table("Build report", report.tallies())


def tally_table(title: str, tallies: Mapping[str, Tally]) -> Table:
    """A row per table or relation. Names are ``Text``: rich interprets markup in a plain string."""
    table = Table(title=title, title_justify="left")
    for heading in ("", "read", "kept"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_column("dropped or noted")
    for name, tally in tallies.items():
        findings = Text("\n".join(tally.findings()))
        table.add_row(Text(name), f"{tally.read:,}", f"{tally.kept:,}", findings)
    return table
