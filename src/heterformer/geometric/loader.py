"""Batches of links for PyTorch Geometric, none of which shows a link that is to be predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heterformer.batches.batch import PairBatch
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import TrainingBatches, evaluation_key
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.network.interchange.hetero_data import import_libraries
from heterformer.network.schema import EdgeType, NodeType, Relation
from heterformer.network.split.draw import make_split
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import PARTS, Part, Split
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.untrusted import REVERSED


class LinkLoader:
    """Iterates over the links of the predicted relation, as PyTorch Geometric's ``LinkNeighborLoader`` does.

    Each batch is a ``HeteroData`` of queries and keys with sampled neighbours of one hop. No held-out link is
    among its edges, nor any link between the two ends of a pair: a node that occurs in several pairs is there
    several times, each time without that pair's other end.

    - ``batch[type].n_id``: the rows of the nodes in the network. Queries and keys come first.
    - ``batch[source, relation, target].edge_index``: messages to queries and keys; relations that point the
      other way are named ``rev_…``.
    - ``batch[source, predicted, target].edge_label_index``: (2, pairs), positions of queries and keys.
    - ``batch.false_negatives``: (pairs, pairs), other keys that are linked to a query.

    Args:
        network: The network, or its folder.
        split: The split, such as ``run.split(network)``; unless given, a new one with the default options.
        part: Which pairs: "train", "validation" or "test".
        batch_size: Pairs per batch.
        neighbors: Neighbours to sample of each type; unless given, as the network's specification says.
        seed: Seed of the order and of the neighbours. Each pass over the training pairs has others.

    Example:
        >>> from heterformer import LinkLoader, Network
        >>> loader = LinkLoader(Network.open("papers.net"), batch_size=4)
        >>> batch = next(iter(loader))
        >>> batch["paper", "cites", "paper"].edge_label_index.shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        network: Network | Any,
        split: Split | None = None,
        part: Part = "train",
        batch_size: int = 128,
        neighbors: dict[NodeType, int] | None = None,
        seed: int = 0,
    ) -> None:
        self.network = network if isinstance(network, Network) else Network.open(network)
        self.split = split if split is not None else make_split(self.network)
        if part not in PARTS:
            raise InputError(f"part is {part!r}, expected one of {', '.join(PARTS)}.")
        if (end := self.network.schema.textless_end(self.network.schema.predicted[0])) is not None:
            problem = f"the first predicted relation joins {end} nodes, which have no text"
            raise InputError(f"{self.network.path}: {problem}; expected one between texts.")
        if batch_size < 2:
            raise InputError(f"batch_size is {batch_size}, expected at least 2.")
        self.part, self.batch_size, self.seed, self.epoch = part, batch_size, seed, 0
        view = VisibleNetwork.for_training if part == "train" else VisibleNetwork.for_evaluation
        self._tokens = _no_tokens(self.network)
        self._batcher = Batcher(view(self.network, self.split), self._tokens, neighbors)
        self._pairs: Pairs = getattr(self.split, part)
        self._hetero_data = import_libraries()[1]

    def __len__(self) -> int:
        full, rest = divmod(len(self._pairs), self.batch_size)
        return full + (rest > 1 if self.part == "train" else rest > 0)

    def __iter__(self) -> Iterator[Any]:
        """One pass; of the training pairs each is another epoch."""
        if self.part == "train":
            batches = TrainingBatches(self._batcher, self._pairs, self.batch_size, self.seed)
            epoch, self.epoch = self.epoch, self.epoch + 1
            for step in range(len(self)):
                yield self._data(batches.batch(epoch, step))
            return
        for start in range(0, len(self._pairs), self.batch_size):
            pairs = self._pairs[start : start + self.batch_size]
            yield self._data(self._batcher.pairs(pairs, evaluation_key(self.seed), false_negatives=True))

    def _data(self, batch: PairBatch) -> Any:
        """A batch of ours as ``HeteroData``."""
        nodes = _LocalNodes(batch, self._tokens, self.network.schema.predicted[0])
        data = self._hetero_data()
        for node_type in self.network.schema.node_types:
            data[node_type].n_id = nodes.rows(node_type)
            data[node_type].num_nodes = len(data[node_type].n_id)
        for edge_type in self.network.schema.edge_types:
            neighbors = batch.neighbors.get(edge_type)
            if neighbors is not None:
                ends = nodes.neighbors(edge_type, neighbors.node), nodes.centers[neighbors.center]
            else:
                ends = torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
            data[_towards_center(edge_type)].edge_index = torch.stack(ends)
        relation = self.network.schema.predicted[0]
        labels = torch.stack([nodes.centers[batch.queries], nodes.centers[batch.keys]])
        data[relation.source, relation.name, relation.target].edge_label_index = labels
        data.false_negatives = batch.false_negatives
        return data


class _LocalNodes:
    """Positions of a batch's nodes within their types: centres first, then neighbours' distinct texts."""

    def __init__(self, batch: PairBatch, tokens: PackedTokens, predicted: Relation) -> None:
        assert batch.text_rows is not None
        self._batch, self._tokens = batch, tokens
        self._of_neighbors = batch.text_rows[: batch.neighbor_texts]
        self._of_centers = batch.text_rows[batch.centers]
        self._counts: dict[NodeType, int] = {}
        self.centers = torch.empty_like(batch.centers)  # (B,)
        for node_type in {predicted.source, predicted.target}:
            own = self._mask(node_type, self._of_centers)
            self._counts[node_type] = int(own.sum())
            self.centers[own] = torch.arange(self._counts[node_type])

    def _mask(self, node_type: NodeType, text_rows: Tensor) -> Tensor:
        starts = sorted(self._tokens.text_offset.values())
        start = self._tokens.text_offset[node_type]
        stop = next((s for s in starts if s > start), len(self._tokens))
        return (text_rows >= start) & (text_rows < stop)

    def rows(self, node_type: NodeType) -> Tensor:
        """The network's rows of a type's nodes."""
        if node_type not in self._tokens.text_offset:
            return self._batch.textless.get(node_type, torch.empty(0, dtype=torch.int64))
        both = (self._of_centers, self._of_neighbors)
        chosen = torch.cat([rows[self._mask(node_type, rows)] for rows in both])
        return chosen - self._tokens.text_offset[node_type]

    def neighbors(self, edge_type: EdgeType, positions: Tensor) -> Tensor:
        """The positions of neighbours, given those in the batch."""
        node_type = edge_type.neighbor
        if node_type not in self._tokens.text_offset:
            return positions
        before = torch.cumsum(self._mask(node_type, self._of_neighbors).long(), 0) - 1
        return self._counts.get(node_type, 0) + before[positions]


def _towards_center(edge_type: EdgeType) -> tuple[NodeType, str, NodeType]:
    """The relation along which a neighbour's message reaches the centre."""
    name = edge_type.relation
    back = name.removeprefix(REVERSED) if name.startswith(REVERSED) else REVERSED + name
    return edge_type.neighbor, back, edge_type.center


def _no_tokens(network: Network) -> PackedTokens:
    """Texts of no tokens: batches need to know only whose text is which."""
    offset, start = {}, 0
    for node_type in network.schema.text_rich:
        offset[node_type] = start
        start += network.schema.counts[node_type]
    return PackedTokens(offset, np.zeros(start + 1, dtype=np.int64), np.empty(0, dtype=np.int32))
