"""Batches that a thread makes while the step before them is computed."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, Generic, TypeVar

from heterformer.batches.batch import DeviceData, PairBatch
from heterformer.batches.pairs import TrainingBatches
from heterformer.batches.transfer import Copy, Transfer

PATIENCE = 0.05  # seconds after which a thread that waits for room looks whether it is to stop
D = TypeVar("D", bound=DeviceData)


class Prefetcher(Generic[D]):
    """Training batches in their order, some of them made ahead; use it as a context.

    A batch is a function of (seed, epoch, step), so that it is the same whoever makes it and when. Whoever
    asks for another step than the next, or uses other hard negatives, starts the thread anew.

    With a ``transfer`` batches are given on its GPU. The thread pins them, and whoever asks for one starts
    the copy of the next, so that the GPU holds one batch more than are in use.
    """

    def __init__(
        self,
        batches: TrainingBatches,
        prepare: Callable[[PairBatch], D],
        transfer: Transfer | None = None,
        ahead: int | None = None,
    ) -> None:
        """The thread calls ``prepare`` with each batch and keeps ``ahead`` results ready."""
        self.batches, self.prepare, self.transfer = batches, prepare, transfer
        self.ahead = ahead or batches.steps_at_once  # the next group is made while this one is used up
        self._next: tuple[int, int, int] | None = None
        self._stop = Event()
        self._ready: Queue[D | BaseException] = Queue()
        self._copy: Copy[D] | BaseException | None = None  # of the next batch, if it was ready
        self._thread: Thread | None = None

    def __enter__(self) -> Prefetcher[D]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def batch(self, epoch: int, step: int) -> D:
        """The batch of one step of an epoch, prepared."""
        if self._next != (epoch, step, self.batches.version):
            self.close()
            self._start(epoch, step)
        item = self._copy or self._ready.get()
        self._copy = None
        if isinstance(item, BaseException):
            self.close()
            raise item
        self._next = (*self._following(epoch, step), self.batches.version)
        if self.transfer is None:
            assert not isinstance(item, Copy)
            return item
        copy: Copy[D] = item if isinstance(item, Copy) else self.transfer.start(item)
        batch = self.transfer.finish(copy)
        self._copy = self._started_copy(self.transfer)
        return batch

    def close(self) -> None:
        """Stop the thread; what it has made is forgotten."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
        self._thread, self._next, self._copy = None, None, None

    def _start(self, epoch: int, step: int) -> None:
        self._stop, self._ready = Event(), Queue(self.ahead)
        self._thread = Thread(target=self._make, args=(epoch, step, self._ready, self._stop), daemon=True)
        self._thread.start()

    def _started_copy(self, transfer: Transfer) -> Copy[D] | BaseException | None:
        """The next batch on its way to the GPU, or why there is none; nothing if it is not made yet."""
        try:
            item = self._ready.get_nowait()
        except Empty:
            return None
        return item if isinstance(item, BaseException) else transfer.start(item)

    def _make(self, epoch: int, step: int, ready: Queue[Any], stop: Event) -> None:
        try:
            while not stop.is_set():
                batch = self.prepare(self.batches.batch(epoch, step))
                _put(ready, batch if self.transfer is None else self.transfer.pinned(batch), stop)
                epoch, step = self._following(epoch, step)
        except BaseException as error:  # for the thread that waits for a batch
            _put(ready, error, stop)

    def _following(self, epoch: int, step: int) -> tuple[int, int]:
        return (epoch, step + 1) if step + 1 < self.batches.steps_per_epoch else (epoch + 1, 0)


def _put(ready: Queue[Any], item: object, stop: Event) -> None:
    while not stop.is_set():
        try:
            return ready.put(item, timeout=PATIENCE)
        except Full:
            continue
