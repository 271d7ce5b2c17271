"""The passes over one network: states of all texts first, then every centre, each exactly once.

Between the two, for a model that reads neighbours of neighbours: each text's own neighbours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from heterformer.arrays import Ints
from heterformer.batches.batcher import SampledNodes
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.device import chosen_precision, computing_in, say_if_slow
from heterformer.distributed import ProcessGroup
from heterformer.embedding.neighborhoods import AGAIN, SampledParts
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.signatures import Signatures
from heterformer.embedding.since import EarlierVectors
from heterformer.embedding.vectors import (
    ROWS,
    Chunk,
    Layout,
    join_parts,
    noted_precision,
    part_name,
    write_part,
    write_vectors,
)
from heterformer.errors import InputError, OptionError
from heterformer.files import reading, replace_folder
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.inference import (
    TOKENS,
    StoredStates,
    center_batches,
    drawn_once,
    sampled_text_rows,
    sampled_textless_vectors,
    sampled_vectors,
)
from heterformer.network.schema import NodeType, check_schema
from heterformer.precision import ComputedPrecision
from heterformer.progress import Bar, progress_bar
from heterformer.states.neighbor_states import NeighborStates
from heterformer.states.row_file import PART, RowFile, kept_array
from heterformer.states.text_states import TextStates
from heterformer.training.unseen import adapt_to_network


class Embedding:
    """The vectors of one network under one model; ``compute`` makes them, ``chunks`` hands them out."""

    def __init__(
        self,
        model: NodeEncoder,
        visible: VisibleNetwork,
        options: EmbedOptions | None = None,
        tokenizer: Any = None,
        since: Path | None = None,
        processes: ProcessGroup | None = None,
        part: int = PART,
        tokens_per_batch: int = TOKENS,
        texts: TextStates | None = None,
    ) -> None:
        """``part`` nodes are written at once, and at most ``tokens_per_batch`` tokens read at once.

        ``texts`` are the states of all texts, if the caller has them already, under the same weights and in
        the same precision.
        """
        self.processes, self._texts = processes or ProcessGroup(), texts
        self.part, self.tokens_per_batch = part, tokens_per_batch
        self.trained, self.visible, options = model.eval(), visible, options or EmbedOptions()
        self.options = replace(options, precision=_precision(options, since, model.device))
        self.network, self.schema = visible.network, visible.network.schema
        check_schema(model.schema, self.schema)
        # As in training, whatever another network would have by itself.
        self.tokens = model.open_tokens(self.network, tokenizer)
        self.types = self._types()
        self.width = model.check_width(self.options.width, self.options, "width")
        self._check_h0()
        self.batcher = model.new_batcher(visible, self.tokens, self._fan_out())
        self.sampler = StableSampler(self.network, self.options.seed)
        self.second_hop = drawn_once(self.batcher, self.sampler)
        self.since = None if since is None else self._earlier_vectors(since)
        self.anew = 0  # nodes with text that this call computed, as far as this process did

    def _earlier_vectors(self, path: Path) -> EarlierVectors:
        """Of the types that are written, and of those that nodes are folded into."""
        textless = (t for t in self.trained.embedded_types if t in self.schema.textless)
        types = tuple(dict.fromkeys((*self.types, *textless)))
        dim = self.trained.config.textless_dim if isinstance(self.trained, HeterogeneousEncoder) else 0
        return EarlierVectors(path, self._settings, self.network, types, dim)

    def _types(self) -> tuple[NodeType, ...]:
        for node_type in self.options.types:
            if node_type not in self.schema.node_types:
                known = ", ".join(map(repr, self.schema.node_types))
                raise OptionError(self.options, "types", f"has {node_type!r}, expected some of {known}.")
            if node_type not in self.trained.embedded_types:
                known = ", ".join(map(repr, self.trained.embedded_types))
                problem = f"has {node_type!r}, but the model has vectors of {known} only."
                raise OptionError(self.options, "types", problem)
        return tuple(dict.fromkeys(self.options.types or self.trained.embedded_types))

    def _check_h0(self) -> None:
        if not self.options.h0 or set(self.types) & set(self.schema.textless):
            return
        if set(self.trained.embedded_types) & set(self.schema.textless):
            problem = "writes embeddings of nodes without text, but {types} has no such type."
            raise OptionError(self.options, "h0", problem)
        named = type(self.trained).__name__
        problem = f"writes embeddings of nodes without text, of which this {named} has none."
        raise OptionError(self.options, "h0", problem)

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
            **({} if self.width == self.trained.width else {"width": self.width}),
        }

    @cached_property
    def _hidden_pairs(self) -> dict[str, str]:
        """What the vectors have not seen: whoever evaluates them must know."""
        return self.visible.hidden_pairs()

    @property
    def manifest(self) -> dict[str, Any]:
        """Everything that decides the result."""
        options = asdict(replace(self.options, types=self.types))
        options["types"] = list(self.types)
        del options["states"]  # another way to the same
        if options["width"] is None:
            del options["width"]  # an embedding that an earlier version began goes on
        old = self.since.digest if self.since else None
        work = {"part": self.part, "since": old, "device": self.trained.device.type}
        about = {"network": self.network.fingerprint, "options": options, "hidden_pairs": self._hidden_pairs}
        return self._settings | about | work

    @property
    def layout(self) -> Layout:
        extra = {}
        if any(self._with_h0(t) for t in self.types):
            extra["h0"] = int(self.trained.config.textless_dim)
        counts = {t: self.schema.counts[t] for t in self.types}
        metadata = self._settings | {"name": self.network.name, "hidden_pairs": self._hidden_pairs}
        return Layout(counts, self.width, np.dtype(self.options.dtype), extra, metadata)

    def compute(self, folder: Path) -> None:
        """Make the vectors of all text-rich nodes in ``folder``; what is there already is not made again."""
        with self.processes.main_process_first():  # unpacking and folding in, once for all
            if self.since is not None:
                self.since.unpack(folder)
            self.model, self.folded = adapt_to_network(
                self.trained, self.visible, self.tokens, folder, self.since
            )
            text_rich = [t for t in self.types if t in self.schema.text_rich]
            width, dtype = (self.width,), self.options.dtype
            self.vectors = {t: self._row_file(folder, t, "vectors", width, dtype) for t in text_rich}
            self.signatures = {t: self._row_file(folder, t, "signatures", (), np.uint64) for t in text_rich}
            self.sampled = SampledParts(folder, self.batcher, self.sampler)
        self._signatures = Signatures(self.model, self.tokens, self.folded, self.second_hop)
        self._sample()
        todo = {t: self._own_missing(file) for t, file in self.vectors.items()}
        self._states: StoredStates | None = None
        if self.processes.any(any(todo.values())) or self._aggregating:
            precision, device = self.options.precision, self.model.device
            say_if_slow(precision, device)
            with computing_in(precision, device):
                self._states = self._stored_states(folder, todo)
                self._fill(todo, self._states)
        self.processes.barrier()

    def _row_file(
        self, folder: Path, node_type: NodeType, name: str, shape: tuple[int, ...], dtype: DTypeLike
    ) -> RowFile:
        path, count = folder / f"{node_type}.{name}.npy", self.schema.counts[node_type]
        return RowFile(path, count, shape, dtype, self.part, self.processes.rank)

    def _sample(self) -> None:
        """Sample the neighbourhoods of this process's nodes, and note what their vectors are made of."""
        todo = {t: self._own_missing(file) for t, file in self.signatures.items()}
        total = sum(stop - start for parts in todo.values() for start, stop in parts)
        if not total:
            return
        with progress_bar("sampling neighbours", total, "nodes") as bar:
            for node_type, parts in todo.items():
                for start, stop in parts:
                    signatures = np.empty(stop - start, dtype=np.uint64)
                    nodes = self.sampled.part(node_type, start, stop)
                    for positions, batch in center_batches(self.batcher, nodes):
                        signatures[positions] = self._signatures.for_batch(batch)
                    self.signatures[node_type].write(start, signatures)
                    bar.advance(stop - start)

    def _own_missing(self, file: RowFile) -> list[tuple[int, int]]:
        """What this process has to make: whole parts, so that no vector depends on who makes it."""
        parts = file.parts()
        own = set(parts[self.processes.share(len(parts))])
        return [part for part in file.missing() if part in own]

    def _stored_states(self, folder: Path, todo: dict[NodeType, list[tuple[int, int]]]) -> StoredStates:
        """States of the texts that are neighbours: one file for all processes, or of each one's own nodes."""
        processes, name = self.processes, ""
        if processes.world_size > 1 and self.options.states == "own":
            processes, name = ProcessGroup(), f"-{self.processes.rank}-of-{self.processes.world_size}"
        near = self._near_texts(folder / f"near{name}.npy", todo, processes)
        every = near if self.second_hop is None else self._with_further(near, processes)
        dtype, sizes = np.dtype(self.options.states_dtype), (self.part, self.tokens_per_batch)
        store = folder / f"states{name}"
        texts = self._texts or TextStates(store, self.model, self.tokens, every, dtype, processes, *sizes)
        texts.fill()
        if self.second_hop is None:
            return texts
        store, second_hop = folder / f"neighbors{name}", self.second_hop
        states = NeighborStates(
            store, self.model, self.batcher, second_hop, texts, near, processes, self.part
        )
        states.fill()
        return states

    def _near_texts(
        self, path: Path, todo: dict[NodeType, list[tuple[int, int]]], processes: ProcessGroup
    ) -> Ints:
        """The texts that missing vectors have as neighbours, decided in the first call, also if resumed."""
        if not processes.broadcast(path.exists()):
            is_near = processes.all_reduce_any(torch.from_numpy(self._is_near(todo))).numpy()
            if processes.is_main:
                kept_array(path, lambda: np.flatnonzero(is_near))
            processes.barrier()
        with reading(path, AGAIN):
            near: Ints = np.load(path, allow_pickle=False)
        return near

    def _is_near(self, todo: dict[NodeType, list[tuple[int, int]]]) -> NDArray[np.bool_]:
        """(N,): of each text, whether a missing vector has it as a neighbour."""
        is_near = np.zeros(len(self.tokens), dtype=bool)
        for node_type, parts in todo.items():
            for start, stop in parts:
                for text_rows in sampled_text_rows(self.tokens, self._changed(node_type, start, stop).edges):
                    is_near[text_rows] = True
        for text_rows in self._aggregated_texts():
            is_near[text_rows] = True
        return is_near

    def _with_further(self, near: Ints, processes: ProcessGroup) -> Ints:
        """The texts ``near``, and those that they are next to; each process looks at a share of them."""
        assert self.second_hop is not None
        is_needed = np.zeros(len(self.tokens), dtype=bool)
        is_needed[near] = True
        for node_type, rows in self.tokens.by_type(near[processes.share(len(near))]):
            for text_rows in sampled_text_rows(self.tokens, self.second_hop(node_type, rows)):
                is_needed[text_rows] = True
        return np.flatnonzero(processes.all_reduce_any(torch.from_numpy(is_needed)).numpy())

    @property
    def _aggregating(self) -> list[NodeType]:
        """The textless types whose vectors are made of neighbours as well."""
        textless = [t for t in self.types if t in self.schema.textless]
        return textless if self.trained.textless_fan_out else []

    def _aggregated_texts(self) -> Iterator[Ints]:
        """The texts that this process's nodes of those types are made of, some at a time."""
        for node_type in self._aggregating:
            for part in _row_slices(self.processes.share(self.schema.counts[node_type])):
                nodes = self.sampled.part(node_type, part.start, part.stop)
                yield from sampled_text_rows(self.tokens, nodes.edges)

    def _changed(self, node_type: NodeType, start: int, stop: int) -> SampledNodes:
        """Of a part's nodes, those whose vectors are not known from an earlier embedding."""
        nodes = self.sampled.part(node_type, start, stop)
        if self.since is None:
            return nodes
        signatures = self.signatures[node_type].read(slice(start, stop))
        return nodes.select(np.flatnonzero(~self.since.holds(node_type, nodes.rows, signatures)))

    def _fill(self, todo: dict[NodeType, list[tuple[int, int]]], states: StoredStates) -> None:
        missing = sum(stop - start for parts in todo.values() for start, stop in parts)
        alone = self.processes.world_size == 1
        total = sum(file.count for file in self.vectors.values()) if alone else missing
        with progress_bar("embedding", total, "nodes") as bar:
            bar.advance(total - missing)
            for node_type, parts in todo.items():
                for start, stop in parts:
                    part = self._part(node_type, start, stop, states, bar)
                    self.vectors[node_type].write(start, part)

    def _part(
        self, node_type: NodeType, start: int, stop: int, states: StoredStates, bar: Bar
    ) -> NDArray[Any]:
        vectors = np.empty((stop - start, self.width), dtype=self.options.dtype)
        nodes = self._changed(node_type, start, stop)
        self.anew += len(nodes.rows)
        whole = sampled_vectors(
            self.model,
            self.batcher,
            nodes,
            states,
            tokens_per_batch=self.tokens_per_batch,
            advance=bar.advance,
        )
        bar.advance(stop - start - len(nodes.rows))
        vectors[nodes.rows - start] = self.model.shortened(whole, self.width).numpy()
        if self.since is not None:
            kept = np.setdiff1d(np.arange(start, stop), nodes.rows)
            if len(kept):  # the earlier output may not have the type at all
                vectors[kept - start] = self.since.vectors(node_type, kept)
        return vectors

    def write(self, out: Path, folder: Path) -> None:
        """Put the finished vectors into ``out``; parts of several processes meet in ``folder`` first."""
        number, count = self.processes.rank, self.processes.world_size
        if count == 1:
            write_vectors(out, self.layout, self._all_chunks())
            return
        parts = folder / "parts"
        if self.processes.is_main:
            parts.mkdir(exist_ok=True)
            names = [part_name(i, count) for i in range(count)]
            for other in (p for p in parts.iterdir() if p.name not in names):
                other.unlink()  # of another number of processes
        self.processes.barrier()
        write_part(parts, number, count, self.layout, self._all_chunks())
        self.processes.barrier()
        if self.processes.is_main:
            with replace_folder(out) as partial:
                for file in sorted(parts.iterdir()):
                    file.rename(partial / file.name)
                join_parts(partial, count, self.layout)

    def _all_chunks(self) -> Iterator[Chunk]:
        return (c for t in self.types for c in self.chunks(t, self.processes.share(self.schema.counts[t])))

    def chunks(self, node_type: NodeType, rows: slice = slice(None)) -> Iterator[Chunk]:
        """The finished vectors of one type, some thousand at a time, rows in network order."""
        ids = self.network.id_series(node_type)
        for part in _row_slices(slice(*rows.indices(len(ids)))):
            names = ids[part].to_list()
            if node_type in self.vectors:
                vectors, signatures = (file[node_type].read(part) for file in (self.vectors, self.signatures))
                yield Chunk(node_type, names, vectors, signatures, {})
            else:
                yield self._textless_chunk(node_type, names, part)

    def _with_h0(self, node_type: NodeType) -> bool:
        """Also without being asked if nodes were folded in: ``since`` need not do that again then."""
        return node_type in self.schema.textless and (self.options.h0 or node_type in self.folded)

    def _textless_chunk(self, node_type: NodeType, ids: list[str], part: slice) -> Chunk:
        assert isinstance(self.model, HeterogeneousEncoder)
        rows = torch.arange(part.start, part.stop, device=self.model.device)
        with torch.no_grad():
            if node_type in self._aggregating:
                nodes = self.sampled.part(node_type, part.start, part.stop)
            else:
                nodes = SampledNodes(node_type, np.arange(part.start, part.stop), (), self.sampler)
            whole = sampled_textless_vectors(self.model, self.batcher, nodes, self._states)
            vectors = self.model.shortened(whole, self.width).numpy()
            h0 = self.model.textless.embeddings(node_type, rows).float().cpu().numpy()
        extra = {"h0": h0.astype(self.options.dtype)} if self._with_h0(node_type) else {}
        signatures = self._signatures.textless(node_type)[part]
        return Chunk(node_type, ids, vectors.astype(self.options.dtype), signatures, extra)


def _precision(options: EmbedOptions, since: Path | None, device: torch.device) -> ComputedPrecision:
    """For ``auto`` that of the earlier vectors, which could not be continued in another one."""
    precision = options.precision
    if precision == "auto" and since is not None:
        with suppress(InputError):  # it is raised again when they are opened to be continued
            precision = noted_precision(since) or precision
    return chosen_precision(precision, device)


def _row_slices(rows: slice) -> Iterator[slice]:
    """A range of rows, as many of them at a time as are written together."""
    return (slice(start, min(start + ROWS, rows.stop)) for start in range(rows.start, rows.stop, ROWS))


def model_digest(model: NodeEncoder) -> str:
    """A digest of a model's weights and options."""
    config = {name: getattr(model.config, name) for name in model.config.option_names()}
    if not config["widths"]:
        del config["widths"]  # vectors of earlier versions have the same digest
    config["backbone"] = model.config.backbone
    digest = hashlib.blake2b(json.dumps(config, sort_keys=True).encode(), digest_size=16)
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()
