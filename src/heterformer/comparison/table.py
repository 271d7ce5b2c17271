"""A comparison as the paper's tables: on screen, in Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from heterformer.comparison.results import OWN_GROUPS, Comparison, Lead, Row
from heterformer.evaluation.tables import ranking_note
from heterformer.files import write_text
from heterformer.metrics import RANKING_METRICS

HEADINGS = {metric.name: metric.heading for metric in RANKING_METRICS}
METRICS = tuple(HEADINGS)
ON_SCREEN = tuple(metric.name for metric in RANKING_METRICS if metric.in_narrow_tables)
COSTS = ("steps", "time", "s/step", "peak memory", "parameters", "textless")


def write_comparison(comparison: Comparison, out: Path) -> None:
    """``compare.md`` and ``compare.json`` of a comparison's folder."""
    write_text(out / "compare.md", as_markdown(comparison))
    write_text(out / "compare.json", json.dumps(as_json(comparison), indent=1))


# --- On screen -------------------------------------------------------------------------------------------


def as_table(comparison: Comparison) -> Group:
    """Both tables of results, what they cost, and how sure the lead is."""
    parts: list[Any] = []
    for title, rows in _tables(comparison):
        table = _new_table(title, [HEADINGS[metric] for metric in ON_SCREEN])
        ranking = {metric: _best_two(rows, metric) for metric in ON_SCREEN}
        for row in rows:
            cells = [_screen_cell(row, metric, ranking[metric]) for metric in ON_SCREEN]
            table.add_row(row.variant.display_name, *(cells if row.finished else [Text(_state(row))]))
        parts.append(table)
    if any(row.finished for row in comparison.rows):
        costs = _new_table("What it took", COSTS)
        for row in comparison.rows:
            if row.finished:
                costs.add_row(row.variant.display_name, *_costs(row))
        parts.append(costs)
    return Group(*parts, *(Text(sentence) for sentence in sentences(comparison)))


def _new_table(title: str, headings: Iterable[str]) -> Table:
    table = Table(title=Text(title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _screen_cell(row: Row, metric: str, best: Sequence[float]) -> Text:
    if not row.finished:
        return Text("")
    mean, deviation = row.mean(metric), row.deviation(metric)
    style = {0: "bold green", 1: "underline"}.get(_place(mean, best), "")
    if deviation is None:
        return Text(f"{mean:.4f}", style)
    return Text.assemble((_short(mean), style), (f" ±{_short(deviation)}", "dim"))


def _short(figure: float) -> str:
    return f"{figure:.3f}".removeprefix("0")


# --- Markdown --------------------------------------------------------------------------------------------


def as_markdown(comparison: Comparison) -> str:
    """The tables with all metrics, the sentences beneath them and the command that makes them again."""
    parts = [f"# Comparison on {comparison.network}"]
    for title, rows in _tables(comparison):
        parts.append(f"## {title}")
        names = [row.variant.name for row in rows]
        parts.append(_markdown_results(rows, [lead for lead in comparison.leads if lead.rival.name in names]))
    parts += sentences(comparison)
    if any(lead.significant for lead in comparison.leads):
        parts.append(rf"\*: significantly better than {_rivals(comparison)} (p < 0.05).")
    if any(row.finished for row in comparison.rows):
        parts.append("## What it took")
        parts.append(_markdown_costs(comparison))
    if comparison.failed:
        parts.append("## Failed")
        parts.append(
            "\n".join(
                f"- {row.variant.display_name}, seed {seed.seed}: {seed.reason}"
                for row, seed in comparison.failed
            )
        )
    parts.append(f"```\n{comparison.command}\n```")
    return "\n\n".join(parts) + "\n"


def _markdown_results(rows: Sequence[Row], leads: Sequence[Lead]) -> str:
    lines = [
        "| | model | " + " | ".join(HEADINGS[metric] for metric in METRICS) + " | seeds |",
        "|---|---|" + "---:|" * (len(METRICS) + 1),
    ]
    ranking = {metric: _best_two(rows, metric) for metric in METRICS}
    sure = {lead.metric for lead in leads if lead.significant}
    shown = ""
    for row in rows:
        group = (
            "" if row.variant.group in (shown, "vanilla", "Heterformer", "dimension") else row.variant.group
        )
        shown = row.variant.group
        if not row.finished:
            cells = [_state(row), *[""] * (len(METRICS) - 1), "0"]
        else:
            starred = sure if row.variant.name == "heterformer" else set()
            cells = [_markdown_cell(row, metric, ranking[metric], metric in starred) for metric in METRICS]
            cells.append(f"{len(row.finished)}")
        lines.append(f"| {group} | {row.variant.display_name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _markdown_cell(row: Row, metric: str, best: Sequence[float], starred: bool) -> str:
    mean, deviation = row.mean(metric), row.deviation(metric)
    form = {0: "**{}**", 1: "<ins>{}</ins>"}.get(_place(mean, best), "{}")
    spread = "" if deviation is None else f" ± {deviation:.4f}"
    return form.format(f"{mean:.4f}") + (r"\*" if starred else "") + spread


def _markdown_costs(comparison: Comparison) -> str:
    lines = ["| model | " + " | ".join(COSTS) + " |", "|---|" + "---:|" * len(COSTS)]
    for row in comparison.rows:
        if row.finished:
            lines.append(f"| {row.variant.display_name} | " + " | ".join(_costs(row)) + " |")
    note = (
        "Means over seeds, but the largest memory. Time includes warm-up and validation, s/step validation; "
        "memory is that of the training process; textless: parameters in the tables of textless nodes."
    )
    return "\n".join([*lines, "", note])


# --- What both say ---------------------------------------------------------------------------------------


def sentences(comparison: Comparison) -> list[str]:
    """What the figures are, and how sure Heterformer's lead is."""
    found = [_about_metrics(comparison)] if any(row.finished for row in comparison.rows) else []
    found += [_about_leads(comparison)] if comparison.leads else []
    unfinished = [
        f"{row.variant.display_name} seed {seed.seed}"
        for row in comparison.rows
        for seed in row.seeds
        if seed.status == "unfinished"
    ]
    if unfinished:
        found.append(f"Not finished yet: {', '.join(unfinished)}.")
    return found


def _about_metrics(comparison: Comparison) -> str:
    some = next(row for row in comparison.rows if row.finished).finished[0]
    among = ranking_note(f"{min(some.pairs, some.batch_size)} pairs", f"all {some.candidates:,} candidates")
    spread = "Mean ± standard deviation over seeds; best in bold, second underlined."
    return f"{some.pairs:,} test pairs. {among}. {spread}"


def _rivals(comparison: Comparison) -> str:
    """Whom Heterformer is held against."""
    rival = comparison.leads[0].rival
    return "the best of the others" if rival.group in OWN_GROUPS else "the best baseline"


def _about_leads(comparison: Comparison) -> str:
    """One sentence for all metrics."""
    each = []
    for lead in comparison.leads:
        found = lead.difference
        span = f"95 % interval {found.low:+.4f} to {found.high:+.4f}, p = {found.p:.4f}"
        each.append(f"{HEADINGS[lead.metric]} {found.mean:+.4f} against {lead.rival.display_name} ({span})")
    how = "paired bootstrap over the test queries"
    return f"Heterformer's lead over {_rivals(comparison)} ({how}): {'; '.join(each)}."


def _tables(comparison: Comparison) -> Iterable[tuple[str, Sequence[Row]]]:
    if comparison.models:
        yield f"Link prediction on {comparison.network}", comparison.models
    if comparison.ablations:
        yield "Ablations of Heterformer", comparison.ablations


def _best_two(rows: Sequence[Row], metric: str) -> list[float]:
    """As printed: equal to four digits is equally good."""
    return sorted({round(row.mean(metric), 4) for row in rows if row.finished}, reverse=True)[:2]


def _place(mean: float, best: Sequence[float]) -> int:
    return best.index(round(mean, 4)) if round(mean, 4) in best else -1


def _state(row: Row) -> str:
    return "failed" if any(seed.status == "failed" for seed in row.seeds) else "not finished"


def _costs(row: Row) -> list[str]:
    """Means over seeds, but the largest memory."""
    results = row.finished
    gpu = [result.cost.gpu_memory for result in results if result.cost.gpu_memory]
    memory = max(gpu) if gpu else max(result.cost.memory for result in results)
    return [
        f"{fmean(result.steps for result in results):,.0f}",
        _duration(fmean(result.cost.seconds for result in results)),
        f"{fmean(result.seconds_per_step for result in results):.3f}",
        f"{memory:,.0f} MB" + (" (GPU)" if gpu else ""),
        _millions(results[0].parameters),
        _millions(results[0].textless_parameters),
    ]


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def _millions(count: int) -> str:
    return f"{count / 1e6:.2f} M" if count else "-"


# --- JSON ------------------------------------------------------------------------------------------------


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Everything the tables show, unrounded, seed by seed."""
    return {
        "network": comparison.network,
        "command": comparison.command,
        "variants": {row.variant.name: _row_json(row) for row in comparison.rows},
        "significance": {
            lead.metric: {"against": lead.rival.name, **asdict(lead.difference)} for lead in comparison.leads
        },
    }


def _row_json(row: Row) -> dict[str, Any]:
    metrics = METRICS if row.finished else ()
    return {
        "name": row.variant.display_name,
        "group": row.variant.group,
        "mean": {metric: row.mean(metric) for metric in metrics},
        "std": {metric: row.deviation(metric) for metric in metrics},
        "seeds": {
            str(seed.seed): {"status": seed.status, "reason": seed.reason}
            | (asdict(seed.result) if seed.result else {})
            for seed in row.seeds
        },
    }
