"""Neighbours' states from the disk instead of the step's own graph: a step then costs what its centres cost.

No gradient reaches the neighbours' texts, and a state is as old as the last refresh. Which texts a step
will meet is known beforehand, so a refresh reads those until the next one and no others.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.batches.batch import Batch, Texts
from heterformer.batches.hard_negatives import HardNegatives
from heterformer.batches.labelled import LabelledBatches
from heterformer.batches.pairs import TrainingBatches
from heterformer.distributed import ProcessGroup
from heterformer.errors import InputError
from heterformer.files import replace_file
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import each_text, evaluating, first_hop, neighbor_text_rows
from heterformer.network.schema import NodeType
from heterformer.states.store import StateStore, new_store
from heterformer.training.mining import candidates, mine

TEXTS = 2048  # read at most between two moves of the progress bar
REFRESH_SHARE = 0.025  # of the cost of the steps that it serves: states age slowly
MINING_SHARE = 0.25  # the same where negatives are mined, of which many steps would tire
STORED = np.float32  # of some PLMs the [CLS] states of all texts agree in the three digits of float16


def refresh_interval(texts: int, centers: int, share: float) -> int:
    """How many steps a refresh must serve to cost about a ``share`` of what they cost.

    A refresh reads each of the ``texts`` once, forwards. A step reads each of its ``centers`` forwards and
    backwards, which is three times as much.
    """
    return max(1, math.ceil(texts / (3 * centers * share)))


def auto_interval(texts: int, pairs: int, hard_negatives: int, steps_per_epoch: int) -> int:
    """How many steps of ``pairs`` a refresh of ``texts`` serves unless somebody says otherwise."""
    centers = (2 + hard_negatives) * pairs
    if not hard_negatives:
        return refresh_interval(texts, centers, REFRESH_SHARE)
    return min(refresh_interval(texts, centers, MINING_SHARE), steps_per_epoch)


class CachedStates:
    """The states of neighbour texts as the model gave them at the last refresh, without dropout.

    ``read`` is the model's ``text_states``, in the run's precision. Refreshes are due every few steps;
    their states serve until the next one, also in a process that resumes the run.
    """

    def __init__(
        self,
        model: NodeEncoder,
        read: Callable[[Texts], Tensor],
        batches: TrainingBatches | LabelledBatches,
        folder: Path,
        every: int | Literal["auto"] | None,
        processes: ProcessGroup | None = None,
        hard_negatives: int = 0,
        read_vectors: Callable[[Texts], Tensor] | None = None,
        of_run_step: Callable[[int], Sequence[Batch]] | None = None,
    ) -> None:
        """``batches`` count the steps; ``of_run_step`` gives all that one of them reads, if that is more.

        ``hard_negatives`` are mined for each query, by ``read_vectors`` unless states tell the vectors.
        """
        self.hard_negatives, self.read_vectors = hard_negatives, read_vectors
        self.model, self.read, self.batches, self.folder = model, read, batches, folder
        self._of_run_step = of_run_step or (lambda step: [self._pairs.of_run_step(step)])
        self.processes = processes or ProcessGroup()
        self.every = (self._interval() if every == "auto" else every) or batches.steps_per_epoch
        self.shape = self._states(np.arange(1)).shape[1:]  # (S, d)
        self.store = StateStore.open(self._path)
        if self.store is not None and hard_negatives and not self._open_negatives():
            self.store = None  # a kill came between

    def _interval(self) -> int:
        """How many steps a refresh serves if nothing else is asked for."""
        batcher, size = self.batches.batcher, self.batches.batch_size
        texts = len(batcher.tokens if self.hard_negatives else batcher.neighbor_texts())
        return auto_interval(texts, size, self.hard_negatives, self.batches.steps_per_epoch)

    @property
    def _pairs(self) -> TrainingBatches:
        """The batches that negatives are mined for."""
        assert isinstance(self.batches, TrainingBatches)
        return self.batches

    @property
    def _path(self) -> Path:
        return self.folder / "last"

    def needs_refresh(self, step: int) -> bool:
        """Whether the states for this step have yet to be computed.

        A refresh uses the weights of its step, so that step's checkpoint must be on the disk before.
        """
        if self.store is None or self.store.about.get("batches") != self._batches:
            return True
        due = step - step % self.every
        return not due <= self.store.about["step"] <= step < self.store.about["until"]

    @property
    def _batches(self) -> list[int]:
        """What decides, beside its number, which texts a step meets; it changes if a step's pairs do."""
        return [self.batches.batch_size, self.batches.skipped]

    def refresh(self, step: int, end: int) -> Generator[tuple[int, int], None, None]:
        """Compute what the steps from ``step`` to the next refresh, or to ``end``, will need.

        Every process reads a part of the texts; the first one writes all, and the others open its store.
        Yields (texts read, texts to read) as it proceeds; who stops listening leaves no states behind.
        """
        began = time.monotonic()
        until = min(step - step % self.every + self.every, end)
        text_rows = self._met(step, until)
        self.remove()  # first, since two stores take twice the room
        about: dict[str, Any] = {"step": step, "until": until, "texts": len(text_rows)}
        about["batches"] = self._batches
        texts = min(TEXTS, -(-len(text_rows) // 5) or 1)  # the bar moves several times, however few there are
        at_once = texts * self.processes.world_size
        with self._writing(text_rows, about, at_once) as store:
            for start in range(0, len(text_rows), at_once):
                own = start + texts * self.processes.rank
                states = self._states(text_rows[own : own + texts])  # (n, S, d)
                states = self.processes.all_gather(states)
                if store is not None:
                    store.file.write(start, states.cpu().numpy())
                yield min(start + at_once, len(text_rows)), len(text_rows)
            about["seconds"] = round(time.monotonic() - began, 3)
        self.processes.barrier()
        self.store = self._written(step)
        if self.hard_negatives:
            self._mine(step, until)

    def _written(self, step: int) -> StateStore:
        """What the first process wrote; a disk of several machines may show it to the others only later."""
        for _ in range(60):
            store = StateStore.open(self._path)
            if store is not None and store.about["step"] == step:
                return store
            time.sleep(1)
        raise InputError(f"{self._path}: cannot be read here; all processes need the run folder on one disk.")

    def _mine(self, step: int, until: int) -> None:
        """Mine negatives for the queries of the coming steps, relation by relation."""
        queries: dict[str, list[NDArray[np.int64]]] = {}
        for number in range(step, until):
            name, pairs = self._pairs.pairs_of_run_step(number)
            queries.setdefault(name, []).append(pairs[:, 0])
        mined = {name: self._mined(name, np.unique(np.concatenate(q)), step) for name, q in queries.items()}
        if self.processes.is_main:
            with replace_file(self._negatives) as partial, partial.open("wb") as file:
                arrays = {f"queries.{name}": one.queries for name, one in mined.items()}
                arrays |= {f"rows.{name}": one.rows for name, one in mined.items()}
                np.savez(file, allow_pickle=False, **arrays, step=np.array(step))
        self._pairs.use(mined)
        self.processes.barrier()

    def _mined(self, name: str, queries: NDArray[np.int64], step: int) -> HardNegatives:
        """The negatives of one relation's queries; each process mines those of a part of them."""
        batcher, seed = self.batches.batcher, self.batches.seed
        relation = batcher.schema.relation(name) if name else batcher.schema.predicted[0]
        nodes = candidates(batcher.visible, seed, step, relation=relation)
        vectors = self._end_vectors(relation.target, nodes)
        query_vectors = self._end_vectors(relation.source, queries)
        own = self.processes.share(len(queries))
        mined = mine(
            batcher.visible,
            queries[own],
            query_vectors[own],
            nodes,
            vectors,
            self.hard_negatives,
            seed,
            step,
            relation=relation,
        )
        return HardNegatives(queries, self.processes.all_gather(torch.from_numpy(mined.rows)).cpu().numpy())

    def _end_vectors(self, node_type: NodeType, rows: NDArray[np.int64]) -> Tensor:
        """(n, d): what nodes of one end are compared by: a text's own vector, or a textless node's."""
        offset = self.batches.batcher.tokens.text_offset
        if node_type in offset:
            return self._final_vectors(rows + offset[node_type])
        with evaluating(self.model):
            own = torch.from_numpy(rows).to(self.model.device)
            return self.model.textless_vectors(node_type, own).float().cpu()

    def _final_vectors(self, text_rows: NDArray[np.int64]) -> Tensor:
        """(n, d): the vectors of texts by themselves, as the model compares vectors."""
        assert self.store is not None
        if self.model.states_end_with_vector:
            vectors = torch.from_numpy(self.store.read_last(text_rows))
        else:
            assert self.read_vectors is not None
            own = text_rows[self.processes.share(len(text_rows))]
            with evaluating(self.model):
                vectors = each_text(self.read_vectors, self.batches.batcher.tokens, own, self.model.device)
            vectors = self.processes.all_gather(vectors).cpu()
        return self.model.maybe_normalize(vectors.float())

    @property
    def _negatives(self) -> Path:
        return self.folder / "negatives.npz"

    def _open_negatives(self) -> bool:
        """Use the negatives that were mined with the stored states; false if there are none."""
        assert self.store is not None
        try:
            with np.load(self._negatives, allow_pickle=False) as arrays:
                if int(arrays["step"]) != self.store.about["step"]:
                    return False
                names = [name.removeprefix("rows.") for name in arrays if name.startswith("rows.")]
                negatives = {
                    name: HardNegatives(arrays[f"queries.{name}"], arrays[f"rows.{name}"]) for name in names
                }
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return False
        self._pairs.use(negatives)
        return True

    def _writing(
        self, text_rows: NDArray[np.int64], about: dict[str, Any], part: int
    ) -> AbstractContextManager[StateStore | None]:
        """The store that is written to, which is the main process's alone."""
        if self.processes.is_main:
            return new_store(self._path, text_rows, tuple(self.shape), STORED, about, part)
        return nullcontext()

    def for_batch(self, batch: Batch) -> Tensor:
        """(neighbour texts, S, d) for a batch, on the model's device.

        A step may meet several times as many neighbours' neighbours as neighbours. Of these texts the model
        looks at the final vector alone, so that their other states are 0 and not read.
        """
        assert self.store is not None
        text_rows, device = neighbor_text_rows(batch), self.model.device
        if not self.shape[0]:  # the model asks for no states
            return torch.empty(len(text_rows), *self.shape, device=device)
        if not (batch.second_hop and self.model.states_end_with_vector):
            # A copy, which PyTorch aligns: for the same bits in every run.
            return torch.from_numpy(self.store.read(text_rows)).to(device, copy=True)
        is_near = first_hop(batch, self.model.schema.text_rich)
        near, far = (torch.from_numpy(chosen) for chosen in (is_near, ~is_near))
        states = torch.zeros(len(text_rows), *self.shape)
        states[near] = torch.from_numpy(self.store.read(text_rows[is_near]))
        states[far, -1] = torch.from_numpy(self.store.read_last(text_rows[~is_near]))
        return states.to(device)

    def remove(self) -> None:
        """Free the disk."""
        self.store = None
        if self.processes.is_main:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _met(self, step: int, until: int) -> NDArray[np.int64]:
        """The neighbour texts of all batches from ``step`` to ``until``, ascending.

        Of negatives that are yet to be mined the neighbours may be any text. More than an epoch, which meets
        nearly all neighbours, is not looked through.
        """
        if not self.shape[0]:
            return np.empty(0, dtype=np.int64)
        if self.hard_negatives:
            return np.arange(len(self.batches.batcher.tokens))
        if until - step > self.batches.steps_per_epoch:
            return self.batches.batcher.neighbor_texts()
        is_needed = np.zeros(len(self.batches.batcher.tokens), dtype=bool)
        for number in range(step, until):
            for batch in self._of_run_step(number):
                is_needed[neighbor_text_rows(batch)] = True
        return np.flatnonzero(self.processes.all_reduce_any(torch.from_numpy(is_needed)).numpy())

    def _states(self, text_rows: NDArray[np.int64]) -> Tensor:
        with evaluating(self.model):
            return each_text(self.read, self.batches.batcher.tokens, text_rows, self.model.device)
