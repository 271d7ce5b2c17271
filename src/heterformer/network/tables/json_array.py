"""JSON records one after the other or in an array, in any layout, a few at a time."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from heterformer.errors import InputError

CUT_SHORT = "the file is truncated; download it again"

# The number of its line, or of the record in a file without a record per line; JSON without line breaks.
Record = tuple[int, bytes]


@dataclass(frozen=True)
class Sizes:
    """How much of a file is in memory at a time."""

    frame_rows: int = 10_000
    """Records per frame."""
    block: int = 1 << 20
    """Bytes read at a time if records are not lines, and bytes from which the layout is detected."""
    record: int = 1 << 24
    """Bytes of a record, at most; a longer one means that the file is not JSON records."""


SEPARATORS = re.compile(r"[\s,]*")


def array_records(stream: BinaryIO, where: str, sizes: Sizes | None = None) -> Iterator[Record]:
    """Records of an array in any layout, or one after the other. Each is found by parsing it."""
    sizes = sizes or Sizes()
    decoder, scan = codecs.getincrementaldecoder("utf-8-sig")(), json.JSONDecoder().raw_decode
    text, at, number, depth, ended = "", 0, 0, 0, False
    try:
        while True:
            at = cast("re.Match[str]", SEPARATORS.match(text, at)).end()
            if at < len(text) and text[at] in "[]":
                depth += 1 if text[at] == "[" else -1
                at += 1
                if depth in (0, 1):
                    continue
                raise InputError(f"{where}: record {number + 1}: found a list, expected a JSON object.")
            try:
                _, end = scan(text, at)
            except (ValueError, RecursionError) as error:
                if len(text) - at > sizes.record:
                    raise too_long(f"{where}: record {number + 1}", sizes) from None
                if not ended:
                    block = stream.read(sizes.block)
                    ended = not block
                    text, at = text[at:] + decoder.decode(block, final=ended), 0
                    continue
                if at < len(text) or depth:
                    problem = error if at < len(text) else "the array has no closing bracket"
                    raise InputError(f"{where}: record {number + 1}: {problem}: {CUT_SHORT}.") from None
                return
            number += 1
            # Line breaks stand between values only, never inside a string.
            line = text[at:end].replace("\n", " ").replace("\r", " ")
            yield number, line.encode(errors="surrogatepass")
            at = end
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 near record {number + 1} ({error.reason}).") from None


def too_long(place: str, sizes: Sizes) -> InputError:
    """The error for a record that does not end."""
    limit = f"{sizes.record >> 20} MB"
    return InputError(f"{place}: found more than {limit} without an end, expected JSON records.")
