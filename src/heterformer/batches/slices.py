"""Parts of a batch of pairs: what one process has of it, and what fits into memory at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from heterformer.batches.batch import Batch, CenterAttributes, DeviceData, Neighbors, PairBatch
from heterformer.network.schema import EdgeType

B = TypeVar("B", bound=Batch)


@dataclass(frozen=True)
class SlicedBatch(DeviceData):
    """The pairs of a step as they are computed, slice by slice, and what the loss needs of the whole."""

    slices: tuple[PairBatch, ...]
    task: str
    pair_offset: int
    false_negatives: Tensor | None
    log_frequencies: Tensor | None

    @classmethod
    def from_pairs(
        cls, batch: PairBatch, most: int | None = None, neighbor_texts: bool = True
    ) -> SlicedBatch:
        """At most ``most`` pairs in a slice; without ``neighbor_texts`` only centres have tokens."""
        parts = [replace(part, false_negatives=None, log_frequencies=None) for part in slices(batch, most)]
        return cls(
            tuple(part if neighbor_texts else part.without_neighbor_texts() for part in parts),
            batch.task,
            batch.pair_offset,
            batch.false_negatives,
            batch.log_frequencies,
        )


def slices(batch: PairBatch, most: int | None = None) -> list[PairBatch]:
    """A batch cut into batches of at most ``most`` pairs each; none if it has no pairs."""
    if most is None or batch.pairs <= most:
        return [batch] if batch.pairs else []
    return [pair_slice(batch, start, min(start + most, batch.pairs)) for start in range(0, batch.pairs, most)]


def pair_slice(batch: PairBatch, start: int, stop: int) -> PairBatch:
    """The pairs from ``start`` to ``stop`` with what they need and nothing else, as if made of them alone.

    Further negatives are divided as the pairs are. What is a false negative is a matter of the whole batch
    and stays behind.
    """
    negatives = batch.vectors - batch.negatives.start
    chosen = torch.cat(
        [
            torch.arange(batch.queries.start + start, batch.queries.start + stop),
            torch.arange(batch.keys.start + start, batch.keys.start + stop),
            batch.negatives.start
            + torch.arange(negatives * start // batch.pairs, negatives * stop // batch.pairs),
        ]
    )
    textless: Tensor | None = None
    if batch.textless_centers is not None:  # which are counted by themselves, and so are the others
        queries, others = chosen[chosen < batch.pairs], chosen[chosen >= batch.pairs] - batch.pairs
        chosen, textless = (others, queries) if batch.textless_queries else (queries, others)
    return replace(
        select_centers(batch, chosen, textless),
        pairs=stop - start,
        pair_offset=batch.pair_offset + start,
        false_negatives=None,
    )


def select_centers(batch: B, chosen: Tensor, textless_chosen: Tensor | None = None) -> B:
    """The batch of the centres at the positions ``chosen`` alone, with what they need and nothing else.

    ``textless_chosen`` are positions in the textless centres, of which none is kept unless it is given.
    """
    centers = batch.centers[chosen]
    position = _positions(chosen, len(batch.centers))
    kept = {}
    for edge_type, n in batch.neighbors.items():
        edges = torch.nonzero(position[n.center] >= 0).flatten()
        if len(edges):
            kept[edge_type] = Neighbors(position[n.center[edges]], n.node[edges])
    neighbor_nodes = [n.node for r, n in kept.items() if r.neighbor not in batch.textless]
    end = batch.textless_centers
    if end is not None and textless_chosen is not None:
        every_text = torch.arange(len(batch.texts))
        neighbor_nodes += [n.node for n in end.select(textless_chosen, every_text).neighbors.values()]
    near = _distinct(batch, neighbor_nodes)
    further = _edges_of(batch.second_hop, near, len(batch.texts))
    further_nodes = [n.node for r, n in further.items() if r.neighbor not in batch.textless]
    neighbors = _distinct(batch, [near, *further_nodes])
    texts = torch.cat([neighbors, _other_texts(batch, centers, neighbors)])
    met = [*kept.items(), *further.items()]
    textless = {t: _distinct(batch, [n.node for r, n in met if r.neighbor == t]) for t in batch.textless}
    text_position = _positions(texts, len(batch.texts))
    textless_position = {t: _positions(nodes, len(batch.textless[t])) for t, nodes in textless.items()}
    node_positions = {r: textless_position.get(r.neighbor, text_position) for r, _ in met}
    return replace(
        batch,
        texts=batch.texts.select(texts),
        neighbor_texts=len(neighbors),
        centers=text_position[centers],
        neighbors={r: Neighbors(n.center, node_positions[r][n.node]) for r, n in kept.items()},
        second_hop={
            r: Neighbors(text_position[n.center], node_positions[r][n.node]) for r, n in further.items()
        },
        textless={t: batch.textless[t][nodes] for t, nodes in textless.items() if len(nodes)},
        text_rows=None if batch.text_rows is None else batch.text_rows[texts],
        textless_embeddings={t: h0[textless[t]] for t, h0 in batch.textless_embeddings.items()},
        textless_centers=None
        if end is None or textless_chosen is None
        else end.select(textless_chosen, text_position),
        attributes={t: _attributes_of(a, position) for t, a in batch.attributes.items()},
    )


def _edges_of(
    neighbors: Mapping[EdgeType, Neighbors], centers: Tensor, count: int
) -> dict[EdgeType, Neighbors]:
    """The edges of some of ``count`` centres, whose numbers stay."""
    is_kept = torch.zeros(count, dtype=torch.bool)
    is_kept[centers] = True
    kept = {r: is_kept[n.center] for r, n in neighbors.items()}
    return {r: Neighbors(n.center[kept[r]], n.node[kept[r]]) for r, n in neighbors.items() if kept[r].any()}


def _distinct(batch: Batch, nodes: Sequence[Tensor]) -> Tensor:
    distinct: Tensor = torch.unique(torch.cat([batch.centers[:0], *nodes]))
    return distinct


def _attributes_of(attributes: CenterAttributes, position: Tensor) -> CenterAttributes:
    """Those of the centres that have a new position."""
    kept = torch.nonzero(position[attributes.center] >= 0).flatten()
    center = position[attributes.center[kept]]
    return CenterAttributes(center, attributes.numbers[kept], attributes.categories[kept])


def _positions(chosen: Tensor, count: int) -> Tensor:
    """(count,): of each of ``count`` things its position among the chosen ones, or -1."""
    positions = torch.full((count,), -1)
    positions[chosen] = torch.arange(len(chosen))
    return positions


def _other_texts(batch: Batch, centers: Tensor, neighbors: Tensor) -> Tensor:
    """The centres' texts that are nobody's neighbour, by their numbers if these are known."""
    alone = torch.ones(len(batch.texts), dtype=torch.bool)
    alone[neighbors] = False
    distinct = torch.unique(centers)
    others: Tensor = distinct[alone[distinct]]
    return others if batch.text_rows is None else others[torch.argsort(batch.text_rows[others])]
