"""A comparison as the paper's tables: on screen, in Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from heterformer.comparison.label_tasks import CLUSTERS, label_heading
from heterformer.comparison.label_tasks import HEADINGS as LABEL_HEADINGS
from heterformer.comparison.results import OWN_GROUPS, Comparison, Lead, Row
from heterformer.escapes import markdown_text
from heterformer.evaluation.tables import LINKS_ADDED, ranking_note
from heterformer.files import write_text
from heterformer.metrics import (
    ALONE_WITH_LINKS_METRICS,
    EVERY_RANKING_METRIC,
    QUERY_ALONE_METRICS,
    RANKING_METRICS,
    WITH_LINKS_METRICS,
)

COSTS = ("steps", "time", "s/step", "peak memory", "parameters", "textless")


@dataclass(frozen=True)
class Column:
    """A metric in a table: its name in ``RunResult.figures``, its heading, and whether a screen has room."""

    name: str
    heading: str
    on_screen: bool = True


@dataclass(frozen=True)
class ResultTable:
    """Some variants by some metrics, and below them what knows nothing of the query."""

    title: str
    rows: Sequence[Row]
    columns: Sequence[Column]
    references: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def best_two(self, column: Column) -> list[float]:
        """As printed: equal to four digits is equally good."""
        means = {round(row.mean(column.name), 4) for row in self.rows if row.has(column.name)}
        return sorted(means, reverse=True)[:2]


LINKS = [Column(m.name, m.heading, m.in_narrow_tables) for m in RANKING_METRICS]
LINKS_ALONE = [
    Column(alone.name, m.heading, m.in_narrow_tables)
    for m, alone in zip(RANKING_METRICS, QUERY_ALONE_METRICS, strict=True)
]
FULL = [metric for metric in RANKING_METRICS if metric.ranking == "full"]
WITH_LINKS = [
    Column(with_links.name, f"{reading}{m.heading}", m.in_narrow_tables)
    for reading, metrics in (("", WITH_LINKS_METRICS), ("alone: ", ALONE_WITH_LINKS_METRICS))
    for m, with_links in zip(FULL, metrics, strict=True)
]
HEADINGS = {metric.name: metric.heading for metric in EVERY_RANKING_METRIC}


def result_tables(comparison: Comparison) -> Iterable[ResultTable]:
    """All that there are results for; without any, the table that says so."""
    links = f"Link prediction on {comparison.network}"
    if models := comparison.models:
        yield ResultTable(links, models, LINKS, _references(models))
        if any(row.has(LINKS_ALONE[0].name) for row in models):
            yield ResultTable(f"{links}, queries read alone", models, LINKS_ALONE)
        if any(row.has(WITH_LINKS[0].name) for row in models):
            yield ResultTable(f"{links}, full ranking with the candidates' links", models, WITH_LINKS)
        yield from _label_tables(comparison.network, models)
    if ablations := comparison.ablations:
        yield ResultTable("Ablations of Heterformer", ablations, LINKS)
        if any(row.has(LINKS_ALONE[0].name) for row in ablations):
            yield ResultTable("Ablations of Heterformer, queries read alone", ablations, LINKS_ALONE)


def _label_tables(network: str, rows: Sequence[Row]) -> Iterable[ResultTable]:
    """A table for each type and setting that some model was classified or clustered in."""
    names = dict.fromkeys(name for row in rows for name in row.label_figures())
    groups = dict.fromkeys(name.rsplit(".", 1)[0] for name in names)
    for group in sorted(groups, key=lambda group: group.endswith(f".{CLUSTERS}")):  # clusters last
        node_type, setting = group.rsplit(".", 1)
        task = "Clustering" if setting == CLUSTERS else "Classification"
        title = f"{task} of {node_type} nodes on {network}"
        title += "" if setting in (CLUSTERS, "transductive") else f", {setting}"
        columns = [
            Column(name, LABEL_HEADINGS[name.rsplit(".", 1)[1]])
            for name in names
            if name.rsplit(".", 1)[0] == group
        ]
        yield ResultTable(title, [row for row in rows if row.has(columns[0].name)], columns)


def _references(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """The same for every model, since they are asked the same."""
    current = next((result for row in rows for result in row.results if result.chance), None)
    return {} if current is None else {"popularity": current.popularity, "chance": current.chance}


def write_comparison(comparison: Comparison, out: Path, command: str) -> None:
    """``compare.md`` and ``compare.json`` of a comparison's folder; ``command`` makes it again."""
    write_text(out / "compare.md", as_markdown(comparison, command))
    write_text(out / "compare.json", json.dumps(as_json(comparison, command), indent=1))


# --- On screen -------------------------------------------------------------------------------------------


def as_table(comparison: Comparison) -> Group:
    """Both tables of results, what they cost, and how sure the lead is."""
    parts: list[Any] = []
    for results in result_tables(comparison):
        columns = [column for column in results.columns if column.on_screen]
        table = _new_table(results.title, [column.heading for column in columns])
        best = [results.best_two(column) for column in columns]
        for row in results.rows:
            cells = [_screen_cell(row, column, two) for column, two in zip(columns, best, strict=True)]
            table.add_row(row.variant.display_name, *(cells if row.results else [Text(_state(row))]))
        for name, values in results.references.items():
            table.add_row(Text(name, "dim"), *(Text(_short(values[c.name]), "dim") for c in columns))
        parts.append(table)
    if any(row.results for row in comparison.rows):
        costs = _new_table("What it took", COSTS)
        for row in comparison.rows:
            if row.results:
                costs.add_row(row.variant.display_name, *_costs(row))
        parts.append(costs)
    return Group(*parts, *(Text(sentence) for sentence in sentences(comparison)))


def _new_table(title: str, headings: Iterable[str]) -> Table:
    table = Table(title=Text(title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _screen_cell(row: Row, column: Column, best: Sequence[float]) -> Text:
    if not row.has(column.name):
        return Text("")
    mean, deviation = row.mean(column.name), row.deviation(column.name)
    style = {0: "bold green", 1: "underline"}.get(_place(mean, best), "")
    if deviation is None:
        return Text(f"{mean:.4f}", style)
    return Text.assemble((_short(mean), style), (f" ±{_short(deviation)}", "dim"))


def _short(figure: float) -> str:
    return f"{figure:.3f}".removeprefix("0")


# --- Markdown --------------------------------------------------------------------------------------------


def as_markdown(comparison: Comparison, command: str) -> str:
    """The tables with all metrics, the sentences beneath them and the command that makes them again."""
    parts = [f"# Comparison on {markdown_text(comparison.network)}"]
    for table in result_tables(comparison):
        parts.append(f"## {markdown_text(table.title)}")
        names = [row.variant.name for row in table.rows]
        leads = [lead for lead in comparison.leads if lead.against.name in names]
        parts.append(_markdown_results(table, leads))
    parts += sentences(comparison)
    if any(lead.significant for lead in comparison.leads):
        parts.append(rf"\*: significantly better than {_compared_with(comparison)} (p < 0.05).")
    if any(row.results for row in comparison.rows):
        parts.append("## What it took")
        parts.append(_markdown_costs(comparison))
    if comparison.failed:
        parts.append("## Failed")
        parts.append(
            "\n".join(
                f"- {row.variant.display_name}, seed {seed.seed}: {markdown_text(seed.reason)}"
                for row, seed in comparison.failed
            )
        )
    parts.append(f"```\n{command}\n```")
    return "\n\n".join(parts) + "\n"


def _markdown_results(table: ResultTable, leads: Sequence[Lead]) -> str:
    lines = [
        "| | model | " + " | ".join(column.heading for column in table.columns) + " | seeds |",
        "|---|---|" + "---:|" * (len(table.columns) + 1),
    ]
    best = [table.best_two(column) for column in table.columns]
    sure = {lead.metric for lead in leads if lead.significant}
    last_group = ""
    for row in table.rows:
        group = (
            ""
            if row.variant.group in (last_group, "vanilla", "Heterformer", "dimension")
            else row.variant.group
        )
        last_group = row.variant.group
        if not row.results:
            cells = [_state(row), *[""] * (len(table.columns) - 1), "0"]
        else:
            starred = sure if row.variant.name == "heterformer" else set()
            cells = [
                _markdown_cell(row, column.name, two, column.name in starred)
                for column, two in zip(table.columns, best, strict=True)
            ]
            cells.append(f"{len(row.results)}")
        lines.append(f"| {group} | {row.variant.display_name} | " + " | ".join(cells) + " |")
    for name, values in table.references.items():
        cells = [f"{values[column.name]:.4f}" for column in table.columns]
        lines.append(f"| | {name} | " + " | ".join(cells) + " | |")
    return "\n".join(lines)


def _markdown_cell(row: Row, metric: str, best: Sequence[float], starred: bool) -> str:
    if not row.has(metric):
        return ""
    mean, deviation = row.mean(metric), row.deviation(metric)
    form = {0: "**{}**", 1: "<ins>{}</ins>"}.get(_place(mean, best), "{}")
    spread = "" if deviation is None else f" ± {deviation:.4f}"
    return form.format(f"{mean:.4f}") + (r"\*" if starred else "") + spread


def _markdown_costs(comparison: Comparison) -> str:
    lines = ["| model | " + " | ".join(COSTS) + " |", "|---|" + "---:|" * len(COSTS)]
    for row in comparison.rows:
        if row.results:
            lines.append(f"| {row.variant.display_name} | " + " | ".join(_costs(row)) + " |")
    note = (
        "Means over seeds, but the largest memory. Time includes warm-up and validation, s/step validation; "
        "memory is that of the training process; textless: parameters in the tables of textless nodes."
    )
    return "\n".join([*lines, "", note])


# --- What both say ---------------------------------------------------------------------------------------


def sentences(comparison: Comparison) -> list[str]:
    """What the figures are, and how sure Heterformer's lead is."""
    lines = [_about_metrics(comparison)] if any(row.results for row in comparison.rows) else []
    lines += [_about_labels()] if any(row.label_figures() for row in comparison.rows) else []
    lines += _about_leads(comparison)
    lines += [_about_tuning(comparison)] if comparison.tuned else []
    lines += _about_budget(comparison)
    unfinished = [
        f"{row.variant.display_name} seed {seed.seed}"
        for row in comparison.rows
        for seed in row.seeds
        if seed.status == "unfinished"
    ]
    if unfinished:
        lines.append(f"Not finished yet: {', '.join(unfinished)}.")
    outdated = [
        f"{row.variant.display_name} seed {seed.seed}"
        for row in comparison.rows
        for seed in row.seeds
        if seed.result is not None and seed.result.outdated
    ]
    if outdated:
        lines.append(
            f"Ranked by an earlier version: {', '.join(outdated)}. The same command ranks them anew."
        )
    return lines


def _about_metrics(comparison: Comparison) -> str:
    some = next(row for row in comparison.rows if row.results).results[0]
    among = ranking_note(f"{min(some.pairs, some.batch_size)} pairs", f"all {some.candidates:,} candidates")
    alone = "Queries that are read alone have no neighbours, as in a search; keys have theirs. "
    known = "Popularity ranks keys by their number of edges, chance guesses. "
    links = f"With the candidates' links: {LINKS_ADDED}. " if WITH_LINKS[0].name in some.figures else ""
    several = any(len(row.results) > 1 for row in comparison.rows)
    spread = "Mean ± standard deviation over seeds; best" if several else "One seed; best"
    spread += " in bold, second underlined."
    return f"{some.pairs:,} test pairs. {among}. {alone + known if some.chance else ''}{links}{spread}"


def _compared_with(comparison: Comparison) -> str:
    """Whom Heterformer is held against."""
    against = comparison.leads[0].against
    return "the best of the others" if against.group in OWN_GROUPS else "the best baseline"


def _about_labels() -> str:
    return (
        "Classification: the MLP on fixed vectors, means over divisions 7:1:2 that are the same for all "
        "models. Clustering: k-means, means over starts. A model without vectors of a type has no row."
    )


def _about_leads(comparison: Comparison) -> list[str]:
    """A sentence for all metrics of link prediction, and one for those on labels."""
    on_links = [lead for lead in comparison.leads if lead.metric in HEADINGS]
    on_labels = [lead for lead in comparison.leads if lead.metric not in HEADINGS]
    divisions = "paired t-test over divisions or starts, corrected for overlapping divisions"
    groups = {"paired bootstrap over the test queries": on_links, divisions: on_labels}
    return [
        f"Heterformer against {_compared_with(comparison)} ({how}): {'; '.join(map(_lead, leads))}."
        for how, leads in groups.items()
        if leads
    ]


def _lead(lead: Lead) -> str:
    difference = lead.difference
    mean = round(difference.mean, 4) + 0.0  # as it is shown, without the sign of -0.0
    name = "a deficit against" if mean < 0 else "a lead over" if mean > 0 else "level with"
    span = f"95 % interval {difference.low:+.4f} to {difference.high:+.4f}, p = {difference.p:.4f}"
    heading = HEADINGS.get(lead.metric) or label_heading(lead.metric)
    return f"{heading} {mean:+.4f}, {name} {lead.against.display_name} ({span})"


def _about_tuning(comparison: Comparison) -> str:
    """Which rates were chosen of which."""
    names = {row.variant.name: row.variant.display_name for row in comparison.rows}
    each = []
    for name, tuned in comparison.tuned.items():
        if name in names:
            tried = ", ".join(f"{trial.rate:g}" for trial in tuned.trials)
            whose = " (the backbone's)" if tuned.option == "learning_rate" else ""
            each.append(f"{names[name]} {tuned.best:g} of {tried}{whose}")
    steps = next(iter(comparison.tuned.values())).trials[0].steps
    how = f"chosen by validation PREC after {steps:,} steps"
    return f"Learning rates of new parameters, {how}: {'; '.join(each)}."


def _about_budget(comparison: Comparison) -> list[str]:
    """A warning if no run has met all pairs."""
    results = [result for row in comparison.rows for result in row.results]
    epoch = max((result.steps_per_epoch for result in results), default=0)
    steps = max((result.steps for result in results), default=0)
    if steps >= epoch:
        return []
    return [
        f"The budget is less than an epoch: {steps:,} of {epoch:,} steps. Trained longer, models may come in "
        "another order."
    ]


def _place(mean: float, best: Sequence[float]) -> int:
    return best.index(round(mean, 4)) if round(mean, 4) in best else -1


def _state(row: Row) -> str:
    return "failed" if any(seed.status == "failed" for seed in row.seeds) else "not finished"


def _costs(row: Row) -> list[str]:
    """Means over seeds, but the largest memory."""
    results = row.results
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


def as_json(comparison: Comparison, command: str) -> dict[str, Any]:
    """Everything the tables show, unrounded, seed by seed."""
    return {
        "network": comparison.network,
        "command": command,
        "variants": {row.variant.name: _row_json(row) for row in comparison.rows},
        "references": _references(comparison.rows),
        "tuning": {
            name: {"option": tuned.option, "chosen": tuned.best, "trials": [asdict(t) for t in tuned.trials]}
            for name, tuned in comparison.tuned.items()
        },
        "significance": {
            lead.metric: {"against": lead.against.name, **asdict(lead.difference)}
            for lead in comparison.leads
        },
    }


def _row_json(row: Row) -> dict[str, Any]:
    metrics = [name for name in (row.results[0].figures if row.results else ()) if row.has(name)]
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
