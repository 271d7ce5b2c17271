"""Batches turned back into nodes, by their tokens and row numbers alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from heterformer.batches.batch import Batch
from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.network.schema import EdgeType, NodeType
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens, open_tokens
from tests.networks import Facts, tokenizer

Node = tuple[NodeType, str]


@dataclass(frozen=True)
class Center:
    """A centre node and its sampled neighbours, in the order of their edge types."""

    node: Node
    neighbors: list[tuple[EdgeType, Node]]


@dataclass(frozen=True)
class Decoder:
    """A built network with what is needed to make batches of it and to read them."""

    facts: Facts
    network: Network
    tokens: PackedTokens
    nodes: dict[tuple[int, ...], Node]  # by tokens: in these networks no two texts are alike

    def batcher(self, visible: VisibleNetwork | None = None, second_hop: int = 0) -> Batcher:
        whole = VisibleNetwork.whole(self.network)
        return Batcher(visible or whole, self.tokens, second_hop=second_hop)

    def texts(self, batch: Batch) -> list[Node]:
        """Whose text each of the batch's texts is."""
        offsets = batch.texts.offsets.tolist()
        bounds = itertools.pairwise(offsets)
        return [self.nodes[tuple(batch.texts.tokens[a:b].tolist())] for a, b in bounds]

    def centers(self, batch: Batch) -> list[Center]:
        texts = self.texts(batch)
        centers = [Center(texts[position], []) for position in batch.centers.tolist()]
        for edge_type, edges in batch.neighbors.items():
            for center, position in zip(edges.center.tolist(), edges.node.tolist(), strict=True):
                centers[center].neighbors.append((edge_type, self._neighbor(batch, edge_type, position)))
        return centers

    def second_hop(self, batch: Batch) -> dict[Node, list[tuple[EdgeType, Node]]]:
        """The neighbours of each text that has some as a neighbour."""
        texts, neighbors = self.texts(batch), dict[Node, list[tuple[EdgeType, Node]]]()
        for edge_type, edges in batch.second_hop.items():
            for center, position in zip(edges.center.tolist(), edges.node.tolist(), strict=True):
                assert center < batch.neighbor_texts
                found = (edge_type, self._neighbor(batch, edge_type, position))
                neighbors.setdefault(texts[center], []).append(found)
        return neighbors

    def _neighbor(self, batch: Batch, edge_type: EdgeType, position: int) -> Node:
        if edge_type.neighbor in self.facts.texts:
            assert position < batch.neighbor_texts
            return self.texts(batch)[position]
        row = int(batch.textless[edge_type.neighbor][position])
        return edge_type.neighbor, self.network.ids(edge_type.neighbor, [row])[0]


@contextmanager
def decoder(facts: Facts) -> Iterator[Decoder]:
    """A network of these facts, for as long as the context lasts."""
    with facts.built() as network:
        nodes = {
            tuple(tokenizer()(text)["input_ids"]): (node_type, name)
            for node_type, texts in facts.texts.items()
            for text, name in zip(texts, facts.ids[node_type], strict=True)
        }
        yield Decoder(facts, network, open_tokens(network, tokenizer()), nodes)


def same(one: Batch, other: Batch) -> bool:
    """Whether two batches are equal in all that a model sees."""
    return _plain(one) == _plain(other)


def _plain(batch: Batch) -> object:
    optional = (batch.text_rows, getattr(batch, "false_negatives", None))
    hashes = batch.texts.content_hashes()  # of which those of the centres' neighbours are read
    return (
        batch.texts.tokens.tolist(),
        batch.texts.offsets.tolist(),
        batch.neighbor_texts,
        batch.centers.tolist(),
        {e: (n.center.tolist(), n.node.tolist()) for e, n in batch.neighbors.items()},
        {e: (n.center.tolist(), n.node.tolist()) for e, n in batch.second_hop.items()},
        {e: hashes[n.node].tolist() for e, n in batch.neighbors.items() if e.neighbor not in batch.textless},
        {t: rows.tolist() for t, rows in batch.textless.items()},
        [None if tensor is None else tensor.tolist() for tensor in optional],
    )
