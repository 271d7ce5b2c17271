"""Batches that a thread makes while the step before them is computed."""

from __future__ import annotations

from queue import Full, Queue
from threading import Event, Thread
from typing import Any

from heterformer.batches.batch import PairBatch
from heterformer.batches.pairs import TrainingBatches

PATIENCE = 0.05  # seconds after which a thread that waits for room looks whether it is to stop


class Prefetcher:
    """Training batches in their order, some of them made ahead; use it as a context.

    A batch is a function of (seed, epoch, step), so that it is the same whoever makes it and when. Whoever
    asks for another step than the next, or uses other hard negatives, starts the thread anew.
    """

    def __init__(self, batches: TrainingBatches, ahead: int | None = None, pin: bool = False) -> None:
        """``ahead`` batches are kept ready; with ``pin`` in memory from which a GPU copies by itself."""
        self.batches, self.pin = batches, pin
        self.ahead = ahead or batches.steps_at_once  # the next group is made while this one is used up
        self._next: tuple[int, int, int] | None = None
        self._stop = Event()
        self._ready: Queue[PairBatch | BaseException] = Queue()
        self._thread: Thread | None = None

    def __enter__(self) -> Prefetcher:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def batch(self, epoch: int, step: int) -> PairBatch:
        """The batch of one step of an epoch."""
        if self._next != (epoch, step, self.batches.version):
            self.close()
            self._start(epoch, step)
        item = self._ready.get()
        if isinstance(item, BaseException):
            self.close()
            raise item
        self._next = (*self._following(epoch, step), self.batches.version)
        return item

    def close(self) -> None:
        """Stop the thread; what it has made is forgotten."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
        self._thread, self._next = None, None

    def _start(self, epoch: int, step: int) -> None:
        self._stop, self._ready = Event(), Queue(self.ahead)
        self._thread = Thread(target=self._make, args=(epoch, step, self._ready, self._stop), daemon=True)
        self._thread.start()

    def _make(self, epoch: int, step: int, ready: Queue[Any], stop: Event) -> None:
        try:
            while not stop.is_set():
                batch = self.batches.batch(epoch, step)
                _put(ready, batch.pinned() if self.pin else batch, stop)
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
