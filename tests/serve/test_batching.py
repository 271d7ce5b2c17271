"""Texts of several requests in one batch, with a model that waits until it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from heterformer.serve.batching import BatchingEncoder, NewText, Rows, TokenCounts
from heterformer.serve.deadline import Deadline
from heterformer.serve.errors import OverloadedError, UnavailableError
from tests.serve.serving import wait_for


class Held:
    """An encoder that starts only when ``go`` is set; a word is a token."""

    def __init__(self) -> None:
        self.go, self.began = threading.Event(), threading.Event()
        self.batches: list[list[str]] = []

    def count_tokens(self, new: NewText) -> TokenCounts:
        if new.text == "unreadable":
            raise ValueError("unreadable")
        tokens = len(new.text.split())
        return TokenCounts(tokens, min(tokens, 6) + sum(map(len, new.neighbors.values())))

    def encode(self, new: Sequence[NewText]) -> NDArray[np.float32]:
        self.began.set()
        assert self.go.wait(60)
        texts = [each.text for each in new]
        self.batches.append(texts)
        if "broken" in texts:
            raise RuntimeError("broken")
        return np.array([[len(text)] for text in texts], dtype=np.float32)


@pytest.fixture
def batches() -> Iterator[BatchingEncoder]:
    made = BatchingEncoder(batch_tokens=4, max_waiting=8)
    yield made
    made.close()


def lengths(batches: BatchingEncoder, held: Held, texts: list[str], seconds: float = 60) -> list[float]:
    found = batches.encode(held, [NewText(text) for text in texts], Deadline(seconds))
    return [float(each.vector[0]) for each in found]


def waiting(batches: BatchingEncoder, count: int) -> None:
    wait_for(lambda: batches.waiting >= count)


def test_what_waits_is_encoded_together_up_to_the_budget(batches: BatchingEncoder) -> None:
    held = Held()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(lengths, batches, held, ["a"])
        assert held.began.wait(60)
        others = [pool.submit(lengths, batches, held, [text]) for text in ("b b", "c c")]
        waiting(batches, 2)
        others.append(pool.submit(lengths, batches, held, ["d", "e e e e e e"]))
        waiting(batches, 4)
        held.go.set()
        assert first.result() == [1]
        assert [other.result() for other in others] == [[3], [3], [1, 11]]
    assert held.batches[0] == ["a"]
    assert sorted(held.batches[1]) == ["b b", "c c"]
    assert held.batches[2:] == [["d"], ["e e e e e e"]]


def test_what_is_read_fills_the_budget_and_not_how_long_a_text_is() -> None:
    """A text that is cut shares a batch, and one with many neighbours does not."""
    held, sizes = Held(), []
    batches = BatchingEncoder(batch_tokens=8, max_waiting=8, observe=lambda *batch: sizes.append(batch))
    near: list[Rows] = [{}, {}, {"paper": [1, 2, 3], "venue": [4, 5]}, {"paper": [6, 7]}]
    texts = ["a " * 50, "b", "c", "d"]
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lengths, batches, held, ["first"])
        assert held.began.wait(60)
        new = [NewText(text, rows) for text, rows in zip(texts, near, strict=True)]
        second = pool.submit(batches.encode, held, new, Deadline(60))
        waiting(batches, 4)
        held.go.set()
        assert first.result() == [5]
        assert [each.tokens for each in second.result()] == [50, 1, 1, 1]
    batches.close()
    assert held.batches[1:] == [texts[:2], texts[2:3], texts[3:]]
    assert sizes[1:] == [(2, 7), (1, 6), (1, 3)]


def test_a_request_without_room_is_refused_whole(batches: BatchingEncoder) -> None:
    held = Held()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lengths, batches, held, ["a"])
        assert held.began.wait(60)
        second = pool.submit(lengths, batches, held, ["b"] * 5)
        waiting(batches, 5)
        with pytest.raises(OverloadedError):
            lengths(batches, held, ["c"] * 4)
        assert batches.waiting == 5
        held.go.set()
        assert (first.result(), second.result()) == ([1], [1] * 5)


def test_whoever_waits_too_long_is_told_and_the_text_is_not_read(batches: BatchingEncoder) -> None:
    held = Held()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lengths, batches, held, ["a"])
        assert held.began.wait(60)
        with pytest.raises(UnavailableError, match=r"not answered within 0\.01 seconds"):
            lengths(batches, held, ["late"], seconds=0.01)
        held.go.set()
        assert first.result() == [1]
    assert lengths(batches, held, ["b"]) == [1]
    assert held.batches == [["a"], ["b"]]


@pytest.mark.parametrize("text", ["broken", "unreadable"])
def test_an_error_reaches_its_request_and_the_thread_goes_on(batches: BatchingEncoder, text: str) -> None:
    held = Held()
    held.go.set()
    with pytest.raises((RuntimeError, ValueError), match=text):
        lengths(batches, held, [text])
    assert lengths(batches, held, ["fine"]) == [4]


def test_texts_of_two_models_are_two_batches(batches: BatchingEncoder) -> None:
    held, other = Held(), Held()
    other.go.set()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(lengths, batches, held, ["a"])
        assert held.began.wait(60)
        more = [pool.submit(lengths, batches, encoder, ["b"]) for encoder in (held, other)]
        waiting(batches, 2)
        held.go.set()
        assert [f.result() for f in (first, *more)] == [[1], [1], [1]]
    assert (held.batches, other.batches) == ([["a"], ["b"]], [["b"]])


def test_after_the_end_nothing_is_taken() -> None:
    batches, held = BatchingEncoder(4, 8), Held()
    held.go.set()
    batches.close()
    with pytest.raises(UnavailableError, match="stopping"):
        lengths(batches, held, ["a"])
