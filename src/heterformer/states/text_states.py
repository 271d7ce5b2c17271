"""Pass one of embedding a whole network: what every text gives to its neighbours, computed once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.typing import DTypeLike
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.distributed import ProcessGroup
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import each_text, evaluating
from heterformer.network.tokens import PackedTokens
from heterformer.progress import progress_bar
from heterformer.states.row_file import RowFile
from heterformer.temporary import scratch_folder


class TextStates:
    """The states of some texts of a network in a file that survives kills, found by the texts' numbers.

    Several processes fill it together, each its share of the missing parts, and read it all.
    """

    def __init__(
        self,
        path: Path,
        model: NodeEncoder,
        tokens: PackedTokens,
        numbers: Ints,
        dtype: DTypeLike,
        processes: ProcessGroup | None = None,
    ) -> None:
        self.model, self.tokens, self.numbers = model, tokens, numbers  # numbers ascend
        self.processes = processes or ProcessGroup()
        with evaluating(model):
            shape = each_text(model.text_states, tokens, numbers[:0], model.device).shape[1:]  # (S, d)
        count, writer = len(numbers) if shape[0] else 0, self.processes.rank
        with self.processes.main_process_first():
            self.file = RowFile(path, count, tuple(shape), dtype, writer=writer)

    def fill(self) -> None:
        """Compute what is not there yet."""
        with evaluating(self.model), progress_bar("reading texts", self.file.count, "texts") as bar:
            missing = list(self.file.missing())
            bar.advance(self.file.count - sum(stop - start for start, stop in missing))
            self.processes.barrier()  # until all know what is missing
            for start, stop in missing[self.processes.share(len(missing))]:
                numbers = self.numbers[start:stop]
                states = each_text(self.model.text_states, self.tokens, numbers, self.model.device)
                self.file.write(start, states.numpy())
                bar.advance((stop - start) * self.processes.world_size)
        self.processes.barrier()

    def __call__(self, numbers: Ints) -> Tensor:
        """(N, S, d): the states of the texts ``numbers``."""
        if self.file.count == 0:
            return torch.empty(len(numbers), *self.file.shape)
        return torch.from_numpy(self.file.read(np.searchsorted(self.numbers, numbers))).float()


@contextmanager
def stored_states(
    model: NodeEncoder,
    tokens: PackedTokens,
    folder: Path | None = None,
    processes: ProcessGroup | None = None,
) -> Iterator[TextStates]:
    """The states of all texts in a temporary file (in ``folder``), so that memory stays bounded."""
    processes = processes or ProcessGroup()
    with ExitStack() as stack:
        name = ""
        if processes.is_main:
            name = str(stack.enter_context(scratch_folder(folder)))
        name = processes.broadcast_text(name)
        numbers = np.arange(len(tokens.offsets) - 1)
        spool = TextStates(Path(name) / "states.bin", model, tokens, numbers, np.float32, processes)
        spool.fill()
        yield spool
        processes.barrier()  # nobody reads it any more
