"""A trained model for a network that has grown: known nodes keep their embeddings, new ones are folded in."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.models.contract import NodeEncoder
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.models.inference import textless_vectors
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.encoding import AttributeRows
from heterformer.network.hashes import Hashes, string_hashes
from heterformer.network.ids import known_rows
from heterformer.network.schema import NodeType, Schema, check_schema
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.progress import say
from heterformer.states.row_file import PART, kept_array
from heterformer.training.folding import FoldedIn, folded_rows, length_factor
from heterformer.training.warm_up import TextEdges, text_edges

SAMPLE = 256  # known nodes that tell how far out embeddings lie, and what a node is usually like


class EarlierEmbeddings(Protocol):
    """What was folded in before, for an earlier output."""

    def holds_h0(self, node_type: NodeType, rows: Ints, signatures: Hashes) -> NDArray[np.bool_]: ...

    def h0(self, node_type: NodeType, rows: Ints) -> NDArray[Any]: ...


def adapt_to_network(
    model: NodeEncoder,
    visible: VisibleNetwork,
    tokens: PackedTokens,
    folder: Path,
    since: EarlierEmbeddings | None = None,
) -> tuple[NodeEncoder, dict[NodeType, FoldedIn]]:
    """The model with embeddings for all textless nodes of a network, and which of them it had not known.

    What is folded in is kept in ``folder``, for another call. What was folded in for an earlier output, and
    would be made of the same now, is taken from there.
    """
    network, source = visible.network, getattr(model, "name_or_path", "")
    known = KnownNodes.open(Path(source)) if source else None
    if known is None:
        if model.schema.counts != network.schema.counts:
            raise InputError(
                f"{source or 'the model'}: does not say which textless nodes it knows, and {network.path} "
                f"has others; expected the folder that 'heterformer train' wrote."
            )
        assumption = f"assuming that {network.path} is the network that the model was trained on"
        say(f"{source or 'a model'}: {assumption}.")
        return model, {}
    if known.are_all(network) and _reads_the_same(model, network):
        return model, {}
    return for_network(model, known, visible, tokens, folder, since)


def for_network(
    model: NodeEncoder,
    known: KnownNodes,
    visible: VisibleNetwork,
    tokens: PackedTokens,
    folder: Path,
    since: EarlierEmbeddings | None = None,
) -> tuple[NodeEncoder, dict[NodeType, FoldedIn]]:
    """The same model with embeddings for the textless nodes of another network, and which of them are new."""
    network = visible.network
    check_schema(model.schema, network.schema)
    adapted = _with_schema(model, network.schema)
    if not isinstance(model, HeterogeneousEncoder):
        return adapted, {}
    assert isinstance(adapted, HeterogeneousEncoder)
    adapted.read_attributes(network)
    folded: dict[NodeType, FoldedIn] = {}
    for node_type in (t for t in model.embedded_types if t in network.schema.textless):
        place = known_rows(network.id_series(node_type), known.ids[node_type])
        learned, _ = model.textless.parameters_of(node_type)
        table, _ = adapted.textless.parameters_of(node_type)
        familiar, new = np.flatnonzero(place >= 0), np.flatnonzero(place < 0)
        with torch.no_grad():
            table[torch.from_numpy(familiar)] = learned[torch.from_numpy(place[familiar])]
        if len(new):
            edges = text_edges(visible, tokens, node_type)
            attributes = adapted.textless.attribute_rows(node_type)
            sample = texts_next_to(edges, known_sample(network, node_type, familiar, edges), attributes)
            before = learned.detach()[torch.from_numpy(place[sample.nodes])].float().cpu()
            measure = partial(length_factor, model, node_type, sample, before, tokens, known)
            factor = float(kept_array(folder / f"{node_type}.factor.npy", measure))
            every = folded[node_type] = texts_next_to(edges, new, attributes)._replace(factor=factor)
            again = np.ones(len(new), dtype=bool)
            if since is not None:
                again = ~since.holds_h0(node_type, new, every.signatures(tokens.hashes()))
                for part in _parts(new[~again]):
                    h0 = since.h0(node_type, part)
                    if attributes is not None:  # which are part of h0, but not of the table
                        with torch.no_grad():
                            offsets = model.textless.attribute_offsets(node_type, attributes.select(part))
                        h0 = h0 - offsets.float().cpu().numpy()
                    _set(table, part, h0)
            rows = folded_rows(model, node_type, every.some(again), tokens, known, folder)
            for start, part in enumerate(_parts(new[again])):
                _set(table, part, rows.read(slice(start * PART, (start + 1) * PART)))
            unlinked = np.setdiff1d(new[again], edges.rows)
            if len(unlinked) and len(sample.nodes) and model.textless_fan_out:
                typical = typical_row(adapted, visible, tokens, node_type, sample.nodes)
                for part in _parts(unlinked):
                    _set(table, part, np.broadcast_to(typical, (len(part), len(typical))))
    return adapted, folded


def typical_row(
    model: HeterogeneousEncoder,
    visible: VisibleNetwork,
    tokens: PackedTokens,
    node_type: NodeType,
    nodes: Ints,
) -> NDArray[np.float32]:
    """(64,): the row of a node of which nothing is known: its vector is as like the others' as can be.

    The vectors of the known ``nodes`` have their neighbours in them, which such a node has not: the mean of
    their rows alone would be like no node's vector. So it is the row that ``W_phi`` takes closest to the mean
    of their vectors. By it a user without a single link is recommended what most users are.
    """
    batcher = model.new_batcher(visible, tokens).without_second_hop()
    sampler = StableSampler(visible.network, 0)
    mean = textless_vectors(model, batcher, node_type, nodes, sampler).mean(0)  # (d,)
    _, projection = model.textless.parameters_of(node_type)  # W_phi, (d, 64)
    matrix = projection.detach().float().cpu().numpy()
    row: NDArray[np.float32] = np.linalg.lstsq(matrix, mean.numpy(), rcond=None)[0].astype(np.float32)
    return row


def _parts(nodes: Ints) -> list[Ints]:
    """So that no more of them is copied at a time."""
    return [nodes[start : start + PART] for start in range(0, len(nodes), PART)]


def _set(table: Tensor, nodes: Ints, values: NDArray[Any]) -> None:
    with torch.no_grad():
        table[torch.from_numpy(nodes)] = torch.from_numpy(values.astype(np.float32)).to(table)


def _reads_the_same(model: NodeEncoder, network: Network) -> bool:
    """Whether the attributes of the network's textless nodes are those that the model has stored."""
    if not isinstance(model, HeterogeneousEncoder):
        return True
    for node_type, encoding in model.textless.encodings.items():
        stored, now = model.textless.attribute_rows(node_type), encoding.read(network, node_type)
        assert stored is not None
        same = np.array_equal(stored.numbers, now.numbers)
        if not (same and np.array_equal(stored.categories, now.categories)):
            return False
    return True


def texts_next_to(edges: TextEdges, nodes: Ints, attributes: AttributeRows | None = None) -> FoldedIn:
    """Some of the nodes, ascending, with the texts next to them; ``attributes`` are those of all nodes."""
    mine = np.flatnonzero(np.isin(edges.rows, nodes))
    place = np.searchsorted(nodes, edges.rows[mine])
    order = np.argsort(place, kind="stable")
    own = None if attributes is None else attributes.select(nodes)
    return FoldedIn(nodes, place[order], edges.texts[mine[order]], attributes=own)


def _with_schema(model: NodeEncoder, schema: Schema) -> NodeEncoder:
    """A copy of the model whose textless tables have the network's sizes, their rows still to be set."""
    config = copy.deepcopy(model.config)
    config.schema = replace(model.schema, counts=schema.counts).to_dict()  # its types in its own order
    adapted = type(model)(config)
    kept = {k: v for k, v in model.state_dict().items() if not k.startswith("textless.tables.")}
    adapted.load_state_dict(kept, strict=False)
    adapted.to(model.device).eval()
    return adapted


def known_sample(network: Network, node_type: NodeType, familiar: Ints, edges: TextEdges) -> Ints:
    """Some known nodes with texts next to them, chosen by their ids."""
    able = np.intersect1d(familiar, edges.rows)
    hashes = string_hashes(network.column(node_type, "id"))[able]
    return np.sort(able[np.argsort(hashes, kind="stable")[:SAMPLE]])
