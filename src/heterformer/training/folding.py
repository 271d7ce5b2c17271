"""Folding in: embeddings for textless nodes that training has not seen, from the texts next to them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.inference import plm_vectors, some_plm_vectors
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.encoding import AttributeRows
from heterformer.network.hashes import Hashes, mixed
from heterformer.network.schema import NodeType
from heterformer.network.tokens import PackedTokens
from heterformer.progress import progress_bar
from heterformer.states.row_file import PART, RowFile

STEPS, RATE = 150, 0.1  # of Adam


class FoldedIn(NamedTuple):
    """The nodes of a type that the model had not met, and the texts next to them."""

    nodes: Ints  # rows of the network, ascending
    place: Ints  # edge by edge: a position in ``nodes``, ascending
    texts: Ints  # edge by edge: a text number
    factor: float = 1.0  # by which their embeddings were taken away from the mean
    attributes: AttributeRows | None = None  # of each of the nodes, if the model reads them

    def signatures(self, hashes: Hashes) -> Hashes:
        """(n,): what texts with these ``hashes``, attributes and the factor make of each node.

        But for the last bit.
        """
        sums = np.full(len(self.nodes), np.float64(self.factor).view(np.uint64))
        np.add.at(sums, self.place, mixed(hashes[self.texts]))
        if self.attributes is not None:
            sums += mixed(self.attributes.hashes())
        return mixed(sums)

    def some(self, chosen: NDArray[np.bool_]) -> FoldedIn:
        """The chosen ones of the nodes."""
        edges = chosen[self.place]
        place = (np.cumsum(chosen) - 1)[self.place[edges]]
        attributes = None if self.attributes is None else self.attributes.select(chosen)
        return self._replace(
            nodes=self.nodes[chosen], place=place, texts=self.texts[edges], attributes=attributes
        )


def length_factor(
    model: HeterogeneousEncoder,
    node_type: NodeType,
    sample: FoldedIn,
    learned: Tensor,
    tokens: PackedTokens,
    known: KnownNodes,
    known_vectors: Tensor | None = None,
) -> NDArray[np.float64]:
    """(): how much further from the mean training takes a node than folding in does; 1 if nothing tells.

    What training learnt points where folding in does, but lies further out. By how much is measured with a
    ``sample`` of known nodes, as the factor that fits their ``learned`` embeddings best; in quarters, so that
    it seldom changes while a network grows.
    """
    if not len(sample.nodes):
        return np.array(1.0)
    mean, _ = prior(model, node_type, known)
    again = fold_in(model, node_type, sample, tokens, known, known_vectors) - mean
    factor = float(((learned - mean) * again).sum() / (again**2).sum().clamp_min(1e-12))
    return np.array(max(1.0, round(4 * factor) / 4))


def folded_rows(
    model: HeterogeneousEncoder,
    node_type: NodeType,
    new: FoldedIn,
    tokens: PackedTokens,
    known: KnownNodes,
    folder: Path,
    part: int = PART,
) -> RowFile:
    """(n, 64): ``fold_in``, as far from the mean as training would have taken the nodes; made in ``folder``.

    Part by part, as all embedding: memory holds no more than a part, and a kill loses no more.
    """
    dim = len(prior(model, node_type, known)[0])
    rows = RowFile(folder / f"{node_type}.folded.npy", len(new.nodes), (dim,), np.float32, part)
    if not (missing := list(rows.missing())):
        return rows
    folding = Folding(model, node_type, new, tokens, known)
    seen = RowFile(folder / f"{node_type}.seen.npy", len(folding.text_rows), (dim,), np.float32, part)
    with progress_bar(f"reading texts of new {node_type} nodes", seen.count, "texts") as bar:
        for start, stop in seen.missing():
            seen.write(start, folding.seen(start, stop).numpy())
            bar.advance(stop - start)
    with progress_bar(f"folding new {node_type} nodes in", rows.count, "nodes") as bar:
        for start, stop in missing:
            fitted = folding.fitted(start, stop, lambda texts: torch.from_numpy(seen.read(texts)))
            rows.write(start, (folding.mean + new.factor * (fitted - folding.mean)).numpy())
            bar.advance(stop - start)
    return rows


def prior(model: HeterogeneousEncoder, node_type: NodeType, known: KnownNodes) -> tuple[Tensor, Tensor]:
    """(64,) each: mean and variances of the rows of the table that training met.

    Of a type next to no text it met none, and nothing is known of its nodes: they are zero.
    """
    table: Tensor = model.textless.parameters_of(node_type)[0].detach().float().cpu()
    known_rows = table[torch.from_numpy(known.ids[node_type].is_not_null().to_numpy())]
    if not len(known_rows):
        return torch.zeros(table.shape[1]), torch.ones(table.shape[1])
    return known_rows.mean(0), known_rows.var(0, correction=0).clamp_min(1e-6)


def fold_in(
    model: HeterogeneousEncoder,
    node_type: NodeType,
    new: FoldedIn,
    tokens: PackedTokens,
    known: KnownNodes,
    known_vectors: Tensor | None = None,
) -> Tensor:
    """(n, 64): embeddings of some new nodes that say what the PLM says of their texts, all else being fixed.

    The objective of the warm-up (Eq. 10), node by node: each of a node's texts against the same texts of
    the training network, so that a node's embedding depends on its own texts alone. Few texts say little,
    so the nodes that the model knows are the prior: a Gaussian with their mean and variances. A node
    without any text is given their mean. What a node's attributes say is added to its row and fixed: with
    them its row need only say what they do not. ``known_vectors`` are what the PLM says of the known texts,
    if it was asked before.
    """
    folding = Folding(model, node_type, new, tokens, known, known_vectors)
    seen = folding.seen(0, len(folding.text_rows))
    return folding.fitted(0, len(new.nodes), lambda texts: seen[torch.from_numpy(texts)])


class Folding:
    """What folding the new nodes of a type in needs besides what the PLM says of their texts."""

    def __init__(
        self,
        model: HeterogeneousEncoder,
        node_type: NodeType,
        new: FoldedIn,
        tokens: PackedTokens,
        known: KnownNodes,
        known_vectors: Tensor | None = None,
    ) -> None:
        self.model, self.tokens, self.place = model, tokens, new.place
        self.projection: Tensor = model.textless.parameters_of(node_type)[1].detach().float().cpu()
        self.mean, self.variance = prior(model, node_type, known)
        self.node_type, self.attributes = node_type, new.attributes
        self.text_rows, self.text = np.unique(new.texts, return_inverse=True)
        if known_vectors is None:
            known_vectors = plm_vectors(model, known.texts, np.arange(len(known.texts)))
        self.negatives = known_vectors @ self.projection  # (512, 64)
        self.same = _same_texts(tokens.hashes()[new.texts], known.texts.hashes())  # (E,): a negative, or -1

    def seen(self, start: int, stop: int) -> Tensor:
        """(n, 64): h-bar W_phi of some of the texts ``text_rows``."""
        return some_plm_vectors(self.model, self.tokens, self.text_rows[start:stop]) @ self.projection

    def fitted(self, start: int, stop: int, seen: Callable[[Ints], Tensor]) -> Tensor:
        """(n, 64): the rows of some of the nodes; ``seen`` gives the rows of texts."""
        offsets = self._attribute_offsets(start, stop)
        initial = self.mean + offsets
        a, b = np.searchsorted(self.place, [start, stop])
        texts, edge = np.unique(self.text[a:b], return_inverse=True)
        place, own = torch.from_numpy(self.place[a:b] - start), seen(texts)[torch.from_numpy(edge)]
        same = self.same[a:b]
        # A node's own texts are no negatives.
        mask = torch.zeros(len(initial), len(self.negatives), dtype=torch.bool)
        mask[place[same >= 0], same[same >= 0]] = True
        prior = initial.clone()
        return _fitted(initial, place, own, self.negatives, mask, prior, self.variance) - offsets

    def _attribute_offsets(self, start: int, stop: int) -> Tensor:
        """(n, 64): what the attributes of some of the nodes add to their rows."""
        if self.attributes is None:
            return torch.zeros(stop - start, len(self.mean))
        some = self.attributes.select(slice(start, stop))
        with torch.no_grad():
            return self.model.textless.attribute_offsets(self.node_type, some).float().cpu()


def _same_texts(hashes: Hashes, others: Hashes) -> Tensor:
    """For each hash its place among ``others``, or -1."""
    order = np.argsort(others)
    place = order[np.minimum(np.searchsorted(others, hashes, sorter=order), len(others) - 1)]
    return torch.from_numpy(np.where(others[place] == hashes, place, -1))


def _fitted(
    start: Tensor,
    place: Tensor,
    own: Tensor,
    negatives: Tensor,
    mask: Tensor,
    mean: Tensor,
    variance: Tensor,
) -> Tensor:
    """Maximum a posteriori: edge ``e`` says that node ``place[e]`` is next to the text seen as ``own[e]``."""
    with torch.enable_grad():
        nodes = start.requires_grad_()
        optimizer = torch.optim.Adam([nodes], lr=RATE)
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
            optimizer.zero_grad()
            others = torch.logsumexp((nodes @ negatives.T).masked_fill(mask, -math.inf), 1)  # (n,)
            positive = (nodes[place] * own).sum(1)  # (E,)
            likelihood = F.logsigmoid(positive - others[place]).sum()
            prior = ((nodes - mean) ** 2 / variance).sum() / 2
            (prior - likelihood).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return nodes.detach()
