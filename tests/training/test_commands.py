"""``heterformer train`` and ``heterformer evaluate``, as a user meets them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from heterformer.cli.main import main
from heterformer.models import Heterformer
from heterformer.tables import four_digits
from heterformer.training.run import Run
from tests.failing import Failed
from tests.learning import WORDS, save_reader, tiny_network, tiny_reader
from tests.networks import new_tokenizer

SMALL = ("--textless-dim", "8", "--batch-size", "16", "--warm-up-epochs", "1", "--device", "cpu")


def train(run: Path, *words: object, network: Path | None = None, backbone: str | None = None) -> None:
    words = ("--max-steps", 2, "--backbone", backbone or tiny_reader(), *SMALL, *words)
    main(["train", str(network or tiny_network().path), str(run), *map(str, words)])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "my run"
    train(path)
    return path


def test_train_leaves_a_model(run: Path) -> None:
    assert Heterformer.from_pretrained(run).config.textless_dim == 8
    assert {"config.yaml", "metrics.jsonl", "README.md", "model.safetensors", "tokenizer.json"} <= {
        path.name for path in run.iterdir()
    }


def test_train_says_what_comes_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my run"
    train(path)
    captured = capsys.readouterr()
    assert captured.out == ""
    last = captured.err.splitlines()[-1]
    assert last.startswith(f"{path}: the limit of 2 steps is reached; best validation PREC ")
    assert last.endswith(f" at step 2. Next: heterformer evaluate {path}")
    train(path)
    assert capsys.readouterr().err == f"{path}: the limit of 2 steps is reached at step 2; nothing to do.\n"


def test_evaluate_prints_a_table_and_keeps_the_figures(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", str(run), "--tasks", "link_prediction"])
    shown = capsys.readouterr().out
    figures = json.loads((run / "report.json").read_text())["link_prediction"]
    assert list(figures["cites"]) == ["validation", "test"]
    assert "link prediction on synthetic" in shown
    assert four_digits(figures["cites"]["test"]["full"]["mrr"]) in shown
    assert four_digits(figures["cites"]["validation"]["in_batch"]["ndcg"]) in shown


def test_evaluate_prints_json(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["evaluate", str(run), "--tasks", "link_prediction", "--parts", "test", "--json"])
    values = json.loads(capsys.readouterr().out)
    assert values == json.loads((run / "report.json").read_text())
    figures = values["link_prediction"]
    assert list(figures["cites"]) == ["test"]
    assert set(figures["cites"]["test"]["in_batch"]) == {"prec", "mrr", "ndcg"}
    assert set(figures["cites"]["test"]["full"]["hits"]) == {"1", "10", "100"}


def test_a_run_configuration_starts_another_run(run: Path, tmp_path: Path) -> None:
    network = str(tiny_network().path)
    main(
        ["train", network, str(tmp_path / "again"), "--config", str(run / "config.yaml"), "--max-steps", "1"]
    )
    again, first = Run(tmp_path / "again"), Run(run)
    assert again.metrics()[-1]["step"] == 1
    losses = [[line["loss"] for line in r.metrics() if "loss" in line] for r in (again, first)]
    assert losses[0] == losses[1][:1]


def test_a_run_needs_its_backbone_only_once(tmp_path: Path) -> None:
    reader = save_reader(tmp_path / "reader")
    train(tmp_path / "run", backbone=reader)
    shutil.rmtree(reader)
    train(tmp_path / "run", "--max-steps", 3, backbone=reader)
    assert Run(tmp_path / "run").metrics()[-1]["step"] == 3


def test_what_is_no_network(failed: Failed, tmp_path: Path) -> None:
    said = failed(train, tmp_path / "run", network=tmp_path)
    assert said == f"{tmp_path}: not a network, expected a folder that 'heterformer build' wrote."
    assert not (tmp_path / "run").exists()


def test_what_is_no_run(failed: Failed, tmp_path: Path) -> None:
    said = failed(main, ["evaluate", str(tmp_path)])
    assert said == f"{tmp_path}: not a run, expected a folder that 'heterformer train' wrote."


def test_a_changed_option(failed: Failed, run: Path) -> None:
    said = failed(train, run, "--batch-size", 9, "--split.seed", 4)
    assert said.startswith(
        f"{run}: cannot resume with --batch-size, --split.seed changed; give the old values"
    )


def test_an_unknown_backbone(failed: Failed, tmp_path: Path) -> None:
    said = failed(train, tmp_path / "run", backbone="nobody/nothing")
    assert said.startswith("nobody/nothing: no such folder, nor can a model hub be reached: ")


def test_a_backbone_without_a_tokenizer(failed: Failed, tmp_path: Path) -> None:
    reader = Path(save_reader(tmp_path / "reader"))
    (reader / "tokenizer.json").unlink()
    (reader / "tokenizer_config.json").unlink()
    said = failed(train, tmp_path / "run", backbone=str(reader))
    assert said.startswith(f"the tokenizer of backbone {str(reader)!r} has 5 tokens, expected words")


def test_a_tokenizer_that_is_broken(failed: Failed, tmp_path: Path) -> None:
    reader = Path(save_reader(tmp_path / "reader"))
    (reader / "tokenizer.json").write_text("{")
    said = failed(train, tmp_path / "run", backbone=str(reader))
    assert said.startswith(f"the tokenizer of backbone {str(reader)!r} cannot be loaded: ")


def test_a_tokenizer_of_another_backbone(failed: Failed, tmp_path: Path) -> None:
    reader = save_reader(tmp_path / "reader")
    new_tokenizer([*WORDS, "supercalifragilistic"]).save_pretrained(reader)
    said = failed(train, tmp_path / "run", backbone=reader)
    count = f"{len(WORDS) + 1} tokens, expected words, and at most the {len(WORDS)} that the model has."
    assert said == f"the tokenizer of backbone {reader!r} has {count}"


def test_a_mistake_before_the_first_step_does_not_spoil_the_folder(failed: Failed, tmp_path: Path) -> None:
    failed(train, tmp_path / "run", "--split.seed", 4, backbone="nobody/nothing")
    train(tmp_path / "run")
    train(tmp_path / "fresh")
    runs = [Run(tmp_path / name) for name in ("run", "fresh")]
    splits = [(r.path / "split.parquet").read_bytes() for r in runs]
    assert splits[0] == splits[1]
    assert runs[0].options() == runs[1].options()


def test_a_value_out_of_range(failed: Failed, tmp_path: Path) -> None:
    assert failed(train, tmp_path / "run", "--batch-size", 1) == "--batch-size is 1, expected more than 1."
    assert not (tmp_path / "run").exists()
