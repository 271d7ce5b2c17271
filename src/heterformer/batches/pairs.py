"""The order in which training and evaluation meet their pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from threading import RLock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.batches.batch import PairBatch
from heterformer.batches.batcher import Batcher
from heterformer.batches.hard_negatives import HardNegatives
from heterformer.batches.positives import fresh_positives
from heterformer.batches.randomness import stream_key, uniform
from heterformer.batches.sampling import SeededSampler
from heterformer.network.schema import Relation
from heterformer.network.split.pairs import Pairs

# Purposes whose streams have nothing in common; 3 is dropout, 5 the stable sample, 7 hard negatives.
TRAINING, EVALUATION, POSITIVES, NEIGHBOR_DROPOUT, RELATIONS = 1, 2, 4, 6, 8


class TrainingBatches:
    """Pairs in an order that is new each epoch, with neighbours that are new each step.

    A step has pairs of one relation. Of several relations each has its share of the steps, drawn at random;
    an epoch has as many steps as all pairs take.

    With ``fresh`` each query's key is drawn anew each epoch. ``neighbor_dropout`` is the share of centres,
    or of the queries alone, that are read without their neighbours. A batch is a function of (seed, epoch,
    step): a run that resumes sees what it would have seen. Of several processes, ``share`` = (rank,
    processes) has its part of each batch.
    """

    def __init__(
        self,
        batcher: Batcher,
        pairs: Pairs | Mapping[str, Pairs],
        batch_size: int,
        seed: int,
        false_negatives: bool = True,
        fresh: bool = False,
        share: tuple[int, int] = (0, 1),
        neighbor_dropout: float = 0.0,
        neighbor_dropout_of: str = "both",
        steps_at_once: int = 32,
        centers_at_once: int = 2048,
        log_frequencies: Mapping[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """``pairs`` are those of each predicted relation, or of the only one.

        ``log_frequencies`` are those of the targets of some relations, by name (``log_key_frequencies``).

        At most ``steps_at_once`` batches are made together, of at most ``centers_at_once`` nodes.
        """
        self.batcher = batcher
        self.pairs_by_relation = pairs if isinstance(pairs, Mapping) else {"": pairs}
        self.batch_size, self.seed = batch_size, seed
        self.false_negatives, self.fresh, self.share = false_negatives, fresh, share
        self.neighbor_dropout, self.neighbor_dropout_of = neighbor_dropout, neighbor_dropout_of
        self.log_frequencies = log_frequencies or {}
        self.skipped = 0  # steps by which a run is further than it has taken, since its batches were larger
        self.version = 0  # counts what else decides a batch beside its step
        self._negatives: dict[str, HardNegatives] = {}
        self._lock = RLock()  # a thread makes batches ahead
        self.steps_at_once = max(1, min(steps_at_once, centers_at_once // (2 * batch_size)))
        self._made: tuple[tuple[int, int], list[PairBatch]] = ((-1, -1), [])
        self._orders: dict[tuple[int, int, int], NDArray[np.int64]] = {}
        self._scheduled: tuple[int, list[_RelationStep]] = (-1, [])

    @property
    def pairs(self) -> Pairs:
        """All pairs, of whatever relation."""
        return np.concatenate(list(self.pairs_by_relation.values()))

    def use(self, negatives: HardNegatives | Mapping[str, HardNegatives]) -> None:
        """From now on, have these further negatives for the queries that they were mined for."""
        some = (
            negatives if isinstance(negatives, Mapping) else {next(iter(self.pairs_by_relation)): negatives}
        )
        with self._lock:
            self._negatives, self._made = dict(some), ((-1, -1), [])
            self.version += 1

    def pairs_of_run_step(self, step: int) -> tuple[str, Pairs]:
        """The relation of a run's step and its pairs, of all processes."""
        epoch, step = divmod(step + self.skipped, self.steps_per_epoch)
        with self._lock:
            of_relation = self._step(epoch, step)
            return of_relation.relation, self._pairs(epoch, [of_relation])[0]

    @property
    def steps_per_epoch(self) -> int:
        """What all pairs take, relation by relation."""
        return sum(self._steps_of(pairs) for pairs in self.pairs_by_relation.values())

    def _steps_of(self, pairs: Pairs) -> int:
        """A last batch of a single pair would have no negatives and is left out."""
        full, rest = divmod(len(pairs), self.batch_size)
        return full + (rest > 1)

    def batch(self, epoch: int, step: int) -> PairBatch:
        """The batch of one step of an epoch."""
        steps = self.steps_at_once
        group = (epoch, step // steps)
        with self._lock:
            if self._made[0] != group:
                self._made = (group, self._make(epoch, step // steps * steps, steps))
            return self._made[1][step % steps]

    def of_run_step(self, step: int) -> PairBatch:
        """The batch of a run's step, counted over all epochs."""
        return self.batch(*divmod(step + self.skipped, self.steps_per_epoch))

    def _make(self, epoch: int, start: int, count: int) -> list[PairBatch]:
        steps = range(start, min(start + count, self.steps_per_epoch))
        made: dict[int, PairBatch] = {}
        for name in self.pairs_by_relation:
            own = [step for step in steps if self._step(epoch, step).relation == name]
            if own:
                made |= zip(own, self._make_steps(epoch, own, name), strict=True)
        return [made[step] for step in steps]

    def _make_steps(self, epoch: int, steps: Sequence[int], name: str) -> list[PairBatch]:
        """The batches of some steps, all of one relation."""
        parts = self._pairs(epoch, [self._step(epoch, step) for step in steps])
        keys = [stream_key(TRAINING, self.seed, epoch, s) for s in steps]
        shares = [self._share(len(part)) for part in parts]
        negatives = None
        if name in self._negatives:
            negatives = [self._negatives[name].of_step(*part.T) for part in parts]
        alone = negatives_alone = None
        if self.neighbor_dropout:
            alone = [self._alone(epoch, step, len(part)) for step, part in zip(steps, parts, strict=True)]
            if negatives is not None:
                numbered = zip(steps, negatives, strict=True)
                negatives_alone = [self._negatives_alone(epoch, step, nodes) for step, nodes in numbered]
        return self.batcher.several(
            parts,
            keys,
            false_negatives=self.false_negatives,
            shares=shares,
            alone=alone,
            negatives=negatives,
            negatives_alone=negatives_alone,
            relation=self._relation(name),
            log_frequencies=self.log_frequencies.get(name),
        )

    def _relation(self, name: str) -> Relation | None:
        """The relation of that name; the only one has none."""
        return self.batcher.schema.relation(name) if name else None

    def _step(self, epoch: int, step: int) -> _RelationStep:
        """Whose pairs a step of an epoch has."""
        if self._scheduled[0] != epoch:
            self._scheduled = (epoch, self._schedule(epoch))
        return self._scheduled[1][step]

    def _schedule(self, epoch: int) -> list[_RelationStep]:
        """The relation of each step of an epoch, drawn by the shares, and how often it was drawn before."""
        names = list(self.pairs_by_relation)
        numbers = np.zeros(self.steps_per_epoch, dtype=np.int64)
        if len(names) > 1:
            shares = np.cumsum([self.batcher.schema.shares[name] for name in names])
            steps = np.arange(self.steps_per_epoch)
            draws = uniform(stream_key(RELATIONS, self.seed, epoch), steps, 1)[:, 0]
            numbers = np.minimum(np.searchsorted(shares, draws, side="right"), len(names) - 1)
        before, scheduled = [0] * len(names), []
        for number in numbers.tolist():
            scheduled.append(_RelationStep(names[number], number, before[number]))
            before[number] += 1
        return scheduled

    def _pairs(self, epoch: int, steps: Sequence[_RelationStep]) -> list[Pairs]:
        """The pairs of some steps of one relation.

        A relation whose share is larger than its pairs are many meets them several times in an epoch.
        """
        every, name = self.pairs_by_relation[steps[0].relation], steps[0].relation
        parts, size = [], self.batch_size
        for rounds, group in groupby(steps, lambda step: step.place // self._steps_of(every)):
            order = self._ordered(epoch, steps[0].number, rounds)
            places = [step.place % self._steps_of(every) for step in group]
            some = [every[order[place * size : (place + 1) * size]] for place in places]
            if self.fresh:
                key = stream_key(POSITIVES, self.seed, epoch, *[rounds] * (rounds > 0))
                drawn = fresh_positives(self.batcher.visible, np.concatenate(some), key, self._relation(name))
                some = np.split(drawn, np.cumsum([len(part) for part in some])[:-1])
            parts += some
        return parts

    def _alone(self, epoch: int, step: int, pairs: int) -> NDArray[np.bool_]:
        """(pairs, 2): which queries and keys of a step have no neighbours; the same in every process."""
        key = stream_key(NEIGHBOR_DROPOUT, self.seed, epoch, step)
        alone: NDArray[np.bool_] = uniform(key, np.arange(pairs), 2) < self.neighbor_dropout
        if self.neighbor_dropout_of == "queries":
            alone[:, 1] = False
        return alone

    def _negatives_alone(self, epoch: int, step: int, nodes: Ints) -> NDArray[np.bool_]:
        """Which negatives have no neighbours: as large a share as of the keys, or it would give them away."""
        if self.neighbor_dropout_of == "queries":
            return np.zeros(len(nodes), dtype=bool)
        key = stream_key(NEIGHBOR_DROPOUT, self.seed, epoch, step, 1)
        alone: NDArray[np.bool_] = uniform(key, nodes, 1)[:, 0] < self.neighbor_dropout
        return alone

    def _share(self, pairs: int) -> slice:
        """As many pairs for each as in a full step, so that a short one is cut at the same places."""
        rank, processes = self.share
        most = -(-self.batch_size // processes)
        return slice(min(rank * most, pairs), min((rank + 1) * most, pairs))

    def _ordered(self, epoch: int, relation: int, rounds: int) -> NDArray[np.int64]:
        """The order of a relation's pairs, new each time that all have been met."""
        key = (epoch, relation, rounds)
        if key not in self._orders:
            self._orders = {k: order for k, order in self._orders.items() if k[0] == epoch}
            pairs = list(self.pairs_by_relation.values())[relation]
            more = [relation, rounds] if relation or rounds else []
            rng = np.random.default_rng([TRAINING, self.seed, epoch, *more])
            self._orders[key] = rng.permutation(len(pairs))
        return self._orders[key]


class _RelationStep(NamedTuple):
    """A step of an epoch: its relation, by name and number, and its place among that relation's steps."""

    relation: str
    number: int
    place: int


def evaluation_key(seed: int) -> np.uint64:
    """The stream of the fixed neighbour sample: the same for a node in whatever batch it is met."""
    return stream_key(EVALUATION, seed)


def evaluation_sampler(seed: int) -> SeededSampler:
    """The sampler of that stream."""
    return SeededSampler(evaluation_key(seed))
