"""Pass one of embedding a whole network: what every text gives to its neighbours, computed once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import StoredStates, each_text, evaluating
from heterformer.network.tokens import PackedTokens
from heterformer.progress import progress_bar

TEXTS = 4096  # read between two moves of the progress bar


@contextmanager
def stored_states(model: NodeEncoder, tokens: PackedTokens) -> Iterator[StoredStates]:
    """The states of all texts in a temporary memory-mapped file, so that memory stays bounded."""
    count = len(tokens.offsets) - 1
    with tempfile.TemporaryDirectory(prefix="heterformer-") as folder, evaluating(model):
        spool = None
        with progress_bar("reading texts", count) as bar:
            for start in range(0, count, TEXTS):
                numbers = np.arange(start, min(start + TEXTS, count))
                states = each_text(model.text_states, tokens, numbers, model.device).numpy()
                if spool is None:
                    path, shape = Path(folder) / "states.bin", (count, *states.shape[1:])
                    if 0 in shape:  # a model that looks at no neighbour's text
                        break
                    spool = np.memmap(path, dtype=np.float32, mode="w+", shape=shape)
                spool[numbers] = states
                bar.advance(len(numbers))
        yield np.empty((count, *states.shape[1:]), dtype=np.float32) if spool is None else np.asarray(spool)
