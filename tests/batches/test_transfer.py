"""Copies to a GPU on a stream of their own, by a device that does what CUDA may do at worst.

A copy is made as late as it can be: when somebody waits for it. What is read before is not the batch.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from heterformer.batches.prefetch import Prefetcher
from heterformer.batches.slices import SlicedBatch
from heterformer.batches.transfer import Transfer
from heterformer.training.loop import Trainer
from heterformer.training.run import Run
from tests.batches.test_prefetch import assert_same, new_batches, places, whole
from tests.learning import tiny_network
from tests.training.runs import options

DEVICE = torch.device("cuda", 1)
SIDE, CURRENT = "side stream", "current stream"


class FakeStream:
    """Copies that were issued and not made; an event is the number of those before it."""

    def __init__(self, cuda: FakeCuda, name: str) -> None:
        self.cuda, self.name = cuda, name
        self.copies: list[Callable[[], object]] = []

    def record_event(self) -> tuple[FakeStream, int]:
        return self, len(self.copies)

    def wait_event(self, event: tuple[FakeStream, int]) -> None:
        stream, count = event
        self.cuda.calls.append(f"{self.name} waits for {stream.name}")
        for copy in stream.copies[self.cuda.made : count]:
            copy()
        self.cuda.made = max(self.cuda.made, count)


class FakeCuda:
    """What ``Transfer`` uses of torch.cuda, and of tensors; notes the calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.made = 0  # copies of the side stream
        self.side, self.current = FakeStream(self, SIDE), FakeStream(self, CURRENT)
        self.issuing = self.current
        self.copied: dict[int, Tensor] = {}  # by identity, kept so that no identity comes twice
        self.recorded: set[int] = set()
        self.pinned: dict[int, Tensor] = {}
        self.pinned_on: set[object] = set()
        self._thread = threading.local()
        to = Tensor.to

        def copy(tensor: Tensor, *arguments: Any, **more: Any) -> Tensor:
            return self._copy(tensor, **more) if arguments == (DEVICE,) else to(tensor, *arguments, **more)

        monkeypatch.setattr(Tensor, "to", copy)
        monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: self._pin(tensor))
        monkeypatch.setattr(Tensor, "record_stream", lambda tensor, stream: self._record(tensor, stream))

    def Stream(self, device: torch.device) -> FakeStream:  # noqa: N802
        assert device == DEVICE
        return self.side

    def current_stream(self, device: torch.device) -> FakeStream:
        assert device == DEVICE
        return self.issuing

    @contextmanager
    def stream(self, stream: FakeStream) -> Iterator[None]:
        before, self.issuing = self.issuing, stream
        yield
        self.issuing = before

    @contextmanager
    def device(self, device: torch.device) -> Iterator[None]:
        self._thread.device = device
        yield
        del self._thread.device

    def _pin(self, tensor: Tensor) -> Tensor:
        pinned = tensor.clone()
        self.pinned[id(pinned)] = pinned
        self.pinned_on.add(getattr(self._thread, "device", "the first GPU"))
        return pinned

    def _copy(self, tensor: Tensor, non_blocking: bool) -> Tensor:
        if id(tensor) in self.copied:
            return tensor  # is there already
        assert non_blocking
        assert id(tensor) in self.pinned, "from memory that is not pinned the processor waits for a copy"
        target = torch.zeros_like(tensor)
        self.calls.append(f"copy on {self.issuing.name}")
        self.issuing.copies.append(lambda: target.copy_(tensor))
        self.copied[id(target)] = target
        return target

    def _record(self, tensor: Tensor, stream: FakeStream) -> None:
        assert stream is self.current
        self.calls.append(f"record on {stream.name}")
        self.recorded.add(id(tensor))


def test_the_functions_are_those_of_pytorch() -> None:
    for function in (torch.cuda.current_stream, torch.cuda.stream, torch.cuda.device):
        inspect.signature(function).bind(DEVICE)
    inspect.signature(torch.cuda.Stream.__new__).bind(torch.cuda.Stream, DEVICE)
    inspect.signature(torch.cuda.Stream.record_event).bind(None)
    inspect.signature(torch.cuda.Stream.wait_event).bind(None, None)
    assert callable(Tensor.record_stream)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    return FakeCuda(monkeypatch)


def wait_until_ready(prefetcher: Prefetcher[Any], count: int) -> None:
    for _ in range(6000):
        if prefetcher._ready.qsize() >= count:
            return
        time.sleep(0.01)
    raise AssertionError("no batch was made")


def test_batches_are_the_same_on_the_gpu(cuda: FakeCuda) -> None:
    """Which they are not before the wait: their copies are all zeros until then."""
    plain = new_batches(fresh=True)
    with Prefetcher(new_batches(fresh=True), whole, Transfer(DEVICE, cuda)) as prefetcher:
        for place in places(plain, 3):
            found = prefetcher.batch(*place)
            assert_same(found, plain.batch(*place))
            tensors = {id(tensor) for tensor in found.tensors()}
            assert len(tensors) > 8
            assert tensors <= cuda.copied.keys(), "all are on the GPU"
            assert tensors <= cuda.recorded, "the allocator knows of the use of all"


def test_the_next_batch_is_copied_before_it_is_asked_for(cuda: FakeCuda) -> None:
    batches = new_batches()
    with Prefetcher(batches, whole, Transfer(DEVICE, cuda)) as prefetcher:
        prefetcher.batch(0, 0)
        wait_until_ready(prefetcher, 2)
        prefetcher.batch(0, 1)
        third = prefetcher._copy
        assert third is not None
        assert not isinstance(third, BaseException)
        assert not third.batch.centers.any(), "on its way: nobody waited for it"
        del cuda.calls[:]
        assert prefetcher.batch(0, 2) is third.batch
    count = len(third.batch.tensors())
    used = [f"{CURRENT} waits for {SIDE}", *[f"record on {CURRENT}"] * count]
    assert cuda.calls[: len(used)] == used, "nothing is copied any more, and waiting comes first"
    assert set(cuda.calls[len(used) :]) <= {f"copy on {SIDE}"}, "then the fourth, if it is made"


def test_the_gpu_holds_one_batch_more_than_are_in_use(cuda: FakeCuda) -> None:
    batches = new_batches()
    started: list[object] = []
    finished: list[object] = []

    class Counting(Transfer):
        def start(self, batch: Any) -> Any:
            started.append(batch)
            assert len(started) - len(finished) <= 1
            return super().start(batch)

        def finish(self, copy: Any) -> Any:
            finished.append(copy)
            return super().finish(copy)

    with Prefetcher(batches, whole, Counting(DEVICE, cuda)) as prefetcher:
        for place in places(batches, 2):
            prefetcher.batch(*place)
            wait_until_ready(prefetcher, 1)
    assert len(finished) == len(places(batches, 2))


def test_any_order_and_what_was_copied_in_vain(cuda: FakeCuda) -> None:
    plain = new_batches()
    with Prefetcher(new_batches(), whole, Transfer(DEVICE, cuda)) as prefetcher:
        for place in ((1, 2), (1, 3), (0, 0), (0, 0), (0, 1), (5, plain.steps_per_epoch - 1), (6, 0)):
            assert_same(prefetcher.batch(*place), plain.batch(*place))
            wait_until_ready(prefetcher, 1)
    assert prefetcher._copy is None


def test_batches_are_pinned_by_the_thread_for_the_gpu_in_use(cuda: FakeCuda) -> None:
    """A thread that names no GPU would take memory of the first one, in each of several processes."""
    with Prefetcher(new_batches(), whole, Transfer(DEVICE, cuda)) as prefetcher:
        prefetcher.batch(0, 0)
    assert cuda.pinned_on == {DEVICE}


def test_a_mistake_in_the_next_batch_is_raised_when_it_is_asked_for(cuda: FakeCuda) -> None:
    def failing(batch: Any) -> Any:
        if torch.equal(batch.centers, bad.centers):
            raise OSError("the disk is gone")
        return batch

    bad = new_batches().batch(0, 1)
    with Prefetcher(new_batches(), failing, Transfer(DEVICE, cuda)) as prefetcher:
        prefetcher.batch(0, 0)
        with pytest.raises(OSError, match="the disk is gone"):
            prefetcher.batch(0, 1)
        assert prefetcher._copy is None


def losses(
    folder: Path, steps: int, transfer: Transfer | None, **changes: Any
) -> tuple[list[float], list[SlicedBatch]]:
    run, resolved = Run(folder), options(**changes).resolved()
    run.start(tiny_network(), resolved)
    trainer = Trainer(tiny_network(), run, resolved)
    if trainer.cached is not None:
        list(trainer.cached.refresh(0, steps))
    assert trainer.links is not None
    if transfer is not None:  # a batch that is not there by now would be copied in the step
        vectors = trainer._vectors
        trainer._vectors = lambda batch, *place: vectors(batch.to(DEVICE), *place)  # type: ignore[method-assign]
    found, met = [], []
    with Prefetcher(trainer.links, trainer.slice_batch, transfer) as prefetcher:
        for step in range(steps):
            trainer.position.step = step
            met.append(prefetcher.batch(0, step))
            found.append(trainer._step(met[-1]))
    return found, met


@pytest.mark.parametrize(
    "changes",
    [{}, {"micro_batch": 5}, {"neighbor_states": "cached", "micro_batch": 5}],
    ids=["whole", "slices", "cached states"],
)
def test_steps_have_the_same_losses(tmp_path: Path, cuda: FakeCuda, changes: dict[str, Any]) -> None:
    """And copy nothing themselves, whether in slices or with states from the disk."""
    plain, _ = losses(tmp_path / "plain", 4, None, **changes)
    found, batches = losses(tmp_path / "run", 4, Transfer(DEVICE, cuda), **changes)
    assert found == plain
    assert set(map(id, batches[0].tensors())) <= cuda.recorded
    assert f"copy on {CURRENT}" not in cuda.calls
