"""The saved configuration of a model (``config.json``): its options, its backbone and its network's types."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, get_args, get_origin

from transformers import PretrainedConfig

from heterformer.errors import OptionError
from heterformer.models.options import AUTO, HeterformerOptions, ModelOptions, check_option
from heterformer.models.plm.loading import plm_config
from heterformer.network.encoding import TypeEncoding, encodings_from_dict
from heterformer.network.schema import NodeType
from heterformer.options import option_types


class NodeEncoderConfig(PretrainedConfig):  # type: ignore[misc]
    """Base of all configurations: a subclass names its ``options_class`` and has its options as fields.

    A configuration has no 'auto': what suits the backbone is decided. ``normalize`` is true or false.
    """

    model_type = "node_encoder"
    options_class: ClassVar[type[ModelOptions]] = ModelOptions

    backbone: dict[str, Any] | None = None
    """The configuration of the PLM, as in its own ``config.json``."""
    schema: dict[str, Any] | None = None
    """``Schema.to_dict()`` of the network that the model was built for."""
    attributes: dict[str, Any] | None = None
    """How attributes of nodes are read, by node type (``models.attributes``); None if none are."""
    head: dict[str, Any] | None = None
    """``HeadConfig.to_dict()`` of a model that has learnt from labels."""

    def __init_subclass__(cls, **more: Any) -> None:
        options = cls.options_class
        cls.model_type = options.model_type()
        values = options(backbone="").config_values()
        for name, value in values.items():
            cls.__annotations__[name] = Any
            setattr(cls, name, value)
        super().__init_subclass__(**more)

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Self:
        """The configuration of a saved model; one that is older than an option is what it was then."""
        configuration: Self = super().from_dict({**cls.options_class.earlier, **config_dict}, **kwargs)
        return configuration

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        for name, hint in option_types(self.options_class).items():
            if get_origin(hint) is tuple:  # which JSON has as a list
                setattr(self, name, tuple(getattr(self, name)))
        self.check_options()

    def check_options(self) -> None:
        for name, hint in option_types(self.options_class).items():
            if name != "backbone":
                check_option(self.options_class, name, getattr(self, name), _saved_type(hint))

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """The options among the fields."""
        return tuple(name for name in cls.options_class.option_names() if name != "backbone")

    @property
    def backbone_config(self) -> Any:
        return plm_config(self.backbone or {})

    def textless_encodings(self) -> dict[NodeType, TypeEncoding]:
        """How attributes of textless nodes are read, by a model that has vectors of them."""
        return encodings_from_dict(self.attributes) if self.textless_attributes else {}

    def token_encodings(self) -> dict[NodeType, TypeEncoding]:
        """How attributes of text-rich nodes are read; most models read none."""
        return {}

    @property
    def initializer_range(self) -> float:
        """New parameters start as the PLM's own did."""
        return float(self.backbone_config.initializer_range)


class HeterformerConfig(NodeEncoderConfig):
    """Heterformer's configuration."""

    options_class = HeterformerOptions

    def check_options(self) -> None:
        super().check_options()
        heads, width = self.aggregation_heads, self.backbone_config.hidden_size
        if heads is not None and width % heads:
            problem = f"is {heads}, expected a divisor of the backbone's width {width}."
            raise OptionError(self.options_class, "aggregation_heads", problem)

    def token_encodings(self) -> dict[NodeType, TypeEncoding]:
        """How attributes of text-rich nodes are read; none unless the options ask for a token of them."""
        if not self.attribute_token:
            return {}
        text_rich = (self.schema or {}).get("text_rich", ())
        return {t: e for t, e in encodings_from_dict(self.attributes).items() if t in text_rich}


def _saved_type(hint: Any) -> Any:
    """The type of an option once 'auto' is decided."""
    kinds = [kind for kind in get_args(hint) or (hint,) if get_args(kind) != (AUTO,)]
    if get_origin(hint) is not Literal:
        return hint if len(kinds) > 1 else kinds[0]
    words = tuple(word for word in kinds if word != AUTO)
    return bool if words == ("yes", "no") else Literal[words]
