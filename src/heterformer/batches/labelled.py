"""Batches of labelled nodes, for a supervised task."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.batches.batch import Batch
from heterformer.batches.batcher import Batcher
from heterformer.batches.randomness import stream_key
from heterformer.batches.sampling import SeededSampler
from heterformer.network.targets import Targets

ORDER, NEIGHBORS = 21, 22  # purposes of random streams, beside those of pairs


@dataclass(frozen=True)
class LabelledBatch(Batch):
    """Centres and what is to be predicted for each. It can hold a part of its step's nodes."""

    targets: Tensor | None = None  # (n, C)
    offset: int = 0  # the place of its first node in the step
    nodes_of_step: int = 0


class LabelledBatches:
    """Labelled nodes in an order that is new each epoch, with neighbours that are new each step.

    As with pairs, a batch is a function of (seed, epoch, step), and of several processes ``share`` = (rank,
    processes) has its part of each.
    """

    def __init__(
        self,
        batcher: Batcher,
        targets: Targets,
        batch_size: int,
        seed: int,
        share: tuple[int, int] = (0, 1),
        nodes_at_once: int | None = None,
    ) -> None:
        """A step's nodes come in batches of at most ``nodes_at_once``, whose losses are added up."""
        self.batcher, self.targets, self.batch_size, self.seed = batcher, targets, batch_size, seed
        self.share, self.nodes_at_once = share, nodes_at_once or batch_size
        self.skipped = 0  # steps by which a run is further than it has taken, since its batches were larger

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.targets) // self.batch_size)

    def batches(self, epoch: int, step: int) -> list[LabelledBatch]:
        """This process's part of a step of an epoch."""
        order = np.random.default_rng([ORDER, self.seed, epoch]).permutation(len(self.targets))
        chosen = order[step * self.batch_size : (step + 1) * self.batch_size]
        rank, processes = self.share
        most = -(-self.batch_size // processes)  # as many for each as in a full step
        stop = min((rank + 1) * most, len(chosen))
        sampler = SeededSampler(stream_key(NEIGHBORS, self.seed, epoch, step))
        return [
            self._batch(chosen[offset : min(offset + self.nodes_at_once, stop)], sampler, offset, len(chosen))
            for offset in range(rank * most, stop, self.nodes_at_once)
        ]

    def of_run_step(self, step: int) -> list[LabelledBatch]:
        """This process's part of a run's step, counted over all epochs."""
        return self.batches(*divmod(step + self.skipped, self.steps_per_epoch))

    def _batch(
        self, chosen: NDArray[np.int64], sampler: SeededSampler, offset: int, total: int
    ) -> LabelledBatch:
        node_type, rows = self.targets.node_type, self.targets.rows[chosen]
        batch = self.batcher.nodes(node_type, rows, sampler)
        values: dict[str, Any] = {field.name: getattr(batch, field.name) for field in fields(batch)}
        targets = torch.from_numpy(self.targets.values[chosen])
        return LabelledBatch(**values, targets=targets, offset=offset, nodes_of_step=total)
