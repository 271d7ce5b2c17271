"""A data set's build report in the terminal, beside the paper's counts."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from heterformer.datasets.raw_build import DatasetBuild
from heterformer.network.build.report_table import build_report, tally_table


def dataset_report(built: DatasetBuild) -> RenderableType:
    """Records of the raw files, the build report, and the counts beside the paper's."""
    raw = [tally_table("Raw files", built.raw)] if built.raw else []
    paper = [_beside_paper(built)] if built.published else []
    return Group(*raw, build_report(built.network.report), *paper)


def _beside_paper(built: DatasetBuild) -> Table:
    """The counts that the paper gives, in its order."""
    schema, report = built.network.schema, built.network.report
    edges = {name: tally.kept for name, tally in report.relations.items()}
    table = Table(title="Compared with the paper", title_justify="left")
    for heading in ("", "here", "in the paper", "share"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, published in built.published.items():
        here = schema.counts[name] if name in schema.counts else edges[name]
        table.add_row(name, f"{here:,}", f"{published:,}", f"{here / published:.1%}")
    return table
