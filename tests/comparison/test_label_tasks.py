"""Classification and clustering across models."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from heterformer.cli.command_lines import compare_command
from heterformer.comparison.core import compare, finished_comparison
from heterformer.comparison.job import Job, RunResult, carry_out
from heterformer.comparison.label_tasks import LABELS, LabelResult, label_heading
from heterformer.comparison.options import ComparisonOptions
from heterformer.comparison.results import Comparison
from heterformer.comparison.significance import repeated_t_test
from heterformer.comparison.table import as_json, as_markdown
from heterformer.evaluation.core import evaluate
from heterformer.evaluation.options import ClassificationOptions, ClusteringOptions, EvaluateOptions
from heterformer.network.label_options import LabelOptions
from heterformer.training.run import Run
from tests.comparison.comparing import COMMAND
from tests.learning import tiny_network, tiny_options, tiny_reader

QUICK = ComparisonOptions(
    tasks=("link_prediction", "classification", "clustering"),
    labels=LabelOptions(min_members=5),
    classification=ClassificationOptions(repeats=2, max_epochs=2),
    clustering=ClusteringOptions(runs=2),
)


def run_here(job: Job) -> None:
    """In this process, which is faster."""
    carry_out(job)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    out, options = tmp_path_factory.mktemp("out") / "out", tiny_options(tiny_reader(), max_steps=2)
    models = ("bert", "bert_hgt", "heterformer")
    compare(tiny_network(), out, models, (0,), options, runner=run_here)
    trained = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*/metrics.jsonl")}
    again = compare(tiny_network(), out, models, (0,), options, runner=run_here, evaluation=QUICK)
    assert trained == {
        path: path.stat().st_mtime_ns for path in trained
    }  # asked for later: nothing is trained
    return again


def test_the_figures_are_those_of_evaluate(found: Comparison) -> None:
    path = next(row.seeds[0].path for row in found.rows if row.variant.name == "heterformer")
    options = EvaluateOptions(
        tasks=("classification", "clustering"),
        labels=QUICK.labels,
        classification=QUICK.classification,
        clustering=QUICK.clustering,
    )
    evaluation, figures = evaluate(path, options), RunResult.open(path).figures
    for one in evaluation.classification:
        mean = one.result.scores["mlp"]["micro"].mean
        assert figures[f"{one.node_type}.{one.setting}.micro"] == pytest.approx(mean)
    (clusters,) = evaluation.clustering
    assert figures["paper.clusters.nmi"] == pytest.approx(clusters.result.metrics["nmi"].mean)
    assert {name.split(".")[0] for name in figures if "." in name} == {"paper", "author"}


def test_every_type_and_task_has_a_table_of_the_models_that_have_vectors(found: Comparison) -> None:
    markdown = as_markdown(found, COMMAND)
    titles = [line.removeprefix("## ") for line in markdown.splitlines() if line.startswith("## ")]
    assert titles[3:6] == [
        "Classification of paper nodes on synthetic",
        "Classification of author nodes on synthetic",
        "Clustering of paper nodes on synthetic",
    ]
    parts = markdown.split("\n## ")
    papers, authors, clusters = parts[4:7]
    assert "| micro F1 | macro F1 |" in papers
    assert "| NMI | ARI |" in clusters
    assert "| BERT |" in papers
    assert "| BERT |" not in authors  # which has no vectors of nodes without text
    assert "| BERT+HGT |" in authors
    assert "--tasks link_prediction classification clustering" in compare_command(found)


def test_differences_are_tested(found: Comparison) -> None:
    tested = as_json(found, COMMAND)["significance"]
    names = {name for name in tested if "." in name}
    assert names == {
        "paper.transductive.micro",
        "paper.transductive.macro",
        "author.transductive.micro",
        "author.transductive.macro",
        "paper.clusters.nmi",
        "paper.clusters.ari",
    }
    rows = {row.variant.name: row for row in found.rows}
    lead = tested["paper.transductive.micro"]
    gain = rows["heterformer"].mean("paper.transductive.micro") - rows[lead["against"]].mean(
        "paper.transductive.micro"
    )
    assert lead["mean"] == pytest.approx(gain)
    assert "micro F1 of paper (transductive)" in as_markdown(found, COMMAND)
    assert label_heading("paper.clusters.nmi") == "NMI of paper (clustering)"


def test_what_is_there_is_not_done_again_unless_options_change(found: Comparison) -> None:
    path = found.rows[0].seeds[0].path
    out, options = path.parents[2], tiny_options(tiny_reader(), max_steps=2)
    before = (path / LABELS).stat().st_mtime_ns
    jobs: list[Job] = []
    compare(tiny_network(), out, ["bert"], (0,), options, runner=jobs.append, evaluation=QUICK)
    assert not jobs
    assert (path / LABELS).stat().st_mtime_ns == before
    other = replace(QUICK, labels=LabelOptions(min_members=6))
    compare(tiny_network(), out, ["bert"], (0,), options, runner=jobs.append, evaluation=other)
    assert len(jobs) == 1
    assert Job.from_json(jobs[0].to_json()) == jobs[0]
    assert finished_comparison(out).rows[0].has("paper.transductive.micro")


def test_the_corrected_t_test_by_hand() -> None:
    ours, theirs = np.array([0.5, 0.6, 0.7]), np.array([0.4, 0.4, 0.4])
    plain, corrected = repeated_t_test(ours, theirs, 0.0), repeated_t_test(ours, theirs, 2 / 7)
    assert plain.mean == corrected.mean == pytest.approx(0.2)
    error = 0.1 * np.sqrt(1 / 3)
    assert plain.high - plain.mean == pytest.approx(4.302653 * error, rel=1e-5)
    assert corrected.high - corrected.mean == pytest.approx(4.302653 * 0.1 * np.sqrt(1 / 3 + 2 / 7), rel=1e-5)
    assert plain.p == pytest.approx(0.0741799, rel=1e-4)
    assert corrected.p > plain.p
    assert repeated_t_test(ours, ours, 0.1).p == 1
    with pytest.raises(ValueError, match="two or more repeats"):
        repeated_t_test(ours[:1], theirs[:1], 0.1)


def test_results_open_as_they_were_written(found: Comparison) -> None:
    path = found.rows[0].seeds[0].path
    labels = LabelResult.open(path)
    assert labels is not None
    assert labels.options == QUICK.label_values()
    assert all(len(values) == 2 for values in labels.repeats.values())
    assert "labels" not in json.loads((path / "test.json").read_text())
    assert LabelResult.open(Run(path).path.parent) is None
