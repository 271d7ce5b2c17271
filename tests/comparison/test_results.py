from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heterformer.comparison.core import finished_comparison
from heterformer.comparison.options import ComparisonOptions
from heterformer.comparison.results import ComparisonSetup, gathered, query_contributions
from heterformer.metrics import ranking_metric
from heterformer.training.options import TrainingOptions
from tests.comparison.comparing import pretended_comparison, save_result

SKILL = {"bert": 0.3, "bert_gat": 0.45, "heterformer": 0.6, "no_tl": 0.9}


def test_means_and_deviations_are_over_seeds(tmp_path: Path) -> None:
    found = pretended_comparison(tmp_path / "out", SKILL, seeds=(0, 1, 2))
    row = found.rows[0]
    values = [result.figures["mrr"] for result in row.results]
    assert len(set(values)) == 3
    assert row.mean("mrr") == pytest.approx(np.mean(values))
    assert row.deviation("mrr") == pytest.approx(np.std(values, ddof=1))


def test_one_seed_has_no_deviation(tmp_path: Path) -> None:
    found = pretended_comparison(tmp_path / "out", SKILL, seeds=(0,))
    assert all(row.deviation("prec") is None for row in found.rows)


def test_models_and_ablations_are_told_apart(tmp_path: Path) -> None:
    found = pretended_comparison(tmp_path / "out", SKILL, seeds=(0,))
    assert [row.variant.name for row in found.models] == ["bert", "bert_gat", "heterformer"]
    assert [row.variant.name for row in found.ablations] == ["heterformer", "no_tl"]
    plain = gathered(
        "net", [], ComparisonSetup(Path("net"), tmp_path, TrainingOptions(), ComparisonOptions())
    )
    assert (plain.models, plain.ablations) == ([], [])


def test_the_lead_is_over_the_best_baseline(tmp_path: Path) -> None:
    found = pretended_comparison(tmp_path / "out", SKILL)
    rows = {row.variant.name: row for row in found.rows}
    tested = ["prec", "mrr", "full_mrr", "hits_1"]
    with_links = ["full_mrr_with_links", "hits_1_with_links"]
    readings = [*tested, *with_links], [f"alone_{name}" for name in (*tested, *with_links)]
    assert [lead.metric for lead in found.leads] == [*readings[0], *readings[1]]
    for lead in found.leads:
        assert lead.against.name == "bert_gat"  # an ablation is no baseline
        gain = rows["heterformer"].mean(lead.metric) - rows["bert_gat"].mean(lead.metric)
        assert lead.difference.mean == pytest.approx(gain)
        assert lead.significant


def test_a_model_that_is_worse_has_no_significant_lead(tmp_path: Path) -> None:
    found = pretended_comparison(tmp_path / "out", {"bert": 0.9, "heterformer": 0.1})
    assert all(lead.difference.p < 0.05 for lead in found.leads)
    assert not any(lead.significant for lead in found.leads)


def test_without_baselines_heterformer_is_compared_with_ablations(tmp_path: Path) -> None:
    found = pretended_comparison(
        tmp_path / "out", {"heterformer": 0.6, "no_tl": 0.5, "no_tr": 0.3}, seeds=(0,)
    )
    assert {lead.against.name for lead in found.leads} == {"no_tl"}


@pytest.mark.parametrize("skill", [{"heterformer": 0.5}, {"bert": 0.5, "bert_gat": 0.4}])
def test_it_takes_two_to_compare(tmp_path: Path, skill: dict[str, float]) -> None:
    assert pretended_comparison(tmp_path / "out", skill, seeds=(0,)).leads == ()


def test_what_a_query_contributes_is_averaged_over_seeds(tmp_path: Path) -> None:
    found = pretended_comparison(tmp_path / "out", {"bert": 0.5}, seeds=(0, 1))
    for seed, ranks in zip(found.rows[0].seeds, ([1, 2, 4], [2, 1, 4]), strict=True):
        save_result(seed.path, np.array(ranks))
    row = found.rows[0]
    assert query_contributions(row, ranking_metric("prec")).tolist() == [0.5, 0.5, 0]
    assert query_contributions(row, ranking_metric("mrr")).tolist() == [0.75, 0.75, 0.25]
    assert query_contributions(row, ranking_metric("hits_1")).tolist() == [0.5, 0.5, 0]
    assert query_contributions(row, ranking_metric("full_mrr")) == pytest.approx(
        [(1 + 1 / 11) / 2, (1 + 1 / 11) / 2, 1 / 31]
    )


def test_runs_of_an_earlier_version_have_no_queries_read_alone(tmp_path: Path) -> None:
    found = pretended_comparison(tmp_path / "out", {"bert": 0.5, "heterformer": 0.6}, seeds=(0,))
    save_result(found.rows[0].seeds[0].path, np.array([1, 2, 4]), outdated=True)
    again = finished_comparison(tmp_path / "out")
    assert not again.rows[0].has("alone_prec")
    assert again.rows[0].has("prec")
    assert again.rows[1].has("alone_prec")
