"""Texts of all requests, encoded together in one thread, up to a budget of tokens at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heterformer.network.schema import NodeType
from heterformer.serve.deadline import Deadline
from heterformer.serve.errors import OverloadedError, UnavailableError

Rows = Mapping[NodeType, Sequence[int]]  # of a text's neighbours
Observer = Callable[[int, int], None]  # texts and tokens of a batch


class NewText(NamedTuple):
    """A text that is no node of the network, to be read as one."""

    text: str
    neighbors: Rows = {}  # noqa: RUF012 - nobody writes into it
    node_type: NodeType = ""  # the schema's ``query_type`` unless given


class TokenCounts(NamedTuple):
    """What a text costs."""

    text: int  # its tokens, as long as it is
    read: int  # those that the model reads: the text up to its limit, and the texts of its neighbours


class Encoder(Protocol):
    """What encodes texts; it is called by one thread."""

    def count_tokens(self, new: NewText) -> TokenCounts:
        """How long a text is, and what reading it with its neighbours takes."""

    def encode(self, texts: Sequence[NewText]) -> NDArray[np.float32]:
        """(n, d)."""


class EncodedText(NamedTuple):
    """The vector of a text and how many tokens it has, those beyond the model's limit included."""

    vector: NDArray[np.float32]
    tokens: int


@dataclass
class _Job:
    encoder: Encoder
    text: NewText
    future: Future[EncodedText] = field(default_factory=Future)
    tokens: TokenCounts | None = None  # once it was counted


class BatchingEncoder:
    """Collects texts while a batch is computed and encodes them in the next: the busier, the larger batches.

    The model belongs to the one thread that encodes, so that no two requests meet in it.

    Args:
        batch_tokens: Tokens that a batch reads; a text that takes more is a batch of its own.
        max_waiting: Texts that may wait; a request with more than there is room for is refused whole.
        observe: Called after each batch.
    """

    def __init__(
        self, batch_tokens: int, max_waiting: int, observe: Observer = lambda texts, tokens: None
    ) -> None:
        self.batch_tokens, self.max_waiting, self._observe = batch_tokens, max_waiting, observe
        self._jobs: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="encoder", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Texts that no batch has yet."""
        return len(self._jobs)

    def encode(self, encoder: Encoder, texts: Sequence[NewText], deadline: Deadline) -> list[EncodedText]:
        """Wait for the vectors of some texts."""
        jobs = [_Job(encoder, text) for text in texts]
        with self._changed:
            if self._closed:
                raise UnavailableError("the server is stopping.")
            if len(self._jobs) + len(jobs) > self.max_waiting:
                raise OverloadedError
            self._jobs.extend(jobs)
            self._changed.notify()
        try:
            return [job.future.result(deadline.left()) for job in jobs]
        except FutureTimeoutError:
            raise deadline.passed() from None
        finally:
            for job in jobs:
                job.future.cancel()  # what has not begun is not wanted any more

    def close(self) -> None:
        """Encode what waits, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closed)
                if not self._jobs:
                    return
            if batch := self._batch():
                self._encode(batch)

    def _batch(self) -> list[_Job]:
        """The first jobs that wait for one encoder, as many as the budget allows."""
        batch: list[_Job] = []
        tokens = 0
        while self._jobs and (not batch or self._jobs[0].encoder is batch[0].encoder):
            job = self._jobs[0]
            if job.tokens is None and not self._begun(job):
                self._jobs.popleft()
                continue
            assert job.tokens is not None
            if batch and tokens + job.tokens.read > self.batch_tokens:
                break
            batch.append(self._jobs.popleft())
            tokens += job.tokens.read
        return batch

    def _begun(self, job: _Job) -> bool:
        """Whether somebody still waits for the text, and it can be read."""
        if not job.future.set_running_or_notify_cancel():
            return False
        with _failing([job]):
            job.tokens = job.encoder.count_tokens(job.text)
        return not job.future.done()

    def _encode(self, batch: list[_Job]) -> None:
        with _failing(batch):
            vectors = batch[0].encoder.encode([job.text for job in batch])
            counts = [job.tokens for job in batch if job.tokens is not None]
            for job, vector, tokens in zip(batch, vectors, counts, strict=True):
                job.future.set_result(EncodedText(vector, tokens.text))
            self._observe(len(batch), sum(tokens.read for tokens in counts))


@contextmanager
def _failing(jobs: Sequence[_Job]) -> Iterator[None]:
    """Whoever waits for these jobs gets an error that happens here; the thread goes on."""
    try:
        yield
    except Exception as error:
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(error)
