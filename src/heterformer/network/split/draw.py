"""Draw a split: divide the query nodes, then one positive pair for each, without leaks between the parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import ranges
from heterformer.errors import InputError, OptionError
from heterformer.network.hashes import mixed
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.other_pairs import draw_other_pairs, named_relations
from heterformer.network.split.pairs import Pairs, pair_keys
from heterformer.network.split.pairs import one_per_query as draw_one_per_query
from heterformer.network.split.split import PARTS, PairParts, Part, Split, TimeCuts
from heterformer.network.store import Network

Parts = dict[Part, NDArray[np.int64]]  # the query rows of each part
EdgeParts = dict[Part, NDArray[np.bool_]]  # which edges of a predicted relation are each part's


def make_split(network: Network, options: SplitOptions | None = None) -> Split:
    """Divide the query nodes (7:1:2 by default) and draw one positive pair for each, as the paper does.

    Each predicted relation is divided by itself. With ``divide="pairs"`` its pairs are divided instead of its
    query nodes.

    Args:
        network: The network whose predicted relations give the pairs.
        options: Shares, seed, held-out nodes; with ``file`` the pairs are read, not drawn.

    Example::

        split = make_split(network, SplitOptions(hold_out=0.1, seed=1))
    """
    options = options or SplitOptions()
    if options.file is not None:
        return Split.open(options.file, network)
    hidden: dict[NodeType, NDArray[np.int64]] = {}
    draws, times = list[_Draw](), None
    for number, relation in enumerate(network.schema.predicted):
        rng = np.random.default_rng([options.seed, number] if number else options.seed)
        edges = np.stack(network.edges(relation.name), axis=1).astype(np.int64)
        if options.by == "time":
            parts, times = _divide_by_time(network, relation, options, times)
            timed = [t for t in network.schema.node_types if network.has_times(t)]
            unseen = {t: np.flatnonzero(network.times(t) >= times.train_until) for t in timed}
        else:
            parts, unseen = _divide(network, relation, edges, options, rng)
        hidden |= {t: rows for t, rows in unseen.items() if t not in hidden and len(rows)}
        if options.cold:
            parts = _with_cold(parts, edges, options, rng)
        draws.append(_Draw(relation, edges, parts, rng))
    pairs = _draw_pairs(network, draws, hidden, one_per_query=options.divide == "queries")
    for draw in draws:
        for part in PARTS:
            if not len(getattr(pairs[draw.relation.name], part)):
                queries = len(np.unique(draw.edges[:, 0]))
                size = f"relation {draw.relation.name!r} has {queries} query nodes"
                remedy = "check the 'split' column" if options.by == "column" else "choose other shares"
                raise InputError(f"{network.path}: the {part} part is empty ({size}); {remedy}.")
    also = named_relations(network, options.also) if options.also else ()
    since = None if times is None else times.validation_until
    others = {relation.name: draw_other_pairs(network, relation, options.seed, since) for relation in also}
    return Split(pairs, hidden=hidden, others=others, times=times)


@dataclass(frozen=True)
class _Draw:
    """What the pairs of one relation are drawn from."""

    relation: Relation
    edges: Pairs
    parts: EdgeParts
    rng: np.random.Generator


def _divide(
    network: Network, relation: Relation, edges: Pairs, options: SplitOptions, rng: np.random.Generator
) -> tuple[EdgeParts, dict[NodeType, NDArray[np.int64]]]:
    """The edges of each part's query nodes, and the nodes that training must not see."""
    queries = np.unique(edges[:, 0])
    if options.by == "column":
        return _edges_of(_divide_by_column(queries, network.splits(relation.source)), edges[:, 0]), {}
    rows, hidden = _divide_at_random(queries, options, rng)
    parts = _edges_of(rows, edges[:, 0])
    if options.divide == "pairs":
        parts = _divide_pairs(network, relation, edges, options)
    if relation != network.schema.predicted[0]:  # nodes are hidden once, for all relations
        return parts, {}
    with_them = options.hold_out_with
    beside = {} if with_them is None else {with_them: _neighbors(network, hidden, with_them)}
    return parts, {relation.source: hidden} | beside


def _neighbors(network: Network, rows: NDArray[np.int64], node_type: NodeType) -> NDArray[np.int64]:
    """The textless neighbours of the query nodes ``rows``."""
    source, schema = network.schema.predicted[0].source, network.schema
    textless = tuple(t for t in schema.neighbor_types_of(source) if t in schema.textless)
    if node_type not in textless:
        expected = ", ".join(map(repr, textless)) or "none here"
        problem = f"is {node_type!r}, expected a type without text: {expected}."
        raise OptionError(SplitOptions, "hold_out_with", problem)
    adjacency = network.adjacency(source, node_type)
    neighbors = adjacency.neighbor[ranges(adjacency.indptr[rows], adjacency.indptr[rows + 1])]
    return np.unique(neighbors).astype(np.int64)


def _divide_at_random(
    queries: NDArray[np.int64], options: SplitOptions, rng: np.random.Generator
) -> tuple[Parts, NDArray[np.int64]]:
    """Random parts; hidden nodes are taken from the test part."""
    shuffled = rng.permutation(queries)
    count = len(shuffled)
    hidden = shuffled[: round(options.hold_out * count)]
    test = max(round((1 - options.train - options.validation) * count), len(hidden))
    validation = round(options.validation / (options.train + options.validation) * (count - test))
    test_rows, validation_rows, train_rows = np.split(shuffled, [test, test + validation])
    return {"train": train_rows, "validation": validation_rows, "test": test_rows}, np.sort(hidden)


def _divide_by_time(
    network: Network, relation: Relation, options: SplitOptions, cuts: TimeCuts | None
) -> tuple[EdgeParts, TimeCuts]:
    """Earlier edges train, later ones test. An edge without a time of its own has its query's.

    What is of the same time is in the same part; what has no time counts as the earliest. Shares are of edges
    if these have times, else of queries. All relations are divided at the ``cuts`` of the first.
    """
    sources, _ = network.edges(relation.name)
    edge_times = network.edge_values(relation.name, "time")
    if edge_times is not None:
        times = ordered = edge_times
    else:
        of_nodes = network.times(relation.source)
        of_nodes = np.where(np.isnan(of_nodes), -np.inf, of_nodes)
        times, ordered = of_nodes[sources], of_nodes[np.unique(sources)]
    if cuts is None:
        ordered = np.sort(ordered)
        last = len(ordered) - 1
        train_until = ordered[min(round(options.train * len(ordered)), last)]
        validation_until = ordered[min(round((options.train + options.validation) * len(ordered)), last)]
        cuts = TimeCuts(float(train_until), float(validation_until))
    parts: EdgeParts = {
        "train": times < cuts.train_until,
        "validation": (times >= cuts.train_until) & (times < cuts.validation_until),
        "test": times >= cuts.validation_until,
    }
    return parts, cuts


def _edges_of(parts: Parts, sources: NDArray[np.int64]) -> EdgeParts:
    """The edges of each part's queries; ``sources`` are those of all edges."""
    return {part: np.isin(sources, rows) for part, rows in parts.items()}


def _divide_by_column(queries: NDArray[np.int64], splits: pl.Series) -> Parts:
    """Parts of the user's column; a query without a value is in no part."""
    values = splits.gather(queries).to_numpy()
    return {part: queries[values == part] for part in PARTS}


def _draw_pairs(
    network: Network,
    draws: Sequence[_Draw],
    hidden: Mapping[NodeType, NDArray[np.int64]],
    *,
    one_per_query: bool,
) -> dict[str, PairParts]:
    """One pair per query and relation, or all.

    Two nodes that are a pair of one part are a pair of no other, in either order and by whatever relation.
    """
    schema, none = network.schema, np.empty(0, dtype=np.int64)
    taken: dict[frozenset[NodeType], list[NDArray[np.int64]]] = {}
    drawn: dict[str, dict[Part, Pairs]] = {draw.relation.name: {} for draw in draws}
    for part in ("test", "validation", "train"):  # held-out pairs have precedence
        before = {ends: np.concatenate(keys) for ends, keys in taken.items()}
        for draw in draws:
            relation, ends = draw.relation, frozenset((draw.relation.source, draw.relation.target))
            allowed = draw.parts[part]
            if part == "train":
                allowed = allowed & _seen(draw, hidden)
            edges = draw.edges[allowed]
            edges = edges[~np.isin(pair_keys(schema, relation, edges), before.get(ends, none))]
            pairs = draw_one_per_query(edges[:, 0], edges[:, 1], draw.rng) if one_per_query else edges
            taken.setdefault(ends, []).append(pair_keys(schema, relation, pairs))
            drawn[relation.name][part] = draw.rng.permutation(pairs)
    return {name: PairParts(**parts) for name, parts in drawn.items()}


def _divide_pairs(network: Network, relation: Relation, edges: Pairs, options: SplitOptions) -> EdgeParts:
    """Edges at random, by a hash of the two nodes: in either order and by whatever relation the same part."""
    keys = pair_keys(network.schema, relation, edges)
    bits = mixed(keys.astype(np.uint64) + mixed(np.array([options.seed], dtype=np.uint64)))
    draws = (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53  # in [0, 1)
    number = np.searchsorted([options.train, options.train + options.validation], draws, "right")
    return {part: number == i for i, part in enumerate(PARTS)}


def _with_cold(parts: EdgeParts, edges: Pairs, options: SplitOptions, rng: np.random.Generator) -> EdgeParts:
    """The parts with all edges of some targets in the test."""
    targets = np.unique(edges[:, 1])
    cold = np.isin(edges[:, 1], rng.permutation(targets)[: round(options.cold * len(targets))])
    return {part: mask | cold if part == "test" else mask & ~cold for part, mask in parts.items()}


def _seen(draw: _Draw, hidden: Mapping[NodeType, NDArray[np.int64]]) -> NDArray[np.bool_]:
    """Which of the edges have no hidden node at either end."""
    none = np.empty(0, dtype=np.int64)
    ends = (draw.relation.source, draw.relation.target)
    hidden_ends = [np.isin(draw.edges[:, side], hidden.get(end, none)) for side, end in enumerate(ends)]
    return ~np.logical_or(*hidden_ends)
