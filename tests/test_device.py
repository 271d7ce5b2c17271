"""A GPU if there is one and nobody minds; every command that computes with a model can be told otherwise."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from heterformer.cli.main import main
from heterformer.device import (
    chosen_device,
    chosen_precision,
    chosen_training_precision,
    computing_in,
    has_bf16,
    say_if_slow,
)
from heterformer.embedding import embed as embed_module
from heterformer.evaluation import open_run as evaluate
from heterformer.models.contract import NodeEncoder
from heterformer.precision import ComputedPrecision, TrainingPrecision
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


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("flags : fpu avx2 avx512f avx512_bf16 sse", True),
        ("flags : fpu amx_bf16 amx_tile", True),
        ("Features : fp asimd bf16 i8mm", True),
        ("flags : fpu avx2 avx512f", False),
        ("model name : no_bf16_here", False),
    ],
)
def test_a_processor_tells_whether_it_has_bf16(flags: str, found: bool, tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor : 0\n{flags}\n")
    assert has_bf16(torch.device("cpu"), info) is found


def test_a_processor_that_tells_nothing(tmp_path: Path) -> None:
    expected = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert has_bf16(torch.device("cpu"), tmp_path / "none") is expected


@pytest.mark.parametrize("has", [True, False])
def test_bf16_is_slow_without_instructions_for_it(
    has: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("heterformer.device.has_bf16", lambda device: has)
    cpu = torch.device("cpu")
    fastest = "bf16" if has else "float32"
    assert chosen_precision("auto", cpu) == chosen_training_precision("auto", cpu) == fastest
    precisions: tuple[ComputedPrecision, ...] = ("float32", "bf16")
    for precision in precisions:
        assert chosen_precision(precision, cpu) == chosen_training_precision(precision, cpu) == precision
        say_if_slow(precision, cpu)
    said = capsys.readouterr().err
    assert said.count("\n") == (not has)
    assert has or "for which this CPU has no instructions" in said


def test_a_gpu_without_bf16_trains_in_fp16_and_embeds_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heterformer.device.has_bf16", lambda device: False)
    gpu = torch.device("cuda")
    assert (chosen_training_precision("auto", gpu), chosen_precision("auto", gpu)) == ("fp16", "float32")


def test_products_are_computed_in_the_precision() -> None:
    numbers = torch.ones(2, 2)
    dtypes: dict[TrainingPrecision, torch.dtype] = {
        "float32": torch.float32,
        "bf16": torch.bfloat16,
        "fp16": torch.float16,
    }
    for precision, dtype in dtypes.items():
        with computing_in(precision, numbers.device):
            assert (numbers @ numbers).dtype is dtype


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
    run = str(shutil.copytree(tiny_run(), tmp_path / "run"))  # an evaluation leaves its report there
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


PRODUCTS = """
import heterformer.device
import torch

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

weight = torch.zeros(512, 16).bfloat16()
before = resident()
for rows in range(2000, 3000):
    torch.nn.functional.linear(torch.zeros(rows, 16).bfloat16(), weight)
print(resident() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells memory on Linux")
def test_what_is_kept_of_products_of_many_shapes_is_bounded() -> None:
    """Without a limit 1,000 shapes take twice as much, and embedding a network gigabytes."""
    command = [sys.executable, "-c", PRODUCTS]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert int(found) < 350e6
