"""Models: Heterformer, its parts, and the contract that all models keep."""

from heterformer.models.configuration import HeterformerConfig, NodeEncoderConfig
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterformer import Heterformer

__all__ = ["Heterformer", "HeterformerConfig", "NodeEncoder", "NodeEncoderConfig"]
