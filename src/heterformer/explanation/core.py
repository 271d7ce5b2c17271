"""Why a node's vector is what it is: the attention on its text and neighbours, and who those neighbours are.

A node with text is explained by its layers' attention and by its neighbours' shares in the virtual neighbour
tokens, which only Heterformer has. A node without text attends to nothing: its explanation is which of
its text-rich neighbours' vectors are closest to its own, under any model that has vectors of such nodes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from heterformer.batches.batch import Batch
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding.two_passes import Embedding
from heterformer.errors import InputError, OptionError
from heterformer.explanation.attention_map import AttentionMap, Edge, LayerAttention, Queries, attention_map
from heterformer.explanation.options import ExplainOptions
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterformer import Heterformer
from heterformer.models.inference import center_vectors, textless_vectors
from heterformer.models.plm.loading import load_tokenizer
from heterformer.network.lookup import Node, find_node, node_type_named
from heterformer.network.schema import EdgeType, Schema
from heterformer.search.searcher import NamedNode
from heterformer.training.run import Run
from heterformer.training.unseen import adapt_to_network

KINDS = {"text_rich": "text-rich", "textless": "textless", "attributes": "attributes"}  # as people read them
MAX_NEIGHBORS = 200  # of each type, whose vectors are compared with a textless node's

Direction = Literal["out", "in"]


@dataclass(frozen=True)
class Neighbor(NamedNode):
    """A neighbour and the edge that joins it to the node."""

    relation: str
    direction: Direction  # 'out': the relation leads from the node to the neighbour; 'in': the other way


@dataclass(frozen=True)
class SampledNeighbor(Neighbor):
    """A neighbour that a virtual token aggregates."""

    shares: tuple[float, ...]  # in the token of each layer that has one (Eq. 7), mean over heads
    share: float  # mean over these layers


@dataclass(frozen=True)
class CloseNeighbor(Neighbor):
    """A neighbour of a textless node."""

    score: float  # the inner product of the two vectors


@dataclass(frozen=True)
class VirtualToken:
    """The virtual neighbour token of one kind, which aggregates the node itself and sampled neighbours."""

    kind: str  # text_rich or textless
    layers: tuple[int, ...]  # the layers that have one
    own_shares: tuple[float, ...]  # the node's own share in each of them
    own_share: float
    edges: int  # of this kind, that the neighbours were sampled from
    neighbors: tuple[SampledNeighbor, ...]  # the largest share first


@dataclass(frozen=True)
class ReadoutPart:
    """What the network readout adds to the vector for one kind of neighbour."""

    kind: str  # text_rich or textless
    weight: float  # the length of what is added, relative to that of the vector before it is normalised
    own_share: float  # the node's own share in it; 0 if it is a mean of the neighbours alone
    neighbors: tuple[SampledNeighbor, ...]  # the largest share first


@dataclass(frozen=True)
class Layer:
    """The attention in one layer: virtual tokens and text add up to 1."""

    number: int  # from 1; the first layer has no virtual tokens
    virtual: dict[str, float]  # by kind
    text: float
    tokens: tuple[float, ...]  # the text's, token by token


@dataclass(frozen=True)
class TextExplanation:
    """A node with text."""

    run: str
    warm_up: bool
    node: NamedNode
    queries: Queries
    tokens: tuple[str, ...]
    layers: tuple[Layer, ...]
    virtual_tokens: tuple[VirtualToken, ...]
    readout: tuple[ReadoutPart, ...] = ()  # of a model without network readout there is none


@dataclass(frozen=True)
class TextlessExplanation:
    """A node without text: its neighbours with text, the closest first."""

    run: str
    node: NamedNode
    edges: int  # that it has to text-rich nodes
    closest: tuple[CloseNeighbor, ...]


Explanation = TextExplanation | TextlessExplanation


class Explainer:
    """A run opened for explaining the vectors that ``heterformer embed`` makes, with the same neighbours."""

    def __init__(
        self, path: Path | str, max_neighbors: int = MAX_NEIGHBORS, network: Path | str | None = None
    ) -> None:
        self.run, self.max_neighbors = Run(path), max_neighbors
        self.network = self.run.open_network(network)
        self.schema = self.network.schema

    def find(self, name: str, node_type: str = "", option: str = "node_type") -> Node:
        """A node by its id or name; ``option`` is the one that tells its type."""
        types = self.schema.node_types
        if node_type:
            types = (node_type_named(self.schema, node_type, ExplainOptions, option),)
        return find_node(self.network, name, types, ExplainOptions, option)

    def explain(self, node: Node, queries: Literal["auto", "cls", "all"] = "auto") -> Explanation:
        """Read the model and explain one node."""
        self.check(node)
        return self._textless(node) if node.node_type in self.schema.textless else self._text(node, queries)

    @property
    def has_attention(self) -> bool:
        """Whether the model has virtual neighbour tokens, whose attention can be shown."""
        return self.run.options().model.group == "Heterformer"

    def check(self, node: Node) -> None:
        """Refuse what cannot be explained, before the model is read."""
        if node.node_type in self.schema.text_rich and not self.has_attention:
            model = self.run.options().model
            problem = f"its model is {model.display_name}, which has no virtual neighbour tokens to explain"
            raise InputError(f"{self.run.path}: {problem}; expected a run of Heterformer.")

    @cached_property
    def tokenizer(self) -> Any:
        """The model's own."""
        return load_tokenizer(self.run.path)

    @cached_property
    def embedding(self) -> Embedding:
        """Batches with the neighbours that ``heterformer embed`` samples."""
        visible = VisibleNetwork.whole(self.network)
        return Embedding(self.run.model(), visible, tokenizer=self.tokenizer)

    @cached_property
    def model(self) -> NodeEncoder:
        """With embeddings of all textless nodes, also of those that training did not see."""
        work = self.embedding
        with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
            return adapt_to_network(work.trained, work.visible, work.tokens, Path(folder))[0]

    def _text(self, node: Node, queries: Literal["auto", "cls", "all"]) -> TextExplanation:
        model = self.model
        assert isinstance(model, Heterformer)
        if queries == "auto":
            queries = "cls" if model.config.readout == "cls" else "all"
        work = self.embedding
        batch = work.batcher.nodes(node.node_type, np.array([node.row]), work.sampler)
        if model.pack(batch.texts, batch.centers).text_of_window is not None:
            problem = "its text is read in several windows, each with an attention of its own"
            raise InputError(f"{self.run.path}: {problem}, which is not explained; choose a shorter text.")
        attention = attention_map(model, batch)
        tokens = batch.texts.select(batch.centers).tokens.tolist()
        return TextExplanation(
            run=str(self.run.path),
            warm_up=self.run.options().warm_up.warm_up,
            node=NamedNode.from_node(self.network, node),
            queries=queries,
            tokens=words(self.tokenizer, tokens),
            layers=tuple(_layer(number, layer, queries) for number, layer in enumerate(attention.layers, 1)),
            virtual_tokens=tuple(
                self._virtual(node, kind, attention, batch) for kind in attention.layers[-1].alpha
            ),
            readout=tuple(self._readout(kind, attention, batch) for kind in attention.readout),
        )

    def _virtual(self, node: Node, kind: str, attention: AttentionMap, batch: Batch) -> VirtualToken:
        layers = {number: layer for number, layer in enumerate(attention.layers, 1) if kind in layer.alpha}
        shares = torch.stack([layer.shares(kind) for layer in layers.values()])  # (layers, 1 + N)
        edges = self._edges(node, getattr(self.schema, kind, ()))  # attributes are no neighbours
        own = tuple(shares[:, 0].tolist())
        neighbors = self._sampled(attention.neighbors[kind], shares[:, 1:], batch)
        return VirtualToken(kind, tuple(layers), own, float(shares[:, 0].mean()), edges, neighbors)

    def _readout(self, kind: str, attention: AttentionMap, batch: Batch) -> ReadoutPart:
        part = attention.readout[kind]
        length = float(attention.unnormalized.norm()) or 1.0
        neighbors = self._sampled(attention.neighbors[kind], part.shares[None, 1:], batch)
        return ReadoutPart(kind, float(part.added.norm()) / length, float(part.shares[0]), neighbors)

    def _sampled(self, edges: Sequence[Edge], shares: Tensor, batch: Batch) -> tuple[SampledNeighbor, ...]:
        """The neighbours with their shares, (layers, N), the largest mean first."""
        columns = zip(edges, shares.T.tolist(), shares.mean(0).tolist(), strict=True)
        neighbors = [
            SampledNeighbor(
                **vars(self._neighbor(edge.edge_type, self.row_of(edge, batch))),
                shares=tuple(each),
                share=mean,
            )
            for edge, each, mean in columns
        ]
        return tuple(sorted(neighbors, key=lambda neighbor: -neighbor.share))

    def row_of(self, edge: Edge, batch: Batch) -> int:
        """The neighbour's row among the nodes of its type."""
        node_type = edge.edge_type.neighbor
        if node_type in self.schema.textless:
            return int(batch.textless[node_type][edge.node])
        assert batch.text_rows is not None
        return int(batch.text_rows[edge.node]) - self.embedding.tokens.text_offset[node_type]

    def _neighbor(self, edge_type: EdgeType, row: int) -> Neighbor:
        named = NamedNode.from_node(self.network, Node(edge_type.neighbor, row))
        relation, direction = relation_of(self.schema, edge_type)
        return Neighbor(**vars(named), relation=relation, direction=direction)

    def _edges(self, node: Node, types: tuple[str, ...]) -> int:
        """The edges of a node to nodes of some types, as far as its neighbours are sampled from them."""
        batcher, row = self.embedding.batcher, np.array([node.row])
        sampled = [t for t in types if batcher.fan_out.get(t)]
        near = [t for t in self.schema.neighbor_types_of(node.node_type) if t in sampled]
        return sum(int(batcher.visible.adjacency(node.node_type, t).counts(row)[0]) for t in near)

    def textless_vector(self, node: Node) -> Tensor:
        """(d,): the vector of a node without text."""
        model = self.model
        if node.node_type not in model.embedded_types:
            problem = f"its model has no vectors of {node.node_type!r} nodes"
            raise InputError(f"{self.run.path}: {problem}, so there is nothing to explain.")
        batcher, sampler = self.embedding.batcher, self.embedding.sampler
        return textless_vectors(model, batcher, node.node_type, np.array([node.row]), sampler)[0]

    def _textless(self, node: Node) -> TextlessExplanation:
        model, batcher, sampler = self.model, self.embedding.batcher, self.embedding.sampler
        own = self.textless_vector(node)
        closest, edges = [], 0
        for near in (t for t in self.schema.neighbor_types_of(node.node_type) if t in self.schema.text_rich):
            edges += int(batcher.visible.adjacency(node.node_type, near).counts(np.array([node.row]))[0])
            row = np.array([node.row])
            sample = sampler.sample(batcher.visible, node.node_type, near, row, self.max_neighbors)
            distinct, place = np.unique(sample.neighbor.astype(np.int64), return_inverse=True)
            scores = center_vectors(model, batcher, near, distinct, sampler) @ own  # (n,)
            for other, edge_type, score in zip(sample.neighbor, sample.edge_type, scores[place], strict=True):
                neighbor = self._neighbor(self.schema.edge_types[edge_type], int(other))
                closest.append(CloseNeighbor(**vars(neighbor), score=float(score)))
        closest.sort(key=lambda neighbor: -neighbor.score)
        return TextlessExplanation(
            str(self.run.path), NamedNode.from_node(self.network, node), edges, tuple(closest)
        )


def _layer(number: int, layer: LayerAttention, queries: Queries) -> Layer:
    attention = layer.attention(queries).tolist()  # (V + n,)
    virtual, tokens = attention[: len(layer.alpha)], attention[len(layer.alpha) :]
    return Layer(number, dict(zip(layer.alpha, virtual, strict=True)), sum(tokens), tuple(tokens))


def words(tokenizer: Any, tokens: Sequence[int]) -> tuple[str, ...]:
    """Each token as a person reads it: without RoBERTa's sign for a space, unless it is half a letter."""
    names = tokenizer.convert_ids_to_tokens(tokens)
    pieces = [tokenizer.decode([token]).strip() for token in tokens]
    return tuple(name if word in ("", "\ufffd") else word for name, word in zip(names, pieces, strict=True))


def relation_of(schema: Schema, edge_type: EdgeType) -> tuple[str, Direction]:
    """The relation as the user declared it, and whether the centre is its source."""
    for relation in schema.relations:
        if edge_type == relation.forward:
            return relation.name, "out"
        if edge_type == relation.backward:
            return relation.name, "in"
    raise ValueError(f"{edge_type} is no edge type of the schema")


def explain(
    run: Explainer | Path | str,
    node: str,
    *,
    node_type: str = "",
    queries: Literal["auto", "cls", "all"] = "auto",
) -> Explanation:
    """Explain one node's vector by the attention and the neighbours behind it.

    Args:
        run: A folder that ``train`` wrote.
        node: The node's id or name.
        node_type: The node's type, if nodes of several types have that id or name.
        queries: Whose attention to show: that of [CLS] ("cls"), the mean over all tokens ("all"), or that of
            the tokens which the vector is read from ("auto").

    Returns:
        ``TextExplanation`` of a node with text, which needs a run of Heterformer, or ``TextlessExplanation``.

    Example:
        >>> explanation = explain("runs/papers", "P05-3014")
        >>> [neighbor.name for neighbor in explanation.virtual_tokens[0].neighbors[:3]]
    """
    explainer = run if isinstance(run, Explainer) else Explainer(run)
    return explainer.explain(explainer.find(node, node_type), queries)


def explain_runs(run: Explainer | Path | str, name: str, options: ExplainOptions) -> tuple[Explanation, ...]:
    """The attention that ``heterformer explain`` shows: the run's, and that of the run it is held against.

    A model without attention on neighbours has none, which is an error if it was asked for.
    """
    first = run if isinstance(run, Explainer) else Explainer(run)
    others = [Explainer(path, network=options.network) for path in (options.against,) if path is not None]
    node = first.find(name, options.node_type)
    if node.node_type in first.schema.text_rich and not (first.has_attention or others):
        return ()
    if node.node_type in first.schema.textless and (options.against or options.figure):
        option = "against" if options.against else "figure"
        problem = f"draws attention on a text; {node.node_type} {name!r} has no text."
        raise OptionError(options, option, problem)
    for other in others:
        if other.network.fingerprint != first.network.fingerprint:
            raise InputError(f"{other.run.path}: was trained on another network than {first.run.path}.")
    for explainer in (first, *others):
        explainer.check(node)
    explanation = first.explain(node, options.queries)
    queries = explanation.queries if isinstance(explanation, TextExplanation) else options.queries
    return (explanation, *(other.explain(node, queries) for other in others))
