"""The figure that early stopping watches: in-batch PREC of the validation pairs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.batcher import Batcher
from heterformer.batches.false_negatives import false_negative_masks
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.distributed import ProcessGroup
from heterformer.errors import InputError
from heterformer.metrics import ranking_metrics
from heterformer.models.contract import NodeEncoder
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import Split
from heterformer.progress import say
from heterformer.ranking import Scorer, in_batch_ranks
from heterformer.states.pass_vectors import PassVectors
from heterformer.states.vector_cache import VectorsOf


def validated_pairs(visible: VisibleNetwork, split: Split, relation: Relation) -> Pairs:
    """The validation pairs of a relation whose ends a model can know something of.

    After a split by time, users of whom training has no link would be ranked at random, and they may be most:
    their pairs are left out, as long as there are others. ``visible`` is what validation shows.
    """
    every, place = split.pairs[relation.name].validation, visible.network.path
    known = visible.without_hidden(every, relation)
    if split.times is None:
        if not len(known):
            problem = f"every validation pair of {relation.name!r} has a hidden node at one end"
            raise InputError(f"{place}: {problem}; hold out fewer nodes or take a larger validation part.")
        return known
    if left_out := len(every) - len(known):
        end = visible.network.schema.textless_end(relation)
        what = f"{left_out:,} of {len(every):,} validation pairs of {relation.name!r}"
        whose = f"of whose {end} nodes training has no link"
        if not len(known):
            say(f"{place}: validates on {what}, {whose}: early stopping learns nothing from them.")
            return every
        say(f"{place}: leaves out {what}, {whose}.")
    return known


def chance_prec(pairs: Pairs, batch_size: int) -> float:
    """The PREC that guessing gives: 1 / the different keys of each pair's batch."""
    batches = [pairs[start : start + batch_size, 1] for start in range(0, len(pairs), batch_size)]
    return sum(len(keys) / len(np.unique(keys)) for keys in batches) / max(len(pairs), 1)


def nodes_to_read(
    pairs: Mapping[Relation, Pairs],
    batch_size: int,
    others: Mapping[NodeType, Ints] | None = None,
    processes: ProcessGroup | None = None,
) -> int:
    """The number of different nodes at the ends of this process's pairs, and of ``others``."""
    rows = {node_type: [own] for node_type, own in (others or {}).items()}
    for relation, every in pairs.items():
        share = _share(every, batch_size, processes or ProcessGroup())
        for end, node_type in enumerate((relation.source, relation.target)):
            rows.setdefault(node_type, []).append(share[:, end])
    return sum(len(np.unique(np.concatenate(some))) for some in rows.values())


def _share(pairs: Pairs, batch_size: int, processes: ProcessGroup) -> Pairs:
    """The pairs of this process's batches."""
    batches = processes.share(-(-len(pairs) // batch_size))
    return pairs[batches.start * batch_size : batches.stop * batch_size]


def in_batch_metrics(
    model: NodeEncoder,
    batcher: Batcher,
    pairs: Pairs,
    batch_size: int,
    seed: int,
    processes: ProcessGroup | None = None,
    precision: AbstractContextManager[object] | None = None,
    relation: Relation | None = None,
    log_frequencies: NDArray[np.float32] | None = None,
    vectors: VectorsOf | None = None,
) -> dict[str, float]:
    """The paper's evaluation: each query ranks the keys of its batch of pairs, neighbours being fixed.

    Of several processes each ranks a part of the batches; all have the figures of the whole. Vectors are
    computed in ``precision``, as an autocast; scores never are: rounded ones would tie.
    Pairs are of the first predicted relation unless another is given. ``log_frequencies`` of its targets are
    taken from their scores, as in training: the keys of a batch are met as often as they are linked.
    ``vectors`` gives those of nodes, ``PassVectors`` of the model unless given: with the same for several
    relations, no node and no text is read twice.
    """
    processes = processes or ProcessGroup()
    pairs = _share(pairs, batch_size, processes)
    relation = relation or batcher.schema.predicted[0]
    vectors = vectors or PassVectors(model, batcher, evaluation_sampler(seed))
    with precision or nullcontext():
        if relation.source == relation.target:  # a node may be a query of one pair and the key of another
            both = vectors(relation.source, pairs.T.flatten())
            queries, keys = both[: len(pairs)], both[len(pairs) :]
        else:
            queries, keys = vectors(relation.source, pairs[:, 0]), vectors(relation.target, pairs[:, 1])
    key_rows = torch.from_numpy(np.ascontiguousarray(pairs[:, 1]))

    def known(batch: slice) -> Tensor:
        """The keys that are known to be true of a query: of a user with many items any may be one."""
        some = pairs[batch]
        (mask,) = false_negative_masks(batcher.visible, [some], [slice(0, len(some))], relation=relation)
        return torch.from_numpy(mask)

    with torch.no_grad():
        scorer = partial(model.scores, relation=relation.name)
        if log_frequencies is not None:
            own = torch.from_numpy(log_frequencies[pairs[:, 1]]).to(keys)
            keys, scorer = torch.cat([keys, own[:, None]], 1), partial(_corrected, scorer)
        # Between texts, the paper's plain form.
        excluded = None if batcher.schema.textless_end(relation) is None else known
        ranks = in_batch_ranks(queries, keys, batch_size, scorer, key_rows, excluded)
    return ranking_metrics({"in_batch": processes.all_gather(ranks).cpu().numpy()})


def _corrected(scorer: Scorer, queries: Tensor, keys: Tensor) -> Tensor:
    """(Q, K): the scores less the numbers in the last column of the keys."""
    return scorer(queries, keys[:, :-1]) - keys[:, -1]


def weighted_means(figures: Mapping[str, dict[str, float]], shares: Mapping[str, float]) -> dict[str, float]:
    """The means of several relations' metrics by their shares, then each one's own as ``RELATION.METRIC``."""
    names = next(iter(figures.values()))
    means = {name: sum(shares[r] * own[name] for r, own in figures.items()) for name in names}
    return means | {f"{r}.{name}": value for r, own in figures.items() for name, value in own.items()}
