"""Several processes that train one model: who one is, what is exchanged, and who writes.

Every process opens the same network, has its share of each step's pairs, and takes the same optimiser
step. All of it goes through torch.distributed: gloo on CPUs, NCCL on GPUs. For a process alone every
method here gives back what it was given.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState
from torch import Tensor, nn

from heterformer import progress
from heterformer.arrays import share_of
from heterformer.errors import InputError, ReportedElsewhereError

# The launcher sees a death at once and ends the others; this is for a process that hangs. It must be more
# than the longest that the first one works alone: tokens of a large network, the steps of the warm-up.
PATIENCE = timedelta(hours=6)
BUCKET = 25 * 2**20  # bytes of dense gradients that travel together


@dataclass
class ProcessGroup:
    """Which of how many processes this one is."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    sent: int = 0  # bytes that this process has given away so far

    @classmethod
    def from_environment(cls, device: str = "auto") -> ProcessGroup:
        """The processes that torchrun or ``accelerate launch`` started, or this one alone."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls()
        cpu = device == "cpu" or not torch.cuda.is_available()  # else Accelerate would take us for one alone
        here, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", "1")), torch.cuda.device_count()
        if here > gpus and not cpu:
            remedy = "start at most as many, or give --device cpu"
            raise InputError(f"{here} processes were started here, but there are {gpus} GPUs; {remedy}.")
        state = PartialState(cpu=cpu, timeout=PATIENCE)
        found = cls(state.process_index, state.num_processes, state.device)
        if not found.is_main:
            progress.silence()
        return found

    @property
    def is_main(self) -> bool:
        """Whether this is the one that writes files and tells the user."""
        return self.rank == 0

    @property
    def on_cpus(self) -> bool:
        """Whether several processes go without GPUs."""
        return self.world_size > 1 and self.device.type == "cpu"

    def share(self, count: int) -> slice:
        """This process's part of so many things."""
        return share_of(count, self.rank, self.world_size)

    # --- Words -------------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Until all are here."""
        self.all_reduce(0.0)

    @contextmanager
    def main_process_first(self) -> Iterator[None]:
        """The first process goes ahead; the others follow when it is done, and find what it wrote.

        If it fails, it tells why, and the others end without a word.
        """
        if not self.is_main and self.any(False):
            raise ReportedElsewhereError("the first process tells what is wrong.")
        try:
            yield
        except Exception:
            if self.is_main:
                with suppress(InputError):  # that others are lost is not what matters now
                    self.any(True)
            raise
        if self.is_main:
            self.any(False)

    def check_all_equal(self, *what: object) -> None:
        """Refuse to begin unless all processes have the same in mind and before them, on every machine."""
        digest = hashlib.sha256(repr(what).encode()).digest()[:8]
        found = self.all_gather(torch.tensor([int.from_bytes(digest, signed=True)]))
        others = torch.nonzero(found != found[0]).flatten().tolist()
        if others and self.is_main:
            differ = f"process {', '.join(map(str, others))} of {self.world_size}"
            same = "all need one command line, one network and one disk with the run folder"
            raise InputError(f"{differ}: the options, the network or the run folder are others; {same}.")
        if others:
            raise ReportedElsewhereError("the first process tells who does not agree.")

    def all_reduce(self, *values: float) -> list[float]:
        """The sums over all processes."""
        if self.world_size == 1:
            return list(values)
        told = torch.tensor(values, dtype=torch.float64, device=self.device)
        self._reduce(told)
        found: list[float] = told.tolist()
        return found

    def any(self, value: bool) -> bool:
        """Whether it is so anywhere."""
        return self.all_reduce(float(value))[0] > 0

    def broadcast(self, value: float) -> float:
        """What the first process says."""
        return self.all_reduce(value if self.is_main else 0.0)[0]

    def broadcast_text(self, word: str) -> str:
        """The same for text."""
        said = list(word.encode()) if self.is_main else []
        return bytes(self.all_gather(torch.tensor(said, dtype=torch.uint8)).tolist()).decode()

    # --- Tensors -----------------------------------------------------------------------------------------

    def all_gather(self, rows: Tensor) -> Tensor:
        """The rows of all processes, in their order; each may have another number of them."""
        return rows if self.world_size == 1 else torch.cat(self._gather(rows))

    def all_reduce_any(self, met: Tensor) -> Tensor:
        """(N,) bool: true where it is true in any process."""
        if self.world_size > 1:
            met = met.to(self.device, torch.uint8)
            self._reduce(met, dist.ReduceOp.MAX)
        return met.bool().cpu()

    def all_gather_with_gradients(self, own: Tensor) -> Tensor:
        """(P, d): the vectors of all processes; gradients of all of them find their way back to ``own``."""
        if self.world_size == 1:
            return own
        everyones: Tensor = _AllGatherVectors.apply(own, self)  # type: ignore[no-untyped-call]
        return everyones

    def broadcast_weights(self, model: nn.Module) -> None:
        """Give all processes the first one's parameters and buffers."""
        if self.world_size == 1:
            return
        for tensor in model.state_dict().values():
            with self._peer_failures_reported():
                dist.broadcast(tensor, 0)
            self.sent += tensor.numel() * tensor.element_size() * self.is_main

    # --- Gradients ---------------------------------------------------------------------------------------

    def all_reduce_gradients(self, dense: Sequence[nn.Parameter], rows: Sequence[nn.Parameter]) -> None:
        """Let every process have the sum of all gradients, as if one had computed everything.

        Of the tables in ``rows`` only rows that some process touched are exchanged. Done by hand instead of
        by DistributedDataParallel, which would sum whole tables under NCCL and knows one backward pass per
        step. A parameter that nobody used has no gradient, so that the optimiser lets it be.
        """
        if self.world_size == 1:
            return
        for table in rows:
            table.grad = None if table.grad is None else table.grad.coalesce()
        touched = [0 if table.grad is None else table.grad._nnz() for table in rows]
        counts = torch.tensor([*(p.grad is not None for p in dense), *touched], device=self.device)  # (n,)
        everyones = self._same_sized(counts.long())  # (W, n)
        used = everyones[:, : len(dense)].any(0).tolist()
        self._sum_dense([p for p, some in zip(dense, used, strict=True) if some])
        for parameter, found in zip(rows, everyones[:, len(dense) :].T.tolist(), strict=True):
            if any(found):
                self._sum_rows(parameter, found)

    def _sum_dense(self, parameters: Iterable[nn.Parameter]) -> None:
        bucket: list[Tensor] = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if bucket and sum(g.numel() * g.element_size() for g in bucket) > BUCKET:
                self._sum_bucket(bucket)
                bucket = []
            bucket.append(parameter.grad)
        if bucket:
            self._sum_bucket(bucket)

    def _sum_bucket(self, gradients: list[Tensor]) -> None:
        flat = torch.cat([g.flatten() for g in gradients])
        self._reduce(flat)
        parts = torch.split(flat, [g.numel() for g in gradients])
        for gradient, summed in zip(gradients, parts, strict=True):
            gradient.copy_(summed.view_as(gradient))

    def _sum_rows(self, table: nn.Parameter, counts: list[int]) -> None:
        width = table.shape[1:]
        if table.grad is None:
            index = torch.empty(0, dtype=torch.int64, device=table.device)
            values = torch.empty(0, *width, dtype=table.dtype, device=table.device)
        else:
            index, values = table.grad.indices()[0], table.grad.values()  # (n,), (n, d)
        every = torch.cat(self._gather(index, counts)), torch.cat(self._gather(values, counts))
        summed = torch.sparse_coo_tensor(every[0][None], every[1], table.shape, check_invariants=False)
        table.grad = summed.coalesce()

    # --- What torch.distributed does ---------------------------------------------------------------------

    def _gather(self, rows: Tensor, counts: Sequence[int] | None = None) -> list[Tensor]:
        """The rows of each process; all send as many as the one that has most, since backends want that."""
        rows = rows.detach().to(self.device).contiguous()
        if counts is None:
            counts = self._same_sized(torch.tensor([len(rows)], device=self.device))[:, 0].tolist()
        most = max(counts)
        if most == 0:  # gloo does not take nothing
            return [rows] * self.world_size
        padded = rows.new_zeros(most, *rows.shape[1:])
        padded[: len(rows)] = rows
        return [part[:n] for part, n in zip(self._same_sized(padded), counts, strict=True)]

    def _same_sized(self, tensor: Tensor) -> Tensor:
        """(W, ...): the tensor of each process."""
        found = tensor.new_empty(self.world_size, *tensor.shape)
        with self._peer_failures_reported():
            dist.all_gather(list(found.unbind(0)), tensor)
        self.sent += tensor.numel() * tensor.element_size()
        return found

    def _reduce(self, tensor: Tensor, how: Any = dist.ReduceOp.SUM) -> None:
        with self._peer_failures_reported():
            dist.all_reduce(tensor, how)
        self.sent += tensor.numel() * tensor.element_size()

    @contextmanager
    def _peer_failures_reported(self) -> Iterator[None]:
        """If another process has died, say so in one sentence; its own words say why."""
        try:
            yield
        except RuntimeError as error:
            words = " ".join(str(error).split()).split("] ", 1)[-1]  # gloo begins with its file
            reason = words.split(". ")[0][:200]
            lost = f"process {self.rank} of {self.world_size}: lost the others, whose own messages say why"
            raise InputError(f"{lost} ({reason}).") from error


class _AllGatherVectors(torch.autograd.Function):
    """All processes' vectors. Each has a part of the loss, so a vector's gradient is the sum over them."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, processes: ProcessGroup) -> Tensor:
        parts = processes._gather(own.float())  # gloo does not know bfloat16 everywhere
        before = sum(len(part) for part in parts[: processes.rank])
        ctx.processes, ctx.own, ctx.dtype = processes, slice(before, before + len(own)), own.dtype
        return torch.cat(parts).to(own.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        summed = grads[0].float().contiguous().clone()  # (P, d)
        ctx.processes._reduce(summed)
        return summed[ctx.own].to(ctx.dtype), None


def leave() -> None:
    """At the end of a process that has done its part."""
    if dist.is_initialized():
        dist.destroy_process_group()
