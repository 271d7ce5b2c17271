"""What a run keeps for searching: the vectors of all nodes, and approximate indexes of large types.

RUN/search/                 for the run's own network; RUN/search/FINGERPRINT/ for another one of its types
  vectors/                  vectors of all nodes, with h0
  vectors.weights           the digest of the weights that they were computed with, and the precision if bf16
  index/TYPE.*.faiss/       an index; its name has a digest of its vectors
  map/                      the explorer's layout of all nodes
  textless/                 vectors of textless types with h0, for searching in other vectors without h0
"""

from __future__ import annotations

import hashlib
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl

from heterformer.arrays import Ints
from heterformer.device import Device, chosen_device
from heterformer.embedding.embed import embed_to, or_anew
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError
from heterformer.files import file_lock, remove_file, write_text
from heterformer.network.ids import known_rows
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.precision import ComputedPrecision, Precision
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
from heterformer.states.text_states import TextStates
from heterformer.temporary import remove_path
from heterformer.training.run import Run

VECTORS, TEXTLESS, INDEX, MAP = "vectors", "textless", "index", "map"
KEPT_NETWORKS = 3  # besides the run's own
SAMPLED_QUERIES = 200  # for building an index and measuring its recall
TYPICAL = 1024  # rows of a matrix that stand for all of them


class SearchStore:
    """The vectors to search in, type by type, and their indexes.

    ``own`` vectors are the run's, computed from this very network: their rows need no check. From
    ``approximate_from`` nodes on, a type is searched with an approximate index.
    """

    def __init__(
        self,
        run: Run,
        network: Network,
        vectors: Vectors,
        own: bool,
        device: Device = "auto",
        kept_networks: int = KEPT_NETWORKS,
        approximate_from: int = APPROXIMATE_FROM,
    ) -> None:
        self.run, self.network, self.vectors, self._device = run, network, vectors, device
        self.folder = search_folder(run, network)
        self._own, self._kept_networks, self._approximate_from = own, kept_networks, approximate_from
        # Mapped at once, if they are our own: a mapped file may be removed meanwhile.
        self._matrices: dict[NodeType, Matrix] = {t: vectors.matrix(t) for t in vectors.types if own}
        self._typical: dict[NodeType, Matrix] = {}
        self._indexes: dict[NodeType, Index] = {}  # that were opened
        self._h0: dict[NodeType, Matrix] = {
            t: h0 for t in self._matrices if (h0 := vectors.h0(t)) is not None
        }

    @classmethod
    def open(
        cls,
        run: Run,
        network: Network,
        vectors: Path | None = None,
        device: Device = "auto",
        precision: Precision = "auto",
        *,
        kept_networks: int = KEPT_NETWORKS,
        approximate_from: int = APPROXIMATE_FROM,
        texts: TextStates | None = None,
    ) -> SearchStore:
        """Open ``vectors``, or else the run's own, which are computed unless they are stored already.

        For the precision ``auto`` stored vectors of any precision will do. Of networks other than the run's
        own the vectors of the last ``kept_networks`` stay. ``texts`` are states of all texts that the caller
        has computed in that precision, which must then be given.
        """
        if vectors is not None:
            opened = Vectors.open(vectors)
        else:
            path = search_folder(run, network) / VECTORS
            opened = _stored_vectors(run, network, path, device, kept_networks, precision, texts)
        return cls(run, network, opened, vectors is None, device, kept_networks, approximate_from)

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

    def typical(self, node_type: NodeType) -> Matrix:
        """(r, d): vectors of some nodes, whose scores are what is usual for the type.

        They are kept: every search needs them, and to copy them each time would take longer than the search.
        """
        if node_type not in self._typical:
            matrix = self.matrix(node_type)
            self._typical[node_type] = matrix[typical_rows(len(matrix))].astype(np.float32)
        return self._typical[node_type]

    def h0(self, node_type: NodeType) -> Matrix:
        """(n, 64): a textless type's embeddings, also of nodes that were folded in; rows in network order."""
        if node_type not in self._h0:
            embeddings = None
            if node_type in self.types:
                if not self._own:
                    self._check_rows(node_type)
                embeddings = self.vectors.h0(node_type)
            if embeddings is None:
                path = self.folder / TEXTLESS
                store = self.run, self.network, path, self._device, self._kept_networks
                embeddings = _stored_vectors(*store, only_textless=True).h0(node_type)
            assert embeddings is not None
            self._h0[node_type] = embeddings
        return self._h0[node_type]

    def index(
        self, node_type: NodeType, choice: IndexChoice = "auto", approximate_from: int | None = None
    ) -> Index:
        """The index of a type: exact, or approximate if chosen or worthwhile; it is built the first time.

        It is worthwhile from some number of nodes on, which is smaller if all of them are to be queries.
        """
        matrix = self.matrix(node_type)
        if choice == "auto" and len(matrix) >= (approximate_from or self._approximate_from):
            choice = "approximate" if has_faiss() else "exact"
            if choice == "exact":
                advice = "for faster search: pip install 'heterformer[index]'"
                say(f"There are {len(matrix):,} {node_type} nodes; {advice}.")
        if choice != "approximate":
            return ExactIndex(matrix)
        if node_type in self._indexes:
            return self._indexes[node_type]
        path = self.folder / INDEX / f"{node_type}.{self.digest(node_type)}.faiss"
        opened = self._sound_index(path, matrix)
        if opened is None:
            with file_lock(
                path, waiting=f"{self.run.path}: another process is building this index; waiting for it."
            ):
                opened = self._sound_index(path, matrix)
                if opened is None:
                    self._build(node_type, path)
        self._indexes[node_type] = opened or ApproximateIndex.open(path, matrix)
        return self._indexes[node_type]

    def recall(self, node_type: NodeType) -> float | None:
        """Recall@10 of a type's approximate index; nothing if none is open."""
        index = self._indexes.get(node_type)
        return index.recall if isinstance(index, ApproximateIndex) else None

    def _sound_index(self, path: Path, matrix: Matrix) -> ApproximateIndex | None:
        """The index at ``path``; None if it is not there, or damaged, which is said."""
        if not path.is_dir():  # a file is an index of an earlier version
            return None
        try:
            return ApproximateIndex.open(path, matrix)
        except InputError as error:
            say(f"{error} It is built again now.")
            return None

    def _build(self, node_type: NodeType, path: Path) -> None:
        recall = build_index(path, self.matrix(node_type), self._sample(node_type))
        for old in path.parent.glob(f"{node_type}.*.faiss"):
            if old != path:
                remove_path(old)
        count = len(self.matrix(node_type))
        say(f"Built an approximate index of {count:,} {node_type} nodes: recall@10 {recall:.3f}.")

    def _sample(self, node_type: NodeType) -> Sample:
        """Stored vectors of the query type, as queries."""
        source = self.network.schema.predicted[0].source
        query_type = source if source in self.types else node_type
        matrix = self.matrix(query_type)
        count = min(SAMPLED_QUERIES, len(matrix))
        rows = np.random.default_rng(0).choice(len(matrix), count, replace=False)
        own = rows if query_type == node_type else np.full(count, -1)
        return Sample(matrix[rows].astype(np.float32), own)

    def digest(self, node_type: NodeType) -> str:
        """A digest that says which vectors an index or a layout belongs to, without reading them all."""
        matrix, path = self.matrix(node_type), self.vectors.path
        stat = (self.vectors.tables[0] if self.vectors.tables else path / f"{node_type}.npy").stat()
        sample = np.ascontiguousarray(matrix[typical_rows(len(matrix))])
        digest = hashlib.blake2b(sample.data, digest_size=8)
        digest.update(f"{matrix.shape} {matrix.dtype} {stat.st_size} {stat.st_mtime_ns}".encode())
        return digest.hexdigest()

    def _check_rows(self, node_type: NodeType) -> None:
        ids = pl.Series(self.vectors.ids(node_type), dtype=pl.String)
        if not ids.equals(self.network.id_series(node_type)):
            problem = f"its {node_type} nodes are not those of {self.network.path} in the same order"
            remedy = "search the network that was embedded, or embed this one"
            raise InputError(f"{self.vectors.path}: {problem}; {remedy}.")


def typical_rows(count: int) -> Ints:
    """Some of ``count`` rows, at even distances."""
    return np.linspace(0, count - 1, min(count, TYPICAL)).astype(np.int64)


def search_folder(run: Run, network: Network) -> Path:
    """The folder of a run that has its vectors and indexes of a network."""
    own = run.config()["fingerprint"] == network.fingerprint
    return run.path / FOLDER / ("" if own else network.fingerprint)


def _stored_vectors(
    run: Run,
    network: Network,
    path: Path,
    device: Device,
    kept_networks: int,
    precision: Precision = "auto",
    texts: TextStates | None = None,
    *,
    only_textless: bool = False,
) -> Vectors:
    """The vectors at ``path``, computed unless they are there, of the run's model and in the precision."""
    weights, note, note_texts = RunWeights(run), path.with_name(f"{path.name}.weights"), _note_texts(run)
    accepted = _accepted(note_texts, precision)
    if vectors := _up_to_date(path, accepted):
        with suppress(OSError):
            os.utime(note)  # a network in use is not removed
        return vectors
    with file_lock(
        note, waiting=f"{run.path}: another process is computing its search vectors; waiting for it."
    ):
        if vectors := _up_to_date(path, accepted):
            return vectors
        if note.is_file() and (before := note.read_text(encoding="utf-8")) not in accepted:
            same_weights = before.split()[:1] == weights.file.split()[:1]
            changed = "its model has changed since its search vectors were computed"
            reason = f"its search vectors are not in {precision}" if same_weights else changed
            say(f"{run.path}: {reason}; computing them again.")
        remove_file(note)  # so that a kill from here on leaves no vectors that seem up to date
        model = run.model().to(chosen_device(device))
        textless = tuple(t for t in model.embedded_types if t in model.schema.textless)
        types = textless if only_textless else ()
        options = EmbedOptions(types=types, h0=bool(textless), precision=precision)
        others = [other / path.name for other in _folders(run) if other != path.parent]
        earlier = [v for other in others if (v := _up_to_date(other, accepted)) is not None]
        # The one that shares most nodes: the network may have grown from it.
        since = max(earlier, key=lambda old: _shared_nodes(network, old), default=None)
        embed_since = partial(embed_to, path, model, network, options, texts=texts)
        vectors = or_anew(embed_since, since.path) if since else embed_since(since=None)
        write_text(note, note_texts[vectors.metadata["precision"]])
    _remove_unused(run, kept_networks)
    return vectors


def kept_vectors(run: Run, network: Network, options: EmbedOptions) -> Path | None:
    """The vectors that searches and evaluations keep, if ``embed`` with these options would make the same."""
    if replace(options, types=(), h0=False, states="shared", precision="auto") != EmbedOptions():
        return None
    path, accepted = search_folder(run, network) / VECTORS, _accepted(_note_texts(run), options.precision)
    return path if _up_to_date(path, accepted) is not None else None


def _accepted(note_texts: dict[ComputedPrecision, str], precision: Precision) -> tuple[str, ...]:
    """The notes of vectors that will do: of any precision unless one is asked for."""
    return tuple(note_texts.values()) if precision == "auto" else (note_texts[precision],)


def _note_texts(run: Run) -> dict[ComputedPrecision, str]:
    """By precision, what the note beside vectors of the run's present weights says."""
    weights = RunWeights(run).file
    return {p: weights + ("" if p == "float32" else f" {p}") for p in get_args(ComputedPrecision)}


def _shared_nodes(network: Network, old: Vectors) -> int:
    """How many nodes of the network have an earlier vector."""
    ids = {t: pl.Series(old.ids(t), dtype=pl.String) for t in old.types}
    return sum(int((known_rows(network.id_series(t), known) >= 0).sum()) for t, known in ids.items())


def _folders(run: Run) -> list[Path]:
    """The folders with vectors: of other networks, the one last searched first, then of the run's own."""
    own = run.path / FOLDER
    inner = [p for p in own.iterdir() if p.is_dir() and p.name not in (VECTORS, TEXTLESS, INDEX, MAP)]
    others = [p for p in inner if not p.name.startswith(".")]
    return [*sorted(others, key=_last_used, reverse=True), own]


def _last_used(folder: Path) -> float:
    notes = (folder / f"{name}.weights" for name in (VECTORS, TEXTLESS))
    return max((note.stat().st_mtime for note in notes if note.is_file()), default=0.0)


def _remove_unused(run: Run, kept_networks: int) -> None:
    """Remove all but the vectors of the last few networks: one that grows daily would fill the disk."""
    for folder in _folders(run)[kept_networks:-1]:
        note, removed = folder / f"{VECTORS}.weights", folder.with_name(f".{folder.name}.gone")
        with suppress(InputError, OSError), file_lock(note, busy="in use"):
            others = [p for p in folder.rglob(".*") if note.name not in p.name]
            if not any(p.suffix in (".lock", ".work") for p in others):
                # Renamed first: half of a folder must not pass for vectors.
                shutil.rmtree(removed, ignore_errors=True)
                folder.rename(removed)
    for removed in (run.path / FOLDER).glob(".*.gone"):  # also what a kill left
        shutil.rmtree(removed, ignore_errors=True)


def _up_to_date(path: Path, accepted: tuple[str, ...]) -> Vectors | None:
    """The vectors at ``path`` if their note is accepted and they are neither missing nor damaged."""
    note = path.with_name(f"{path.name}.weights")
    with suppress(InputError, FileNotFoundError):
        if note.read_text(encoding="utf-8") in accepted:
            return Vectors.open(path)
    return None
