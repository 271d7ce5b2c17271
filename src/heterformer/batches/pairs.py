"""The order in which training and evaluation meet their pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heterformer.batches.batch import PairBatch
from heterformer.batches.batcher import Batcher
from heterformer.batches.positives import fresh_positives
from heterformer.batches.randomness import stream_key, uniform
from heterformer.batches.sampling import SeededSampler
from heterformer.network.split.pairs import Pairs

# Purposes whose streams have nothing in common; 3 is dropout, 5 the stable sample.
TRAINING, EVALUATION, POSITIVES, NEIGHBOR_DROPOUT = 1, 2, 4, 6


class TrainingBatches:
    """Pairs in an order that is new each epoch, with neighbours that are new each step.

    With ``fresh`` each query's key is drawn anew each epoch. ``neighbor_dropout`` is the share of centres,
    or of the queries alone, that are read without their neighbours. A batch is a function of (seed, epoch,
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
        neighbor_dropout: float = 0.0,
        neighbor_dropout_of: str = "both",
        steps_at_once: int = 32,
        centers_at_once: int = 2048,
    ) -> None:
        """At most ``steps_at_once`` batches are made together, of at most ``centers_at_once`` nodes."""
        self.batcher, self.pairs = batcher, pairs
        self.batch_size, self.seed = batch_size, seed
        self.false_negatives, self.fresh, self.share = false_negatives, fresh, share
        self.neighbor_dropout, self.neighbor_dropout_of = neighbor_dropout, neighbor_dropout_of
        self.skipped = 0  # steps by which a run is further than it has taken, since its batches were larger
        self._steps_at_once = max(1, min(steps_at_once, centers_at_once // (2 * batch_size)))
        self._made: tuple[tuple[int, int], list[PairBatch]] = ((-1, -1), [])
        self._order: tuple[int, NDArray[np.int64]] = (-1, np.empty(0, dtype=np.int64))

    @property
    def steps_per_epoch(self) -> int:
        """A last batch of a single pair would have no negatives and is left out."""
        full, rest = divmod(len(self.pairs), self.batch_size)
        return full + (rest > 1)

    def batch(self, epoch: int, step: int) -> PairBatch:
        """The batch of one step of an epoch."""
        steps = self._steps_at_once
        group = (epoch, step // steps)
        if self._made[0] != group:
            self._made = (group, self._make(epoch, step // steps * steps, steps))
        return self._made[1][step % steps]

    def of_run_step(self, step: int) -> PairBatch:
        """The batch of a run's step, counted over all epochs."""
        return self.batch(*divmod(step + self.skipped, self.steps_per_epoch))

    def _make(self, epoch: int, start: int, count: int) -> list[PairBatch]:
        steps = range(start, min(start + count, self.steps_per_epoch))
        order = self._ordered(epoch)
        pairs = self.pairs[order[start * self.batch_size : (start + len(steps)) * self.batch_size]]
        if self.fresh:
            pairs = fresh_positives(self.batcher.visible, pairs, stream_key(POSITIVES, self.seed, epoch))
        parts = [pairs[i : i + self.batch_size] for i in range(0, len(pairs), self.batch_size)]
        keys = [stream_key(TRAINING, self.seed, epoch, s) for s in steps]
        shares = [self._share(len(part)) for part in parts]
        bare = None
        if self.neighbor_dropout:
            bare = [self._bare(epoch, step, len(part)) for step, part in zip(steps, parts, strict=True)]
        masked = self.false_negatives
        return self.batcher.several(parts, keys, false_negatives=masked, shares=shares, bare=bare)

    def _bare(self, epoch: int, step: int, pairs: int) -> NDArray[np.bool_]:
        """(pairs, 2): which queries and keys of a step have no neighbours; the same in every process."""
        key = stream_key(NEIGHBOR_DROPOUT, self.seed, epoch, step)
        bare: NDArray[np.bool_] = uniform(key, np.arange(pairs), 2) < self.neighbor_dropout
        if self.neighbor_dropout_of == "queries":
            bare[:, 1] = False
        return bare

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


def evaluation_sampler(seed: int) -> SeededSampler:
    """The sampler of that stream."""
    return SeededSampler(evaluation_key(seed))
