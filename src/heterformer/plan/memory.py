"""How much memory a model, a training step and an embedding take, from sizes alone.

Weights, moments and gradients are counted. Activations are those that the backward pass keeps: a token
in a Transformer layer leaves its state, its query, key and value, the attention's output, both inputs of
LayerNorm and what the first of them gives, (8d + f) numbers, two bytes per d of dropout masks, and its
attention weights. How far that is from the truth is measured by benchmarks/plan.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError, OptionError
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.inference import TOKENS
from heterformer.models.options import BackboneOptions, ModelOptions
from heterformer.models.plm.attention import PADDED
from heterformer.models.plm.loading import load_plm_config
from heterformer.models.plm.minilm import backbone_path
from heterformer.models.registry import MODELS
from heterformer.network.schema import Schema
from heterformer.plan.network import PlannedNetwork
from heterformer.states.row_file import PART
from heterformer.training.options import TrainingOptions

FLOAT = 4
HALF = ("bf16", "fp16")
FILLED = 1.06  # tokens of a batch in half precision on a CPU, rounded up by at most an eighth
MOMENTS = 2 * FLOAT  # Adam's two of every number, lazy Adam's of every row of a table, touched or not


@dataclass(frozen=True)
class ModelSize:
    """The numbers of a model, and those of its shape that memory depends on."""

    frozen: int  # parameters that no step changes, as those of the backbone beside low-rank adapters
    dense: int  # parameters that every step changes
    token_table: int  # of which a step changes few rows, if tokens are sparse; else 0 and part of dense
    textless_tables: int
    layers: int
    width: int
    inner: int
    heads: int
    vocabulary: int
    token_width: int
    textless_dim: int
    learns_textless: bool  # whether anything looks at those tables
    states: int  # that a text gives to its neighbours (S)
    has_second_hop: bool  # whether one of them is stored with the text's own neighbours as well
    kinds: tuple[str, ...]  # of virtual neighbour tokens
    readout_kinds: tuple[str, ...]  # of neighbours that the network readout adds
    first_only: bool  # whether only [CLS] of a last layer is read

    @classmethod
    def from_options(cls, schema: Schema, options: TrainingOptions) -> ModelSize:
        """Of the model that ``heterformer train`` would make. Nothing is loaded but a configuration."""
        chosen = options.resolved().model
        if not isinstance(chosen, BackboneOptions):
            problem = f"is {chosen.name!r}, which has no backbone to plan for; expected another model."
            raise OptionError(options, "model", problem)
        plm, model = _configured(schema, chosen)
        tokens = model.get_input_embeddings().weight
        groups = {n: sum(p.numel() for p in group) for n, group in model.parameter_groups().items()}
        frozen = sum(p.numel() for p in model.parameters() if not p.requires_grad)
        sparse = tokens.numel() if options.sparse_tokens and tokens.requires_grad else 0
        textless_dim = model.config.textless_dim if isinstance(model, HeterogeneousEncoder) else 0
        return cls(
            frozen=frozen,
            dense=groups["backbone"] + groups["new"] - sparse,
            token_table=sparse,
            textless_tables=groups["textless"],
            layers=plm.num_hidden_layers,
            width=plm.hidden_size,
            inner=plm.intermediate_size,
            heads=plm.num_attention_heads,
            vocabulary=plm.vocab_size,
            token_width=tokens.shape[1],
            textless_dim=textless_dim if groups["textless"] else 0,
            learns_textless=bool(set(schema.textless) & set(model.embedded_types)),
            states=model.states_per_text,
            has_second_hop=model.second_hop > 0,
            kinds=tuple(model.kinds),
            readout_kinds=tuple(model.readout_kinds),
            first_only=chosen.readout == "cls",
        )

    @property
    def parameters(self) -> int:
        return self.frozen + self.dense + self.token_table + self.textless_tables


def _configured(schema: Schema, chosen: ModelOptions) -> tuple[Any, Any]:
    """The backbone's configuration, and the model without its numbers: tables may be larger than memory."""
    try:
        plm = load_plm_config(backbone_path(chosen.backbone))
    except (OSError, ValueError, InputError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"backbone {chosen.backbone!r} cannot be loaded: {reason}") from error
    kind, values = MODELS[chosen.name], chosen.config_values()
    with torch.device("meta"):
        model = kind(kind.config_class(backbone=plm.to_diff_dict(), schema=schema.to_dict(), **values))
        model.limit_training()
    return plm, model


@dataclass(frozen=True)
class StepShape:
    """What a process has in its graph at once; texts that several nodes share are counted for each."""

    centers: int
    text_edges: float
    textless_edges: float
    tokens: float  # per text
    live: bool  # whether neighbours' texts are part of the graph

    @classmethod
    def from_network(cls, network: PlannedNetwork, options: TrainingOptions) -> StepShape:
        pairs = min(options.batch_size, options.micro_batch or options.batch_size)
        centers = options.centers_per_pair * pairs
        return cls(
            centers,
            centers * network.text_neighbors,
            centers * network.textless_neighbors,
            network.sample.length,
            options.neighbor_states == "live",
        )


def activations(size: ModelSize, shape: StepShape, precision: str) -> int:
    """Bytes that the backward pass keeps, and what one layer's gradients need on top of them."""
    number = 2 if precision in HALF else FLOAT
    tokens = shape.centers * shape.tokens
    nested = size.states > 1 or bool(size.kinds)
    total = _pass(size, shape.centers, shape.tokens, size.layers, len(size.kinds), number)
    passes, widest = size.layers, tokens
    if shape.live and size.states:
        layers = size.layers - (nested and "text_rich" not in size.readout_kinds)
        total += _pass(size, shape.text_edges, shape.tokens, layers, 0, number)
        passes, widest = passes + layers, max(tokens, shape.text_edges * shape.tokens)
    total += passes * 3 * size.width**2 * number  # queries', keys' and values' weights side by side
    total += 3 * shape.text_edges * size.states * size.width * number  # states, chosen ones, messages
    for kinds, times in ((size.kinds, size.layers - 1), (size.readout_kinds, 1)):  # aggregations
        for kind in kinds:
            neighbors = (shape.text_edges if kind == "text_rich" else shape.textless_edges) / shape.centers
            per_center = size.width * (2 * size.heads + 5 + neighbors) + 2 * size.heads * (1 + neighbors)
            total += times * shape.centers * per_center * number
    total += 6 * size.width * widest * number  # gradients of one layer
    if precision in HALF:
        total += 2 * number * size.dense  # weights in bfloat16, and gradients of those
    return round(total)


def _pass(size: ModelSize, texts: float, length: float, layers: int, virtual: int, number: int) -> float:
    """The activations of texts in a number of layers of the PLM."""
    d = size.width
    padded, tokens = length, texts * length
    if number < FLOAT:  # in half precision on a CPU, see ``models/plm/rectangles.py``
        padded, tokens = length + (PADDED - 1) / 2, tokens * FILLED
    keys = padded + virtual
    weights = size.heads * keys * (number * (keys <= d // size.heads) + 1)
    attention = 3 * d * number + weights  # bytes per place of an attention
    if virtual:
        attention += 2 * d * number * virtual / padded  # keys and values of the virtual ones
    kept = (5 * d + size.inner) * number + 2 * d + attention * padded / length  # per token and layer
    whole = layers - size.first_only
    last = texts * ((3 * size.heads * d + 6 * d + size.inner) * number + 2 * d) if size.first_only else 0.0
    return tokens * (d * (number + 1) + whole * kept) + last


@dataclass(frozen=True)
class Memory:
    """Bytes of one process, beside Python's and PyTorch's own half gigabyte."""

    weights: int
    moments: int
    textless: int
    textless_moments: int
    gradients: int
    activations: int
    exchanged: int  # vectors, scores and rows of all processes
    host: int  # on the host in any case: what is kept for every pair or node

    @property
    def device(self) -> int:
        """What must fit on a GPU; on CPUs the host's part comes on top."""
        return self.total - self.host

    @property
    def total(self) -> int:
        kept = self.weights + self.moments + self.textless + self.textless_moments
        return kept + self.gradients + self.activations + self.exchanged + self.host


def training_memory(
    size: ModelSize, network: PlannedNetwork, options: TrainingOptions, processes: int, rows: int
) -> Memory:
    """Of one of ``processes``; ``rows`` are the bytes of table rows that each touches in a step."""
    weights = FLOAT * (size.frozen + size.dense + size.token_table)
    average = size.parameters * FLOAT if options.average_last else 0  # a mean of weights, beside them
    keys, width = processes * options.batch_size * (1 + options.hard_negatives), size.width
    scores = options.batch_size * keys * (3 * FLOAT + 1)  # scores, their softmax and gradient, the mask
    vectors = 2 * FLOAT * width * (2 * options.batch_size + keys)  # and their gradients
    return Memory(
        weights=weights + average,
        moments=MOMENTS * (size.dense + size.token_table),
        textless=FLOAT * size.textless_tables,
        textless_moments=MOMENTS * size.textless_tables * size.learns_textless,
        gradients=FLOAT * size.dense + rows,
        activations=activations(size, StepShape.from_network(network, options), options.precision),
        exchanged=scores + vectors + (2 * processes * rows if processes > 1 else 0),
        host=16 * (network.pairs + network.held_out) + 8 * network.pairs,  # rows of pairs, and their order
    )


def warm_up_memory(size: ModelSize, network: PlannedNetwork) -> int:
    """On the first process's host while it warms textless nodes up: vectors of all texts, and edges."""
    return FLOAT * size.width * network.texts + 2 * 8 * network.textless_edges


def embedding_memory(size: ModelSize, network: PlannedNetwork, options: EmbedOptions) -> Memory:
    """No gradients and no moments; states of one part of the texts, and one batch of tokens."""
    number = 2 if options.precision in HALF else FLOAT
    part = 2 * FLOAT * min(PART, network.texts) * size.states * size.width  # and once more to be written
    textless = sum(network.schema.counts[t] for t in network.schema.textless)
    return Memory(
        weights=FLOAT * (size.frozen + size.dense + size.token_table),
        moments=0,
        textless=FLOAT * size.textless_tables,
        textless_moments=0,
        gradients=0,
        activations=part + TOKENS * (8 * size.width + 2 * size.inner) * number,
        exchanged=0,
        host=2 * 8 * network.texts + 8 * textless * size.learns_textless,  # numbers and signatures
    )
