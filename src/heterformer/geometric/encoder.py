"""A model of ours as the encoder in front of modules of PyTorch Geometric."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.models.contract import NodeEncoder
from heterformer.network.schema import NodeType, check_schema
from heterformer.network.store import Network


class HeteroTextEncoder(nn.Module):
    """Gives the nodes of a ``HeteroData`` batch their features: a dictionary ``x`` by node type.

    A node with text is read alone, without neighbours, which the modules behind the encoder see to; a node
    without text has its own vector. Gradients reach the model, dense ones. For features that are computed
    once, with neighbours, use ``network.to_hetero_data(vectors=embed(model, network))`` instead.

    Args:
        model: Any model of the project, trained or not.
        network: The network whose nodes the batches are made of.
        tokenizer: Needed only if the model was not loaded from a folder.

    Example:
        >>> from heterformer import HeteroTextEncoder, LinkLoader, Network, load_model
        >>> network, model = Network.open("papers.net"), load_model("runs/papers")
        >>> encoder = HeteroTextEncoder(model, network)
        >>> batch = next(iter(LinkLoader(network, batch_size=4)))
        >>> x = encoder(batch)  # {"paper": (n, d), "author": (m, d), ...}
    """

    def __init__(self, model: NodeEncoder, network: Network, tokenizer: Any = None) -> None:
        super().__init__()
        check_schema(model.schema, network.schema)
        tokens = model.open_tokens(network, tokenizer)
        self.model = model
        for module in model.modules():
            if isinstance(module, nn.Embedding):
                module.sparse = False  # so that any optimiser will do
        self._batcher = Batcher(VisibleNetwork.whole(network), tokens, {})  # without neighbours
        self._sampler = evaluation_sampler(0)

    @property
    def width(self) -> int:
        """d, the length of a vector."""
        return self.model.width

    def forward(self, data: Any) -> dict[NodeType, Tensor]:
        """(n, d) for each type that the model has vectors of.

        Args:
            data: A ``HeteroData``. ``n_id`` of a type, as loaders set it, are rows of the network; without
                it, all of the type's nodes are there in network order.
        """
        return {t: self._vectors(t, self._rows(data, t)) for t in data.node_types if self._knows(t)}

    def _knows(self, node_type: NodeType) -> bool:
        return node_type in self.model.embedded_types

    def _rows(self, data: Any, node_type: NodeType) -> Tensor:
        count = self.model.schema.counts[node_type]
        store = data[node_type]
        rows: Tensor = store.n_id if "n_id" in store else torch.arange(store.num_nodes)
        if len(rows) and not (int(rows.min()) >= 0 and int(rows.max()) < count):
            problem = f"has {node_type} rows up to {int(rows.max())}"
            raise InputError(f"the HeteroData {problem}, expected 0 to {count - 1} as in the network.")
        return rows

    def _vectors(self, node_type: NodeType, rows: Tensor) -> Tensor:
        device = self.model.device
        if node_type not in self.model.schema.text_rich:
            return self.model.textless_vectors(node_type, rows.to(device))
        distinct, inverse = torch.unique(rows.cpu(), return_inverse=True)
        if not len(distinct):
            return torch.empty(0, self.width, device=device)
        batch = self._batcher.nodes(node_type, distinct.numpy(), self._sampler)
        return self.model.encode_batch(batch.to(device))[inverse.to(device)]
