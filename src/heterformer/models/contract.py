"""What every model of the project is: texts and sampled neighbours in, one vector per node out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from heterformer.arrays import Ints
from heterformer.batches.batch import Batch, Texts
from heterformer.errors import InputError, OptionError
from heterformer.models.aggregation import Aggregation, EdgeProjection
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.plm.backbone import load_backbone, max_tokens
from heterformer.models.plm.loading import load_tokenizer, source_options
from heterformer.models.plm.low_rank import add_adapters, fitted, is_adapter, merged
from heterformer.models.plm.minilm import backbone_path
from heterformer.models.textless import TextlessNodes
from heterformer.network.schema import EdgeType, NodeType, Schema
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens

NeighborIds = Mapping[NodeType, Sequence[str]]  # of one text


class NodeEncoder(PreTrainedModel, ABC):  # type: ignore[misc]
    """Base of all models.

    A model keeps its PLM as ``backbone``; whatever else it learns is new, but for the tables of a
    ``HeterogeneousEncoder``.
    """

    config_class = NodeEncoderConfig
    main_input_name = "batch"

    @classmethod
    def from_backbone(cls, path_or_name: str, schema: Schema | Any, **options: Any) -> Self:
        """Create an untrained model for a network on a pretrained language model.

        Args:
            path_or_name: "minilm", a folder, or a Hugging Face name.
            schema: The network, or its schema.
            options: Options of the model as keywords; by default, readout, pooling, normalisation and
                temperature suit the backbone.

        Example:
            >>> from heterformer import Heterformer, Network
            >>> network = Network.open("papers.net")
            >>> model = Heterformer.from_backbone("minilm", network, textless_dim=32)
        """
        schema = schema if isinstance(schema, Schema) else schema.schema
        known = cls.config_class.option_names()
        for name in options:
            if name not in known:
                raise InputError(f"{cls.__name__} has no option {name!r}, expected one of {', '.join(known)}")
        # Of the configuration's fields, normalize alone is not of its option's type.
        given = {name: value for name, value in options.items() if name != "normalize"}
        chosen = cls.config_class.options_class(backbone=str(path_or_name), **given)
        values = chosen.config_values() | options
        plm = load_backbone(backbone_path(str(path_or_name)))
        if schema.max_tokens > max_tokens(plm):
            raise InputError(
                f"max_tokens is {schema.max_tokens}, "
                f"but backbone {str(path_or_name)!r} reads at most {max_tokens(plm)}"
            )
        model = cls(cls.config_class(backbone=plm.config.to_diff_dict(), schema=schema.to_dict(), **values))
        model.start_from(plm)
        model.limit_training()
        model.eval()
        return model

    @classmethod
    def from_pretrained(cls, path_or_name: Path | str, *args: Any, **kwargs: Any) -> Self:
        """A saved model, in memory of its own instead of the file's.

        On the CPU the last bit of a product depends on how its factors lie in memory, so only a copy gives
        the very vectors that the saved model gave.
        """
        options = {"use_safetensors": True} | kwargs | source_options(path_or_name)
        model: Self = super().from_pretrained(path_or_name, *args, **options)
        for parameter in model.parameters():
            parameter.data = parameter.data.clone()
        return model

    def start_from(self, plm: Any) -> None:
        """Take over the weights of a PLM."""
        self.backbone.load_state_dict(plm.state_dict())

    def limit_training(self) -> None:
        """Freeze the backbone or give it low-rank adapters, as the options say. A saved model has neither."""
        if not hasattr(self, "backbone"):
            return
        if self.config.lora is not None:
            add_adapters(self.backbone, self.config.lora, self.config.lora_targets)
        elif self.config.freeze == "backbone":
            self.backbone.requires_grad_(False)
        if not any(p.requires_grad for p in self.parameters()):
            problem = f"is 'backbone', but {type(self).__name__} has nothing else to train; expected 'none'."
            raise OptionError(self.config.options_class, "freeze", problem)

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load weights, with low-rank adapters or without, whether or not the model has some."""
        return super().load_state_dict(fitted(state_dict, self), *args, **kwargs)

    def save_pretrained(self, save_directory: Path | str, **kwargs: Any) -> None:
        """Save the model for ``from_pretrained``; low-rank adapters become part of the weights."""
        weights = merged(kwargs.pop("state_dict", None) or self.state_dict())
        super().save_pretrained(save_directory, state_dict=weights, **kwargs)

    def prepare(
        self, tokens: PackedTokens, special_tokens: Collection[int], hidden_texts: Ints | None = None
    ) -> None:
        """Look once, before training, at all texts of the network but the hidden ones; most need not."""

    @cached_property
    def schema(self) -> Schema:
        """The types of the network the model was built for."""
        return Schema.from_dict(self.config.schema)

    @property
    def folder(self) -> Path | None:
        """The folder that the model was loaded from."""
        return Path(self.name_or_path) if self.name_or_path else None

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer in the model's folder."""
        if self.folder is None or not (self.folder / "tokenizer_config.json").is_file():
            raise InputError(
                "the model does not come from a folder with a tokenizer; give tokenizer= as well."
            )
        return load_tokenizer(self.folder)

    @property
    def embedded_types(self) -> tuple[NodeType, ...]:
        """The node types that the model learns vectors for: those with text, and others that it looks at."""
        return self.schema.text_rich

    @property
    def neighbor_types(self) -> tuple[NodeType, ...]:
        """The node types whose nodes, as neighbours, have a say in a vector."""
        return self.embedded_types

    @property
    def width(self) -> int:
        """d, the length of a vector."""
        return int(self.backbone.config.hidden_size)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """The parts of the aggregation start as the options say, all else as the PLM did."""
        if isinstance(module, (Aggregation, EdgeProjection)):
            module.initialize(self.config.aggregation_init, self.config.initializer_range)
        else:
            super()._init_weights(module)

    def get_input_embeddings(self) -> nn.Module:
        """The PLM's word embeddings; set ``.sparse = True`` on them for gradients of the rows used alone."""
        return self.backbone.get_input_embeddings()  # type: ignore[no-any-return]

    @property
    def states_end_with_vector(self) -> bool:
        """Whether the last of a text's states is the PLM's vector of it."""
        return False

    @abstractmethod
    def text_states(self, texts: Texts) -> Tensor:
        """(U, S, d): what each text gives to nodes that have it as a neighbour."""

    @abstractmethod
    def forward(self, batch: Batch, states: Tensor) -> Tensor:
        """(B, d): the vectors of the batch's centres, given ``text_states`` of its neighbour texts."""

    def textless_vectors(self, node_type: NodeType, rows: Tensor) -> Tensor:
        """(n, d): the vectors of textless nodes."""
        raise InputError(
            f"{type(self).__name__} knows text-rich nodes only and has no vectors of {node_type!r} nodes"
        )

    @property
    def warms_up(self) -> bool:
        """Whether the textless nodes are warmed up (Eq. 10) before training."""
        return False

    def encode(
        self,
        texts: str | Sequence[str],
        neighbors: Mapping[NodeType, Sequence[str]]
        | Sequence[Mapping[NodeType, Sequence[str]]]
        | None = None,
        *,
        network: Network | None = None,
        batch_size: int = 32,
        tokenizer: Any = None,
    ) -> NDArray[np.float32]:
        """Encode new texts, as if each were a node of the predicted relation's source type.

        For the nodes of a network use :func:`heterformer.embed`; for ranked results,
        :class:`heterformer.Searcher`.

        Args:
            texts: One text or a list of texts. Longer ones than ``max_tokens`` of the network are truncated.
            neighbors: For each text, ids of its neighbours by node type: ``[{"author": ["jane"]}, {}]``.
                With one text, one such dictionary. Without neighbours the texts are encoded alone.
            network: The network that has the neighbours; needed if some of them are text-rich.
            batch_size: Texts per forward pass.
            tokenizer: Needed only if the model was not loaded from a folder.

        Returns:
            A float32 array (n, d), or (d,) for a single text.

        Example:
            >>> from heterformer import load_model
            >>> model = load_model("runs/papers")
            >>> vectors = model.encode(["graph attention networks", "news recommendation"])
            >>> vector = model.encode("word senses", neighbors={"author": ["rada-mihalcea"]})
        """
        from heterformer.models.text_encoder import encode  # which needs the models' registry

        return encode(self, texts, neighbors, network, batch_size, tokenizer)

    def encode_batch(self, batch: Batch) -> Tensor:
        """(B, d): both passes in one graph, as training needs them."""
        vectors: Tensor = self(batch, self.text_states(batch.texts.first(batch.neighbor_texts)))
        return vectors

    def scores(self, queries: Tensor, keys: Tensor) -> Tensor:
        """(Q, K): how likely each query is linked to each key; before the softmax of Eq. 13."""
        return queries @ keys.T / self.config.temperature  # type: ignore[no-any-return]

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The parameters as ``backbone``, ``new`` and ``textless``: each wants its own learning rate."""
        groups: dict[str, list[nn.Parameter]] = {"backbone": [], "new": [], "textless": []}
        for name, parameter in self.named_parameters():
            prefixes = {"backbone.": "backbone", "textless.tables.": "textless"}
            group = next((g for prefix, g in prefixes.items() if name.startswith(prefix)), "new")
            if parameter.requires_grad:  # others are frozen
                groups["new" if is_adapter(name) else group].append(parameter)
        return groups

    def edge_types_from(self, neighbors: tuple[NodeType, ...]) -> tuple[EdgeType, ...]:
        """The edge types under which text-rich centres see ``neighbors``."""
        schema = self.schema
        return tuple(r for r in schema.edge_types if r.center in schema.text_rich and r.neighbor in neighbors)

    def finished(self, vectors: Tensor) -> Tensor:
        """``vectors``, of length 1 if the config says so."""
        return torch.nn.functional.normalize(vectors, dim=-1) if self.config.normalize else vectors


class HeterogeneousEncoder(NodeEncoder):
    """Base of the models that look at textless nodes: their embeddings are in ``textless.tables``."""

    textless: TextlessNodes

    @property
    def embedded_types(self) -> tuple[NodeType, ...]:
        """All of them, unless a model's options leave textless neighbours out."""
        return self.schema.text_rich + self.schema.textless

    @property
    def warms_up(self) -> bool:
        return bool(set(self.schema.textless) & set(self.embedded_types))

    def textless_vectors(self, node_type: NodeType, rows: Tensor) -> Tensor:
        """(n, d): ``W_phi h^(0)`` (Eq. 9)."""
        return self.finished(self.textless(node_type, rows))
