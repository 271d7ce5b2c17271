"""A GPU if there is one and nobody minds; every command that computes with a model can be told otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from heterformer.cli.main import main
from heterformer.device import chosen_device
from heterformer.embedding import embed as embed_module
from heterformer.evaluation import open_run as evaluate
from heterformer.models.contract import NodeEncoder
from heterformer.search import query_encoder
from heterformer.search import store as search_store
from tests.search.searching import tiny_run


def test_a_gpu_is_chosen_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu: list[torch.device | None] = [torch.device("cuda:0"), None]
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: gpu[0])
    assert chosen_device("auto") == torch.device("cuda:0")
    assert chosen_device("cpu") == torch.device("cpu")
    gpu.reverse()
    assert chosen_device("auto") == torch.device("cpu")


@pytest.mark.parametrize("flags", [[], ["--device", "cpu"]], ids=["default", "cpu"])
def test_commands_compute_where_they_are_told_to(
    flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    moved: list[Any] = []
    place, to = torch.device("cpu"), NodeEncoder.to

    def noted(device: str) -> torch.device:
        asked.append(device)
        return place

    def moving(self: NodeEncoder, *arguments: Any) -> Any:
        moved.extend(argument for argument in arguments if argument is place)
        return to(self, *arguments)

    for module in (embed_module, evaluate, query_encoder, search_store):
        monkeypatch.setattr(module, "chosen_device", noted)
    monkeypatch.setattr(NodeEncoder, "to", moving)
    run = str(tiny_run())
    commands = {
        "embed": ["embed", run, str(tmp_path / "out"), "--types", "venue"],
        "search": ["search", run, "kernel"],
        "evaluate": ["evaluate", run, "--tasks", "link_prediction", "--parts", "test"],
    }
    for command, words in commands.items():
        asked.clear()
        moved.clear()
        main([*words, *flags])
        assert set(asked) == {"cpu" if flags else "auto"}, command
        assert len(moved) == len(asked), command
