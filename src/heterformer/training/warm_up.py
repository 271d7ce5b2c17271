"""Warm-up of textless nodes (Eq. 10): their embeddings learn to say what the PLM says of their texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.optim import Adam, Optimizer, SparseAdam

from heterformer.arrays import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.distributed import ProcessGroup
from heterformer.metrics import metric_heading
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.inference import CHUNK, plm_vectors
from heterformer.models.textless import TextlessNodes
from heterformer.network.schema import NodeType
from heterformer.network.tokens import PackedTokens
from heterformer.progress import progress_bar
from heterformer.ranking import ranks
from heterformer.training.early_stopping import EarlyStopping
from heterformer.training.losses import link_prediction_loss
from heterformer.training.warm_up_options import WarmUpOptions

HELD_OUT, TEST_BATCH = 2000, 100  # edges per type for the validation figure, and how many are ranked together


@dataclass(frozen=True)
class WarmUpResult:
    """What the warm-up reached for one textless type."""

    node_type: NodeType
    epochs: int
    mrr: float | None  # of held-out edges: the mean reciprocal rank of the node's own text among 100
    untrained: float | None  # the same figure before the warm-up


@dataclass(frozen=True)
class TextEdges:
    """The text-rich neighbours of one textless type, edge by edge."""

    rows: Ints  # textless nodes
    texts: Ints  # text numbers

    def divided(self, rng: np.random.Generator) -> tuple[TextEdges, TextEdges]:
        """Edges to learn from, and some held out: one each of nodes that keep another."""
        order = rng.permutation(len(self.rows))
        _, first, count = np.unique(self.rows[order], return_index=True, return_counts=True)
        able = order[first[count > 1]]
        held = rng.permutation(able)[: min(HELD_OUT, len(self.rows) // 10)]
        kept = np.ones(len(self.rows), dtype=bool)
        kept[held] = False
        return TextEdges(self.rows[kept], self.texts[kept]), TextEdges(self.rows[held], self.texts[held])


def text_edges(visible: VisibleNetwork, tokens: PackedTokens, node_type: NodeType) -> TextEdges:
    """All visible edges between a textless type and text-rich nodes, each neighbour once."""
    schema = visible.network.schema
    rows, texts = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for neighbor in schema.neighbor_types_of(node_type):
        if neighbor not in schema.text_rich:
            continue
        adjacency, seen = visible.network.adjacency(node_type, neighbor), visible.shown(node_type, neighbor)
        rows.append(np.repeat(np.arange(schema.counts[node_type]), adjacency.degrees)[seen])
        texts.append(adjacency.neighbor[seen].astype(np.int64) + tokens.text_offset[neighbor])
    return TextEdges(np.concatenate(rows), np.concatenate(texts))


def warm_up(
    model: NodeEncoder,
    visible: VisibleNetwork,
    tokens: PackedTokens,
    options: WarmUpOptions,
    seed: int,
    processes: ProcessGroup | None = None,
    precision: AbstractContextManager[object] | None = None,
) -> list[WarmUpResult]:
    """Warm every textless type up. The PLM reads each text once; all steps work on those vectors alone.

    It reads them in ``precision``, as an autocast: on large networks that pass is most of the warm-up.

    Of several processes each reads a part of the texts, which is what takes the time, and the first one
    takes the steps: only its model is warm afterwards, and only it has results.
    """
    processes = processes or ProcessGroup()
    if not isinstance(model, HeterogeneousEncoder):
        return []
    edges = {t: text_edges(visible, tokens, t) for t in visible.network.schema.textless}
    if not any(len(e.rows) for e in edges.values()):
        return []
    numbers = np.unique(np.concatenate([e.texts for e in edges.values()]))
    with precision or nullcontext():
        vectors = _read(model, tokens, numbers, processes)  # (N, d)
    if not processes.is_main:
        return []
    results = []
    for number, (node_type, of_type) in enumerate(edges.items()):
        places = TextEdges(of_type.rows, np.searchsorted(numbers, of_type.texts))
        rng = np.random.default_rng([seed, number])
        if len(places.rows):
            results.append(_warm_up_type(model.textless, node_type, places, vectors, options, rng))
    return results


def _read(model: NodeEncoder, tokens: PackedTokens, numbers: Ints, processes: ProcessGroup) -> Tensor:
    """(N, d): the PLM's vectors, of which only the first process keeps all."""
    if processes.world_size == 1:
        return plm_vectors(model, tokens, numbers)
    size = CHUNK * processes.world_size
    matrix = torch.empty(len(numbers) if processes.is_main else 0, model.width)
    for start in range(0, len(numbers), size):
        part = numbers[start : start + size]
        vectors = processes.all_gather(plm_vectors(model, tokens, part[processes.share(len(part))]))
        if processes.is_main:
            matrix[start : start + size] = vectors.cpu()
    return matrix


def _warm_up_type(
    textless: TextlessNodes,
    node_type: NodeType,
    edges: TextEdges,
    vectors: Tensor,
    options: WarmUpOptions,
    rng: np.random.Generator,
) -> WarmUpResult:
    train, held_out = edges.divided(rng)
    optimizers = warm_up_optimizers(textless, node_type, options)
    untrained = _reciprocal_rank(textless, node_type, held_out, vectors)
    early = EarlyStopping(options.warm_up_patience)
    parameters = [*textless.parameters_of(node_type), *textless.attribute_parameters_of(node_type)]
    best = [p.detach().clone() for p in parameters]
    with progress_bar(f"warming {node_type} nodes up", options.warm_up_epochs, "epochs") as bar:
        for epoch in range(options.warm_up_epochs):
            for rows, texts in warm_up_steps(train, options.warm_up_batch_size, rng):
                warm_up_step(textless, node_type, rows, texts, vectors[texts], optimizers)
            figure = _reciprocal_rank(textless, node_type, held_out, vectors)
            bar.advance()
            bar.describe(f"warming {node_type} nodes up, {metric_heading('mrr')} {figure:.3f}")
            if early.update(figure, epoch) or not len(held_out.rows):
                best = [p.detach().clone() for p in parameters]
            elif early.should_stop:
                break
    with torch.no_grad():
        for parameter, value in zip(parameters, best, strict=True):
            parameter.copy_(value)
    figures = (early.best, untrained) if len(held_out.rows) else (None, None)
    return WarmUpResult(node_type, epoch + 1, *figures)


def warm_up_optimizers(
    textless: TextlessNodes, node_type: NodeType, options: WarmUpOptions
) -> tuple[Optimizer, Optimizer]:
    """Lazy Adam for the type's table, Adam for its projection and what reads its attributes."""
    table, projection = textless.parameters_of(node_type)
    rate, attributes = options.warm_up_learning_rate, textless.attribute_parameters_of(node_type)
    return SparseAdam([table], lr=rate), Adam([projection, *attributes], lr=rate)


def warm_up_steps(
    edges: TextEdges, batch_size: int, rng: np.random.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """One epoch: (textless rows, text numbers) of shuffled batches of edges."""
    order = rng.permutation(len(edges.rows))
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        yield torch.from_numpy(edges.rows[chosen]), torch.from_numpy(edges.texts[chosen])


def warm_up_step(
    textless: TextlessNodes,
    node_type: NodeType,
    rows: Tensor,
    texts: Tensor,
    vectors: Tensor,
    optimizers: tuple[Optimizer, ...],
) -> None:
    """One step of Eq. 10; ``vectors`` are the PLM's, of the texts in the same order."""
    device = next(textless.parameters()).device
    nodes = textless(node_type, rows.to(device))
    loss = warm_up_loss(nodes, vectors.to(device), rows.to(device), texts.to(device))
    loss.backward()  # type: ignore[no-untyped-call]
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def warm_up_loss(nodes: Tensor, texts: Tensor, rows: Tensor, numbers: Tensor) -> Tensor:
    """Eq. 10 for a batch of edges: each node's own text against the texts of the other edges.

    ``nodes`` (B, d) are ``W_phi h^(0)``, ``texts`` (B, d) the PLM's vectors. Another text of the same
    node, or the same text once more, is no negative.
    """
    same = (rows[:, None] == rows) | (numbers[:, None] == numbers)
    same.fill_diagonal_(False)
    return link_prediction_loss(nodes @ texts.T, same)


@torch.no_grad()
def _reciprocal_rank(
    textless: TextlessNodes, node_type: NodeType, edges: TextEdges, vectors: Tensor
) -> float:
    reciprocal_ranks = []
    for start in range(0, len(edges.rows), TEST_BATCH):
        rows = torch.from_numpy(edges.rows[start : start + TEST_BATCH])
        texts = vectors[torch.from_numpy(edges.texts[start : start + TEST_BATCH])]
        nodes = textless(node_type, rows.to(next(textless.parameters()).device)).cpu()
        reciprocal_ranks.append(1 / ranks(nodes @ texts.T, torch.arange(len(rows))).double())
    return torch.cat(reciprocal_ranks).mean().item() if reciprocal_ranks else float("nan")
