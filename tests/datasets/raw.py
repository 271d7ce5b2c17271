"""Raw files of the published shapes, and what a network built of them holds, by the nodes' own ids."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from heterformer.datasets.raw_build import DatasetBuild


def write_lines(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """JSON lines, packed if the name says so."""
    data = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_array(path: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """An array as DBLP has it: one record per line; from the second on a comma begins the line."""
    lines = "\n,".join(json.dumps(r, ensure_ascii=False) for r in records)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return path


def dropped(built: DatasetBuild) -> dict[str, dict[str, tuple[int, list[str]]]]:
    """How many records of each raw file were left out, and examples, by reason."""
    return {
        name: {reason: (found.count, found.examples) for reason, found in tally.dropped.items()}
        for name, tally in built.raw.items()
    }


def in_small_chunks(monkeypatch: pytest.MonkeyPatch, records: int = 1) -> list[int]:
    """Let records be read a few at a time; the list tells how many there were each time."""
    from heterformer.datasets import json_records, raw_build
    from heterformer.network.tables.json_array import Sizes

    sizes: list[int] = []
    frames = json_records.record_frames

    def counted(path: Path, schema: Any, _: Any) -> Any:
        for frame in frames(path, schema, Sizes(frame_rows=records)):
            sizes.append(len(frame))
            yield frame

    monkeypatch.setattr(raw_build, "record_frames", counted)
    return sizes
