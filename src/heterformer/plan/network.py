"""The network to plan for: one that exists, or one of its shape with other numbers of nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.models.plm.loading import load_tokenizer
from heterformer.models.plm.minilm import backbone_path
from heterformer.network.schema import NodeType, Schema
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.plan.options import PlanOptions
from heterformer.progress import waiting

TEXTS = 4096  # looked at, for their lengths


@dataclass(frozen=True)
class TextSample:
    """Some texts' tokens, in no order; without a tokenizer every text is as long as it may be."""

    texts: tuple[NDArray[np.int64], ...]
    limit: int

    @cached_property
    def length(self) -> float:
        """Tokens per text."""
        return float(np.mean([len(text) for text in self.texts])) if self.texts else float(self.limit)

    def distinct(self, texts: float, vocabulary: int) -> int:
        """Token types in so many texts; beyond the sample in proportion, which is at most too much."""
        chosen = self.texts[: max(1, round(texts))]
        if not chosen:
            return min(vocabulary, round(texts * self.limit))
        found = len(np.unique(np.concatenate(chosen)))
        return min(vocabulary, round(found * max(1.0, texts / len(chosen))))


@dataclass(frozen=True)
class PlannedNetwork:
    """Counts and means: what memory, disk and time depend on."""

    name: str
    schema: Schema  # with the numbers of nodes to plan for
    pairs: int  # to train on
    held_out: int  # validation and test pairs
    neighbors: dict[NodeType, float]  # sampled for one end of a training pair, in the mean
    textless_edges: int  # between text-rich and textless nodes: what the warm-up learns from
    sample: TextSample

    @classmethod
    def of(cls, network: Network, split: SplitOptions, backbone: str, options: PlanOptions) -> PlannedNetwork:
        schema = network.schema
        counts = options.counts_for(schema.counts)
        with waiting("dividing pairs"):
            divided = make_split(network, split)
        source = schema.predicted.source
        grown = counts[source] / max(1, schema.counts[source])
        pairs = round(options.pairs or grown * len(divided.train))
        return cls(
            network.name,
            replace(schema, counts=counts),
            pairs,
            round(pairs / max(1, len(divided.train)) * len(divided.held_out)),
            _neighbors(network),
            _textless_edges(network, counts),
            TextSample(_tokenised(network, backbone), schema.max_tokens),
        )

    @property
    def texts(self) -> int:
        """Text-rich nodes."""
        return sum(self.schema.counts[t] for t in self.schema.text_rich)

    @property
    def text_neighbors(self) -> float:
        return sum(n for t, n in self.neighbors.items() if t in self.schema.text_rich)

    @property
    def textless_neighbors(self) -> float:
        return sum(n for t, n in self.neighbors.items() if t in self.schema.textless)


def _neighbors(network: Network) -> dict[NodeType, float]:
    """How many neighbours of each type a node that takes part in the predicted relation is given."""
    schema, predicted = network.schema, network.schema.predicted
    found = dict.fromkeys(schema.node_types, 0.0)
    for center, other in ((predicted.source, predicted.target), (predicted.target, predicted.source)):
        asked = network.adjacency(center, other).degrees > 0
        for neighbor in schema.neighbor_types_of(center):
            degrees = network.adjacency(center, neighbor).degrees[asked]
            if most := schema.neighbors.get(neighbor, 0):
                found[neighbor] += float(np.minimum(degrees, most).mean()) / 2  # of either end half
    return {t: n for t, n in found.items() if n}


def _textless_edges(network: Network, counts: dict[NodeType, int]) -> int:
    schema, total = network.schema, 0.0
    for textless in schema.textless:
        for text_rich in schema.neighbor_types_of(textless):
            if text_rich in schema.text_rich:
                edges = len(network.adjacency(textless, text_rich).neighbor)
                total += edges * counts[text_rich] / max(1, schema.counts[text_rich])
    return round(total)


def _tokenised(network: Network, backbone: str) -> tuple[NDArray[np.int64], ...]:
    """Some of the network's texts, or none if the backbone comes without a tokenizer."""
    try:
        tokenizer: Any = load_tokenizer(backbone_path(backbone))
    except (OSError, ValueError, InputError):
        return ()
    if len(tokenizer) <= len(tokenizer.all_special_ids):  # without files it has no words
        return ()
    rng, schema = np.random.default_rng(0), network.schema
    total, texts = sum(schema.counts[t] for t in schema.text_rich), list[str]()
    for node_type in schema.text_rich:
        count = schema.counts[node_type]
        few = min(count, -(-TEXTS * count // max(1, total)))
        texts += network.texts(node_type, rng.choice(count, few, replace=False))
    encoded = tokenizer(texts, truncation=True, max_length=schema.max_tokens)["input_ids"]
    return tuple(np.asarray(encoded[i]) for i in rng.permutation(len(encoded)))
