"""Several gloo processes on this machine, and what they do in tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch import Tensor

from heterformer.cli import application
from heterformer.distributed import ProcessGroup
from heterformer.network.store import Network
from heterformer.training.loop import Trainer
from heterformer.training.optimizers import Optimizers
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.learning import start_process

SECONDS = 600  # before processes that hang are killed; on a machine that does nothing else they take three


def together(folder: Path, count: int, function: Callable[..., Any], *arguments: Any) -> list[int | None]:
    """Run ``function`` in so many processes of one group; gives their exit codes.

    What they say is in ``folder/RANK.log``. None of them outlives this call.
    """
    started = start_together(folder, count, function, *arguments)
    try:
        for process in started:
            process.join(SECONDS)
        return [process.exitcode for process in started]
    finally:
        for process in started:
            process.kill()
            process.join()


def start_together(
    folder: Path, count: int, function: Callable[..., Any], *arguments: Any
) -> list[BaseProcess]:
    """They meet in a file instead of at a port, which another test might take at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meeting").unlink(missing_ok=True)
    return [
        start_process(folder / f"{rank}.log", _joined, folder, rank, count, function, *arguments)
        for rank in range(count)
    ]


def _joined(folder: Path, rank: int, count: int, function: Callable[..., Any], *arguments: Any) -> None:
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    os.environ.update({name: str(value) for name, value in names.items()})
    os.environ["MASTER_ADDR"] = "localhost"
    dist.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=count)
    function(*arguments)


def said(folder: Path, rank: int) -> str:
    return " ".join((folder / f"{rank}.log").read_text().split())


# --- What they do -----------------------------------------------------------------------------------------


def train_together(network: Path, path: Path, options: TrainingOptions) -> None:
    train(Network.open(network), path, options)


def commands(*asked: list[str]) -> None:
    """Command lines, one after the other, and what they exit with; RANK in them is the process's own."""
    rank = os.environ["RANK"]
    for words in asked:
        try:
            application.run([word.replace("RANK", rank) for word in words], linger=0.0)
        except SystemExit as exit_:
            print("exit", exit_.code, flush=True)


def gradients(model: torch.nn.Module) -> dict[str, Tensor]:
    return {n: p.grad.to_dense().clone() for n, p in model.named_parameters() if p.grad is not None}


def step_of(
    network: Path, path: Path, options: TrainingOptions, step: int, dropout: bool
) -> dict[str, Tensor]:
    """The loss and the gradients that the optimisers are given in one step of the first epoch."""
    processes, run, opened = ProcessGroup.from_environment(options.device), Run(path), Network.open(network)
    with processes.main_process_first():
        if processes.is_main:
            run.start(opened, options)
    trainer = Trainer(opened, run, options, processes)
    trainer.model.prepare(trainer.validation.tokens, trainer.tokenizer.all_special_ids)
    if not dropout:
        trainer.model.eval()
        trainer.model.train = lambda mode=True: trainer.model  # type: ignore[method-assign]
    if trainer.cached is not None:
        list(trainer.cached.refresh(0, step + 1))
    found: dict[str, Tensor] = {}
    optimizers_step = Optimizers.step
    Optimizers.step = lambda self, factor: found.update(gradients(trainer.model))  # type: ignore[method-assign]
    try:
        part = trainer._step(trainer.slice_batch(trainer.batches.batch(0, step)))
    finally:
        Optimizers.step = optimizers_step  # type: ignore[method-assign]
    (found["loss"],) = torch.tensor(processes.all_reduce(part)).unbind()
    return found


def steps_to(out: Path, network: Path, path: Path, asked: list[tuple[TrainingOptions, int, bool]]) -> None:
    """Leave the results of several steps in files."""
    for number, (options, step, dropout) in enumerate(asked):
        found = step_of(network, path / str(number), options, step, dropout)
        save_file(found, out / f"{number}.{os.environ['RANK']}.safetensors")


def steps_together(
    folder: Path, count: int, network: Path, asked: list[tuple[TrainingOptions, int, bool]]
) -> list[list[dict[str, Tensor]]]:
    """Of each asked step, what each process found."""
    codes = together(folder, count, steps_to, folder, network, folder / "runs", asked)
    assert codes == [0] * count, said(folder, 0) + said(folder, 1)
    files = [
        [folder / f"{number}.{rank}.safetensors" for rank in range(count)] for number in range(len(asked))
    ]
    return [[load_file(file) for file in of_step] for of_step in files]
