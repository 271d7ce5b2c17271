"""Parts of a batch of pairs: what one process has of it, and what fits into memory at once."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from heterformer.batches.batch import Batch, Neighbors


def slices(batch: Batch, most: int | None = None) -> list[Batch]:
    """A batch of pairs cut into batches of at most ``most`` pairs each; none if it has no pairs."""
    pairs = len(batch.centers) // 2
    if most is None or pairs <= most:
        return [batch] if pairs else []
    return [pair_slice(batch, start, min(start + most, pairs)) for start in range(0, pairs, most)]


def pair_slice(batch: Batch, start: int, stop: int) -> Batch:
    """The pairs from ``start`` to ``stop`` with what they need and nothing else, as if made of them alone.

    What is a negative is a matter of the whole batch and stays behind.
    """
    pairs = len(batch.centers) // 2
    chosen = torch.cat([torch.arange(start, stop), torch.arange(pairs + start, pairs + stop)])
    centers = batch.centers[chosen]
    place = _places(chosen, 2 * pairs)
    kept = {}
    for edge_type, n in batch.neighbors.items():
        edges = torch.nonzero(place[n.center] >= 0).flatten()
        if len(edges):
            kept[edge_type] = Neighbors(place[n.center[edges]], n.node[edges])
    met = [n.node for r, n in kept.items() if r.neighbor not in batch.textless]
    neighbors = torch.unique(torch.cat([batch.centers[:0], *met]))
    texts = torch.cat([neighbors, _others(batch, centers, neighbors)])
    rows = {
        t: torch.unique(torch.cat([batch.centers[:0], *(n.node for r, n in kept.items() if r.neighbor == t)]))
        for t in batch.textless
    }
    among_texts = _places(texts, len(batch.texts))
    among = {t: _places(chosen, len(batch.textless[t])) for t, chosen in rows.items()}
    return replace(
        batch,
        texts=batch.texts.select(texts),
        neighbor_texts=len(neighbors),
        centers=among_texts[centers],
        neighbors={
            r: Neighbors(n.center, among.get(r.neighbor, among_texts)[n.node]) for r, n in kept.items()
        },
        textless={t: batch.textless[t][chosen] for t, chosen in rows.items() if len(chosen)},
        text_numbers=None if batch.text_numbers is None else batch.text_numbers[texts],
        false_negatives=None,
        first_pair=batch.first_pair + start,
    )


def _places(chosen: Tensor, count: int) -> Tensor:
    """(count,): of each of ``count`` things its place among the chosen ones, or -1."""
    places = torch.full((count,), -1)
    places[chosen] = torch.arange(len(chosen))
    return places


def _others(batch: Batch, centers: Tensor, neighbors: Tensor) -> Tensor:
    """The centres' texts that are nobody's neighbour, by their numbers if these are known."""
    alone = torch.ones(len(batch.texts), dtype=torch.bool)
    alone[neighbors] = False
    distinct = torch.unique(centers)
    found: Tensor = distinct[alone[distinct]]
    return found if batch.text_numbers is None else found[torch.argsort(batch.text_numbers[found])]
