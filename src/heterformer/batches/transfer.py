"""Batches on their way to a GPU while it computes the step before them."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import torch

from heterformer.batches.batch import DeviceData

D = TypeVar("D", bound=DeviceData)


class Copy(NamedTuple, Generic[D]):
    """A batch on the GPU, whose tensors are complete when ``event`` has passed."""

    batch: D
    event: torch.cuda.Event


class Transfer:
    """Copies batches to a GPU on a stream of its own, beside that of the steps.

    The step's stream waits for a copy before it reads it. Memory belongs to the stream that it was allocated
    on: unless the allocator knows that the step's stream uses it, too, it could serve the next copy while
    the step still reads it.
    """

    def __init__(self, device: torch.device, cuda: Any = torch.cuda) -> None:
        """``cuda`` has the functions of torch.cuda."""
        self.device, self._cuda = device, cuda
        self._stream = cuda.Stream(device)

    def pinned(self, batch: D) -> D:
        """The batch in memory that the GPU copies from by itself; in whatever thread."""
        with self._cuda.device(self.device):  # a new thread's GPU is the first one
            return batch.pinned()

    def start(self, batch: D) -> Copy[D]:
        """Begin to copy a pinned batch, and go on."""
        with self._cuda.stream(self._stream):
            copied = batch.to(self.device)
            return Copy(copied, self._stream.record_event())

    def finish(self, copy: Copy[D]) -> D:
        """The batch, for whatever the current stream computes from now on."""
        stream = self._cuda.current_stream(self.device)
        stream.wait_event(copy.event)
        for tensor in copy.batch.tensors():
            tensor.record_stream(stream)
        return copy.batch
