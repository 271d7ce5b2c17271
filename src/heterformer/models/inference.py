"""Vectors of many nodes at once, without gradients: every text is read once, then every centre."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.assembly import SampledEdges, SecondHop
from heterformer.batches.batch import Batch, Texts
from heterformer.batches.batcher import Batcher, SampledNodes
from heterformer.batches.sampling import Sampler
from heterformer.batches.second_hop import DrawnSecondHop
from heterformer.models.contract import NodeEncoder
from heterformer.network.schema import NodeType
from heterformer.network.tokens import PackedTokens
from heterformer.progress import progress_bar

# Text rows to the states that neighbours give, (N, S, d); of a model that reads neighbours of neighbours the
# last one has the text's own neighbours in it.
StoredStates = Callable[[Ints], Tensor]
Advance = Callable[[float], object]  # called with how many more nodes are read, in parts too
NODES_AT_ONCE = 2048  # nodes whose neighbours' states are held together
TEXTLESS_AT_ONCE = 512  # the same of textless nodes, which may aggregate more of them
CHUNK = 4096  # texts whose vectors are held beside the result
TOKENS = 4096  # per batch of texts: enough for full-sized products, little enough for any memory


def center_vectors(
    model: NodeEncoder,
    batcher: Batcher,
    node_type: NodeType,
    rows: Ints,
    sampler: Sampler,
    stored: StoredStates | None = None,
    nodes_at_once: int = NODES_AT_ONCE,
    tokens_per_batch: int = TOKENS,
    advance: Advance | None = None,
) -> Tensor:
    """(n, d): the vectors of text-rich nodes with the neighbours that ``sampler`` draws.

    Two passes for every ``nodes_at_once`` nodes: the states of their distinct neighbour texts first (unless
    they are stored already), then the centres themselves.
    """
    parts = [torch.empty(0, model.width)]
    second_hop = drawn_once(batcher, sampler)
    for start in range(0, len(rows), nodes_at_once):
        nodes = batcher.sample(node_type, rows[start : start + nodes_at_once], sampler)
        parts.append(
            sampled_vectors(
                model, batcher, nodes, stored, nodes_at_once, tokens_per_batch, advance, second_hop
            )
        )
    return torch.cat(parts)


def textless_vectors(
    model: NodeEncoder,
    batcher: Batcher,
    node_type: NodeType,
    rows: Ints,
    sampler: Sampler,
    stored: StoredStates | None = None,
    nodes_at_once: int = TEXTLESS_AT_ONCE,
    advance: Advance | None = None,
) -> Tensor:
    """(n, d): the vectors of textless nodes, with the text-rich neighbours that the model aggregates."""
    parts = [torch.empty(0, model.width)]
    second_hop = drawn_once(batcher, sampler)
    for start in range(0, len(rows), nodes_at_once):
        nodes = batcher.sample(node_type, rows[start : start + nodes_at_once].astype(np.int64), sampler)
        parts.append(sampled_textless_vectors(model, batcher, nodes, stored, nodes_at_once, second_hop))
        if advance is not None:
            advance(len(nodes))
    return torch.cat(parts)


def sampled_textless_vectors(
    model: NodeEncoder,
    batcher: Batcher,
    nodes: SampledNodes,
    stored: StoredStates | None = None,
    nodes_at_once: int = TEXTLESS_AT_ONCE,
    second_hop: SecondHop | None = None,
) -> Tensor:
    """(n, d): the same for nodes whose neighbours are sampled; ``second_hop`` as in ``sampled_vectors``."""
    parts = [torch.empty(0, model.width)]
    plainly = torch.autocast(model.device.type, enabled=False)  # texts are read in the caller's precision
    one_hop = batcher.without_second_hop()
    with evaluating(model):
        for start in range(0, len(nodes), nodes_at_once):
            block = nodes.select(np.arange(start, min(start + nodes_at_once, len(nodes))))
            if not model.textless_fan_out:
                with plainly:
                    rows = torch.from_numpy(block.rows).to(model.device)
                    encoded = model.textless_vectors(nodes.node_type, rows)
            else:
                batch = one_hop.batch_of(block)
                states = stored or _states_of(model, batcher, [batch], TOKENS, second_hop, len(block))[0]
                neighbors = states(neighbor_text_rows(batch)).to(model.device)
                with plainly:
                    encoded = model.encode_with(batch.to(model.device), neighbors)
            parts.append(encoded.float().cpu())
    return torch.cat(parts)


def vectors_of_type(
    model: NodeEncoder,
    batcher: Batcher,
    node_type: NodeType,
    rows: Ints,
    sampler: Sampler,
    stored: StoredStates | None = None,
    advance: Advance | None = None,
) -> Tensor:
    """(n, d): the vectors of some nodes of a type, with text or without; ``advance`` counts each."""
    of_kind = center_vectors if node_type in batcher.schema.text_rich else textless_vectors
    return of_kind(model, batcher, node_type, rows, sampler, stored, advance=advance)


def sampled_vectors(
    model: NodeEncoder,
    batcher: Batcher,
    nodes: SampledNodes,
    stored: StoredStates | None = None,
    nodes_at_once: int = NODES_AT_ONCE,
    tokens_per_batch: int = TOKENS,
    advance: Advance | None = None,
    second_hop: SecondHop | None = None,
) -> Tensor:
    """(n, d): the same for nodes whose neighbours are sampled; ``advance`` is called after each batch.

    A text that is read for the neighbours' states counts as much as a centre: both are parts of their nodes.
    Without ``stored`` states ``second_hop`` gives the neighbours of neighbours, of a model that reads them.
    """
    vectors = torch.empty(len(nodes), model.width)
    with evaluating(model):
        for start in range(0, len(nodes), nodes_at_once):
            block = nodes.select(np.arange(start, min(start + nodes_at_once, len(nodes))))
            batches = center_batches(batcher, block, tokens_per_batch)
            states, part = stored, 1.0
            if states is None:  # the block's batches are held together, to read each text once
                batches = list(batches)
                without_positions = [batch for _, batch in batches]
                states, part = _states_of(
                    model, batcher, without_positions, tokens_per_batch, second_hop, len(block), advance
                )
            for positions, batch in batches:
                neighbors = states(neighbor_text_rows(batch)).to(model.device)
                encoded = model(batch.to(model.device), neighbors).float().cpu()
                vectors[start + torch.from_numpy(positions)] = encoded
                if advance is not None:
                    advance(part * len(positions))
    return vectors


def center_batches(
    batcher: Batcher, nodes: SampledNodes, tokens_per_batch: int = TOKENS
) -> Iterable[tuple[Ints, Batch]]:
    """Batches of centres of similar length, each with the positions of its centres in ``nodes``.

    They have no second hop, which is part of the states that they are read with.
    """
    text_rows, one_hop = (
        nodes.rows + batcher.tokens.text_offset[nodes.node_type],
        batcher.without_second_hop(),
    )
    for positions in by_length(batcher.tokens, text_rows, tokens_per_batch):
        yield positions, one_hop.batch_of(nodes.select(positions))


def neighbor_text_rows(batch: Batch) -> Ints:
    """The rows of the texts whose states the batch's centres need."""
    assert batch.text_rows is not None
    text_rows: Ints = batch.text_rows[: batch.neighbor_texts].numpy()
    return text_rows


def first_hop(batch: Batch, text_rich: Sequence[NodeType]) -> NDArray[np.bool_]:
    """(neighbour texts,): which of the texts are neighbours of centres, not neighbours' neighbours alone."""
    is_near = np.zeros(batch.neighbor_texts, dtype=bool)
    for edge_type, edges in batch.neighbors.items():
        if edge_type.neighbor in text_rich:
            is_near[edges.node.cpu().numpy()] = True
    return is_near


def sampled_text_rows(tokens: PackedTokens, sampled: Iterable[SampledEdges]) -> Iterator[Ints]:
    """The rows of the texts that sampled edges lead to, as often as they do."""
    for edges in sampled:
        if edges.neighbor_type in tokens.text_offset:
            yield edges.neighbor.astype(np.int64) + tokens.text_offset[edges.neighbor_type]


def drawn_once(batcher: Batcher, sampler: Sampler) -> DrawnSecondHop | None:
    """The neighbours of neighbours for one pass over a network; None unless the model reads them."""
    draw = batcher.further_neighbors(sampler)
    return None if draw is None else DrawnSecondHop(batcher.schema, draw)


def _states_of(
    model: NodeEncoder,
    batcher: Batcher,
    batches: list[Batch],
    tokens_per_batch: int,
    second_hop: SecondHop | None,
    nodes: int,
    advance: Advance | None = None,
) -> tuple[StoredStates, float]:
    """The states that batches of that many nodes need, and the part of a node that reading a text is."""
    none = np.empty(0, dtype=np.int64)
    near = np.unique(np.concatenate([none, *(neighbor_text_rows(batch) for batch in batches)]))
    further = None if second_hop is None else batcher.texts_with_neighbors(near, second_hop)
    known = near if further is None else neighbor_text_rows(further)
    # Of (N, S, d) states; of a model that reads no neighbours N is 0.
    part = nodes / max(nodes + len(known), 1)
    tell = None if advance is None else lambda texts: advance(part * texts)
    states = each_text(model.text_states, batcher.tokens, known, model.device, tokens_per_batch, tell)
    if further is not None and len(near):
        chosen = torch.from_numpy(np.searchsorted(known, near))
        vectors = model.neighbor_vectors(further.to(model.device), states[:, -1].to(model.device))
        states, known = states[chosen], near
        states[:, -1] = vectors.cpu()[chosen]
    return lambda text_rows: states[torch.from_numpy(np.searchsorted(known, text_rows))], part


def plm_vectors(
    model: NodeEncoder, tokens: PackedTokens, text_rows: Ints, tokens_per_batch: int = TOKENS
) -> Tensor:
    """(n, d): what the plain PLM says of texts, without any network (the paper's h-bar of Eq. 10)."""
    matrix: Tensor | None = None
    with progress_bar("reading texts", len(text_rows), "texts") as bar:
        for start in range(0, max(1, len(text_rows)), CHUNK):
            chunk = text_rows[start : start + CHUNK]
            vectors = some_plm_vectors(model, tokens, chunk, tokens_per_batch, bar.advance)
            if matrix is None:
                # All of it at once: joining parts would take twice the memory.
                matrix = vectors.new_empty(len(text_rows), vectors.shape[1])
            matrix[start : start + CHUNK] = vectors
    assert matrix is not None
    return matrix


def some_plm_vectors(
    model: NodeEncoder,
    tokens: PackedTokens,
    text_rows: Ints,
    tokens_per_batch: int = TOKENS,
    advance: Callable[[int], object] | None = None,
) -> Tensor:
    """The same of a few thousand texts, without a bar."""
    with evaluating(model):
        return each_text(model.text_vectors, tokens, text_rows, model.device, tokens_per_batch, advance)


def each_text(
    read: Callable[[Texts], Tensor],
    tokens: PackedTokens,
    text_rows: Ints,
    device: torch.device,
    tokens_per_batch: int = TOKENS,
    advance: Callable[[int], object] | None = None,
) -> Tensor:
    """Apply ``read`` to the texts in batches of similar length; rows come in the order of ``text_rows``.

    ``advance`` is called with the number of texts read, batch by batch.
    """
    rows: Tensor | None = None
    none = [np.empty(0, dtype=np.int64)]  # whose shape tells what ``read`` gives
    with torch.no_grad():
        for chosen in by_length(tokens, text_rows, tokens_per_batch) if len(text_rows) else none:
            packed, offsets = tokens.gather(text_rows[chosen])
            texts = Texts(torch.from_numpy(packed).to(device), torch.from_numpy(offsets).to(device))
            values = read(texts).float().cpu()
            if rows is None:
                rows = torch.empty(len(text_rows), *values.shape[1:])
            rows[torch.from_numpy(chosen)] = values
            if advance is not None:
                advance(len(chosen))
    assert rows is not None
    return rows


def by_length(tokens: PackedTokens, text_rows: Ints, tokens_per_batch: int = TOKENS) -> Iterator[Ints]:
    """The positions of the texts, shortest first, in batches of at most that many tokens."""
    lengths = tokens.offsets[text_rows + 1] - tokens.offsets[text_rows]
    order = np.argsort(lengths, kind="stable")
    ends = np.cumsum(lengths[order])
    start = 0
    while start < len(order):
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + tokens_per_batch, side="right")))
        yield order[start:stop]
        start = stop


class evaluating:  # noqa: N801 - reads as a statement
    """``with evaluating(model):`` no dropout and no gradients inside; the mode is restored afterwards."""

    def __init__(self, model: NodeEncoder) -> None:
        self.model = model
        self._mode = torch.no_grad()

    def __enter__(self) -> None:
        self._training = self.model.training
        self.model.eval()
        self._mode.__enter__()

    def __exit__(self, *error: object) -> None:
        self._mode.__exit__(*error)
        self.model.train(self._training)
