"""BERT: the text alone, no network. What neighbours are worth is measured against it."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModel

from heterformer.batches.batch import Batch, Texts
from heterformer.models.backbone_encoder import BackboneEncoder
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.options import BertOptions
from heterformer.network.schema import NodeType


class PlainBertConfig(NodeEncoderConfig):
    """BERT's options are those that all models with a backbone have."""

    options_class = BertOptions


class Bert(BackboneEncoder):
    """BERT (Devlin et al., 2019), or whatever PLM the user names: a node's vector is its text's.

    Equal to Heterformer without virtual neighbour tokens; unlike all its siblings it sees no neighbour.
    """

    config_class = PlainBertConfig

    def __init__(self, config: PlainBertConfig) -> None:
        super().__init__(config)
        self.add_backbone()
        self.post_init()

    @property
    def neighbor_types(self) -> tuple[NodeType, ...]:
        return ()

    @property
    def states_per_text(self) -> int:
        return 0

    def text_states(self, texts: Texts) -> Tensor:
        """(U, 0, d): no neighbour states are used."""
        return torch.empty(len(texts), 0, self.width, device=self.device, dtype=self.dtype)

    def forward(self, batch: Batch, states: Tensor) -> Tensor:
        """(B, d): the PLM's vectors of the centres."""
        return self.maybe_normalize(self.text_vectors(batch.texts, batch.centers))


AutoConfig.register(PlainBertConfig.model_type, PlainBertConfig)
AutoModel.register(PlainBertConfig, Bert)
