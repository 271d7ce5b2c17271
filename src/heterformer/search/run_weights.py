"""Digests of a run's weights: whether stored vectors are still those of its model."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from functools import cached_property
from typing import Any

from heterformer.embedding.two_passes import model_digest
from heterformer.files import write_text
from heterformer.training.run import Run

FOLDER, NOTE = "search", "weights.json"


class RunWeights:
    """Digests of the file of weights and of the model in it.

    They are stored in RUN/search with the file's size and time, so that a search need not read all weights.
    """

    def __init__(self, run: Run) -> None:
        self.run, self._note = run, run.path / FOLDER / NOTE

    @cached_property
    def _stat(self) -> list[int]:
        stat = self.run.weights.stat()
        return [stat.st_size, stat.st_mtime_ns]

    @cached_property
    def file(self) -> str:
        """The digest of the file."""
        return self._stored("file") or self._store("file", self._file_digest())

    @cached_property
    def model(self) -> str:
        """The digest of the model, which its vectors have in their metadata."""
        return self._stored("model") or self._store("model", model_digest(self.run.model()))

    def _file_digest(self) -> str:
        with self.run.weights.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()

    def _read(self) -> dict[str, Any]:
        """The stored digests, unless of another file."""
        try:
            values = json.loads(self._note.read_text(encoding="utf-8"))
            return dict(values) if values["stat"] == self._stat else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _stored(self, name: str) -> str | None:
        value = self._read().get(name)
        return value if isinstance(value, str) else None

    def _store(self, name: str, value: str) -> str:
        with suppress(OSError):  # somebody else's run may be searched with vectors of one's own
            self._note.parent.mkdir(exist_ok=True)
            write_text(self._note, json.dumps(self._read() | {"stat": self._stat, name: value}))
        return value
