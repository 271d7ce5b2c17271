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
        """Distinct tokens in a number of texts; beyond the sample in proportion, which is an upper bound."""
        chosen = self.texts[: max(1, round(texts))]
        if not chosen:
            return min(vocabulary, round(texts * self.limit))
        count = len(np.unique(np.concatenate(chosen)))
        return min(vocabulary, round(count * max(1.0, texts / len(chosen))))


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
    def from_network(
        cls, network: Network, split: SplitOptions, backbone: str, options: PlanOptions
    ) -> PlannedNetwork:
        schema = network.schema
        counts = options.counts_for(schema.counts)
        with waiting("dividing pairs"):
            divided = make_split(network, split)
        train, held_out = (
            {r.name: len(getattr(divided.pairs[r.name], part)) for r in schema.predicted}
            for part in ("train", "held_out")
        )
        grown = {r.name: counts[r.source] / max(1, schema.counts[r.source]) for r in schema.predicted}
        pairs = round(options.pairs or sum(grown[name] * count for name, count in train.items()))
        return cls(
            network.name,
            replace(schema, counts=counts),
            pairs,
            round(pairs / max(1, sum(train.values())) * sum(held_out.values())),
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
    """How many neighbours of each type a node that takes part in a predicted relation is given.

    A textless node is no text to read: what it may aggregate is left out.
    """
    schema = network.schema
    means = dict.fromkeys(schema.node_types, 0.0)
    for relation in schema.predicted:
        share = schema.shares[relation.name]
        for center, other in ((relation.source, relation.target), (relation.target, relation.source)):
            if center in schema.textless:
                continue
            has_neighbors = network.adjacency(center, other).degrees > 0
            for neighbor in schema.neighbor_types_of(center):
                degrees = network.adjacency(center, neighbor).degrees[has_neighbors]
                if most := schema.neighbors.get(neighbor, 0):
                    mean = float(np.minimum(degrees, most).mean())
                    means[neighbor] += share * mean / 2  # of either end half
    return {t: n for t, n in means.items() if n}


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
