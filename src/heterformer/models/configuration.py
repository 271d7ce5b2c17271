"""The options of a model, kept with its weights: what it was built on, for which network, and how."""

from __future__ import annotations

import inspect
from typing import Any

from transformers import PretrainedConfig

from heterformer.errors import InputError
from heterformer.models.plm.loading import plm_config

VIRTUAL_TOKENS = ("both", "text_rich", "textless", "none")
AGGREGATION_INITS = ("identity", "random")
READOUTS = ("cls", "mean")


class NodeEncoderConfig(PretrainedConfig):  # type: ignore[misc]
    """What every model that reads texts with a PLM shares."""

    model_type = "node_encoder"

    backbone: dict[str, Any] | None = None
    """The configuration of the PLM, as its own ``config.json`` says it."""
    schema: dict[str, Any] | None = None
    """``Schema.to_dict()`` of the network the model was built for."""
    readout: str = "cls"
    """A text's vector is its [CLS] state (``cls``, the paper) or the mean over its tokens (``mean``)."""
    normalize: bool = False
    """Scale vectors to length 1."""
    temperature: float = 1.0
    """A score is an inner product divided by this."""

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        self.check_options()

    def check_options(self) -> None:
        one_of(self, "readout", READOUTS)
        flag(self, "normalize")
        positive(self, "temperature", whole=False)

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """What a user can choose: the fields of this class and its bases below PretrainedConfig."""
        bases = [base for base in reversed(cls.__mro__) if issubclass(base, NodeEncoderConfig)]
        names = (name for base in bases for name in inspect.get_annotations(base))
        return tuple(name for name in names if name not in ("backbone", "schema"))

    @property
    def backbone_config(self) -> Any:
        return plm_config(self.backbone or {})

    @property
    def initializer_range(self) -> float:
        """New parameters start as the PLM's own did."""
        return float(self.backbone_config.initializer_range)


class HeterogeneousConfig(NodeEncoderConfig):
    """What models that know textless nodes share."""

    model_type = "heterogeneous_node_encoder"

    textless_dim: int = 64
    """Width of a textless node's own embedding (Eq. 9)."""

    def check_options(self) -> None:
        super().check_options()
        positive(self, "textless_dim", whole=True)


class HeterformerConfig(HeterogeneousConfig):
    """Heterformer's own options; the defaults are the paper's, but for the identity start."""

    model_type = "heterformer"

    virtual_tokens: str = "both"
    """The virtual neighbour tokens: ``both``, ``text_rich``, ``textless`` or ``none`` (the plain PLM)."""
    heterogeneous_projection: bool = True
    """``W_r`` per edge type and ``W_phi`` per textless type; otherwise one of each for all types."""
    aggregation_heads: int | None = None
    """Heads of the neighbour aggregation (the paper's chunks k); the backbone's number unless given."""
    aggregation_init: str = "identity"
    """``identity``: a virtual token starts as a weighted mean of states; ``random``: as the PLM did."""
    neighbor_pooling: str = "cls"
    """What stands for a text in each layer: its [CLS] state (``cls``, the paper) or its tokens' ``mean``."""
    share_aggregation_layers: bool = False
    """One aggregation for all layers instead of one each."""
    share_aggregation_kinds: bool = False
    """One aggregation for both virtual tokens instead of one each."""

    def check_options(self) -> None:
        super().check_options()
        one_of(self, "virtual_tokens", VIRTUAL_TOKENS)
        one_of(self, "aggregation_init", AGGREGATION_INITS)
        one_of(self, "neighbor_pooling", READOUTS)
        for name in ("heterogeneous_projection", "share_aggregation_layers", "share_aggregation_kinds"):
            flag(self, name)
        if self.aggregation_heads is not None:
            positive(self, "aggregation_heads", whole=True)
            width = self.backbone_config.hidden_size
            if width % self.aggregation_heads:
                raise InputError(
                    f"aggregation_heads is {self.aggregation_heads}, "
                    f"expected a divisor of the backbone's width {width}"
                )


def one_of(config: NodeEncoderConfig, name: str, choices: tuple[str, ...]) -> None:
    """Refuse an option that is none of ``choices``."""
    value = getattr(config, name)
    if value not in choices:
        raise InputError(f"{name} is {value!r}, expected one of {', '.join(choices)}")


def flag(config: NodeEncoderConfig, name: str) -> None:
    """Refuse an option that is neither true nor false."""
    value = getattr(config, name)
    if not isinstance(value, bool):
        raise InputError(f"{name} is {value!r}, expected true or false")


def positive(config: NodeEncoderConfig, name: str, whole: bool) -> None:
    """Refuse an option that is no number above 0."""
    value = getattr(config, name)
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or value <= 0:
        what = "a positive whole number" if whole else "a positive number"
        raise InputError(f"{name} is {value!r}, expected {what}")
