"""Pass one of embedding a whole network: what every text gives to its neighbours, computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.distributed import ProcessGroup
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import TOKENS, each_text, evaluating
from heterformer.network.tokens import PackedTokens
from heterformer.states.row_file import PART
from heterformer.states.store import StateStore
from heterformer.temporary import scratch_folder


class TextStates:
    """The states of some texts of a network in a store that survives kills.

    Several processes fill it together, each its share of the missing parts, and read it all.
    """

    def __init__(
        self,
        folder: Path,
        model: NodeEncoder,
        tokens: PackedTokens,
        text_rows: Ints,
        dtype: DTypeLike,
        processes: ProcessGroup | None = None,
        part: int = PART,
        tokens_per_batch: int = TOKENS,
    ) -> None:
        """Of the texts ``text_rows``, ascending, unless the store in ``folder`` is there already."""
        self.model, self.tokens, self.tokens_per_batch = model, tokens, tokens_per_batch
        self.processes = processes or ProcessGroup()
        with evaluating(model):
            shape = each_text(model.text_states, tokens, text_rows[:0], model.device).shape[1:]  # (S, d)
        if not shape[0]:  # a model that looks at no neighbour's text needs no rows
            text_rows = text_rows[:0]
        with self.processes.main_process_first():
            self.store = StateStore.create(folder, text_rows, tuple(shape), dtype, part, self.processes.rank)

    def fill(self) -> None:
        """Compute what is not there yet."""
        with evaluating(self.model):
            self.store.fill(self._read, "reading texts", self.processes)

    def _read(self, text_rows: Ints, advance: Callable[[int], None]) -> NDArray[Any]:
        read, sizes = self.model.text_states, (self.tokens_per_batch, advance)
        return each_text(read, self.tokens, text_rows, self.model.device, *sizes).numpy()

    def __call__(self, text_rows: Ints) -> Tensor:
        """(N, S, d): the states of the texts ``text_rows``."""
        if not self.store.file.row_bytes:
            return torch.empty(len(text_rows), *self.store.file.shape)
        return torch.from_numpy(self.store.read(text_rows)).float()


@contextmanager
def stored_states(
    model: NodeEncoder,
    tokens: PackedTokens,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
) -> Iterator[TextStates]:
    """The states of all texts in a temporary file (in ``folder``), so that memory stays bounded."""
    processes = processes or ProcessGroup()
    with shared_scratch_folder(folder, processes) as scratch:
        text_rows = np.arange(len(tokens))
        states = TextStates(scratch / "states", model, tokens, text_rows, np.float32, processes)
        states.fill()
        yield states
        processes.barrier()  # nobody reads it any more


@contextmanager
def shared_scratch_folder(parent: Path | None, processes: ProcessGroup) -> Iterator[Path]:
    """A temporary folder (in ``parent``) that the main process makes for all."""
    with ExitStack() as stack:
        name = ""
        if processes.is_main:
            name = str(stack.enter_context(scratch_folder(parent)))
        yield Path(processes.broadcast_text(name))
