"""A vector for every node of a network: states of all texts first, then every centre, each exactly once."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoTokenizer

from heterformer.batches.batcher import Batcher
from heterformer.batches.stable import StableSample
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding import row_file
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.row_file import RowFile, kept_array
from heterformer.embedding.signatures import Signatures
from heterformer.embedding.since import Since
from heterformer.embedding.states import TextStates
from heterformer.embedding.unseen import check_schema, meeting
from heterformer.embedding.vectors import (
    ROWS,
    Chunk,
    Layout,
    Vectors,
    is_parquet,
    is_vectors_file,
    is_vectors_folder,
    write_vectors,
)
from heterformer.errors import InputError
from heterformer.files import alone, write_text
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import center_batches, center_vectors, neighbor_numbers
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.network.tokens import open_tokens
from heterformer.progress import progress_bar, say
from heterformer.training.device import Device, chosen_device
from heterformer.training.run import Run

MANIFEST = "manifest.json"
ANY_KEY = np.uint64(0)  # the stable sample does not depend on it


def embed(
    model: NodeEncoder,
    network: Network,
    options: EmbedOptions | None = None,
    *,
    tokenizer: Any = None,
    visible: VisibleNetwork | None = None,
) -> dict[str, NDArray[Any]]:
    """Vectors of every node, ``{"paper": array, "author": array, ...}``, rows in network order.

    With ``h0`` in the options, textless types' own embeddings are there as ``"author.h0"``.
    Nodes that the model has not met in training are folded in. ``visible`` can hide edges from it.
    """
    with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
        work = Embedding(model, visible or VisibleNetwork.whole(network), options, tokenizer)
        work.compute(Path(folder))
        found: dict[str, NDArray[Any]] = {}
        for node_type in work.types:
            chunks = list(work.chunks(node_type))
            found[node_type] = np.concatenate([chunk.vectors for chunk in chunks])
            if "h0" in chunks[0].extra:
                found[f"{node_type}.h0"] = np.concatenate([chunk.extra["h0"] for chunk in chunks])
        return found


def embed_to(
    out: Path | str,
    model: NodeEncoder,
    network: Network,
    options: EmbedOptions | None = None,
    *,
    since: Path | None = None,
    tokenizer: Any = None,
) -> Vectors:
    """Write vectors of every node: a Parquet table if the name ends so, else a folder of NumPy arrays.

    What is computed is kept beside ``out`` until it is whole: after a kill the same call goes on from there.
    """
    out = Path(out)
    _check_place(out)
    work = Embedding(model, VisibleNetwork.whole(network), options, tokenizer, since)
    with alone(out, busy=f"{out}: another process is writing it; wait until it is done."):
        folder = out.with_name(f".{out.name}.work")
        _settle(folder, work.manifest)
        try:
            work.compute(folder)
            chunks = (chunk for t in work.types for chunk in work.chunks(t))
            write_vectors(out, work.layout, chunks)
        except KeyboardInterrupt:
            say(f"{out}: not finished yet; the same command goes on.")
            raise
        _remove(folder)
        return Vectors.open(out)


def _remove(folder: Path) -> None:
    """At once and whole: half of it must not pass for the work of another call."""
    gone = folder.with_name(folder.name + ".old")
    folder.rename(gone)
    shutil.rmtree(gone)


def _check_place(out: Path) -> None:
    """Never take the place of something else, and find out before hours of work."""
    if not out.name:
        raise InputError(f"{out}: expected the name of a file or folder to write.")
    if is_parquet(out):
        if out.is_dir():
            raise InputError(f"{out}: is a folder, expected a file's name.")
        if out.exists() and not is_vectors_file(out):
            raise InputError(f"{out}: exists and is not what 'heterformer embed' wrote; choose another name.")
        return
    if (
        out.suffix and not out.suffix[1:].isdigit()
    ):  # a folder may well be named for a version, such as aan-1.2
        raise InputError(
            f"{out}: expected a name that ends in .parquet, or one without an ending for a folder of NumPy "
            f"arrays; {out.suffix} is not written."
        )
    if out.exists() and not (out.is_dir() and (is_vectors_folder(out) or not any(out.iterdir()))):
        raise InputError(f"{out}: exists and holds something else; choose another name.")


def embed_run(
    path: Path | str,
    out: Path | str,
    options: EmbedOptions | None = None,
    *,
    network: Path | None = None,
    since: Path | None = None,
    device: Device = "auto",
) -> Vectors:
    """Write vectors of a run's network, or of another one of the same types, under the run's best model."""
    run = Run(path)
    opened = run.network() if network is None else Network.open(network)
    model = run.model().to(chosen_device(device))
    return embed_to(out, model, opened, options, since=since)


def _settle(folder: Path, manifest: dict[str, Any]) -> None:
    """Keep what an earlier call left if it was to make the same vectors; else start anew."""
    text = json.dumps(manifest, indent=1)
    path, old = folder / MANIFEST, folder.with_name(folder.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists() and not (path.is_file() and path.read_text(encoding="utf-8") == text):
        if path.is_file():
            say(f"{folder}: belongs to other options, model or network; starting anew.")
        _remove(folder)
    if not folder.exists():
        folder.mkdir()
        write_text(path, text)


class Embedding:
    """The vectors of one network under one model; ``compute`` makes them, ``chunks`` hands them out."""

    def __init__(
        self,
        model: NodeEncoder,
        visible: VisibleNetwork,
        options: EmbedOptions | None = None,
        tokenizer: Any = None,
        since: Path | None = None,
    ) -> None:
        self.trained, self.visible, self.options = model.eval(), visible, options or EmbedOptions()
        self.network, self.schema = visible.network, visible.network.schema
        check_schema(model.schema, self.schema)
        # As in training, whatever another network would have by itself.
        self.tokens = open_tokens(self.network, tokenizer or _tokenizer_of(model), model.schema.max_tokens)
        self.types = self._types()
        self._check_h0()
        self.batcher = Batcher(
            visible, self.tokens, self._fan_out(), StableSample(visible, self.options.seed)
        )
        self.since = None if since is None else Since(since, self._settings, self.network)

    def _types(self) -> tuple[NodeType, ...]:
        for node_type in self.options.types:
            if node_type not in self.schema.node_types:
                known = ", ".join(map(repr, self.schema.node_types))
                raise InputError(f"--types names {node_type!r}, the node types are {known}.")
            if node_type not in self.trained.embedded_types:
                raise InputError(f"--types names {node_type!r}, of which this model has learnt nothing.")
        return tuple(dict.fromkeys(self.options.types or self.trained.embedded_types))

    def _check_h0(self) -> None:
        if not self.options.h0 or set(self.types) & set(self.schema.textless):
            return
        if set(self.trained.embedded_types) & set(self.schema.textless):
            raise InputError("--h0 writes embeddings of nodes without text, and --types names no such type.")
        named = type(self.trained).__name__
        raise InputError(f"--h0 writes embeddings of nodes without text, of which this {named} has none.")

    def _fan_out(self) -> dict[NodeType, int]:
        cap = self.options.all_neighbors
        sampled = self.trained.schema.neighbors
        return {t: (cap or n) if n else 0 for t, n in sampled.items()}

    @cached_property
    def _settings(self) -> dict[str, Any]:
        """What vectors must have in common to be compared, or to be taken over by ``since``."""
        return {
            "model": model_digest(self.trained),
            "fan_out": self._fan_out(),
            "dtype": self.options.dtype,
            "states_dtype": self.options.states_dtype,
            "precision": self.options.precision,
            "seed": self.options.seed,
        }

    @property
    def manifest(self) -> dict[str, Any]:
        """Everything that decides the result."""
        options = asdict(replace(self.options, types=self.types))
        options["types"] = list(self.types)
        old = self.since.digest if self.since else None
        work = {"part": row_file.PART, "since": old, "device": self.trained.device.type}
        return self._settings | {"network": self.network.fingerprint, "options": options} | work

    @property
    def layout(self) -> Layout:
        extra = {}
        if self.options.h0:
            extra["h0"] = int(self.trained.config.textless_dim)
        counts = {t: self.schema.counts[t] for t in self.types}
        metadata = self._settings | {"name": self.network.name}
        return Layout(counts, self.trained.width, np.dtype(self.options.dtype), extra, metadata)

    def compute(self, folder: Path) -> None:
        """Make the vectors of all text-rich nodes in ``folder``; what is there already is not made again."""
        if self.since is not None:
            self.since.folder = folder
        self.model, folded = meeting(self.trained, self.visible, self.tokens, folder)
        self.signatures = Signatures(self.model, self.tokens, folded)
        self.vectors = {t: self._row_file(folder, t) for t in self.types if t in self.schema.text_rich}
        todo = {t: list(file.missing()) for t, file in self.vectors.items()}
        if any(todo.values()):
            # The texts that the spool has rows for: those that the first call needed.
            needed = kept_array(folder / "needed.npy", lambda: self._needed(todo))
            dtype = np.dtype(self.options.states_dtype)
            spool = TextStates(folder / "states.bin", self.model, self.tokens, needed, dtype)
            fast = self.options.precision == "bf16"
            with torch.autocast(self.model.device.type, torch.bfloat16, enabled=fast):
                spool.fill()
                self._fill(todo, spool)

    def _row_file(self, folder: Path, node_type: NodeType) -> RowFile:
        shape, dtype = (self.trained.width,), self.options.dtype
        return RowFile(folder / f"{node_type}.vectors.bin", self.schema.counts[node_type], shape, dtype)

    def _needed(self, todo: dict[NodeType, list[tuple[int, int]]]) -> NDArray[np.int64]:
        """The numbers of the texts whose states the missing vectors are made of."""
        wanted = np.zeros(len(self.tokens.offsets) - 1, dtype=bool)
        total = sum(stop - start for parts in todo.values() for start, stop in parts)
        with progress_bar("sampling neighbours", total, "nodes") as bar:
            for node_type, parts in todo.items():
                for start, stop in parts:
                    rows = self._changed(node_type, start, stop)
                    for _, batch in center_batches(self.batcher, node_type, rows, ANY_KEY):
                        wanted[neighbor_numbers(batch)] = True
                    bar.advance(stop - start)
        return np.flatnonzero(wanted)

    def _changed(self, node_type: NodeType, start: int, stop: int) -> NDArray[np.int64]:
        """Of a part's rows, those whose vectors are not known from an earlier embedding."""
        rows = np.arange(start, stop)
        if self.since is None:
            return rows
        return rows[~self.since.holds(node_type, rows, self._signatures(node_type, rows))]

    def _signatures(self, node_type: NodeType, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        found = np.empty(len(rows), dtype=np.uint64)
        for positions, batch in center_batches(self.batcher, node_type, rows, ANY_KEY):
            found[positions] = self.signatures.of(batch)
        return found

    def _fill(self, todo: dict[NodeType, list[tuple[int, int]]], spool: TextStates) -> None:
        total = sum(file.count for file in self.vectors.values())
        missing = sum(stop - start for parts in todo.values() for start, stop in parts)
        with progress_bar("embedding", total, "nodes") as bar:
            bar.advance(total - missing)
            for node_type, parts in todo.items():
                for start, stop in parts:
                    self.vectors[node_type].write(start, self._part(node_type, start, stop, spool))
                    bar.advance(stop - start)

    def _part(self, node_type: NodeType, start: int, stop: int, spool: TextStates) -> NDArray[Any]:
        vectors = np.empty((stop - start, self.trained.width), dtype=self.options.dtype)
        rows = self._changed(node_type, start, stop)
        found = center_vectors(self.model, self.batcher, node_type, rows, ANY_KEY, spool)
        vectors[rows - start] = found.numpy()
        if self.since is not None:
            kept = np.setdiff1d(np.arange(start, stop), rows)
            if len(kept):  # the earlier output may not have the type at all
                vectors[kept - start] = self.since.vectors(node_type, kept)
        return vectors

    def chunks(self, node_type: NodeType) -> Iterator[Chunk]:
        """The finished vectors of one type, some thousand at a time, rows in network order."""
        ids = self.network.id_series(node_type)
        for start in range(0, len(ids), ROWS):
            part = slice(start, min(start + ROWS, len(ids)))
            names = ids[part].to_list()
            if node_type in self.vectors:
                signatures = self._signatures(node_type, np.arange(part.start, part.stop))
                yield Chunk(node_type, names, self.vectors[node_type].read(part), signatures, {})
            else:
                yield self._textless_chunk(node_type, names, part)

    def _textless_chunk(self, node_type: NodeType, ids: list[str], part: slice) -> Chunk:
        rows = torch.arange(part.start, part.stop, device=self.model.device)
        with torch.no_grad():
            vectors = self.model.textless_vectors(node_type, rows).float().cpu().numpy()
            h0 = self.model.textless.embeddings(node_type, rows).float().cpu().numpy()
        extra = {"h0": h0.astype(self.options.dtype)} if self.options.h0 else {}
        signatures = self.signatures.textless(node_type)[part]
        return Chunk(node_type, ids, vectors.astype(self.options.dtype), signatures, extra)


def model_digest(model: NodeEncoder) -> str:
    """A digest of a model's weights and options."""
    config = {name: getattr(model.config, name) for name in model.config.option_names()}
    config["backbone"] = model.config.backbone
    digest = hashlib.blake2b(json.dumps(config, sort_keys=True).encode(), digest_size=16)
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _tokenizer_of(model: NodeEncoder) -> Any:
    """The tokenizer in the folder that the model was loaded from."""
    source = getattr(model, "name_or_path", "")
    if not source or not (Path(source) / "tokenizer_config.json").is_file():
        raise InputError("the model does not come from a folder with a tokenizer; give embed a tokenizer=.")
    return AutoTokenizer.from_pretrained(source)
