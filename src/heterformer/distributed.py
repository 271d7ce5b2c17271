"""Several processes that train one model, in the words of torch.distributed.

Every process opens the same network, has its share of each step's pairs, and takes the same optimiser
step. The backend is gloo on CPUs and NCCL on GPUs. With a world size of 1 every method returns its argument.
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
from heterformer.errors import InputError, OptionError, ReportedElsewhereError

# A launcher ends all processes at once if one dies; the timeout is for a process that hangs. It exceeds the
# longest work of the main process alone: the tokens of a large network, the warm-up.
TIMEOUT = timedelta(hours=6)
BUCKET_BYTES = 25 * 2**20  # of dense gradients per all-reduce


@dataclass
class ProcessGroup:
    """This process's rank in the group, its device, and the collective operations."""

    rank: int = 0
    world_size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    sent: int = 0  # bytes that this process has sent so far

    @classmethod
    def from_environment(cls, device: str = "auto") -> ProcessGroup:
        """The group that torchrun or ``accelerate launch`` started, or a group of this process alone."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls()
        cpu = device == "cpu" or not torch.cuda.is_available()  # else Accelerate assumes one process
        local_world_size, gpus = int(os.environ.get("LOCAL_WORLD_SIZE", "1")), torch.cuda.device_count()
        if local_world_size > gpus and not cpu:
            problem = f"found {local_world_size} processes on a machine with {gpus} GPUs"
            raise OptionError(None, (), f"{problem}; start at most {gpus}, or set {{device}} to cpu.")
        state = PartialState(cpu=cpu, timeout=TIMEOUT)
        group = cls(state.process_index, state.num_processes, state.device)
        if not group.is_main:
            progress.silence()
        return group

    @property
    def is_main(self) -> bool:
        """Whether this is the process that writes files and prints messages."""
        return self.rank == 0

    def share(self, count: int) -> slice:
        """This process's part of ``count`` items."""
        return share_of(count, self.rank, self.world_size)

    # --- Control and scalars ------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait until all processes are here."""
        self.all_reduce(0.0)

    @contextmanager
    def main_process_first(self) -> Iterator[None]:
        """Run the block in the main process, then in the others, which see the files it wrote.

        If it fails in the main process, that one reports the error and the others end silently.
        """
        if not self.is_main and self.any(False):
            raise ReportedElsewhereError("the main process reports the error.")
        try:
            yield
        except Exception:
            if self.is_main:
                with suppress(InputError):  # lost processes are not the error to report
                    self.any(True)
            raise
        if self.is_main:
            self.any(False)

    def check_all_equal(self, *values: object) -> None:
        """Raise an error unless all processes have equal values: options, network, run folder."""
        digest = hashlib.sha256(repr(values).encode()).digest()[:8]
        digests = self.all_gather(torch.tensor([int.from_bytes(digest, signed=True)]))
        different = torch.nonzero(digests != digests[0]).flatten().tolist()
        if different and self.is_main:
            ranks = ", ".join(map(str, different))
            problem = f"rank {ranks} of {self.world_size} processes has other options, network or run folder"
            remedy = "start all with one command line, one network and one shared run folder"
            raise InputError(f"{problem} than rank 0; {remedy}.")
        if different:
            raise ReportedElsewhereError("the main process reports the difference.")

    def all_reduce(self, *values: float) -> list[float]:
        """The sums over all processes."""
        if self.world_size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        self._reduce(tensor)
        sums: list[float] = tensor.tolist()
        return sums

    def any(self, value: bool) -> bool:
        """Whether ``value`` is true in any process."""
        return self.all_reduce(float(value))[0] > 0

    def broadcast(self, value: float) -> float:
        """The main process's value."""
        return self.all_reduce(value if self.is_main else 0.0)[0]

    def broadcast_text(self, text: str) -> str:
        """The main process's text."""
        encoded = list(text.encode()) if self.is_main else []
        return bytes(self.all_gather(torch.tensor(encoded, dtype=torch.uint8)).tolist()).decode()

    # --- Tensors -----------------------------------------------------------------------------------------

    def all_gather(self, rows: Tensor) -> Tensor:
        """The rows of all processes in the order of ranks; their numbers may differ."""
        return rows if self.world_size == 1 else torch.cat(self._gather(rows))

    def all_reduce_any(self, mask: Tensor) -> Tensor:
        """(N,) bool: true where it is true in any process."""
        if self.world_size > 1:
            mask = mask.to(self.device, torch.uint8)
            self._reduce(mask, dist.ReduceOp.MAX)
        return mask.bool().cpu()

    def all_gather_with_gradients(self, own: Tensor) -> Tensor:
        """(P, d): the vectors of all processes; ``own`` receives the gradients of all of them."""
        if self.world_size == 1:
            return own
        gathered: Tensor = _AllGatherVectors.apply(own, self)  # type: ignore[no-untyped-call]
        return gathered

    def broadcast_weights(self, model: nn.Module) -> None:
        """Copy the main process's parameters and buffers to all processes."""
        if self.world_size == 1:
            return
        for tensor in model.state_dict().values():
            with self._peer_failures_reported():
                dist.broadcast(tensor, 0)
            self.sent += tensor.numel() * tensor.element_size() * self.is_main

    # --- Gradients ---------------------------------------------------------------------------------------

    def all_reduce_gradients(self, dense: Sequence[nn.Parameter], rows: Sequence[nn.Parameter]) -> None:
        """Sum the gradients of all processes, as if one process had computed everything.

        Of the tables in ``rows`` only rows that some process used are exchanged. DistributedDataParallel
        would sum whole tables under NCCL and allows one backward pass per step. A parameter that no process
        used keeps no gradient, so that the optimiser skips it.
        """
        if self.world_size == 1:
            return
        for table in rows:
            table.grad = None if table.grad is None else table.grad.coalesce()
        used_rows = [0 if table.grad is None else table.grad._nnz() for table in rows]
        counts = torch.tensor([*(p.grad is not None for p in dense), *used_rows], device=self.device)  # (n,)
        all_counts = self._all_gather_equal(counts.long())  # (W, n)
        is_used = all_counts[:, : len(dense)].any(0).tolist()
        self._sum_dense([p for p, used in zip(dense, is_used, strict=True) if used])
        for table, row_counts in zip(rows, all_counts[:, len(dense) :].T.tolist(), strict=True):
            if any(row_counts):
                self._sum_rows(table, row_counts)

    def _sum_dense(self, parameters: Iterable[nn.Parameter]) -> None:
        bucket: list[Tensor] = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            if bucket and sum(g.numel() * g.element_size() for g in bucket) > BUCKET_BYTES:
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

    # --- Calls of torch.distributed -----------------------------------------------------------------------

    def _gather(self, rows: Tensor, counts: Sequence[int] | None = None) -> list[Tensor]:
        """The rows of each process, padded to equal sizes, as backends require."""
        rows = rows.detach().to(self.device).contiguous()
        if counts is None:
            counts = self._all_gather_equal(torch.tensor([len(rows)], device=self.device))[:, 0].tolist()
        most = max(counts)
        if most == 0:  # gloo refuses empty tensors
            return [rows] * self.world_size
        padded = rows.new_zeros(most, *rows.shape[1:])
        padded[: len(rows)] = rows
        return [part[:n] for part, n in zip(self._all_gather_equal(padded), counts, strict=True)]

    def _all_gather_equal(self, tensor: Tensor) -> Tensor:
        """(W, ...): the tensors of all processes, which have one shape."""
        gathered = tensor.new_empty(self.world_size, *tensor.shape)
        with self._peer_failures_reported():
            dist.all_gather(list(gathered.unbind(0)), tensor)
        self.sent += tensor.numel() * tensor.element_size()
        return gathered

    def _reduce(self, tensor: Tensor, operation: Any = dist.ReduceOp.SUM) -> None:
        with self._peer_failures_reported():
            dist.all_reduce(tensor, operation)
        self.sent += tensor.numel() * tensor.element_size()

    @contextmanager
    def _peer_failures_reported(self) -> Iterator[None]:
        """If another process has died, raise one sentence; that process reports why."""
        try:
            yield
        except RuntimeError as error:
            message = " ".join(str(error).split()).split("] ", 1)[-1]  # gloo begins with its file
            reason = message.split(". ")[0][:200]
            problem = f"rank {self.rank} of {self.world_size} lost the other processes; see their messages"
            raise InputError(f"{problem} ({reason}).") from error


class _AllGatherVectors(torch.autograd.Function):
    """All-gather with gradients. Each process has a part of the loss: a vector's gradient sums over all."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, processes: ProcessGroup) -> Tensor:
        parts = processes._gather(own.float())  # not every gloo has bfloat16
        before = sum(len(part) for part in parts[: processes.rank])
        ctx.processes, ctx.own, ctx.dtype = processes, slice(before, before + len(own)), own.dtype
        return torch.cat(parts).to(own.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        summed = grads[0].float().contiguous().clone()  # (P, d)
        ctx.processes._reduce(summed)
        return summed[ctx.own].to(ctx.dtype), None


def destroy_process_group() -> None:
    """Destroy the process group at the end of a process."""
    if dist.is_initialized():
        dist.destroy_process_group()
