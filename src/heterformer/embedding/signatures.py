"""What a vector is made of, in 64 bits: if a node's signature is the same, so is its vector."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from heterformer.arrays import Ints
from heterformer.batches.assembly import SecondHop, assemble
from heterformer.batches.batch import Batch, Neighbors
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.inference import neighbor_text_rows
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
        self,
        model: NodeEncoder,
        tokens: PackedTokens,
        folded: Mapping[NodeType, FoldedIn] | None = None,
        second_hop: SecondHop | None = None,
    ) -> None:
        """``second_hop`` gives the neighbours of neighbours, of a model that reads them."""
        self._schema, self._tokens, self._second_hop = model.schema, tokens, second_hop
        self._texts = tokens.hashes()
        self._textless: dict[NodeType, Hashes] = {}
        if isinstance(model, HeterogeneousEncoder):
            types = (t for t in model.embedded_types if t in model.schema.textless)
            self._textless = {t: _textless_hashes(model.textless, t) for t in types}
        for node_type, new in (folded or {}).items():
            self._textless[node_type][new.nodes] = new.signatures(self._texts)
        # What texts are as neighbours: their own neighbours are added when a batch first meets them.
        self._neighbors = self._texts if second_hop is None else self._texts.copy()
        self._is_met = np.zeros(len(self._texts), dtype=bool)

    def for_batch(self, batch: Batch) -> Hashes:
        """(B,): one for each centre. The order of its neighbours does not matter."""
        assert batch.text_rows is not None
        text_rows = batch.text_rows.numpy()
        self._meet(text_rows[: batch.neighbor_texts])
        sums = mixed(self._texts[text_rows[batch.centers.numpy()]])
        self._add_terms(sums, self._neighbors[text_rows], batch.neighbors, batch)
        for own in batch.attributes.values():
            rows = AttributeRows(own.numbers.numpy(), own.categories.numpy())
            sums[own.center.numpy()] += mixed(rows.hashes())
        return mixed(sums)

    def _meet(self, text_rows: Ints) -> None:
        """Add to texts that are met for the first time what they are next to."""
        new = text_rows[~self._is_met[text_rows]]
        if self._second_hop is None or not len(new):
            return
        none = np.empty(0, dtype=np.int64)
        batch = assemble(self._schema, self._tokens, none, (), second_hop=self._second_hop, near=new)
        every = neighbor_text_rows(batch)
        sums = self._texts[every]
        self._add_terms(sums, sums.copy(), batch.second_hop, batch)
        self._neighbors[new], self._is_met[new] = sums[np.searchsorted(every, new)], True

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
