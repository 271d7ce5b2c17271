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
from heterformer.batches.batch import Batch, PairBatch, TextlessCenters, Texts
from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError, OptionError
from heterformer.files import reading
from heterformer.models.aggregation import Aggregation, EdgeProjection
from heterformer.models.attributes import AttributeEncoder
from heterformer.models.configuration import NodeEncoderConfig
from heterformer.models.heads import HeadConfig, NodeHead
from heterformer.models.plm.backbone import load_backbone
from heterformer.models.plm.loading import load_tokenizer, source_options
from heterformer.models.plm.low_rank import is_adapter
from heterformer.models.plm.minilm import backbone_path, check_model_folder
from heterformer.network.encoding import AttributeRows, encodings_to_dict, fitted_encodings
from heterformer.network.schema import EdgeType, NodeType, Schema
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens, open_tokens
from heterformer.options import unknown_option
from heterformer.progress import say
from heterformer.untrusted import checked_path

NeighborIds = Mapping[NodeType, Sequence[str]]  # of one text


class NodeEncoder(PreTrainedModel, ABC):  # type: ignore[misc]
    """Base of all models.

    A ``BackboneEncoder`` keeps its PLM as ``backbone``; whatever else a model learns is new, but for the
    tables of a ``HeterogeneousEncoder``.
    """

    config_class = NodeEncoderConfig
    main_input_name = "batch"
    kinds: Sequence[str] = ()
    """The kinds of neighbours ("text_rich", "textless") that have a virtual token each."""
    readout_kinds: Sequence[str] = ()
    """The kinds of neighbours that are added to a vector after the last layer."""

    @classmethod
    def from_backbone(
        cls,
        path_or_name: str,
        network: Network | Schema | Path | str,
        *,
        hidden: Mapping[NodeType, Ints] | None = None,
        **options: Any,
    ) -> Self:
        """Create an untrained model for a network on a pretrained language model.

        Args:
            path_or_name: "minilm", a folder, or a Hugging Face name.
            network: The network, its folder, or its schema.
            hidden: Rows by node type that encodings of attributes are not fitted on, such as held-out nodes.
            options: Options of the model as keywords; by default, readout, pooling, normalisation and
                temperature suit the backbone.

        Example:
            >>> from heterformer import Heterformer, Network
            >>> network = Network.open("papers.net")
            >>> model = Heterformer.from_backbone("minilm", network, textless_dim=32)
        """
        opened = Network.open(network) if isinstance(network, (str, Path)) else network
        schema = opened if isinstance(opened, Schema) else opened.schema
        known = cls.config_class.option_names()
        for name in options:
            if name not in known:
                raise unknown_option(name, known, whose=f"{cls.__name__} has ")
        if isinstance(options.get("normalize"), bool):  # as in the configuration
            options["normalize"] = "yes" if options["normalize"] else "no"
        chosen = cls.config_class.options_class(backbone=str(path_or_name), **options)
        values = chosen.config_values()
        plm = load_backbone(backbone_path(str(path_or_name)))
        if chosen.widths and chosen.widths[0] > plm.config.hidden_size:
            problem = f"has {chosen.widths[0]}, but vectors have {plm.config.hidden_size} numbers."
            raise OptionError(chosen, "widths", problem)
        values |= {"backbone": plm.config.to_diff_dict(), "schema": schema.to_dict()}
        types = chosen.attributed_types(schema)
        if isinstance(opened, Network) and types:
            values["attributes"] = encodings_to_dict(fitted_encodings(opened, types, hidden))
        model = cls(cls.config_class(**values))
        model.start_from(plm)
        model.say_if_texts_are_cut(str(path_or_name))
        if isinstance(opened, Network):
            model.read_attributes(opened)
        model.limit_training()
        model.eval()
        return model

    @classmethod
    def from_pretrained(cls, path_or_name: Path | str, *args: Any, **kwargs: Any) -> Self:
        """Open a saved model: a run, a folder that ``save_pretrained`` wrote, or one of the Hugging Face Hub.

        :func:`heterformer.load_model` opens a model of any kind.

        Args:
            path_or_name: The folder, or ``owner/name`` on the Hub.
            args: As for ``from_pretrained`` of Transformers.
            kwargs: As for ``from_pretrained`` of Transformers.

        Example:
            >>> from heterformer import Heterformer
            >>> model = Heterformer.from_pretrained("runs/papers")
        """
        path = checked_path(path_or_name, "the model")
        if path.is_dir():
            check_model_folder(path)
        options = {"use_safetensors": True} | kwargs | source_options(path_or_name)
        with reading(path, "copy the folder again or train it anew"):
            model: Self
            model, report = super().from_pretrained(path_or_name, *args, **options, output_loading_info=True)
            if missing := sorted(report["missing_keys"]):
                raise ValueError(f"its weights lack {missing[0]} and {len(missing) - 1} more")
        # On the CPU the last bit of a product depends on how its factors lie in memory: only weights in
        # memory of their own, instead of the file's, give the very vectors that the saved model gave.
        for parameter in model.parameters():
            parameter.data = parameter.data.clone()
        return model

    def start_from(self, plm: Any) -> None:
        """Take over the weights of a PLM, if the model keeps one."""

    def limit_training(self) -> None:
        """Freeze what the options say. A saved model has nothing frozen."""

    def compile_layers(self, backend: Any = "inductor") -> None:
        """Compile the PLM's layers with ``torch.compile``; vectors stay the same but for rounding.

        Args:
            backend: Of ``torch.compile``.
        """

    def read_attributes(self, network: Network) -> None:
        """Take the attributes of textless nodes over from a network; only some models read any."""

    def center_attributes(self, network: Network) -> dict[NodeType, AttributeRows]:
        """What a ``Batcher`` gives to this model of the attributes of text-rich nodes."""
        return {t: e.read(network, t) for t, e in self.config.token_encodings().items()}

    def new_batcher(
        self, visible: VisibleNetwork, tokens: PackedTokens, fan_out: Mapping[NodeType, int] | None = None
    ) -> Batcher:
        """What makes batches of a network as this model reads them.

        Args:
            visible: The network, as far as it may be seen.
            tokens: Its texts, as ``open_tokens`` gives them.
            fan_out: Neighbours of each type per node; those of the network's specification unless given.
        """
        attributes = self.center_attributes(visible.network)
        return Batcher(visible, tokens, fan_out, attributes, self.textless_fan_out, self.second_hop)

    @property
    def second_hop(self) -> int:
        """How many neighbours of each type a text-rich neighbour is itself read with."""
        return 0

    def neighbor_vectors(self, batch: Batch, vectors: Tensor) -> Tensor:
        """(U, d): the last states of a batch's neighbour texts, each with the text's own neighbours in it.

        Args:
            batch: A batch with a second hop.
            vectors: (U, d) the same states by the texts alone.
        """
        return vectors

    @property
    def text_limit(self) -> int:
        """The longest text that the model reads, in tokens."""
        return self.schema.max_tokens

    def say_if_texts_are_cut(self, backbone: str) -> None:
        """Say that the backbone reads less of a text than the network has."""
        if (limit := self.text_limit) < self.schema.max_tokens:
            cut = f"reads at most {limit} tokens, so texts are cut there and not at {self.schema.max_tokens}"
            say(f"backbone {backbone!r} {cut}; long_texts 'windows' reads them whole.")

    @property
    def prompts(self) -> dict[NodeType, str]:
        """What is put before the texts of each type.

        Nodes of which predicted links start, and none end, are queries, others documents.
        """
        predicted = self.schema.predicted
        queries = {relation.source for relation in predicted} - {relation.target for relation in predicted}
        config = self.config
        return {
            t: config.query_prompt if t in queries else config.document_prompt for t in self.schema.text_rich
        }

    def open_tokens(self, network: Network, tokenizer: Any = None) -> PackedTokens:
        """The texts of a network as the model reads them, with its prompts and up to its limit.

        Args:
            network: A network of the model's types.
            tokenizer: The model's own unless given.
        """
        return open_tokens(network, tokenizer or self.tokenizer, self.text_limit, self.prompts)

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
        if self.name_or_path and not Path(self.name_or_path).exists():
            return load_tokenizer(self.name_or_path)  # a name on the hub
        if self.folder is None or not (self.folder / "tokenizer_config.json").is_file():
            where = f"{self.folder}: " if self.folder else ""
            raise InputError(
                f"{where}the model does not come from a folder with a tokenizer; give tokenizer= as well."
            )
        return load_tokenizer(self.folder)

    @property
    def embedded_types(self) -> tuple[NodeType, ...]:
        """The node types that the model learns vectors for: those with text, and others that it looks at."""
        return self.schema.text_rich

    @property
    def neighbor_types(self) -> tuple[NodeType, ...]:
        """The node types whose nodes, as neighbours, contribute to a vector."""
        return self.embedded_types

    @property
    @abstractmethod
    def width(self) -> int:
        """d, the length of a vector."""

    @property
    def widths(self) -> tuple[int, ...]:
        """The lengths to which the model's vectors may be cut, its whole width first."""
        return (self.width, *(width for width in self.config.widths if width < self.width))

    def shortened(self, vectors: Tensor, width: int) -> Tensor:
        """(n, width): vectors cut to one of ``widths``; of length 1 if whole vectors are."""
        return vectors if width == vectors.shape[-1] else self.maybe_normalize(vectors[..., :width])

    def check_width(self, width: int | None, options: object, field: str) -> int:
        """A width that is asked for by an option, or the whole one; others than ``widths`` are refused."""
        if width is None or width in self.widths:
            return self.width if width is None else width
        known = ", ".join(map(str, self.widths))
        reason = "" if self.config.widths else ", since the model was trained without shorter widths"
        raise OptionError(options, field, f"is {width}, expected one of {known}{reason}.")

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """The parts of the aggregation start as the options say, all else as the PLM did."""
        if isinstance(module, (Aggregation, EdgeProjection)):
            module.initialize(self.config.aggregation_init, self.config.initializer_range)
        elif isinstance(module, AttributeEncoder):
            module.initialize()
        else:
            super()._init_weights(module)

    @abstractmethod
    def get_input_embeddings(self) -> nn.Module:
        """The word embeddings; set ``.sparse = True`` on them for gradients of the rows used alone."""

    @property
    @abstractmethod
    def states_per_text(self) -> int:
        """S: the number of states that a text gives to nodes that have it as a neighbour."""

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
        """(n, d): the vectors of textless nodes.

        Args:
            node_type: A textless type.
            rows: Rows of the type.
        """
        raise InputError(f"{type(self).__name__} has no vectors of {node_type!r} nodes, which have no text.")

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
        """Encode new texts, as if each were a node of the (first) predicted relation's source type.

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
        """(B, d): both passes in one graph, as training needs them.

        Args:
            batch: Centres with their neighbours and texts.
        """
        return self.encode_with(batch, self.text_states(batch.texts.first(batch.neighbor_texts)))

    def encode_with(self, batch: Batch, states: Tensor) -> Tensor:
        """(B, d): the second pass, of the text-rich centres and of the textless ones, if there are some.

        Of a batch of pairs the vectors are in the order of its roles.

        Args:
            batch: Centres with their neighbours and texts.
            states: (U, S, d) what ``text_states`` gave of the batch's neighbour texts.
        """
        if batch.textless_centers is None:
            vectors: Tensor = self(batch, states)
            return vectors
        textless = self.textless_center_vectors(batch, batch.textless_centers, states)
        if not len(batch.centers):
            return textless
        parts = [self(batch, states), textless]
        if isinstance(batch, PairBatch) and batch.textless_queries:
            parts.reverse()
        return torch.cat([part.to(textless.dtype) for part in parts])

    def textless_center_vectors(self, batch: Batch, centers: TextlessCenters, states: Tensor) -> Tensor:
        """(C, d): the vectors of a batch's textless centres, given the states of its neighbour texts."""
        return self.textless_vectors(centers.node_type, centers.rows)

    @property
    def textless_fan_out(self) -> int:
        """How many text-rich neighbours are part of a textless node's vector."""
        return 0

    def post_init(self) -> None:
        """Called at the end of every model's constructor."""
        scaled = self.schema.predicted if self.config.relation_scales else ()
        scaled = scaled if len(scaled) > 1 else ()
        self.relation_scales = nn.ParameterDict({r.name: torch.ones(self.width) for r in scaled})
        self.head: NodeHead | None = None
        if self.config.head is not None:
            self.add_head(HeadConfig.from_dict(self.config.head))
        super().post_init()

    def add_head(self, config: HeadConfig) -> None:
        """Put a new head on the vectors, in the place of one that there may be."""
        self.config.head = config.to_dict()
        self.head = NodeHead(config, self.width, self.config.normalize).to(self.device)

    def relation_scale(self, relation: str | None) -> Tensor | None:
        """(d,): what a predicted relation multiplies a query's vector with; nothing if there is but one."""
        return None if relation is None else self.relation_scales.get(relation)

    def scores(self, queries: Tensor, keys: Tensor, relation: str | None = None) -> Tensor:
        """(Q, K): how likely each query is linked to each key; before the softmax of Eq. 13.

        Args:
            queries: (Q, d) vectors.
            keys: (K, d) vectors.
            relation: The predicted relation, if there are several.

        Example:
            >>> queries = torch.tensor(model.encode(["news recommendation"]))
            >>> model.scores(queries, torch.tensor(vectors["paper"])).topk(10)
        """
        scale = self.relation_scale(relation)
        queries = queries if scale is None else queries * scale[: queries.shape[-1]].to(queries.device)
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

    def maybe_normalize(self, vectors: Tensor) -> Tensor:
        """``vectors``, of length 1 if the config says so."""
        return torch.nn.functional.normalize(vectors, dim=-1) if self.config.normalize else vectors
