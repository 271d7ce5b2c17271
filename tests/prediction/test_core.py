from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from heterformer.cli import main as cli
from heterformer.errors import InputError
from heterformer.network.store import Network
from heterformer.prediction.core import Predictor, predict
from heterformer.prediction.options import PredictOptions
from heterformer.training.run import Run
from heterformer.training.supervision import node_outputs
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.training.train import train
from tests.learning import count_texts, synthetic_network, tiny_network
from tests.training.runs import options, trained


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    labels = SupervisionOptions(type="paper", min_members=5)
    asked = options(tasks=("classification",), labels=labels, max_steps=4)
    return train(tiny_network(), tmp_path_factory.mktemp("run") / "run", asked)


def test_probabilities_of_the_head(run: Run) -> None:
    ids = tiny_network().ids("paper")
    frame = predict(run, [ids[5], ids[2]], top=4)
    assert frame["id"].to_list() == [ids[5], ids[2]]
    predictor = Predictor(run, tiny_network(), PredictOptions())
    shares = predictor.head.probabilities(predictor.outputs(np.array([5, 2]))).numpy()
    classes = np.array(predictor.head.config.classes)
    assert frame["class"].to_list() == classes[shares.argmax(1)].tolist()
    np.testing.assert_allclose(frame["probability"], shares.max(1), rtol=1e-5)
    assert frame["top_classes"].list.len().to_list() == [4, 4]
    for row, best in zip(shares, frame["top_probabilities"], strict=True):
        np.testing.assert_allclose(best.to_numpy(), np.sort(row)[::-1][:4], rtol=1e-5)


def test_all_nodes_in_a_file(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "predictions.parquet"
    frame = predict(run, out=out)
    assert frame["id"].to_list() == tiny_network().ids("paper")
    assert pl.read_parquet(out).equals(frame)
    with pytest.raises(InputError, match="exists already"):
        predict(run, out=out)
    predict(run, out=out, overwrite=True)
    with pytest.raises(InputError, match=r"expected a name that ends in \.parquet"):
        predict(run, out=tmp_path / "predictions.csv")


def test_no_text_is_read_twice(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = Predictor(run, tiny_network(), PredictOptions())
    rows = np.arange(30)
    counts = count_texts(monkeypatch)
    outputs = predictor.outputs(rows, nodes_at_once=7)
    assert 0 < sum(counts) <= len(predictor.batcher.tokens)
    direct = node_outputs(predictor.model, predictor.batcher, rows, predictor.seed)
    torch.testing.assert_close(outputs, direct, rtol=1e-4, atol=1e-5)


def test_nodes_without_text_need_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = SupervisionOptions(type="author", min_members=5)
    asked = options(tasks=("classification",), labels=labels, max_steps=1)
    textless = train(tiny_network(), tmp_path / "run", asked)
    counts = count_texts(monkeypatch)
    assert len(predict(textless)) == tiny_network().schema.counts["author"]
    assert sum(counts) == 0


def test_unseen_nodes(run: Run, tmp_path: Path) -> None:
    grown = synthetic_network(tmp_path, papers=220)
    frame = predict(run, network=grown)
    assert len(frame) == 220
    assert frame["probability"].is_finite().all()
    assert predict(run, network=grown.path).equals(frame)


def test_a_run_of_links(tmp_path: Path) -> None:
    links = trained(tmp_path / "links", max_steps=1)
    with pytest.raises(InputError, match="has not learnt to predict labels; 'heterformer finetune"):
        predict(links)


def test_an_unknown_node(run: Run) -> None:
    with pytest.raises(InputError, match="there is no paper with the id 'nobody'"):
        predict(run, ["nobody"])


def test_the_command(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = tiny_network().ids("paper")[0]
    cli.main(["predict", str(run.path), node, "--top", "2"])
    output = capsys.readouterr().out
    assert node in output
    assert "most probable" in output
    cli.main(["predict", str(run.path), "--out", str(tmp_path / "all.parquet")])
    assert "Wrote predictions for 200 nodes" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["predict", str(run.path)])
    assert "there is nothing to show" in capsys.readouterr().err


def test_numbers(tmp_path: Path) -> None:
    """Predicted in the column's own unit."""
    ids = [f"p{i}" for i in range(40)]
    years = [2000 + i % 5 for i in range(40)]
    table = pl.DataFrame({"id": ids, "text": ["some words"] * 40, "year": years})
    ring = pl.DataFrame({"a": ids, "b": ids[1:] + ids[:1]})
    spec = {
        "nodes": {"paper": {"text": ["text"], "keep": ["year"]}},
        "relations": {"cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]}},
    }
    network = Network.from_frames(spec, {"paper": table}, {"cites": ring}, tmp_path / "net")
    labels = SupervisionOptions(column="year")
    asked = options(tasks=("regression",), labels=labels, max_steps=4)
    frame = predict(train(network, tmp_path / "run", asked), ids[:3])
    assert frame.columns == ["id", "prediction"]
    assert frame["prediction"].is_between(1990, 2015).all()  # near the mean before much is learnt


def test_odd_options() -> None:
    with pytest.raises(InputError, match="top is 0"):
        PredictOptions(top=0)
