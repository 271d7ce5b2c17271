"""What a node's vector, or the score of a pair, would be without each neighbour, kind of neighbour and word.

Attention says what a model looked at, not what it made of it. Here the vector is computed again without each
input in turn: what changes much matters much. It is exact, since nothing is estimated, and it works for every
model. All variants of a node go through the model together; the states of its neighbours are computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.errors import InputError
from heterformer.explanation.attention_map import Edge
from heterformer.explanation.core import Explainer, relation_of, words
from heterformer.explanation.options import ExplainOptions
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import center_vectors, evaluating
from heterformer.network.lookup import Node
from heterformer.search.searcher import NamedNode

MOST_WORDS = 128  # that are left out one by one; of a longer text, as many runs of words
TOKENS = 8192  # of the variants that go through the model at once


@dataclass(frozen=True)
class Effect:
    """What happens without something."""

    change: float  # |v - v'| / |v|: how far the vector moves, relative to its length
    cosine: float  # between the vector with and without it
    score_change: float | None  # of a pair: its score with, minus that without; positive supports the pair


@dataclass(frozen=True)
class NeighborEffect(Effect):
    """Without one neighbour, whatever edges join it."""

    node_type: str
    id: str
    name: str
    relation: str
    direction: Literal["out", "in", "both"]


Kind = Literal["relation", "neighbors", "text"]


@dataclass(frozen=True)
class KindEffect(Effect):
    """Without all neighbours over one relation, without any neighbour, or without the text."""

    kind: Kind
    number: int  # of neighbours, or of words
    relation: str
    direction: str
    node_type: str


@dataclass(frozen=True)
class WordEffect(Effect):
    """Without one word, or without some that follow each other."""

    word: str


@dataclass(frozen=True)
class LeaveOneOut:
    """The effects of all that a node's vector is made of."""

    run: str
    node: NamedNode
    pair: NamedNode | None
    score: float | None  # the inner product of the two vectors
    kinds: tuple[KindEffect, ...]  # the largest effect first
    neighbors: tuple[NeighborEffect, ...]  # those sampled, the largest effect first
    words: tuple[WordEffect, ...]  # in the order of the text


class _Kind(NamedTuple):
    kind: Kind
    number: int
    relation: str = ""
    direction: str = ""
    node_type: str = ""


class Variant(NamedTuple):
    """A centre as it would be: with these tokens, without these of its edges."""

    tokens: Tensor  # (n,)
    left_out: frozenset[Edge] = frozenset()


def leave_one_out(
    run: Explainer | Path | str, node: str, *, node_type: str = "", pair: str = "", pair_type: str = ""
) -> LeaveOneOut:
    """What a node's vector would be without each neighbour, kind of neighbour and word.

    Args:
        run: A folder that ``train`` wrote.
        node: The id or name of a node with text.
        node_type: The node's type, if nodes of several types have that id or name.
        pair: The id or name of another node, of any type: effects are also those on the score of the two.
        pair_type: The type of that node.

    Example:
        >>> effects = leave_one_out("runs/papers", "P05-3014", pair="P02-1040")
        >>> [(neighbor.name, neighbor.score_change) for neighbor in effects.neighbors[:3]]
    """
    explainer = run if isinstance(run, Explainer) else Explainer(run)
    other = explainer.find(pair, pair_type, "pair_type") if pair else None
    return node_effects(explainer, explainer.find(node, node_type), other)


def node_effects(
    explainer: Explainer, node: Node, pair: Node | None = None, most_words: int = MOST_WORDS
) -> LeaveOneOut:
    """The same for nodes that are found already. The vector of ``pair`` stays as it is.

    ``most_words`` are left out one by one; of a longer text, as many runs of words.
    """
    if node.node_type not in explainer.schema.text_rich:
        name = NamedNode.from_node(explainer.network, node).name
        problem = f"{node.node_type} {name!r} has no text, and its vector is learnt, not made of neighbours"
        raise InputError(f"{problem}; there is nothing to leave out. Explain a node with text.")
    return _Effects(explainer, node, pair, most_words).all()


def effects_of(explainer: Explainer, name: str, options: ExplainOptions) -> LeaveOneOut | None:
    """What ``heterformer explain`` shows: nothing of a node without text, unless a pair was asked for."""
    node = explainer.find(name, options.node_type)
    if not options.pair and node.node_type not in explainer.schema.text_rich:
        return None
    pair, pair_type = options.pair, options.pair_type
    return leave_one_out(explainer, name, node_type=options.node_type, pair=pair, pair_type=pair_type)


class _Effects:
    def __init__(self, explainer: Explainer, node: Node, pair: Node | None, most_words: int) -> None:
        self.most_words = most_words
        self.explainer, self.node, self.pair = explainer, node, pair
        self.model, work = explainer.model, explainer.embedding
        self.batch = work.batcher.nodes(node.node_type, np.array([node.row]), work.sampler)
        self.tokens = self.batch.texts.select(self.batch.centers).tokens
        self.edges = [Edge(e, n) for e, nodes in self.batch.neighbors.items() for n in nodes.node.tolist()]
        self.edges = [edge for edge in self.edges if edge.edge_type.neighbor in self.model.neighbor_types]
        self.other = None if pair is None else _vector(explainer, pair)

    def all(self) -> LeaveOneOut:
        groups = self._neighbor_groups()
        kinds = self._kind_variants()
        pieces = self._word_pieces()
        variants = [Variant(self.tokens)]
        variants += [Variant(self.tokens, edges) for edges in groups.values()]
        variants += [variant for variant, _ in kinds]
        variants += [Variant(self.tokens[torch.tensor(kept, dtype=torch.int64)]) for _, kept in pieces]
        whole, *others = variant_vectors(self.model, self.batch, variants)
        effects = iter([self._effect(whole, vector) for vector in others])
        neighbors = [self._neighbor(node, edges, next(effects)) for node, edges in groups.items()]
        kind_effects = [KindEffect(**vars(next(effects)), **about._asdict()) for _, about in kinds]
        return LeaveOneOut(
            run=str(self.explainer.run.path),
            node=NamedNode.from_node(self.explainer.network, self.node),
            pair=None if self.pair is None else NamedNode.from_node(self.explainer.network, self.pair),
            score=None if self.other is None else float(whole @ self.other),
            kinds=tuple(sorted(kind_effects, key=size_of, reverse=True)),
            neighbors=tuple(sorted(neighbors, key=size_of, reverse=True)),
            words=tuple(WordEffect(**vars(next(effects)), word=word) for word, _ in pieces),
        )

    def _neighbor_groups(self) -> dict[Node, frozenset[Edge]]:
        """The edges to each neighbour."""
        groups: dict[Node, frozenset[Edge]] = {}
        for edge in self.edges:
            node = Node(edge.edge_type.neighbor, self.explainer.row_of(edge, self.batch))
            groups[node] = groups.get(node, frozenset()) | {edge}
        return groups

    def _kind_variants(self) -> list[tuple[Variant, _Kind]]:
        variants = []
        for edge_type in dict.fromkeys(edge.edge_type for edge in self.edges):
            own = frozenset(edge for edge in self.edges if edge.edge_type == edge_type)
            about = _Kind(
                "relation", len(own), *relation_of(self.explainer.schema, edge_type), edge_type.neighbor
            )
            variants.append((Variant(self.tokens, own), about))
        if self.edges:
            count = len({(edge.edge_type.neighbor, edge.node) for edge in self.edges})
            variants.append((Variant(self.tokens, frozenset(self.edges)), _Kind("neighbors", count)))
        special = torch.tensor(self._special(), dtype=torch.bool)
        if not special.all():
            count = len({number for number in self._word_numbers() if number is not None})
            variants.append((Variant(self.tokens[special]), _Kind("text", count)))
        return variants

    def _special(self) -> list[bool]:
        ids = set(self.explainer.tokenizer.all_special_ids)
        return [token in ids for token in self.tokens.tolist()]

    def _word_numbers(self) -> list[int | None]:
        """Which word each token belongs to; special tokens to none."""
        text = self.explainer.network.texts(self.node.node_type, [self.node.row])[0]
        encoded = self.explainer.tokenizer(text, truncation=True, max_length=len(self.tokens))
        if encoded["input_ids"] == self.tokens.tolist():
            return list(encoded.word_ids())
        special = self._special()  # a tokenizer that cuts otherwise: each token for itself
        return [None if is_special else i for i, is_special in enumerate(special)]

    def _word_pieces(self) -> list[tuple[str, list[int]]]:
        """Each word, or run of words, with the positions of the tokens that stay without it."""
        numbers = self._word_numbers()
        distinct = list(dict.fromkeys(n for n in numbers if n is not None))
        runs = np.array_split(np.array(distinct), min(len(distinct), self.most_words)) if distinct else []
        pieces = []
        for run in runs:
            gone = [i for i, n in enumerate(numbers) if n is not None and n in set(run.tolist())]
            text = self.explainer.tokenizer.decode(self.tokens[gone]).strip()
            label = text or " ".join(words(self.explainer.tokenizer, self.tokens[gone].tolist()))
            kept = sorted(set(range(len(numbers))) - set(gone))
            pieces.append((label, kept))
        return pieces

    def _neighbor(self, node: Node, edges: frozenset[Edge], effect: Effect) -> NeighborEffect:
        relations = sorted({relation_of(self.explainer.schema, edge.edge_type) for edge in edges})
        directions = {direction for _, direction in relations}
        return NeighborEffect(
            **vars(effect),
            **vars(NamedNode.from_node(self.explainer.network, node)),
            relation=", ".join(dict.fromkeys(name for name, _ in relations)),
            direction=directions.pop() if len(directions) == 1 else "both",
        )

    def _effect(self, whole: Tensor, without: Tensor) -> Effect:
        length = float(whole.norm()) or 1.0
        return Effect(
            change=float((whole - without).norm()) / length,
            cosine=float(torch.cosine_similarity(whole, without, dim=0)),
            score_change=None if self.other is None else float((whole - without) @ self.other),
        )


def size_of(effect: Effect) -> float:
    """How large an effect is: on the score of a pair, else on the vector."""
    return effect.change if effect.score_change is None else abs(effect.score_change)


def _vector(explainer: Explainer, node: Node) -> Tensor:
    """(d,): a node's own vector, in double precision."""
    model, work = explainer.model, explainer.embedding
    if node.node_type in explainer.schema.text_rich:
        return center_vectors(model, work.batcher, node.node_type, np.array([node.row]), work.sampler)[
            0
        ].double()
    return explainer.textless_vector(node).double()


def variant_vectors(model: NodeEncoder, batch: Batch, variants: Sequence[Variant]) -> Tensor:
    """(V, d) in double precision: the vectors of a batch's only centre as it would be."""
    if len(batch.centers) != 1:
        raise ValueError(f"the batch has {len(batch.centers)} centres, expected one")
    with evaluating(model):
        states = model.text_states(batch.to(model.device).texts.first(batch.neighbor_texts))
        parts = [model(part.to(model.device), states).double().cpu() for part in _batches(batch, variants)]
    return torch.cat(parts)


def _batches(batch: Batch, variants: Sequence[Variant], tokens: int = TOKENS) -> Iterator[Batch]:
    """The variants as centres, as many at once as have ``tokens`` together."""
    start = 0
    while start < len(variants):
        lengths = np.cumsum([len(v.tokens) for v in variants[start:]])
        stop = start + max(1, int(np.searchsorted(lengths, tokens, side="right")))
        yield _joined(batch, variants[start:stop])
        start = stop


def _joined(batch: Batch, variants: Sequence[Variant]) -> Batch:
    near = batch.texts.first(batch.neighbor_texts)
    lengths = torch.tensor([len(v.tokens) for v in variants])
    texts = Texts(
        torch.cat([near.tokens, *(v.tokens for v in variants)]),
        torch.cat([near.offsets, near.offsets[-1] + lengths.cumsum(0)]),
    )
    neighbors = {}
    for edge_type, edges in batch.neighbors.items():
        pairs = [
            (center, node)
            for center, variant in enumerate(variants)
            for node in edges.node.tolist()
            if Edge(edge_type, node) not in variant.left_out
        ]
        ends = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)
        neighbors[edge_type] = Neighbors(ends[:, 0].contiguous(), ends[:, 1].contiguous())
    centers = torch.arange(len(near), len(near) + len(variants))
    return replace(batch, texts=texts, centers=centers, neighbors=neighbors, text_rows=None)
