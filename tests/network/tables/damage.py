"""Ways in which a gzip file comes to be broken, and what is then found."""

from __future__ import annotations

import gzip

from tests.networks import Tables, formatted


def _cut(packed: bytes) -> bytes:
    return packed[: len(packed) // 2]


def _overwritten(packed: bytes) -> bytes:
    return packed[:12] + b"\xff" * 18 + packed[30:]


def _wrong_sum(packed: bytes) -> bytes:
    return packed[:-6] + bytes([packed[-6] ^ 0xFF]) + packed[-5:]


def _not_packed(packed: bytes) -> bytes:
    return gzip.decompress(packed)


DAMAGES = {
    "cut off": (_cut, "Compressed file ended before the end-of-stream marker was reached"),
    "overwritten": (_overwritten, "Error -3 while decompressing data: invalid"),
    "wrong checksum": (_wrong_sum, "CRC check failed"),
    "not packed at all": (_not_packed, "Not a gzipped file"),
}


def damaged_papers(tables: Tables, name: str, what: str) -> str:
    """Make the paper table a gzip file with this damage; returns what gzip says of it."""
    change, reason = DAMAGES[what]
    rows = [{"id": f"p{i}", "title": f"word {i * i}"} for i in range(200)]
    ending = "." + name.split(".")[1]
    (tables.folder / name).write_bytes(change(gzip.compress(formatted(rows, ending))))
    tables.paper["file"] = name
    return reason
