"""What texts give as neighbours once their own neighbours are part of it: a pass between the two others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.assembly import SecondHop
from heterformer.batches.batcher import Batcher
from heterformer.batches.sampling import Sampler
from heterformer.distributed import ProcessGroup
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import StoredStates, drawn_once, evaluating, neighbor_text_rows
from heterformer.states.row_file import PART
from heterformer.states.store import StateStore
from heterformer.states.text_states import TextStates, shared_scratch_folder, stored_states

AT_ONCE = 1024  # texts whose neighbours' vectors are held together


class NeighborStates:
    """The states of texts as neighbours, the last one with the text's own neighbours in it.

    Each text's neighbours are read once, however many nodes have it as a neighbour. The vectors are in a
    store that survives kills and that several processes fill together.
    """

    def __init__(
        self,
        folder: Path,
        model: NodeEncoder,
        batcher: Batcher,
        second_hop: SecondHop,
        texts: TextStates,
        text_rows: Ints,
        processes: ProcessGroup | None = None,
        part: int = PART,
    ) -> None:
        """``texts`` are the states of the texts ``text_rows``, ascending, and of what those are next to."""
        self.model, self.batcher, self.second_hop, self.texts = model, batcher, second_hop, texts
        self.processes = processes or ProcessGroup()
        with self.processes.main_process_first():
            rank, dtype = self.processes.rank, texts.store.file.dtype
            self.store = StateStore.create(folder, text_rows, (model.width,), dtype, part, rank)

    def fill(self) -> None:
        """Compute what is not there yet."""
        with evaluating(self.model):
            self.store.fill(self._read, "reading neighbours", self.processes)

    def _read(self, text_rows: Ints, advance: Callable[[int], None]) -> NDArray[Any]:
        vectors = np.empty((len(text_rows), self.model.width), dtype=np.float32)
        for start in range(0, len(text_rows), AT_ONCE):
            some = text_rows[start : start + AT_ONCE]
            vectors[start : start + AT_ONCE] = self._vectors(some).numpy()
            advance(len(some))
        return vectors

    def _vectors(self, text_rows: Ints) -> Tensor:
        """(n, d): the last states of some texts, with their neighbours."""

        def last_states(text_rows: Ints) -> Tensor:
            return torch.from_numpy(self.texts.store.read_last(text_rows)).float()

        return read_neighbors(self.model, self.batcher, self.second_hop, text_rows, last_states)

    def __call__(self, text_rows: Ints) -> Tensor:
        """(N, S, d): the states of the texts ``text_rows``."""
        states = self.texts(text_rows)
        if states.numel():
            states[:, -1] = torch.from_numpy(self.store.read(text_rows)).float()
        return states


def read_neighbors(
    model: NodeEncoder,
    batcher: Batcher,
    second_hop: SecondHop,
    text_rows: Ints,
    last_states: Callable[[Ints], Tensor],
) -> Tensor:
    """(n, d): the last states of some texts, ascending, with their neighbours.

    ``last_states`` gives (n, d) states of texts by themselves.
    """
    batch = batcher.texts_with_neighbors(text_rows, second_hop)
    every = neighbor_text_rows(batch)
    read = model.neighbor_vectors(batch.to(model.device), last_states(every).to(model.device))
    return read.float().cpu()[torch.from_numpy(np.searchsorted(every, text_rows))]


@contextmanager
def neighbor_states(
    model: NodeEncoder,
    batcher: Batcher,
    sampler: Sampler,
    texts: TextStates,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
) -> Iterator[StoredStates]:
    """What all texts of a network give as neighbours in one pass over it, given the states of all of them.

    That is more than those states only if the model reads neighbours of neighbours. It is in a temporary file
    (in ``folder``) then.
    """
    second_hop = drawn_once(batcher, sampler)
    if second_hop is None:
        yield texts
        return
    processes = processes or ProcessGroup()
    with shared_scratch_folder(folder, processes) as scratch:
        every, store = np.arange(len(batcher.tokens)), scratch / "neighbors"
        states = NeighborStates(store, model, batcher, second_hop, texts, every, processes)
        states.fill()
        yield states
        processes.barrier()  # nobody reads it any more


@contextmanager
def stored_neighbor_states(
    model: NodeEncoder,
    batcher: Batcher,
    sampler: Sampler,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
) -> Iterator[StoredStates]:
    """The same, the states of the texts being computed first."""
    with (
        stored_states(model, batcher.tokens, folder, processes) as texts,
        neighbor_states(model, batcher, sampler, texts, folder, processes) as states,
    ):
        yield states
