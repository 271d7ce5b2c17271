"""``heterformer plan`` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import BertConfig

from heterformer.cli.main import main
from heterformer.plan.table import _bytes, as_json
from tests.failing import Failed
from tests.learning import tiny_network, tiny_reader
from tests.plan.planning import planned


def shown(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    capsys.readouterr()
    net = tiny_network().path
    main(["plan", str(net), "--backbone", tiny_reader(), "--no-measure", *map(str, words)])
    return capsys.readouterr().out


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--counts", "paper=1e8", "--pairs", "1e9", "--processes", "2", "512", "--pairs-per-second", 1000)
    text = " ".join(shown(capsys, *words, "--batch-size", 50).split())
    assert "synthetic: 100,000,000 paper" in text
    assert "1,000,000,000 training pairs" in text
    assert "steps per epoch 10,000,000 39,063" in text  # 1e9 / 100, 1e9 / 25,600
    assert "pairs per step 100 25,600" in text
    assert "hours to embed all nodes ? ?" in text
    assert "1,000.0 pairs trained on and an unknown number of nodes embedded per second (given)" in text


def test_speeds_that_nobody_knows(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(shown(capsys).split())
    assert "hours per epoch ? ? ?" in text
    assert "Speeds are unknown: give pairs and nodes per second" in text


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--textless-dim", 8, "--batch-size", 16, "--neighbor-states", "live")
    found = json.loads(shown(capsys, "--json", *flags))
    plan = planned()
    assert found == json.loads(json.dumps(as_json(plan)))
    assert found["parameters"] == plan.size.parameters
    first = found["processes"][0]["memory"]
    assert first["total"] == sum(v for name, v in first.items() if name not in ("device", "total"))
    assert first["device"] == first["total"] - first["host"]


def test_options_of_training_and_embedding(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("batch_size: 48\nmicro_batch: 12\nneighbor_states: cached\n")
    text = " ".join(shown(capsys, "--config", config, "--embed.states-dtype", "float16").split())
    assert "batch 48 in parts of 12, precision float32, cached neighbour states" in text
    assert "text states while embedding, float16" in text
    assert "cached states of neighbours while training" in text


def test_a_configuration_is_enough(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    BertConfig(num_hidden_layers=2, hidden_size=12, num_attention_heads=2).save_pretrained(tmp_path)
    text = " ".join(shown(capsys, "--backbone", tmp_path).split())
    assert "32.0 tokens a text (the limit; the backbone has no tokenizer to count with)" in text


def test_mistakes(failed: Failed, tmp_path: Path) -> None:
    def complaint(*words: object) -> str:
        return failed(main, ["plan", str(tiny_network().path), *map(str, words)])

    assert "--counts has 'poems=3'" in complaint("--backbone", tiny_reader(), "--counts", "poems=3")
    assert "--processes is 0" in complaint("--processes", "0")
    assert "no such folder" in complaint("--backbone", tmp_path / "none", "--no-measure")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999 B"),
        (1500, "1.5 kB"),
        (123_456_789, "123 MB"),
        (2.5e12, "2.5 TB"),
        (3e15, "3,000 TB"),
    ],
)
def test_bytes(count: float, text: str) -> None:
    assert _bytes(int(count)) == text
