"""What a model is given: distinct texts as packed tokens, and a ragged neighbourhood per edge type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from heterformer.network.hashes import sequence_hashes
from heterformer.network.schema import EdgeType, NodeType

T = TypeVar("T")


@dataclass(frozen=True)
class Texts:
    """Token ids of several texts laid end to end; text ``u`` is ``tokens[offsets[u]:offsets[u + 1]]``."""

    tokens: Tensor  # (T,) int64
    offsets: Tensor  # (U + 1,) int64
    # (U,) int64, of each text's tokens; 0 for texts that are no centre's neighbours, if it is known which
    hashes: Tensor | None = None

    def __len__(self) -> int:
        return self.offsets.numel() - 1

    @property
    def lengths(self) -> Tensor:
        return self.offsets[1:] - self.offsets[:-1]  # (U,)

    def first(self, count: int) -> Texts:
        """The first ``count`` texts, without a copy."""
        offsets = self.offsets[: count + 1]
        hashes = None if self.hashes is None else self.hashes[:count]
        return Texts(self.tokens[: int(offsets[-1])], offsets, hashes)

    def content_hashes(self) -> Tensor:
        """(U,): a hash of the tokens of each text that is a centre's neighbour, also of emptied ones."""
        if self.hashes is not None:
            return self.hashes
        hashes = sequence_hashes(self.tokens.cpu().numpy(), self.offsets.cpu().numpy())
        return torch.from_numpy(hashes.view(np.int64)).to(self.tokens.device)

    def select(self, index: Tensor) -> Texts:
        """The texts at ``index``, in that order."""
        lengths = self.lengths[index]
        offsets = torch.zeros(index.numel() + 1, dtype=torch.int64, device=index.device)
        torch.cumsum(lengths, 0, out=offsets[1:])
        within = torch.arange(int(offsets[-1]), device=index.device) - offsets[:-1].repeat_interleave(lengths)
        hashes = None if self.hashes is None else self.hashes[index]
        return Texts(self.tokens[self.offsets[index].repeat_interleave(lengths) + within], offsets, hashes)

    def emptied_except(self, index: Tensor) -> Texts:
        """As many texts; those not at ``index`` have no tokens any more."""
        kept = torch.zeros(len(self), dtype=torch.bool, device=index.device)
        kept[index] = True
        offsets = torch.zeros_like(self.offsets)
        torch.cumsum(self.lengths * kept, 0, out=offsets[1:])
        return Texts(self.tokens[kept.repeat_interleave(self.lengths)], offsets, self.content_hashes())


@dataclass(frozen=True)
class Neighbors:
    """The sampled edges of one edge type: edge ``e`` gives node ``node[e]`` to centre ``center[e]``."""

    center: Tensor  # (E,) int64, a position in Batch.centers, ascending
    node: Tensor  # (E,) int64, a position in Batch.texts or, of a textless type, in Batch.textless[type]


@dataclass(frozen=True)
class TextlessCenters:
    """Textless nodes whose own vectors are asked for: one end of a predicted relation's pairs."""

    node_type: NodeType
    rows: Tensor  # (C,) int64
    # Text-rich neighbours to aggregate, if any: a position in ``rows``, and one in Batch.texts
    neighbors: dict[EdgeType, Neighbors]
    embeddings: Tensor | None = None  # (C, 64): h^(0) of nodes that are not in a model's tables

    def select(self, chosen: Tensor, text_position: Tensor) -> TextlessCenters:
        """The centres at the positions ``chosen``, ascending, whose texts are now at ``text_position``."""
        position = torch.full((len(self.rows),), -1)
        position[chosen] = torch.arange(len(chosen))
        kept = {r: torch.nonzero(position[n.center] >= 0).flatten() for r, n in self.neighbors.items()}
        return TextlessCenters(
            self.node_type,
            self.rows[chosen],
            {
                r: Neighbors(position[n.center[kept[r]]], text_position[n.node[kept[r]]])
                for r, n in self.neighbors.items()
                if len(kept[r])
            },
            None if self.embeddings is None else self.embeddings[chosen],
        )


@dataclass(frozen=True)
class CenterAttributes:
    """The attributes of the centres of one type, as an encoder reads them."""

    center: Tensor  # (n,) int64, positions in Batch.centers
    numbers: Tensor  # (n, F)
    categories: Tensor  # (n, C) int64


HOST = {"host": True}  # of a field that the processor reads and no model: it stays in main memory


@dataclass(frozen=True)
class DeviceData:
    """A dataclass of tensors that move to a device together, all but those of ``HOST`` fields."""

    def to(self, device: torch.device | str) -> Self:
        """The same on ``device``."""
        return self._with_each(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> Self:
        """The same in memory that is copied to a GPU while the processor goes on."""
        return self._with_each(Tensor.pin_memory)

    def tensors(self) -> list[Tensor]:
        """All tensors that move."""
        tensors: list[Tensor] = []

        def collect(tensor: Tensor) -> Tensor:
            tensors.append(tensor)
            return tensor

        self._with_each(collect)
        return tensors

    def _with_each(self, change: Callable[[Tensor], Tensor]) -> Self:
        moving = [f.name for f in fields(self) if f.metadata != HOST]
        return replace(self, **{name: _changed(getattr(self, name), change) for name in moving})


@dataclass(frozen=True)
class Batch(DeviceData):
    """Centre nodes with their neighbourhoods. A text that occurs several times in it is stored once.

    Texts that serve as somebody's neighbour, of the second hop too, come first: a model needs the states of
    ``texts.first(neighbor_texts)`` and no others.
    """

    texts: Texts
    neighbor_texts: int
    centers: Tensor  # (B,) int64, positions in texts
    neighbors: dict[EdgeType, Neighbors]
    textless: dict[NodeType, Tensor]  # distinct row numbers of each textless type met, (n_type,) int64
    # What the neighbours themselves are next to: here ``center`` is a position in texts
    second_hop: dict[EdgeType, Neighbors] = field(default_factory=dict)
    # (U,) int64, each text's row among all of the network's
    text_rows: Tensor | None = field(default=None, metadata=HOST)
    # h^(0) of the nodes in ``textless``, (n_type, 64), of types whose embeddings are not in a model's tables
    textless_embeddings: dict[NodeType, Tensor] = field(default_factory=dict)
    textless_centers: TextlessCenters | None = None
    # of centres of types whose attributes the model reads
    attributes: dict[NodeType, CenterAttributes] = field(default_factory=dict)

    def without_neighbor_texts(self) -> Self:
        """The same batch for a model that is given the neighbours' states: only centres have tokens."""
        return replace(self, texts=self.texts.emptied_except(self.centers))


class PairVectors(NamedTuple):
    """The vectors of a pair batch's centres, by role."""

    queries: Tensor  # (P, d)
    keys: Tensor  # (P, d)
    negatives: Tensor  # (N, d)


@dataclass(frozen=True, kw_only=True)
class PairBatch(Batch):
    """A batch to learn a task from: its centres are P queries, then their P keys, then N further negatives.

    Those of a textless end are in ``textless_centers``, and only the others in ``centers``.

    Key ``i`` belongs to query ``i``. The other keys of the whole step are negatives of each query as well,
    but for those in ``false_negatives``; so are the further negatives, which all queries share. A batch can
    hold a part of its step's pairs, from ``pair_offset`` on, and as large a part of its negatives.
    """

    task: str  # the name of the relation whose pairs these are
    pairs: int  # P
    pair_offset: int = 0
    textless_queries: bool = False  # whether ``textless_centers`` are the queries, and not the keys
    # (P, keys of the step, then its negatives) bool: not the query's own, no negative
    false_negatives: Tensor | None = None
    # (keys of the step, then its negatives) float: what is taken from their scores, see ``losses``
    log_frequencies: Tensor | None = None

    @property
    def queries(self) -> slice:
        """Where the queries are among the centres."""
        return slice(0, self.pairs)

    @property
    def keys(self) -> slice:
        """Where the keys are among the centres, in the order of their queries."""
        return slice(self.pairs, 2 * self.pairs)

    @property
    def negatives(self) -> slice:
        """Where the further negatives are among the centres."""
        return slice(2 * self.pairs, self.vectors)

    @property
    def vectors(self) -> int:
        """How many vectors the batch asks for: 2P + N."""
        textless = self.textless_centers
        return len(self.centers) + (0 if textless is None else len(textless.rows))

    def by_role(self, vectors: Tensor) -> PairVectors:
        """The vectors of the centres, (2P + N, d), as those of queries, keys and negatives."""
        return PairVectors(vectors[self.queries], vectors[self.keys], vectors[self.negatives])


def _changed(value: T, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {k: _changed(v, change) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(_changed(v, change) for v in value)
    if isinstance(value, DeviceData):
        return value._with_each(change)
    if isinstance(value, (Texts, Neighbors, TextlessCenters, CenterAttributes)):
        return type(value)(*(_changed(getattr(value, f.name), change) for f in fields(value)))
    return value
