"""The options of each model, and what the rest of the project needs to know of it without importing it.

One dataclass per model, derived from its family's. Its fields are the flags of the command line, its
sentences their help, and its values are saved with the weights (``models/configuration.py``). A new option is
a field here; a new model is a class here and a module of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from heterformer.errors import OptionError
from heterformer.models.plm.reading import PAPER, suited_options
from heterformer.network.schema import NodeType, Schema
from heterformer.options import expected, fits, option_types
from heterformer.recipe import RECIPE
from heterformer.recipe import earlier as earlier_defaults

Family = Literal["text-only", "bag of words", "cascaded", "nested"]
Group = Literal["vanilla", "homogeneous GNN", "heterogeneous GNN", "Heterformer"]
MODEL_TYPE_PREFIX = "heterformer_"  # Transformers has a model type "bert" of its own
AUTO = "auto"  # not given: what suits the backbone
EARLIER = MappingProxyType({"query_prompt": "", "document_prompt": ""})
_CLASSES: dict[str, type[ModelOptions]] = {}
MODEL_OPTIONS: Mapping[str, type[ModelOptions]] = MappingProxyType(_CLASSES)
"""The options class of every model, by the model's name."""


@dataclass(frozen=True)
class ModelOptions:
    """Options that all models have. 'auto' stands for what suits the backbone."""

    name: ClassVar[str]
    """The model's name on the command line."""
    display_name: ClassVar[str]
    """The model's name in the paper."""
    path: ClassVar[str]
    """Where its class is: ``module:class``."""
    family: ClassVar[Family]
    """What neighbours are joined to: nothing, bags of words, the PLM's output, or each of its layers."""
    group: ClassVar[Group]
    """Its part of the paper's tables."""
    new_learning_rate: ClassVar[float] = 1e-4
    """The learning rate that suits dense parameters which the backbone lacks, found on the validation part
    of a citation network."""
    has_embedding_table: ClassVar[bool] = False
    """Whether rows of a table are learnt, of textless nodes or of words, at a rate of their own."""
    states_can_be_cached: ClassVar[bool] = True
    """Whether neighbours' states may be stored in training: not if reading a text costs next to nothing."""
    earlier: ClassVar[Mapping[str, Any]] = EARLIER
    """Values of options that a saved model lacks because it is older than they are."""

    backbone: str = "minilm"
    """An encoder of the layout of BERT, DistilBERT, MPNet or ModernBERT: 'minilm' (the extra
    heterformer[minilm], works offline), a folder, or a Hugging Face name."""
    normalize: Literal["auto", "yes", "no"] = "auto"
    """Scale vectors to length 1; use a temperature of about 0.05 with it. 'auto' is what suits the backbone,
    here and below: what its files say, or else what ranks training pairs better, untrained."""
    temperature: float | Literal["auto"] = "auto"
    """Scores are inner products divided by this."""
    query_prompt: str = AUTO
    """Put before the texts of nodes that are only sources of predicted links, such as 'query: '. 'auto' is
    what a backbone of sentence-transformers says, or nothing."""
    document_prompt: str = AUTO
    """Put before all other texts, such as 'passage: '."""
    widths: tuple[int, ...] = ()
    """Lengths to which vectors may be cut, such as 192 96 48: the loss is the mean over them and the whole
    vector (Matryoshka), so that 'embed' can write shorter vectors that are still good."""
    relation_scales: bool = True
    """A learnt weight per dimension and relation in the scores, if several relations are predicted."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "name" in cls.__dict__:
            _CLASSES[cls.name] = cls

    def __post_init__(self) -> None:
        for name, hint in option_types(type(self)).items():
            check_option(self, name, getattr(self, name), hint)
        object.__setattr__(self, "widths", tuple(sorted(set(self.widths), reverse=True)))  # YAML has lists
        if self.widths and self.widths[-1] < 1:
            raise OptionError(self, "widths", f"has {self.widths[-1]}, expected positive whole numbers.")

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """The names of all options."""
        return tuple(option.name for option in fields(cls))

    @classmethod
    def model_type(cls) -> str:
        """The model's type in ``config.json``."""
        return cls.name if cls.group == "Heterformer" else MODEL_TYPE_PREFIX + cls.name

    def attributed_types(self, schema: Schema) -> tuple[NodeType, ...]:
        """The node types whose attributes the model reads."""
        return ()

    def open_names(self) -> list[str]:
        """The options for which what suits the backbone is yet to be found."""
        own = self.option_names()
        return [name for name in PAPER if name in own and getattr(self, name) == AUTO]

    def resolved(self) -> Self:
        """With what suits the backbone in the place of every 'auto'."""
        suited = suited_options(self.backbone)
        return replace(self, **{name: suited[name] for name in self.open_names()})

    def with_stored_states(self, are_stored: bool) -> Self:
        """With what training on stored states of neighbours decides."""
        return self

    def config_values(self) -> dict[str, Any]:
        """The values of the saved configuration, by field; the backbone has its own configuration."""
        values = dict(vars(self.resolved()))
        del values["backbone"]
        return values | {"normalize": values["normalize"] == "yes"}


@dataclass(frozen=True)
class BackboneOptions(ModelOptions):
    """Options of models whose texts are read by the backbone."""

    readout: Literal["auto", "cls", "mean"] = "auto"
    """A node's vector: the [CLS] state (the paper) or the mean over its tokens; 'auto' is what suits the
    backbone."""
    long_texts: Literal["cut", "windows"] = "cut"
    """Texts of more tokens than the backbone reads: cut, or read in windows whose states are averaged."""
    window_tokens: int | None = None
    """Maximum number of tokens in a window; unless given, as many as the backbone reads."""
    lora: int | None = None
    """Rank of low-rank adapters, which learn in the place of the backbone's weights, at the learning rate of
    new parameters; unless given, the backbone learns itself."""
    lora_targets: Literal["attention", "mlp", "all"] = "all"
    """The linear maps of each layer that have adapters: those of the attention, of the MLP, or all."""
    freeze: Literal["none", "backbone"] = "none"
    """What does not learn: nothing, or the backbone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lora is not None and self.freeze == "backbone":
            problem = (
                f"is 'backbone' beside {{lora}} {self.lora}, which freezes it already; give one of them."
            )
            raise OptionError(self, "freeze", problem)
        if self.window_tokens is not None and self.long_texts == "cut":
            problem = f"is {self.window_tokens}, but {{long_texts}} is 'cut'; expected 'windows'."
            raise OptionError(self, "window_tokens", problem)
        if self.window_tokens is not None and self.window_tokens < 3:
            problem = f"is {self.window_tokens}, expected at least 3: two of them are special tokens."
            raise OptionError(self, "window_tokens", problem)


@dataclass(frozen=True)
class TextlessOptions(ModelOptions):
    """Options of models that embed textless nodes."""

    has_embedding_table: ClassVar[bool] = True

    textless_dim: int = 64
    """Width of a textless node's own embedding (Eq. 9)."""
    textless_attributes: bool = False
    """Add what the attributes of a textless node say to its embedding; an unseen node starts from them."""

    def attributed_types(self, schema: Schema) -> tuple[NodeType, ...]:
        own = schema.textless if self.textless_attributes else ()
        return super().attributed_types(schema) + own


@dataclass(frozen=True)
class AggregationOptions(ModelOptions):
    """Options of models that aggregate neighbours."""

    aggregation_init: Literal["identity", "random"] = "identity"
    """Start of the neighbour aggregation: a weighted mean of neighbours, or random (the paper)."""


@dataclass(frozen=True)
class CascadedOptions(AggregationOptions, BackboneOptions):
    """Options of models with a graph convolution behind the PLM."""

    family: ClassVar[Family] = "cascaded"
    group: ClassVar[Group] = "homogeneous GNN"


@dataclass(frozen=True)
class SecondHopOptions(ModelOptions):
    """Options of models that can read a neighbour with its own neighbours."""

    default_second_hop: ClassVar[int | None] = None
    """What 'auto' is in training on stored states."""
    earlier = MappingProxyType({**EARLIER, **earlier_defaults("second_hop")})

    second_hop: int | Literal["auto"] | None = RECIPE["second_hop"].value
    """Number of neighbours of each type with which a text-rich neighbour is read, by Heterformer in its
    network readout; with none it is read by its text alone (the paper). 'auto' is 10 for Heterformer on
    cached neighbour states, whose texts have been read already, and none on live ones and for others."""

    def with_stored_states(self, are_stored: bool) -> Self:
        if self.second_hop != AUTO:
            return self
        return replace(self, second_hop=self.default_second_hop if are_stored else None)

    def config_values(self) -> dict[str, Any]:
        values = super().config_values()
        return values | {"second_hop": None if values["second_hop"] == AUTO else values["second_hop"]}


@dataclass(frozen=True)
class HeterogeneousCascadedOptions(CascadedOptions, TextlessOptions, SecondHopOptions):
    """The same for convolutions over typed edges and textless nodes."""

    group: ClassVar[Group] = "heterogeneous GNN"


@dataclass(frozen=True)
class NestedOptions(AggregationOptions, BackboneOptions):
    """Options of models that aggregate neighbours in each layer of the PLM."""

    family: ClassVar[Family] = "nested"
    # An aggregation inside the layers starts further from where it is useful than most convolutions.
    new_learning_rate: ClassVar[float] = 5e-4

    neighbor_pooling: Literal["auto", "cls", "mean"] = "auto"
    """What a text gives to its neighbours in each layer: its [CLS] state (the paper) or the mean of its
    tokens."""


@dataclass(frozen=True)
class HeterformerOptions(NestedOptions, TextlessOptions, SecondHopOptions):
    """Heterformer's options, the paper's ablations among them."""

    name = "heterformer"
    display_name = "Heterformer"
    path = "heterformer.models.heterformer:Heterformer"
    group = "Heterformer"
    default_second_hop = 10  # see docs/results.md

    earlier = MappingProxyType(
        {
            **EARLIER,
            **earlier_defaults("network_readout", "readout_aggregation", "second_hop", "neighbor_codes"),
        }
    )

    virtual_tokens: Literal["both", "text_rich", "textless", "none"] = "both"
    """Virtual neighbour tokens: both kinds, one kind, or none."""
    network_readout: Literal["auto", "both", "text_rich", "textless", "none"] = RECIPE[
        "network_readout"
    ].value
    """Neighbours added to a node's vector after the last layer: both kinds, one kind, or none (the paper).
    'auto' is those of which there are virtual tokens."""
    readout_aggregation: Literal["mean", "attention"] = RECIPE["readout_aggregation"].value
    """How the network readout adds neighbours: their mean and a weight per edge type, or an attention and a
    weight per kind."""
    neighbor_codes: bool = RECIPE["neighbor_codes"].value
    """Add a fixed pattern of signs for each of a node's text-rich neighbours to its vector, so that nodes
    with the same neighbours become alike; needs a network readout of text-rich neighbours. Not in the
    paper."""
    heterogeneous_projection: bool = True
    """Separate projections per edge type (W_r) and per textless type (W_phi)."""
    aggregation_heads: int | None = None
    """Heads of the neighbour aggregation (the paper's chunks k); unless given, as many as the backbone's."""
    share_aggregation_layers: bool = False
    """One aggregation for all layers instead of one per layer."""
    share_aggregation_kinds: bool = False
    """One aggregation for both virtual tokens instead of one each."""
    attribute_token: bool = False
    """A third virtual token, of a text-rich node's own attributes."""
    textless_neighbors: int | None = None
    """Number of text-rich neighbours that are aggregated into the vector of a textless node, such as the
    items that a user has bought; unless given, the vector is W_phi h0 alone (the paper)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        readout = self._readout()
        if isinstance(self.second_hop, int) and readout not in ("text_rich", "both"):
            problem = f"is {self.second_hop}, but {{network_readout}} is {readout!r}"
            raise OptionError(
                self, "second_hop", f"{problem}; expected text_rich or both, which it is part of."
            )
        if self.textless_neighbors and readout not in ("text_rich", "both"):
            problem = f"is {self.textless_neighbors}, but {{network_readout}} is {readout!r}"
            raise OptionError(
                self, "textless_neighbors", f"{problem}; expected text_rich or both, whose states it reads."
            )

    def attributed_types(self, schema: Schema) -> tuple[NodeType, ...]:
        own = schema.text_rich if self.attribute_token else ()
        return own + super().attributed_types(schema)

    def _readout(self) -> Literal["auto", "both", "text_rich", "textless", "none"]:
        return self.virtual_tokens if self.network_readout == AUTO else self.network_readout

    def resolved(self) -> Self:
        """With every 'auto' decided but that of the second hop, which is a matter of training."""
        readout = self._readout()
        codes = self.neighbor_codes and readout in ("text_rich", "both")
        return replace(super().resolved(), network_readout=readout, neighbor_codes=codes)

    def with_stored_states(self, are_stored: bool) -> Self:
        return super().with_stored_states(are_stored and self._readout() in ("text_rich", "both"))


@dataclass(frozen=True)
class MeanSageOptions(AggregationOptions):
    """MeanSAGE's options. It uses the backbone's tokenizer and width, not its weights."""

    name = "mean_sage"
    display_name = "MeanSAGE"
    path = "heterformer.models.baselines.mean_sage:MeanSage"
    family = "bag of words"
    group = "vanilla"
    has_embedding_table = True  # of words
    states_can_be_cached = False

    vocabulary: int = 10_000
    """Words in a bag of words, the most frequent ones (the paper: 10,000, 2,000 and 5,000 for its
    networks)."""
    vector_width: int | None = None
    """The length of a vector; unless given, the backbone's width."""


@dataclass(frozen=True)
class BertOptions(BackboneOptions):
    """BERT's options."""

    name = "bert"
    display_name = "BERT"
    path = "heterformer.models.baselines.bert:Bert"
    family = "text-only"
    group = "vanilla"


@dataclass(frozen=True)
class BertMeanSageOptions(CascadedOptions):
    """BERT+MeanSAGE's options."""

    name = "bert_mean_sage"
    display_name = "BERT+MeanSAGE"
    path = "heterformer.models.baselines.bert_mean_sage:BertMeanSage"


@dataclass(frozen=True)
class BertMaxSageOptions(CascadedOptions):
    """BERT+MaxSAGE's options."""

    name = "bert_max_sage"
    display_name = "BERT+MaxSAGE"
    path = "heterformer.models.baselines.bert_max_sage:BertMaxSage"


@dataclass(frozen=True)
class BertGatOptions(CascadedOptions):
    """BERT+GAT's options."""

    name = "bert_gat"
    display_name = "BERT+GAT"
    path = "heterformer.models.baselines.bert_gat:BertGat"


@dataclass(frozen=True)
class GraphFormersOptions(NestedOptions):
    """GraphFormers' options."""

    name = "graph_formers"
    display_name = "GraphFormers"
    path = "heterformer.models.baselines.graph_formers:GraphFormers"
    group = "homogeneous GNN"


@dataclass(frozen=True)
class BertRgcnOptions(HeterogeneousCascadedOptions):
    """BERT+RGCN's options."""

    name = "bert_rgcn"
    display_name = "BERT+RGCN"
    path = "heterformer.models.baselines.bert_rgcn:BertRgcn"


@dataclass(frozen=True)
class BertHanOptions(HeterogeneousCascadedOptions):
    """BERT+HAN's options."""

    name = "bert_han"
    display_name = "BERT+HAN"
    path = "heterformer.models.baselines.bert_han:BertHan"


@dataclass(frozen=True)
class BertHgtOptions(HeterogeneousCascadedOptions):
    """BERT+HGT's options."""

    name = "bert_hgt"
    display_name = "BERT+HGT"
    path = "heterformer.models.baselines.bert_hgt:BertHgt"
    new_learning_rate = 1e-3


@dataclass(frozen=True)
class BertShgnOptions(HeterogeneousCascadedOptions):
    """BERT+SHGN's options."""

    name = "bert_shgn"
    display_name = "BERT+SHGN"
    path = "heterformer.models.baselines.bert_shgn:BertShgn"
    new_learning_rate = 1e-3


@dataclass(frozen=True)
class GraphFormersPlusOptions(NestedOptions, TextlessOptions):
    """GraphFormers++'s options."""

    name = "graph_formers_plus"
    display_name = "GraphFormers++"
    path = "heterformer.models.baselines.graph_formers_plus:GraphFormersPlus"
    group = "heterogeneous GNN"


if TYPE_CHECKING:
    ModelName = str
else:
    ModelName = Literal[tuple(MODEL_OPTIONS)]


@dataclass(frozen=True)
class EveryModelOptions(*MODEL_OPTIONS.values()):  # type: ignore[misc]
    """The options of all models at once: one command line for a comparison of them."""

    def options_for(self, model: type[ModelOptions]) -> ModelOptions:
        """Those of one model."""
        return model(**{name: getattr(self, name) for name in model.option_names()})


def every_model(options: ModelOptions) -> EveryModelOptions:
    """The options of all models, as far as one model's options tell them."""
    return EveryModelOptions(**vars(options))


def check_option(options: object, name: str, value: Any, hint: Any) -> None:
    """Refuse a value that is not of the type ``hint``; numbers are more than 0."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fits(value, hint) or (number and value <= 0):
        what = expected(hint).replace("a whole", "a positive whole").replace("a number", "a positive number")
        raise OptionError(options, name, f"is {value!r}, expected {what}.")
