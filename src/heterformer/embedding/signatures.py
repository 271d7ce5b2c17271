"""What a vector is made of, in 64 bits: if a node's signature is the same, so is its vector."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from heterformer.batches.batch import Batch, Neighbors
from heterformer.models.contract import HeterogeneousEncoder, NodeEncoder
from heterformer.models.textless import TextlessNodes
from heterformer.network.encoding import AttributeRows
from heterformer.network.hashes import Hashes, mixed, sequence_hashes, string_hash
from heterformer.network.schema import EdgeType, NodeType
from heterformer.network.tokens import PackedTokens
from heterformer.training.folding import FoldedIn

CHUNK = 1 << 16  # rows hashed at a time


class Signatures:
    """Signatures of centres under one model: of their own tokens, and of each neighbour's edge and contents.

    The model's weights have no part in it, but for the embeddings of textless nodes, which are contents.
    """

    def __init__(
        self, model: NodeEncoder, tokens: PackedTokens, folded: Mapping[NodeType, FoldedIn] | None = None
    ) -> None:
        self._texts = tokens.hashes()
        self._textless: dict[NodeType, Hashes] = {}
        if isinstance(model, HeterogeneousEncoder):
            types = (t for t in model.embedded_types if t in model.schema.textless)
            self._textless = {t: _textless_hashes(model.textless, t) for t in types}
        for node_type, new in (folded or {}).items():
            self._textless[node_type][new.nodes] = new.signatures(self._texts)

    def for_batch(self, batch: Batch) -> Hashes:
        """(B,): one for each centre. The order of its neighbours does not matter."""
        assert batch.text_rows is not None
        texts = self._texts[batch.text_rows.numpy()]
        sums = mixed(texts[batch.centers.numpy()])
        near = texts.copy()
        self._add_terms(near, texts, batch.second_hop, batch)
        self._add_terms(sums, near, batch.neighbors, batch)
        for own in batch.attributes.values():
            rows = AttributeRows(own.numbers.numpy(), own.categories.numpy())
            sums[own.center.numpy()] += mixed(rows.hashes())
        return mixed(sums)

    def _add_terms(
        self, sums: Hashes, texts: Hashes, neighbors: Mapping[EdgeType, Neighbors], batch: Batch
    ) -> None:
        """Add a term for each edge to the sum of its centre; ``texts`` are the contents of the texts."""
        for edge_type, edges in neighbors.items():
            if edge_type.neighbor in self._textless:
                contents = self._textless[edge_type.neighbor][batch.textless[edge_type.neighbor].numpy()]
            elif edge_type.neighbor in batch.textless:
                continue  # a model that has no embeddings of such nodes does not see them
            else:
                contents = texts
            terms = mixed(contents[edges.node.numpy()] ^ string_hash(edge_type.name))
            np.add.at(sums, edges.center.numpy(), terms)

    def textless(self, node_type: NodeType) -> Hashes:
        """A signature for each node of a textless type."""
        return self._textless[node_type]


def _textless_hashes(textless: TextlessNodes, node_type: NodeType) -> Hashes:
    table, _ = textless.parameters_of(node_type)
    hashes = np.empty(len(table), dtype=np.uint64)
    for start in range(0, len(table), CHUNK):
        bits = table[start : start + CHUNK].detach().float().cpu().numpy().view(np.uint32)  # (n, 64)
        offsets = np.arange(len(bits) + 1, dtype=np.int64) * bits.shape[1]
        hashes[start : start + CHUNK] = sequence_hashes(bits.ravel(), offsets)
    attributes = textless.attribute_rows(node_type)
    return hashes if attributes is None else mixed(hashes + attributes.hashes())
