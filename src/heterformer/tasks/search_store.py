"""What a run keeps for searching: the vectors of all nodes, and approximate indexes of large types.

RUN/search/vectors/            what 'heterformer embed' writes
RUN/search/weights.txt         the digest of the weights that the vectors were made with, and bf16 if in that
RUN/search/index/TYPE.*.faiss  an index; its name has a digest of the vectors it was made of
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl

from heterformer.embedding.approximate import (
    APPROXIMATE_FROM,
    ApproximateIndex,
    Sample,
    build_index,
    has_faiss,
)
from heterformer.embedding.embed import embed_run
from heterformer.embedding.index import ExactIndex, Index, Matrix
from heterformer.embedding.options import EmbedOptions, Precision
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError
from heterformer.files import settled, write_text
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.progress import say
from heterformer.tasks.search_options import IndexChoice
from heterformer.training.run import Run

FOLDER, VECTORS, WEIGHTS, INDEX = "search", "vectors", "weights.txt", "index"
SAMPLED_QUERIES = 200  # of which recall is measured with one half
SAMPLED_ROWS = 1024  # of a matrix, that its digest is made of


class SearchStore:
    """The vectors that are searched in, type by type, and their indexes."""

    def __init__(self, folder: Path, network: Network, vectors: Vectors, own: bool) -> None:
        self.folder, self.network, self.vectors = folder, network, vectors
        self._own = own  # made from this very network, so that rows need no check
        self._matrices: dict[NodeType, Matrix] = {}

    @classmethod
    def open(
        cls, run: Run, network: Network, given: Path | None = None, precision: Precision = "float32"
    ) -> SearchStore:
        """The run's own vectors, made now unless they are there, of the same model and in that precision."""
        folder = run.path / FOLDER
        if given is not None:
            return cls(folder, network, Vectors.open(given), own=False)
        return cls(folder, network, _own_vectors(run, folder, precision), own=True)

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
        stat = (path / f"{node_type}.npy" if path.is_dir() else path).stat()
        some = np.linspace(0, len(matrix) - 1, min(len(matrix), SAMPLED_ROWS)).astype(np.int64)
        digest = hashlib.blake2b(np.ascontiguousarray(matrix[some]).data, digest_size=8)
        digest.update(f"{matrix.shape} {matrix.dtype} {stat.st_size} {stat.st_mtime_ns}".encode())
        return digest.hexdigest()

    def _check_rows(self, node_type: NodeType) -> None:
        ids = pl.Series(self.vectors.ids(node_type), dtype=pl.String)
        if not ids.equals(self.network.id_series(node_type)):
            found = f"its {node_type} nodes are not those of {self.network.path}, in that order"
            raise InputError(f"{self.vectors.path}: {found}; embed the run's own network.")


def _own_vectors(run: Run, folder: Path, precision: Precision) -> Vectors:
    now, note = _weights_digest(run) + _suffix(precision), folder / WEIGHTS
    before = note.read_text(encoding="utf-8") if note.is_file() else None
    if before == now:
        with suppress(InputError):  # unless they are gone or damaged
            return Vectors.open(settled(folder / VECTORS))
    elif before is not None:
        same = before.split()[0] == now.split()[0]
        changed = "its model has changed since its search vectors were made"
        what = f"its search vectors are not in {precision}" if same else changed
        told = f"{what}; making them again"
        say(f"{run.path}: {told}.")
    note.unlink(missing_ok=True)  # so that a kill from here on leaves no vectors that seem to be up to date
    vectors = embed_run(run.path, folder / VECTORS, EmbedOptions(precision=precision))
    write_text(note, now)
    return vectors


def _suffix(precision: Precision) -> str:
    return "" if precision == "float32" else f" {precision}"


def _weights_digest(run: Run) -> str:
    path = settled(run.best) / "model.safetensors"
    if not path.is_file():
        path = settled(run.last) / "model.safetensors"
    if not path.is_file():
        raise InputError(f"{run.path}: has no model yet; run 'heterformer train' again.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
