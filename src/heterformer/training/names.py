"""Names as text: textless nodes start the warm-up at what the PLM says of their names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.inference import some_plm_vectors
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.progress import progress_bar

NAMES = 4096  # read at once
SAMPLE = 10_000  # of which the directions are found that tell names apart


def start_from_names(
    model: NodeEncoder, visible: VisibleNetwork, tokenizer: Any, known: KnownNodes
) -> tuple[NodeType, ...]:
    """Start the types that say ``text_from`` at their names; gives these types.

    The PLM's vectors of names have d numbers, embeddings fewer. ``W_phi`` becomes the directions in which the
    vectors of names are largest (of all types that share it), and ``h^(0)`` a name's coordinates in them, so
    that ``W_phi h^(0)`` is the closest that there is to the name's vector. Nodes that training must not see
    have no part in the directions.
    """
    if not isinstance(model, HeterogeneousEncoder):
        return ()
    network, textless = visible.network, model.textless
    types = tuple(t for t in network.text_from if t in model.embedded_types)
    groups: dict[int, list[NodeType]] = {}
    for node_type in types:
        groups.setdefault(textless.projection[node_type], []).append(node_type)
    for group in groups.values():
        basis = _directions(model, network, tokenizer, known, group)  # (d, r)
        for node_type in group:
            _start(model, network, tokenizer, node_type, basis)
    return types


def _directions(
    model: HeterogeneousEncoder,
    network: Network,
    tokenizer: Any,
    known: KnownNodes,
    types: list[NodeType],
) -> Tensor:
    """(d, r): orthonormal, the r largest principal axes (through the origin) of the names' vectors."""
    products = torch.zeros(model.width, model.width, dtype=torch.float64)
    for node_type in types:
        rows = np.flatnonzero(known.ids[node_type].is_not_null().to_numpy())
        rows = rows[np.unique(np.linspace(0, max(len(rows) - 1, 0), SAMPLE).astype(np.int64))[: len(rows)]]
        for _, vectors in _name_vectors(model, network, tokenizer, node_type, rows):
            products += vectors.double().T @ vectors.double()
    dim = model.textless.parameters_of(types[0])[0].shape[1]
    axes: Tensor = torch.linalg.eigh(products).eigenvectors.flip(1)[:, :dim]
    # The sign of an axis is arbitrary: the largest number of each is positive, on every machine.
    largest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    return (axes * largest.sign()).float()


@torch.no_grad()
def _start(
    model: HeterogeneousEncoder, network: Network, tokenizer: Any, node_type: NodeType, basis: Tensor
) -> None:
    table, projection = model.textless.parameters_of(node_type)
    rank = basis.shape[1]  # less than the embeddings' width if that is more than the PLM's
    projection[:, :rank] = basis.to(projection)
    table[:, rank:] = 0
    every = np.arange(network.schema.counts[node_type])
    with progress_bar(f"reading names of {node_type} nodes", len(every), "names") as bar:
        for rows, vectors in _name_vectors(model, network, tokenizer, node_type, every):
            table[torch.from_numpy(rows), :rank] = (vectors @ basis).to(table)
            bar.advance(len(rows))


def _name_vectors(
    model: NodeEncoder, network: Network, tokenizer: Any, node_type: NodeType, rows: Ints
) -> Iterator[tuple[Ints, Tensor]]:
    """Some rows at a time, and the PLM's vectors of their names, (n, d)."""
    names = network.name_series(node_type)
    for start in range(0, len(rows), NAMES):
        some = rows[start : start + NAMES]
        tokens = name_tokens(names.gather(some).to_list(), tokenizer, model.schema.max_tokens)
        yield some, some_plm_vectors(model, tokens, np.arange(len(some)))


def name_tokens(names: list[str], tokenizer: Any, limit: int) -> PackedTokens:
    """Names as packed tokens."""
    encoded = tokenizer(names, truncation=True, max_length=limit)["input_ids"]
    offsets = np.concatenate([[0], np.cumsum([len(e) for e in encoded])]).astype(np.int64)
    return PackedTokens({}, offsets, np.concatenate([np.asarray(e, dtype=np.int32) for e in encoded]))
