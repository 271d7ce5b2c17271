"""The order in which training and evaluation meet their pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.batch import PairBatch
from heterformer.batches.batcher import Batcher
from heterformer.batches.hard_negatives import HardNegatives
from heterformer.batches.positives import fresh_positives
from heterformer.batches.randomness import stream_key, uniform
from heterformer.batches.sampling import SeededSampler
from heterformer.network.split.pairs import Pairs

# Purposes whose streams have nothing in common; 3 is dropout, 5 the stable sample, 7 hard negatives.
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
        self._negatives: HardNegatives | None = None
        self._steps_at_once = max(1, min(steps_at_once, centers_at_once // (2 * batch_size)))
        self._made: tuple[tuple[int, int], list[PairBatch]] = ((-1, -1), [])
        self._order: tuple[int, NDArray[np.int64]] = (-1, np.empty(0, dtype=np.int64))

    def use(self, negatives: HardNegatives) -> None:
        """From now on, have these further negatives for the queries that they were mined for."""
        self._negatives = negatives
        self._made = ((-1, -1), [])

    def pairs_of_run_step(self, step: int) -> Pairs:
        """The pairs of a run's step, of all processes."""
        epoch, step = divmod(step + self.skipped, self.steps_per_epoch)
        return self._pairs(epoch, step, 1)

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
        pairs = self._pairs(epoch, start, len(steps))
        parts = [pairs[i : i + self.batch_size] for i in range(0, len(pairs), self.batch_size)]
        keys = [stream_key(TRAINING, self.seed, epoch, s) for s in steps]
        shares = [self._share(len(part)) for part in parts]
        negatives = None
        if self._negatives is not None:
            negatives = [self._negatives.of_step(*part.T) for part in parts]
        bare = bare_negatives = None
        if self.neighbor_dropout:
            bare = [self._bare(epoch, step, len(part)) for step, part in zip(steps, parts, strict=True)]
            if negatives is not None:
                numbered = zip(steps, negatives, strict=True)
                bare_negatives = [self._bare_negatives(epoch, step, nodes) for step, nodes in numbered]
        return self.batcher.several(
            parts,
            keys,
            false_negatives=self.false_negatives,
            shares=shares,
            bare=bare,
            negatives=negatives,
            bare_negatives=bare_negatives,
        )

    def _pairs(self, epoch: int, start: int, steps: int) -> Pairs:
        """The pairs of some steps of an epoch."""
        chosen = self._ordered(epoch)[start * self.batch_size : (start + steps) * self.batch_size]
        pairs = self.pairs[chosen]
        if self.fresh:
            pairs = fresh_positives(self.batcher.visible, pairs, stream_key(POSITIVES, self.seed, epoch))
        return pairs

    def _bare(self, epoch: int, step: int, pairs: int) -> NDArray[np.bool_]:
        """(pairs, 2): which queries and keys of a step have no neighbours; the same in every process."""
        key = stream_key(NEIGHBOR_DROPOUT, self.seed, epoch, step)
        bare: NDArray[np.bool_] = uniform(key, np.arange(pairs), 2) < self.neighbor_dropout
        if self.neighbor_dropout_of == "queries":
            bare[:, 1] = False
        return bare

    def _bare_negatives(self, epoch: int, step: int, nodes: Ints) -> NDArray[np.bool_]:
        """Which negatives have no neighbours: as large a share as of the keys, or it would give them away."""
        if self.neighbor_dropout_of == "queries":
            return np.zeros(len(nodes), dtype=bool)
        key = stream_key(NEIGHBOR_DROPOUT, self.seed, epoch, step, 1)
        bare: NDArray[np.bool_] = uniform(key, nodes, 1)[:, 0] < self.neighbor_dropout
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
