"""Fine-tuning on a network where labels need both text and neighbours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from heterformer.cli import main as cli
from heterformer.cli.training_flags import finetuning_defaults
from heterformer.errors import InputError
from heterformer.finetuning.core import RESULT, FinetuneResult, finetune, held_out_result
from heterformer.finetuning.curve import LearningCurve, learning_curve
from heterformer.finetuning.report import write_curve, write_result
from heterformer.models.options import BertOptions
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.network.stratified import TRAIN
from heterformer.network.target_options import TargetOptions
from heterformer.network.targets import node_targets
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.training.train import train
from tests.pictures import check_picture
from tests.shop import shop_options, trained_shop
from tests.training.runs import assert_same_run, trained
from tests.training.test_supervision import learning, planted


@pytest.fixture(scope="module")
def network() -> Network:
    return planted()


@pytest.fixture(scope="module")
def start(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that has learnt next to nothing."""
    return train(
        network, tmp_path_factory.mktemp("start") / "run", learning(tasks=("link_prediction",), max_steps=2)
    )


def asked(**changes: Any) -> Any:
    return learning(**{"max_steps": 40, "labels": SupervisionOptions(type="paper")} | changes)


@pytest.fixture(scope="module")
def tuned(start: Run, tmp_path_factory: pytest.TempPathFactory) -> FinetuneResult:
    return finetune(start, tmp_path_factory.mktemp("tuned") / "run", "classification", asked())


def test_labels_that_need_text_and_neighbours(tuned: FinetuneResult) -> None:
    assert tuned.metrics["test"]["micro"] > 0.8
    assert tuned.nodes == {"train": 140, "validation": 20, "test": 40}
    assert tuned.task == "classification"


def test_it_beats_text_alone_and_fixed_vectors(start: Run, tuned: FinetuneResult, tmp_path: Path) -> None:
    curve = learning_curve(start, tmp_path / "curve", [0.3, 1.0], asked())
    best = {p.method: p.metrics["micro"] for p in curve.points if p.fraction == 1}
    assert best["fine-tuned"] > best["fixed vectors"] + 0.15
    assert best["fine-tuned"] > best["text only, fine-tuned"] + 0.15
    assert best["fine-tuned"] == pytest.approx(tuned.metrics["test"]["micro"], abs=0.11)
    assert {p.labels for p in curve.points} == {42, 140}
    assert LearningCurve.open(tmp_path / "curve") == curve
    again = learning_curve(start, tmp_path / "curve", [0.3, 1.0], asked())  # everything is there
    assert again == curve
    sheet = write_curve(curve, tmp_path / "curve")
    assert len(sheet.rows) == 6
    check_picture(tmp_path / "curve" / "curve.png")
    assert "curve.png" in (tmp_path / "curve" / "curve.md").read_text()


def test_probabilities_are_calibrated(tuned: FinetuneResult) -> None:
    assert tuned.temperature is not None
    assert tuned.calibration_error is not None
    assert set(tuned.calibration_error) == {"before", "after"}
    assert all(0 <= error <= 1 for error in tuned.calibration_error.values())
    head = Run(tuned.run).model().head
    assert head is not None
    assert float(head.temperature) == pytest.approx(tuned.temperature)


def test_the_report(tuned: FinetuneResult) -> None:
    folder = Path(tuned.run)
    assert FinetuneResult.open(folder) == tuned
    assert json.loads((folder / RESULT).read_text())["metrics"]["test"] == tuned.metrics["test"]
    sheet = write_result(tuned, folder)
    assert [row[0] for row in sheet.rows] == ["validation", "test"]
    assert "Expected calibration error" in (folder / "finetune.md").read_text()
    assert held_out_result(Run(folder), tuned.start) == tuned  # as the saved model gives it


def test_a_fine_tuning_that_was_stopped(start: Run, tmp_path: Path) -> None:
    whole = finetune(start, tmp_path / "whole", "classification", asked(max_steps=40))
    finetune(start, tmp_path / "parts", "classification", asked(max_steps=20))
    parts = finetune(start, tmp_path / "parts", "classification", asked(max_steps=40))
    assert_same_run(Run(tmp_path / "parts"), Run(tmp_path / "whole"))
    assert parts.metrics == whole.metrics


def test_frozen_weights_and_layers(start: Run, tmp_path: Path) -> None:
    """A frozen backbone stays as it is; with a decay, lower layers move less."""
    before = start.model().state_dict()
    frozen = Run(tmp_path / "frozen")
    finetune(start, frozen.path, labels={"type": "paper"}, freeze="backbone", max_steps=3, device="cpu")
    moved = {n: v for n, v in frozen.model().state_dict().items() if n.startswith("backbone.")}
    assert all((value == before[name]).all() for name, value in moved.items())
    decayed = Run(tmp_path / "decayed")
    finetune(start, decayed.path, "classification", asked(max_steps=3, layer_decay=0.01))
    after = decayed.model().state_dict()
    change = [
        float((after[name] - before[name]).abs().mean())
        for name in (f"backbone.encoder.layer.{layer}.output.dense.weight" for layer in (0, 1))
    ]
    assert change[0] < change[1] / 10


def test_the_command(start: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["finetune", str(start.path), str(tmp_path / "out"), "--type", "paper", "--max-steps", "2"]
    cli.main([*words, "--device", "cpu", "--label-fraction", "0.5"])
    assert "classification of paper nodes" in capsys.readouterr().out
    assert Run(tmp_path / "out").options().labels.fraction == 0.5
    assert (tmp_path / "out" / "finetune.md").is_file()
    with pytest.raises(SystemExit):
        cli.main(["finetune", str(start.path), str(tmp_path / "other"), "--type", "author"])
    assert "--type is 'author'" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
    with pytest.raises(SystemExit):
        cli.main(["finetune", str(tmp_path / "nowhere"), str(tmp_path / "other")])
    assert "nowhere: not a run, expected a folder that 'heterformer train' wrote." in capsys.readouterr().err


def test_help_has_the_options_of_the_run(
    start: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bert = tmp_path / "bert"
    bert.mkdir()
    text = yaml.safe_dump({"options": TrainingOptions(model=BertOptions(long_texts="windows")).to_dict()})
    (bert / "config.yaml").write_text(text)
    for run, has, lacks in (
        (start.path, {"--virtual-tokens", "--neighbor-dropout", "--freeze"}, {"--vocabulary"}),
        (bert, {"--freeze", "--layer-decay"}, {"--virtual-tokens", "--textless-dim", "--neighbor-dropout"}),
        (
            tmp_path / "none",
            {"--backbone", "--max-steps"},
            {"--freeze", "--textless-dim", "--neighbor-dropout"},
        ),
    ):
        with pytest.raises(SystemExit):
            cli.main(["finetune", str(run), "out", "--help"])
        words = {word.strip("│,|") for word in capsys.readouterr().out.split()}
        assert {*has, "--task", "--type", "--label-fraction", "--labels.column"} <= words
        decided = {"--init", "--tasks", "--warm-up", "--warm-up-epochs", "--labels.type", "--labels.fraction"}
        assert not {*lacks, *decided} & words


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--init", "has no option --init."),
        ("--tasks", "has no option --tasks (did you mean --task?)."),
        ("--warm-up-epochs", "has no option --warm-up-epochs"),
        ("--labels.type", "has no option --labels.type (did you mean --type?)."),
    ],
)
def test_flags_of_what_is_decided(flag: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["finetune", "run", "out", flag, "1"])
    assert f"'heterformer finetune' {said}" in capsys.readouterr().err


def test_a_configuration(start: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of one's own may not say otherwise; of a run's own file this does not count."""
    config, words = tmp_path / "my.yaml", ["finetune", str(start.path), str(tmp_path / "out")]
    config.write_text("tasks: [link_prediction, classification]")
    with pytest.raises(SystemExit):
        cli.main([*words, "--config", str(config)])
    said = "tasks are link_prediction, classification, expected none: fine-tuning learns classification."
    assert said in capsys.readouterr().err
    config.write_text("labels: {type: paper, fraction: 0.5, min_members: 0}")
    with pytest.raises(SystemExit):
        cli.main([*words, "--config", str(config)])
    assert "min_members is 0" in capsys.readouterr().err
    config.write_text("labels: {type: author, fraction: 0.5}")
    assert finetuning_defaults([str(start.path), "--config", str(config)]).labels.fraction == 0.5
    with pytest.raises(SystemExit):
        cli.main([*words, "--config", str(config)])
    assert "--type is 'author'" in capsys.readouterr().err
    other = start.options().to_dict() | {"warm_up": {"warm_up_epochs": 3}, "init": "elsewhere", "seed": 5}
    config.write_text(yaml.safe_dump({"options": other | {"tasks": ["regression"], "split": {}}}))
    options = finetuning_defaults([str(start.path), "--config", str(config)])
    usual = TrainingOptions()
    assert (options.seed, options.init, options.warm_up) == (5, None, usual.warm_up)
    assert options.tasks == usual.tasks


@pytest.fixture(scope="module")
def divided(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose split is not the default one."""
    split = SplitOptions(seed=3, hold_out=0.1)
    options = learning(tasks=("link_prediction",), max_steps=1, split=split)
    return train(network, tmp_path_factory.mktemp("divided") / "run", options)


def test_what_the_run_held_out_stays_held_out(
    divided: Run, network: Network, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Link prediction with the fine-tuned model would otherwise ask for pairs that the run learnt from."""
    words = ["finetune", str(divided.path), str(tmp_path / "command"), "--type", "paper", "--max-steps", "1"]
    cli.main([*words, "--device", "cpu"])
    labels = {"type": "paper"}
    result = finetune(divided, tmp_path / "python", labels=labels, max_steps=1, device="cpu")
    assert "maybe on pairs that are held out here" not in capsys.readouterr().err
    hidden = divided.split(network).hidden["paper"]
    for run in (Run(tmp_path / "command"), Run(tmp_path / "python")):
        assert run.options().split == divided.options().split
        assert np.array_equal(run.split(network).test, divided.split(network).test)
        assert np.array_equal(run.split(network).hidden["paper"], hidden)
    learnt = node_targets(network, "classification", TargetOptions(type="paper")).of_part(TRAIN).rows
    assert result.nodes["train"] == len(np.setdiff1d(learnt, hidden)) < len(learnt)
    cli.main([*words[:2], str(tmp_path / "other"), *words[3:], "--device", "cpu", "--split.seed", "4"])
    assert Run(tmp_path / "other").options().split == SplitOptions(seed=4, hold_out=0.1)
    assert "maybe on pairs that are held out here" in " ".join(capsys.readouterr().err.split())
    finetune(divided, tmp_path / "own", labels=labels, max_steps=1, device="cpu", split={"hold_out": 0.0})
    assert Run(tmp_path / "own").options().split == SplitOptions(seed=3)


def test_text_alone_where_links_join_textless_nodes(tmp_path: Path) -> None:
    """It has no vectors of users, which only link prediction would need."""
    labels = {"labels.type": "item", "labels.min_members": 3, "tasks": ("classification",)}
    options = shop_options(**labels, max_steps=1, textless_neighbors=5)
    curve = learning_curve(trained_shop(), tmp_path / "curve", [0.5, 1.0], options)
    methods = {"fine-tuned", "text only, fine-tuned", "fixed vectors"}
    assert {(p.method, p.fraction) for p in curve.points} == {(m, f) for m in methods for f in (0.5, 1.0)}


def test_a_run_of_links_has_no_held_out_labels(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="was trained on links alone"):
        held_out_result(trained(tmp_path / "run", max_steps=1), "")


def test_shares_of_labels_differ(start: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"label_fraction is 0\.5, 0\.5"):
        learning_curve(start, tmp_path / "out", [0.5, 0.5], asked())
