"""Several processes compute what one would with all their pairs, stop together and resume together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from heterformer.cli.command_lines import training_flags
from heterformer.distributed import ProcessGroup
from heterformer.errors import InputError
from heterformer.finetuning.core import FinetuneResult
from heterformer.finetuning.curve import LearningCurve
from heterformer.models.options import ModelName
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.supervision_options import SupervisionOptions
from tests.learning import tiny_network, wait_for_lines
from tests.training.runs import (
    MANY,
    STEPS,
    differ,
    options,
    trained,
    waiting_at,
)
from tests.training.several import (
    SECONDS,
    commands,
    said,
    start_together,
    step_of,
    steps_together,
    together,
    train_together,
)

B = 8  # pairs per process; two of them have the 16 that a run alone has
LAUNCHERS = [
    "torch.distributed.run --standalone --nproc-per-node 2",
    "accelerate.commands.launch --multi_gpu --num_processes 2 --main_process_port 0",
]


def trained_by(count: int, folder: Path, **changes: Any) -> Run:
    asked = options(**{"batch_size": B} | changes)
    path = folder / "run"
    codes = together(folder, count, train_together, tiny_network().path, path, asked)
    assert codes == [0] * count, [said(folder, rank) for rank in range(count)]
    return Run(path)


def losses(run: Run) -> list[float]:
    return [line["loss"] for line in run.metrics() if "loss" in line]


def assert_close(found: dict[str, Tensor], expected: dict[str, Tensor], rounding: float = 1e-5) -> None:
    """To 1e-5 of a gradient's largest entry. Some gradients are zero but for the rounding of large terms."""
    assert found.keys() == expected.keys()
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        atol = rounding * float(gradient.abs().max()) + 0.1 * rounding * largest
        torch.testing.assert_close(found[name], gradient, rtol=rounding, atol=atol)


# --- One training step ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many pairs there are to train on."""
    run = Run(tmp_path_factory.mktemp("pairs") / "run")
    run.start(tiny_network(), options())
    return len(run.split(tiny_network()).train)


def test_two_processes_have_the_gradients_of_one_with_twice_the_batch(tmp_path: Path, pairs: int) -> None:
    """Without dropout those of the plain batch; with it those of one that takes it in two micro-batches."""
    last = pairs // 16
    assert pairs % 16 > 2
    names: tuple[ModelName, ...] = ("heterformer", "bert_rgcn", "graph_formers_plus", "mean_sage")
    cached = {"neighbor_states": "cached"}
    asked: list[tuple[dict[str, Any], dict[str, Any], int, bool]] = [
        *(({"model": name, "textless_dim": 64}, {}, 0, False) for name in names),
        *(({"model": name, "textless_dim": 64}, {"micro_batch": B}, 1, True) for name in names),
        ({}, {}, last, False),  # fewer pairs
        ({"micro_batch": 3}, {"micro_batch": None}, 0, False),
        ({"micro_batch": 4}, {"micro_batch": 4}, 0, True),
        (cached, {"micro_batch": B}, 1, True),
        (cached | {"hard_negatives": 2}, {}, 1, False),
        ({"precision": "bf16"}, {"micro_batch": B}, 0, True),
        ({"textless_dim": 64, "sparse_tokens": False, "false_negatives": "keep"}, {}, 0, False),
    ]
    shared = [(options(**{"batch_size": B, **both}), step, dropout) for both, _, step, dropout in asked]
    found = steps_together(tmp_path, 2, tiny_network().path, shared)
    for number, (both, alone, step, dropout) in enumerate(asked):
        asked_alone = options(**{"batch_size": 2 * B, **both, **alone})
        expected = step_of(tiny_network().path, tmp_path / f"alone{number}", asked_alone, step, dropout)
        for each in found[number]:
            assert_close(each, expected, 2**-6 if "precision" in both else 1e-5)
    keep, mask = found[-1][0]["loss"], found[0][0]["loss"]
    assert keep > mask  # of the same weights and pairs; the mask reached across the two


def test_a_process_without_pairs_joins_the_collectives(tmp_path: Path, pairs: int) -> None:
    sizes = ((count, size) for count in (3, 4, 5) for size in range(4, pairs))
    count, size = next((c, s) for c, s in sizes if 2 <= pairs % (c * s) < c)
    last = pairs // (count * size)
    (found,) = steps_together(tmp_path, count, tiny_network().path, [(options(batch_size=size), last, False)])
    alone = options(batch_size=count * size)
    expected = step_of(tiny_network().path, tmp_path / "alone", alone, last, False)
    for each in found:
        assert_close(each, expected)


# --- Collective operations --------------------------------------------------------------------------------

ROWS = ([3, 1, 3, 7], None, [1])  # touched in each of three processes; a row may be met twice
WIDTH = 4


def table_gradient(rank: int, size: int) -> Tensor | None:
    index = ROWS[rank]
    if index is None:
        return None
    values = torch.arange(float(len(index) * WIDTH)).view(-1, WIDTH) + rank
    return torch.sparse_coo_tensor(torch.tensor([index]), values, (size, WIDTH), check_invariants=True)


def exchange(out: Path) -> None:
    processes = ProcessGroup.from_environment("cpu")
    assert processes.device.type == "cpu"
    found: dict[str, Tensor] = {}
    sent = []
    for size in (10, 100_000):
        table, unused = (torch.nn.Parameter(torch.zeros(size, WIDTH)) for _ in range(2))
        dense, lonely, nobodys = (torch.nn.Parameter(torch.zeros(3)) for _ in range(3))
        table.grad = table_gradient(processes.rank, size)
        dense.grad = torch.full((3,), float(processes.rank))
        lonely.grad = torch.ones(3) if processes.rank == 1 else None
        before = processes.sent
        processes.all_reduce_gradients([dense, lonely, nobodys], [table, unused])
        sent.append(processes.sent - before)
        assert nobodys.grad is None
        assert unused.grad is None
        assert table.grad is not None
        assert table.grad.is_sparse
        assert table.grad._nnz() == 3
        found |= {f"table{size}": table.grad.to_dense(), "dense": dense.grad, "lonely": lonely.grad}
    found["sent"] = torch.tensor(sent)
    found["gathered"] = processes.all_gather(torch.full((processes.rank, 2), float(processes.rank)))
    found["nothing"] = processes.all_gather(torch.empty(0, 2))
    found["union"] = processes.all_reduce_any(torch.arange(4) == processes.rank)
    found["first"] = torch.tensor(processes.broadcast(7.5 + processes.rank))
    found["any"] = torch.tensor([processes.any(processes.rank == 2), processes.any(False)])
    save_file(found, out / f"{processes.rank}.safetensors")


def test_only_used_rows_are_exchanged(tmp_path: Path) -> None:
    assert together(tmp_path, 3, exchange, tmp_path) == [0, 0, 0], said(tmp_path, 0)
    for rank in range(3):
        found = load_file(tmp_path / f"{rank}.safetensors")
        for size in (10, 100_000):
            parts = [g.to_dense() for r in range(3) if (g := table_gradient(r, size)) is not None]
            assert torch.equal(found[f"table{size}"], sum(parts, torch.zeros(size, WIDTH)))
        assert found["dense"].tolist() == [3.0] * 3
        assert found["lonely"].tolist() == [1.0] * 3
        small, large = found["sent"].tolist()
        assert small == large < 200
        assert found["gathered"].tolist() == [[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
        assert found["nothing"].shape == (0, 2)
        assert found["union"].tolist() == [True, True, True, False]
        assert found["first"] == 7.5
        assert found["any"].tolist() == [True, False]


def test_a_world_size_of_one_sends_nothing() -> None:
    alone, rows = ProcessGroup(), torch.ones(2, 3, requires_grad=True)
    assert alone.is_main
    assert alone.all_gather(rows) is rows
    assert alone.all_gather_with_gradients(rows) is rows
    assert alone.all_reduce(1.5, 2) == [1.5, 2]
    assert alone.share(7) == slice(0, 7)
    alone.barrier()
    assert alone.sent == 0


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InputError, match=r"^found 4 processes on a machine with 2 GPUs; start at most 2"):
        ProcessGroup.from_environment()


# --- Whole runs -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of two processes that nothing has disturbed."""
    return trained_by(2, tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One process with as many pairs a step, and with the dropout that two have."""
    return trained(tmp_path_factory.mktemp("one") / "run", batch_size=2 * B, micro_batch=B)


def assert_similar(run: Run, other: Run) -> None:
    """Equal but for rounding, which training makes larger step by step."""
    assert losses(run) == pytest.approx(losses(other), rel=1e-4)
    one, two = (line_by_line(r) for r in (run, other))
    assert one.keys() >= two.keys()  # a run that was stopped was validated once more
    for place, figures in two.items():
        assert one[place] == pytest.approx(figures, rel=1e-3)


def line_by_line(run: Run) -> dict[tuple[int, str], dict[str, float]]:
    """The figures of validation and warm-up by step."""
    lines = run.metrics()
    found = {(line["step"], "validation"): line["validation"] for line in lines if "validation" in line}
    warm_ups = [line["warm_up"] for line in lines if "warm_up" in line]
    return found | {(0, w["node_type"]): {"mrr": w["mrr"], "before": w["untrained"]} for w in warm_ups}


def test_two_processes_train_the_same_run_as_one(whole: Run, alone: Run) -> None:
    assert_similar(whole, alone)
    assert whole.is_complete
    assert "training, 16 pairs a step, ended because" in (whole.path / "README.md").read_text()
    assert not (whole.path / "states").exists()
    for sentence in ("validation PREC", "Next: heterformer evaluate"):
        assert sentence in said(whole.path.parent, 0)
        assert sentence not in said(whole.path.parent, 1)


def test_textless_tables_are_the_same_as_those_of_one_process(whole: Run, alone: Run) -> None:
    one, two = (load_file(run.last / "optimizer.safetensors") for run in (whole, alone))
    moments = {name for name, value in two.items() if name.startswith("1.") and value.ndim == 2}
    assert len(moments) == 3 * 2  # of authors, venues and tokens
    assert one.keys() == two.keys()
    for name in moments:
        assert torch.equal(one[name] == 0, two[name] == 0)  # rows that no step touched, in either
        torch.testing.assert_close(one[name], two[name], rtol=1e-2, atol=1e-3 * float(two[name].abs().max()))


def test_two_processes_resume_to_the_same_bits(whole: Run, tmp_path: Path) -> None:
    for steps in (7, STEPS):
        run = trained_by(2, tmp_path, max_steps=steps)
    assert not differ(run, whole)
    assert losses(run) == losses(whole)


def test_two_processes_with_cached_states(tmp_path: Path) -> None:
    cached = {"neighbor_states": "cached", "refresh_every": 6}
    for steps in (8, STEPS):
        run = trained_by(2, tmp_path / "two", max_steps=steps, **cached)
    alone = trained(tmp_path / "one", batch_size=2 * B, micro_batch=B, max_steps=8, **cached)
    assert losses(run)[:8] == pytest.approx(losses(alone), rel=1e-3)
    assert [m["refresh"]["texts"] for m in run.metrics() if "refresh" in m][:2] == [
        m["refresh"]["texts"] for m in alone.metrics() if "refresh" in m
    ]
    assert not run.states.exists()


@pytest.mark.parametrize(
    ("tasks", "states"),
    [
        (("classification",), {}),
        (("link_prediction", "classification"), {}),
        (("classification",), {"neighbor_states": "cached", "refresh_every": 4}),
    ],
)
def test_two_processes_learn_from_labels_as_one(
    tasks: tuple[str, ...], states: dict[str, Any], tmp_path: Path
) -> None:
    labels = SupervisionOptions(type="paper", min_members=5)
    asked: dict[str, Any] = {"tasks": tasks, "labels": labels, "evaluate_every": 4, **states}
    for steps in (4, 8):
        run = trained_by(2, tmp_path / "parts", max_steps=steps, **asked)
    whole = trained_by(2, tmp_path / "whole", max_steps=8, **asked)
    assert not differ(run, whole)
    assert losses(run) == losses(whole)
    alone = trained(tmp_path / "one", max_steps=8, batch_size=2 * B, micro_batch=B, **asked)
    assert losses(whole) == pytest.approx(losses(alone), rel=1e-3)
    macro = [line["validation"]["macro"] for line in whole.metrics() if "validation" in line]
    assert len(macro) == 2
    temperatures = [float(r.model().head.temperature) for r in (whole, run)]  # type: ignore[union-attr]
    assert temperatures[0] == temperatures[1]


def test_two_processes_fine_tune(tmp_path: Path) -> None:
    start = trained(tmp_path / "start", max_steps=1)
    words = ["finetune", str(start.path), str(tmp_path / "tuned"), "--type", "paper", "--device", "cpu"]
    words += ["--labels.min-members", "5", "--max-steps", "2", "--label-fraction"]
    curve = [*words[:2], str(tmp_path / "curve"), *words[3:]]
    for command in ([*words, "1"], [*curve, "0.5", "1"]):
        assert together(tmp_path, 2, commands, command) == [0, 0], said(tmp_path, 0) + said(tmp_path, 1)
    result, points = FinetuneResult.open(tmp_path / "tuned"), LearningCurve.open(tmp_path / "curve").points
    assert result.nodes["test"] > 0
    assert len(points) == 6
    assert (tmp_path / "curve" / "curve.png").is_file()
    assert "classification of paper nodes" in said(tmp_path, 0)
    assert "paper nodes" not in said(tmp_path, 1)


def test_one_process_resumes_what_two_started(whole: Run, tmp_path: Path) -> None:
    """With as many pairs a step it meets the same pairs, and dropout is the same in micro-batches."""
    trained_by(2, tmp_path, max_steps=7)
    run = trained(tmp_path / "run", batch_size=2 * B, micro_batch=B)
    assert_similar(run, whole)
    assert run.options().batch_size == 2 * B


def test_another_world_size_resumes_at_the_same_pair(
    tmp_path: Path, pairs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    trained_by(2, tmp_path, max_steps=3)
    run = trained(tmp_path / "run", batch_size=B, max_steps=5)
    assert "8 pairs per step instead of 16, from pair 48 of the epoch." in capsys.readouterr().err
    position = json.loads((run.last / "state.json").read_text())["position"]
    assert position["step"] == 5
    assert position["step_of_epoch"] == 8
    assert position["pairs_per_step"] == 8
    run = trained_by(2, tmp_path, max_steps=6)  # 64 pairs are seen: four steps of two
    position = json.loads((run.last / "state.json").read_text())["position"]
    assert (position["epoch"], position["step_of_epoch"]) == (0, 5)
    assert len(losses(run)) == 6
    assert np.isfinite(losses(run)).all()


# --- Signals, errors and deaths ---------------------------------------------------------------------------


def slow_at(network: Path, path: Path, until: Path, asked: TrainingOptions) -> None:
    waiting_at(5, until, train_together, network, path, asked)


def test_a_signal_to_one_process_stops_all(whole: Run, tmp_path: Path) -> None:
    asked, path = options(batch_size=B, checkpoint_minutes=MANY), tmp_path / "run"
    go = tmp_path / "go"
    processes = start_together(tmp_path, 2, slow_at, tiny_network().path, path, go, asked)
    try:
        wait_for_lines(path / "metrics.jsonl", 5, processes[0])
        assert processes[1].pid is not None
        for number in (signal.SIGINT, signal.SIGTERM):  # the terminal's and then, as torchrun does, another
            os.kill(processes[1].pid, number)
        go.touch()
        for process in processes:
            process.join(SECONDS)
        assert [process.exitcode for process in processes] == [1, 1]
    finally:
        for process in processes:
            process.kill()
            process.join()
    step = Run(path).metrics()[-1]["step"]
    assert step < STEPS
    assert f"saved at step {step}; the same command resumes." in said(tmp_path, 0)
    run = trained_by(2, tmp_path)
    assert not differ(run, whole)


def test_an_error_is_reported_by_the_main_process_alone(tmp_path: Path) -> None:
    taken, damaged = tmp_path / "taken", trained(tmp_path / "damaged", max_steps=1, batch_size=B)
    taken.mkdir()
    (taken / "thesis.tex").touch()
    (damaged.last / "model.safetensors").write_bytes(b"")
    flags = training_flags(options(batch_size=B))
    asked = [
        ["train", str(tiny_network().path), *words, *flags]
        for words in ([str(taken)], [str(tmp_path / "new"), "--seed", "RANK"], [str(damaged.path)])
    ]
    good = trained(tmp_path / "good", max_steps=1, batch_size=B).path
    out = str(tmp_path / "o.parquet")
    asked += [
        ["embed", str(tmp_path / "nosuch"), out],
        ["embed", str(good), out, "--types", "foo"],
        ["embed", str(good), out, "--since", str(tmp_path / "nosuch")],
        ["embed", str(good), out, "--network", str(tmp_path / "nosuch")],
        ["evaluate", str(good), "--split", str(tmp_path / "nosuch")],
        ["evaluate", str(good), "--vectors=nosuch"],
    ]
    assert together(tmp_path, 2, commands, *asked) == [0, 0]
    told = (tmp_path / "0.log").read_text().splitlines()
    assert told[0] == f"error: {taken}: exists and is not a run; choose another name."
    assert told[2].startswith(
        "error: rank 1 of 2 processes has other options, network or run folder than rank 0;"
    )
    assert any(line.startswith(f"error: {damaged.last}: cannot be read or is damaged") for line in told)
    assert sum(line.startswith("error: ") for line in told) == len(asked)
    others = (tmp_path / "1.log").read_text().splitlines()
    assert [line for line in others if "runs in one process" not in line] == ["exit 1"] * len(asked)


def fail_alone() -> None:
    processes = ProcessGroup.from_environment("cpu")
    if processes.rank == 1:
        raise InputError("one finds fault.")
    processes.barrier()


def test_a_remaining_process_reports_lost_peers(tmp_path: Path) -> None:
    assert together(tmp_path, 2, fail_alone) == [1, 1]
    assert "one finds fault" in said(tmp_path, 1)
    assert "rank 0 of 2 lost the other processes; see their messages" in said(tmp_path, 0)


def test_a_remaining_process_ends_after_a_kill(tmp_path: Path) -> None:
    """Without a launcher that would end it."""
    path = tmp_path / "run"
    endless = options(batch_size=B, max_steps=None, checkpoint_minutes=MANY, epochs=100_000)
    first, second = start_together(tmp_path, 2, train_together, tiny_network().path, path, endless)
    try:
        wait_for_lines(path / "metrics.jsonl", 6, first)
        assert second.pid is not None
        os.kill(second.pid, signal.SIGKILL)
        first.join(SECONDS)
        assert first.exitcode not in (0, None)
        assert "rank 0 of 2 lost the other processes" in said(tmp_path, 0)
    finally:
        for process in (first, second):
            process.kill()
            process.join()


@pytest.mark.parametrize("launch", LAUNCHERS, ids=["torchrun", "accelerate"])
def test_a_killed_process_ends_the_others(tmp_path: Path, launch: str) -> None:
    """With the launchers themselves, from the command line."""
    path = tmp_path / "run"
    flags = training_flags(options(batch_size=B, max_steps=None, checkpoint_minutes=MANY, epochs=100_000))
    train = ["-m", "heterformer", "train", str(tiny_network().path), str(path), *flags]
    command = [sys.executable, "-m", *launch.split(), *train]
    with (tmp_path / "log").open("w") as log:
        launcher = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + SECONDS
        while not Run(path).exists or len(Run(path).metrics()) < 6:
            assert launcher.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.05)
        workers = children(launcher.pid)
        assert len(workers) == 2
        os.kill(next(pid for pid in workers if b"\0RANK=1\0" in environment(pid)), signal.SIGKILL)
        assert launcher.wait(SECONDS) != 0
        assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []
        told = " ".join((tmp_path / "log").read_text().split())
        assert "Signal 9 (SIGKILL)" in told
    finally:
        if launcher.poll() is None:
            launcher.send_signal(signal.SIGSTOP)  # so that it starts nobody else
            for pid in (*children(launcher.pid), launcher.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            launcher.wait()


def children(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for thread in threads for child in (thread / "children").read_text().split()]


def environment(pid: int) -> bytes:
    return b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
