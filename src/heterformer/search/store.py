"""What a run keeps for searching: the vectors of all nodes, and approximate indexes of large types.

RUN/search/                 for the run's own network; RUN/search/FINGERPRINT/ for another one of its types
  vectors/                  what 'heterformer embed --h0' writes
  vectors.weights           the digest of the weights that they were made with, and bf16 if in that
  index/TYPE.*.faiss        an index; its name has a digest of the vectors it was made of
  textless/                 what 'heterformer embed --h0' writes of textless types, for --vectors without h0
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl

from heterformer.device import Device, chosen_device
from heterformer.embedding.embed import embed_to
from heterformer.embedding.options import EmbedOptions, Precision
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError
from heterformer.files import file_lock, remove_file, write_text
from heterformer.network.ids import known_rows
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.progress import say
from heterformer.search.approximate import (
    APPROXIMATE_FROM,
    ApproximateIndex,
    Sample,
    build_index,
    has_faiss,
)
from heterformer.search.index import ExactIndex, Index, Matrix
from heterformer.search.options import IndexChoice
from heterformer.search.run_weights import FOLDER, RunWeights
from heterformer.training.run import Run

VECTORS, TEXTLESS, INDEX = "vectors", "textless", "index"
KEPT = 3  # networks besides the run's own
SAMPLED_QUERIES = 200  # of which recall is measured with one half
SAMPLED_ROWS = 1024  # of a matrix, that its digest is made of


class SearchStore:
    """The vectors that are searched in, type by type, and their indexes."""

    def __init__(
        self, run: Run, network: Network, vectors: Vectors, own: bool, device: Device = "auto"
    ) -> None:
        self.run, self.network, self.vectors, self._device = run, network, vectors, device
        self.folder = search_folder(run, network)
        self._own = own  # made from this very network, so that rows need no check
        # Mapped at once, if they are our own: a file that is mapped can be forgotten meanwhile.
        self._matrices: dict[NodeType, Matrix] = {t: vectors.matrix(t) for t in vectors.types if own}
        self._h0: dict[NodeType, Matrix] = {
            t: h0 for t in self._matrices if (h0 := vectors.h0(t)) is not None
        }

    @classmethod
    def open(
        cls,
        run: Run,
        network: Network,
        given: Path | None = None,
        device: Device = "auto",
        precision: Precision | None = None,
    ) -> SearchStore:
        """The run's own vectors of a network, made now unless they are there (in the precision, if given)."""
        if given is not None:
            return cls(run, network, Vectors.open(given), own=False, device=device)
        path = search_folder(run, network) / VECTORS
        return cls(run, network, _kept(run, network, path, device, precision), own=True, device=device)

    @property
    def types(self) -> tuple[NodeType, ...]:
        return self.vectors.types

    def matrix(self, node_type: NodeType) -> Matrix:
        """(n, d): rows in network order."""
        if node_type not in self._matrices:
            if not self._own:
                self._check_rows(node_type)
            self._matrices[node_type] = self.vectors.matrix(node_type)
        return self._matrices[node_type]

    def h0(self, node_type: NodeType) -> Matrix:
        """(n, 64): a textless type's embeddings, also of nodes that were folded in; rows in network order."""
        if node_type not in self._h0:
            found = None
            if node_type in self.types:
                if not self._own:
                    self._check_rows(node_type)
                found = self.vectors.h0(node_type)
            if found is None:
                path = self.folder / TEXTLESS
                found = _kept(self.run, self.network, path, self._device, only_textless=True).h0(node_type)
            assert found is not None
            self._h0[node_type] = found
        return self._h0[node_type]

    def index(self, node_type: NodeType, choice: IndexChoice = "auto") -> Index:
        """What searches a type: exact, or approximate if that was chosen or pays; it is built if need be."""
        matrix = self.matrix(node_type)
        if choice == "auto" and len(matrix) >= APPROXIMATE_FROM:
            choice = "approximate" if has_faiss() else "exact"
            if choice == "exact":
                advice = "pip install 'heterformer[index]' makes searching them faster"
                say(f"There are {len(matrix):,} {node_type} nodes; {advice}.")
        if choice != "approximate":
            return ExactIndex(matrix)
        path = self.folder / INDEX / f"{node_type}.{self._digest(node_type)}.faiss"
        if not path.is_file():
            with file_lock(
                path, waiting=f"{self.run.path}: another process builds this index; waiting for it."
            ):
                if not path.is_file():
                    self._build(node_type, path)
        return ApproximateIndex.open(path, matrix)

    def _build(self, node_type: NodeType, path: Path) -> None:
        recall = build_index(path, self.matrix(node_type), self._sample(node_type))
        for old in path.parent.glob(f"{node_type}.*.faiss"):
            if old != path:
                old.unlink()
        built = f"Built an approximate index of {len(self.matrix(node_type)):,} {node_type} nodes"
        found = f"it finds {recall:.1%} of what exact search has in its first ten (recall@10 {recall:.3f})"
        say(f"{built}; {found}.")

    def _sample(self, node_type: NodeType) -> Sample:
        """Stored vectors of the type that queries have, as queries."""
        source = self.network.schema.predicted.source
        asking = source if source in self.types else node_type
        matrix = self.matrix(asking)
        count = min(SAMPLED_QUERIES, len(matrix))
        rows = np.random.default_rng(0).choice(len(matrix), count, replace=False)
        own = rows if asking == node_type else np.full(count, -1)
        return Sample(matrix[rows].astype(np.float32), own)

    def _digest(self, node_type: NodeType) -> str:
        """Tells whether vectors are those an index was made of, without reading them all."""
        matrix, path = self.matrix(node_type), self.vectors.path
        stat = (self.vectors.tables[0] if self.vectors.tables else path / f"{node_type}.npy").stat()
        some = np.linspace(0, len(matrix) - 1, min(len(matrix), SAMPLED_ROWS)).astype(np.int64)
        digest = hashlib.blake2b(np.ascontiguousarray(matrix[some]).data, digest_size=8)
        digest.update(f"{matrix.shape} {matrix.dtype} {stat.st_size} {stat.st_mtime_ns}".encode())
        return digest.hexdigest()

    def _check_rows(self, node_type: NodeType) -> None:
        ids = pl.Series(self.vectors.ids(node_type), dtype=pl.String)
        if not ids.equals(self.network.id_series(node_type)):
            found = f"its {node_type} nodes are not those of {self.network.path}, in that order"
            remedy = "give the network that they were made of by --network, or embed this one"
            raise InputError(f"{self.vectors.path}: {found}; {remedy}.")


def search_folder(run: Run, network: Network) -> Path:
    """Where the run keeps what searching a network needs."""
    own = run.config()["fingerprint"] == network.fingerprint
    return run.path / FOLDER / ("" if own else network.fingerprint)


def _kept(
    run: Run,
    network: Network,
    path: Path,
    device: Device,
    precision: Precision | None = None,
    *,
    only_textless: bool = False,
) -> Vectors:
    """The vectors at ``path``, made now unless they are there, of the model and in the precision asked."""
    weights, note = RunWeights(run), path.with_name(f"{path.name}.weights")
    made = {p: weights.file + ("" if p == "float32" else f" {p}") for p in get_args(Precision)}
    good = tuple(made.values()) if precision is None else (made[precision],)
    if found := _fresh(path, good):
        with suppress(OSError):
            os.utime(note)  # a network in use is not forgotten
        return found
    precision = precision or "float32"
    with file_lock(note, waiting=f"{run.path}: another process makes its search vectors; waiting for it."):
        if found := _fresh(path, good):
            return found
        if note.is_file() and (before := note.read_text(encoding="utf-8")) not in good:
            same = before.split()[:1] == weights.file.split()[:1]
            changed = "its model has changed since its search vectors were made"
            what = f"its search vectors are not in {precision}" if same else changed
            say(f"{run.path}: {what}; making them again.")
        remove_file(note)  # so that a kill from here on leaves no vectors that seem up to date
        model = run.model().to(chosen_device(device))
        textless = tuple(t for t in model.embedded_types if t in model.schema.textless)
        types = textless if only_textless else ()
        options = EmbedOptions(types=types, h0=bool(textless), precision=precision)
        others = [other / path.name for other in _folders(run) if other != path.parent]
        kept = [v for other in others if (v := _fresh(other, (made[precision],))) is not None]
        # That of which most is here again: the network may have grown from it.
        since = max(kept, key=lambda old: _in_common(network, old), default=None)
        vectors = embed_to(path, model, network, options, since=since.path if since else None)
        write_text(note, made[precision])
    _forget(run)
    return vectors


def _in_common(network: Network, old: Vectors) -> int:
    """How many nodes of the network have a vector there."""
    ids = {t: pl.Series(old.ids(t), dtype=pl.String) for t in old.types}
    return sum(int((known_rows(network.id_series(t), known) >= 0).sum()) for t, known in ids.items())


def _folders(run: Run) -> list[Path]:
    """Where vectors are kept: those of other networks, the one last searched first, then the run's own."""
    own = run.path / FOLDER
    inner = [p for p in own.iterdir() if p.is_dir() and p.name not in (VECTORS, TEXTLESS, INDEX)]
    others = [p for p in inner if not p.name.startswith(".")]
    return [*sorted(others, key=_time, reverse=True), own]


def _time(folder: Path) -> float:
    notes = (folder / f"{name}.weights" for name in (VECTORS, TEXTLESS))
    return max((note.stat().st_mtime for note in notes if note.is_file()), default=0.0)


def _forget(run: Run) -> None:
    """Keep what the last few networks need; of one that grows daily, no more than that is ever asked for."""
    for folder in _folders(run)[KEPT:-1]:
        note, gone = folder / f"{VECTORS}.weights", folder.with_name(f".{folder.name}.gone")
        with suppress(InputError, OSError), file_lock(note, busy="in use"):
            others = [p for p in folder.rglob(".*") if note.name not in p.name]
            if not any(p.suffix in (".lock", ".work") for p in others):
                # Away at once and whole: half of it must not pass for vectors.
                shutil.rmtree(gone, ignore_errors=True)
                folder.rename(gone)
    for gone in (run.path / FOLDER).glob(".*.gone"):  # also what a kill left
        shutil.rmtree(gone, ignore_errors=True)


def _fresh(path: Path, made_with: tuple[str, ...]) -> Vectors | None:
    """What is at ``path`` if it was made with the very weights, and is neither gone nor damaged."""
    note = path.with_name(f"{path.name}.weights")
    with suppress(InputError, FileNotFoundError):
        if note.read_text(encoding="utf-8") in made_with:
            return Vectors.open(path)
    return None
