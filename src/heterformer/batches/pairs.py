"""The order in which training and evaluation meet their pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from heterformer.batches.batch import Batch
from heterformer.batches.batcher import Batcher
from heterformer.batches.positives import fresh_positives
from heterformer.batches.randomness import stream_key
from heterformer.network.split.pairs import Pairs

BLOCK, CENTERS = 32, 2048  # at most so many steps are made at once, and of so many nodes
TRAINING, EVALUATION, POSITIVES = 1, 2, 4  # purposes, 3 being dropout: their streams have nothing in common


class TrainingBatches:
    """Pairs in an order that is new each epoch, with neighbours that are new each step.

    With ``fresh`` each query's key is drawn anew each epoch. A batch is a function of (seed, epoch,
    step): a run that resumes sees what it would have seen. Of several processes, ``share`` = (rank,
    processes) has its part of each batch.
    """

    def __init__(
        self,
        batcher: Batcher,
        pairs: Pairs,
        batch_size: int,
        seed: int,
        false_negatives: bool = True,
        fresh: bool = False,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        self.batcher, self.pairs = batcher, pairs
        self.batch_size, self.seed = batch_size, seed
        self.false_negatives, self.fresh, self.share = false_negatives, fresh, share
        self.skipped = 0  # steps by which a run is further than it has taken, since its batches were larger
        self._block: tuple[tuple[int, int], list[Batch]] = ((-1, -1), [])
        self._order: tuple[int, NDArray[np.int64]] = (-1, np.empty(0, dtype=np.int64))

    @property
    def steps_per_epoch(self) -> int:
        """A last batch of a single pair would have no negatives and is left out."""
        full, rest = divmod(len(self.pairs), self.batch_size)
        return full + (rest > 1)

    def batch(self, epoch: int, step: int) -> Batch:
        steps = max(1, min(BLOCK, CENTERS // (2 * self.batch_size)))
        block = (epoch, step // steps)
        if self._block[0] != block:
            self._block = (block, self._made(epoch, step // steps * steps, steps))
        return self._block[1][step % steps]

    def numbered(self, number: int) -> Batch:
        """The batch of a run's step with this number, counted over all epochs."""
        return self.batch(*divmod(number + self.skipped, self.steps_per_epoch))

    def epoch(self, epoch: int, first_step: int = 0) -> Iterator[Batch]:
        """The batches of one epoch, from ``first_step`` on."""
        for step in range(first_step, self.steps_per_epoch):
            yield self.batch(epoch, step)

    def _made(self, epoch: int, first: int, count: int) -> list[Batch]:
        steps = range(first, min(first + count, self.steps_per_epoch))
        order = self._ordered(epoch)
        pairs = self.pairs[order[first * self.batch_size : (first + len(steps)) * self.batch_size]]
        if self.fresh:
            pairs = fresh_positives(self.batcher.visible, pairs, stream_key(POSITIVES, self.seed, epoch))
        parts = [pairs[i : i + self.batch_size] for i in range(0, len(pairs), self.batch_size)]
        keys = [stream_key(TRAINING, self.seed, epoch, s) for s in steps]
        shares = [self._share(len(part)) for part in parts]
        return self.batcher.several(parts, keys, false_negatives=self.false_negatives, shares=shares)

    def _share(self, pairs: int) -> slice:
        """As many pairs for each as in a full step, so that a short one is cut at the same places."""
        rank, processes = self.share
        most = -(-self.batch_size // processes)
        return slice(min(rank * most, pairs), min((rank + 1) * most, pairs))

    def _ordered(self, epoch: int) -> NDArray[np.int64]:
        if self._order[0] != epoch:
            rng = np.random.default_rng([TRAINING, self.seed, epoch])
            self._order = (epoch, rng.permutation(len(self.pairs)))
        return self._order[1]


def evaluation_key(seed: int) -> np.uint64:
    """The stream of the fixed neighbour sample: the same for a node in whatever batch it is met."""
    return stream_key(EVALUATION, seed)


def evaluation_batches(batcher: Batcher, pairs: Pairs, batch_size: int, seed: int) -> Iterator[Batch]:
    """Pairs as they are stored (already shuffled), each batch one in-batch ranking of the paper's form."""
    for first in range(0, len(pairs), batch_size):
        yield batcher.pairs(pairs[first : first + batch_size], evaluation_key(seed))
