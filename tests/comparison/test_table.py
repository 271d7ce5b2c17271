from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from heterformer.comparison.core import finished_comparison
from heterformer.comparison.job import RESULT
from heterformer.comparison.results import Comparison
from heterformer.comparison.significance import Difference
from heterformer.comparison.table import _lead, as_json, as_markdown, as_table, write_comparison
from heterformer.metrics import EVERY_RANKING_METRIC
from tests.comparison.comparing import COMMAND, QUERIES, pretended_comparison, save_result

SKILL = {
    "bert": 0.3,
    "bert_gat": 0.5,
    "bert_han": 0.4,
    "heterformer": 0.8,
    "no_tl": 0.6,
    "textless_dim_4": 0.7,
}


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    models = (*SKILL, "bert_hgt")  # which fails
    return pretended_comparison(tmp_path_factory.mktemp("out") / "out", SKILL, models, seeds=(0, 1, 2))


def cells(markdown: str, model: str, table: int = 0) -> list[str]:
    """The figures of a model's row, in the table of that number."""
    part = markdown.split("\n## ")[1 + table]
    (line,) = [line for line in part.splitlines() if f"| {model} |" in line]
    return [cell.strip() for cell in line.split("|")[1:-1]]


def shown(comparison: Comparison, width: int = 80) -> str:
    console = Console(width=width, force_terminal=True, color_system="truecolor")
    with console.capture() as captured:
        console.print(as_table(comparison))
    return captured.get()


def plain(comparison: Comparison, width: int = 80) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(as_table(comparison))
    return captured.get()


def test_the_best_is_bold_and_the_second_underlined(comparison: Comparison) -> None:
    markdown = as_markdown(comparison, COMMAND)
    rows = {row.variant.name: row for row in comparison.rows}
    prec = {name: f"{rows[name].mean('prec'):.4f}" for name in SKILL}
    assert cells(markdown, "Heterformer")[2].startswith(f"**{prec['heterformer']}**")
    assert cells(markdown, "BERT+GAT")[2].startswith(f"<ins>{prec['bert_gat']}</ins> ±")
    assert cells(markdown, "BERT+HAN")[2].startswith(f"{prec['bert_han']} ±")
    second = cells(markdown, "textless dim 4", table=3)[2]
    assert second.startswith(f"<ins>{prec['textless_dim_4']}</ins>")  # among the ablations


def test_a_mean_has_its_deviation_over_seeds(comparison: Comparison) -> None:
    row = comparison.rows[0]
    assert (
        cells(as_markdown(comparison, COMMAND), "BERT")[3]
        == f"{row.mean('mrr'):.4f} ± {row.deviation('mrr'):.4f}"
    )
    assert cells(as_markdown(comparison, COMMAND), "BERT")[-1] == "3"


def test_a_sure_lead_has_a_star(comparison: Comparison) -> None:
    found = cells(as_markdown(comparison, COMMAND), "Heterformer")
    assert r"**\*" in found[2]
    assert "*: significantly better" in as_markdown(comparison, COMMAND)
    assert r"\*" not in cells(as_markdown(comparison, COMMAND), "BERT+GAT")[2]


def test_a_lead_over_baselines_is_no_lead_over_an_ablation(tmp_path: Path) -> None:
    skill = {"heterformer": 0.6, "bert": 0.3, "no_tl": 0.9}
    found = as_markdown(pretended_comparison(tmp_path / "cmp", skill, seeds=(0,), textless_dim=64), COMMAND)
    assert r"\*" in " ".join(cells(found, "Heterformer", 0))
    assert r"\*" not in " ".join(cells(found, "Heterformer", 3))
    assert "significantly better than the best baseline" in found


def test_without_baselines_heterformer_is_compared_with_ablations(tmp_path: Path) -> None:
    skill = {"heterformer": 0.8, "no_tl": 0.3}
    found = as_markdown(pretended_comparison(tmp_path / "cmp", skill, seeds=(0,), textless_dim=64), COMMAND)
    assert r"\*" not in " ".join(cells(found, "Heterformer", 0))
    assert r"\*" in " ".join(cells(found, "Heterformer", 3))
    assert "significantly better than the best of the others" in found


def test_few_pairs_are_ranked_among_fewer_keys(tmp_path: Path) -> None:
    comparison = pretended_comparison(tmp_path / "cmp", {"bert": 0.3}, seeds=(0,))
    ranked = "test pairs. PREC, MRR and NDCG rank each key among the different keys of"
    assert f"400 {ranked} 100 pairs" in as_markdown(comparison, COMMAND)
    path = tmp_path / "cmp" / "runs" / "bert" / "seed-0"
    save_result(path, np.ones(79, dtype=np.int64))
    found = as_markdown(finished_comparison(tmp_path / "cmp"), COMMAND)
    assert f"79 {ranked} 79 pairs" in found


def test_equal_figures_are_equally_good(tmp_path: Path) -> None:
    found = pretended_comparison(
        tmp_path / "out", {"bert": 0.5, "bert_gat": 0.5, "heterformer": 0.5}, seeds=(0,)
    )
    for row, ranks in zip(found.rows, ([1, 2], [2, 1], [3, 3]), strict=True):
        save_result(row.seeds[0].path, np.array(ranks))
    markdown = as_markdown(finished_comparison(tmp_path / "out"), COMMAND)
    assert [cells(markdown, name)[2] for name in ("BERT", "BERT+GAT")] == ["**0.5000**"] * 2
    assert cells(markdown, "Heterformer")[2] == "<ins>0.0000</ins>"


def test_groups_are_those_of_the_paper(comparison: Comparison) -> None:
    markdown = as_markdown(comparison, COMMAND)
    groups = [
        cells(markdown, name)[0] for name in ("BERT", "BERT+GAT", "BERT+HAN", "BERT+HGT", "Heterformer")
    ]
    assert groups == ["", "homogeneous GNN", "heterogeneous GNN", "", ""]


def test_what_failed_is_in_the_table_with_its_reason(comparison: Comparison) -> None:
    markdown = as_markdown(comparison, COMMAND)
    assert cells(markdown, "BERT+HGT")[2:] == ["failed", *[""] * 6, "0"]
    assert "- BERT+HGT, seed 2: it was not meant to be" in markdown
    assert "failed" in plain(comparison)


def test_what_is_not_finished_is_said(tmp_path: Path) -> None:
    from heterformer.comparison.core import compare
    from tests.learning import tiny_network, tiny_options, tiny_reader

    options = tiny_options(tiny_reader(), max_steps=300)
    found = compare(tiny_network(), tmp_path / "out", ["bert"], (0,), options, runner=lambda _: None)
    assert cells(as_markdown(found, COMMAND), "BERT")[2] == "not finished"
    assert "Not finished yet: BERT seed 0." in plain(found, width=200)


def test_the_cost_of_each_model(comparison: Comparison) -> None:
    markdown = as_markdown(comparison, COMMAND)
    found = cells(markdown, "BERT+GAT", table=5)
    assert found == ["BERT+GAT", "300", "75 s", "0.250", "1,234 MB", "22.70 M", "0.83 M"]


def test_the_significance_and_the_command_are_told(comparison: Comparison) -> None:
    markdown, lead = as_markdown(comparison, COMMAND), comparison.leads[0].difference
    assert (
        f"PREC {lead.mean:+.4f}, a lead over BERT+GAT (95 % interval {lead.low:+.4f} to {lead.high:+.4f}"
        in markdown
    )
    assert markdown.endswith(f"```\n{COMMAND}\n```\n")
    assert (
        "400 test pairs. PREC, MRR and NDCG rank each key among the different keys of 100 pairs" in markdown
    )


def test_the_screen_shows_what_the_file_says(comparison: Comparison) -> None:
    row = next(row for row in comparison.rows if row.variant.name == "heterformer")
    mean, deviation = (f"{figure:.3f}"[1:] for figure in (row.mean("prec"), row.deviation("prec") or 0))
    assert f"{mean} ±{deviation}" in plain(comparison)
    assert f"\x1b[1;32m{mean}" in shown(comparison)
    assert "Heterformer against the best baseline" in plain(comparison, 200)


def test_the_screen_table_fits_in_eighty_columns(comparison: Comparison) -> None:
    assert max(len(line) for line in plain(comparison).splitlines()) <= 80
    assert "…" not in plain(comparison)


def test_json_has_every_seed_unrounded(comparison: Comparison, tmp_path: Path) -> None:
    write_comparison(comparison, tmp_path, COMMAND)
    found = json.loads((tmp_path / "compare.json").read_text())
    assert found == json.loads(json.dumps(as_json(comparison, COMMAND)))
    assert set(found) == {"network", "command", "variants", "references", "tuning", "significance"}
    heterformer = found["variants"]["heterformer"]
    assert set(heterformer) == {"name", "group", "mean", "std", "seeds"}
    assert set(heterformer["mean"]) == set(heterformer["std"]) == {m.name for m in EVERY_RANKING_METRIC}
    figures = [heterformer["seeds"][seed]["figures"]["prec"] for seed in ("0", "1", "2")]
    assert heterformer["mean"]["prec"] == pytest.approx(np.mean(figures))
    assert heterformer["std"]["prec"] == pytest.approx(np.std(figures, ddof=1))
    assert heterformer["seeds"]["0"]["cost"]["memory"] == 1234.5
    assert found["variants"]["bert_hgt"]["seeds"]["0"] == {
        "status": "failed",
        "reason": "it was not meant to be",
    }
    assert found["significance"]["mrr"]["against"] == "bert_gat"
    assert (tmp_path / "compare.md").read_text() == as_markdown(comparison, COMMAND)


def test_queries_read_alone_have_a_table_of_their_own(comparison: Comparison) -> None:
    markdown = as_markdown(comparison, COMMAND)
    row = next(row for row in comparison.rows if row.variant.name == "heterformer")
    assert markdown.index("queries read alone\n") > markdown.index("## Link prediction on")
    alone = cells(markdown, "Heterformer", table=1)
    assert alone[2].startswith(f"**{row.mean('alone_prec'):.4f}**")
    assert row.mean("alone_prec") < row.mean("prec")
    assert "PREC (query alone) +" in markdown
    assert f"{row.mean('alone_mrr'):.3f}"[1:] in plain(comparison)
    assert as_json(comparison, COMMAND)["significance"]["alone_prec"]["against"] == "bert_gat"


def test_full_rankings_with_links_have_a_table_of_their_own(comparison: Comparison) -> None:
    markdown = as_markdown(comparison, COMMAND)
    row = next(row for row in comparison.rows if row.variant.name == "heterformer")
    table = cells(markdown, "Heterformer", table=2)
    assert table[2].startswith(f"**{row.mean('full_mrr_with_links'):.4f}**")
    assert table[6].startswith(f"**{row.mean('alone_full_mrr_with_links'):.4f}**")
    assert "alone: full MRR" in markdown
    assert "full MRR + links +" in markdown
    assert "the log of a candidate's number of links is added to its score" in markdown


def test_chance_and_popularity_are_rows(comparison: Comparison) -> None:
    references = as_json(comparison, COMMAND)["references"]
    for name in ("popularity", "chance"):
        assert cells(as_markdown(comparison, COMMAND), name)[2] == f"{references[name]['prec']:.4f}"
        assert name in plain(comparison)
    assert references["popularity"] != references["chance"]


def test_a_negative_difference_is_a_deficit(tmp_path: Path) -> None:
    found = as_markdown(
        pretended_comparison(tmp_path / "cmp", {"bert": 0.9, "heterformer": 0.1}, seeds=(0,)), COMMAND
    )
    assert ", a deficit against BERT (95 % interval -0." in found
    assert "lead over" not in found


def test_a_difference_that_is_shown_as_zero_is_neither_lead_nor_deficit(tmp_path: Path) -> None:
    comparison = pretended_comparison(tmp_path / "cmp", {"bert": 0.5, "heterformer": 0.5}, seeds=(0,))
    for tiny in (-1e-6, 1e-6):
        leads = [replace(lead, difference=Difference(tiny, -0.1, 0.1, 0.9)) for lead in comparison.leads]
        assert leads
        assert all(" +0.0000, level with BERT (95 % interval " in _lead(lead) for lead in leads)


@pytest.mark.parametrize(("epoch", "noted"), [(301, True), (300, False)])
def test_a_budget_of_less_than_an_epoch_is_noted(tmp_path: Path, epoch: int, noted: bool) -> None:
    found = pretended_comparison(tmp_path / "cmp", {"heterformer": 0.5}, seeds=(0,))
    result = found.rows[0].seeds[0].path / RESULT
    result.write_text(json.dumps(json.loads(result.read_text()) | {"steps_per_epoch": epoch}))
    markdown = as_markdown(finished_comparison(tmp_path / "cmp"), COMMAND)
    assert ("The budget is less than an epoch: 300 of 301 steps." in markdown) == noted


def test_runs_that_an_earlier_version_ranked_are_named(tmp_path: Path) -> None:
    found = pretended_comparison(tmp_path / "cmp", {"bert": 0.5, "heterformer": 0.6}, seeds=(0,))
    save_result(found.rows[0].seeds[0].path, np.arange(1, QUERIES + 1), outdated=True)
    markdown = as_markdown(finished_comparison(tmp_path / "cmp"), COMMAND)
    assert "Ranked by an earlier version: BERT seed 0. The same command ranks them anew." in markdown
    (line,) = [line for line in markdown.split("\n## ")[2].splitlines() if "| BERT |" in line]
    assert line.endswith("|  |  |  |  |  |  |  | 1 |")


def test_the_name_of_a_network_is_text(comparison: Comparison) -> None:
    page = as_markdown(replace(comparison, network="<b>|`x`"), COMMAND)
    assert page.startswith("# Comparison on \\<b\\>\\|\\`x\\`\n")
    assert "<b>" not in page
