from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from heterformer.network.hashes import sequence_hashes, string_hash, string_hashes
from tests.networks import few

PINNED = [16294208416658607535, 8291004366639344488, 1048704654941660540]


def test_they_never_change() -> None:
    """Outputs on disk hold them: another value would be another format."""
    assert [int(string_hash(s)) for s in ("", "a", "Jürgen")] == PINNED


@few
@given(st.lists(st.text(max_size=9), max_size=30), st.integers(1, 7), st.integers(0, 5))
def test_a_string_has_one_hash_wherever_it_stands(strings: list[str], chunk: int, skipped: int) -> None:
    whole = pa.array(strings, pa.string())
    chunks = [whole.slice(i, chunk) for i in range(0, len(whole), chunk)]
    found = string_hashes(pa.chunked_array(chunks, pa.string()).slice(skipped))
    assert [int(h) for h in found] == [int(string_hash(s)) for s in strings[skipped:]]


def test_different_sequences_have_different_hashes() -> None:
    sequences = [
        (),
        (0,),
        (0, 0),
        (1,),
        (1, 0),
        (0, 1),
        (2,),
        (1, 1),
        *((i, j) for i in range(9) for j in (7, 8)),
    ]
    offsets = np.cumsum([0, *map(len, sequences)])
    values = np.array([v for s in sequences for v in s])
    assert len(set(sequence_hashes(values, offsets).tolist())) == len(sequences)


def test_no_strings() -> None:
    assert string_hashes(pa.chunked_array([], pa.string())).tolist() == []
    assert len(string_hashes(pa.chunked_array([["", ""]]))) == 2
