"""Draw a split: divide the query nodes, then one positive pair for each, without leaks between the parts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import ranges
from heterformer.errors import InputError, OptionError
from heterformer.network.schema import NodeType
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.other_pairs import draw_other_pairs, named_relations
from heterformer.network.split.pairs import Pairs, one_per_query, unordered_key
from heterformer.network.split.split import PARTS, Part, Split
from heterformer.network.store import Network

Parts = dict[Part, NDArray[np.int64]]  # the query rows of each part


def make_split(network: Network, options: SplitOptions | None = None) -> Split:
    """Divide the query nodes (7:1:2 by default) and draw one positive pair for each, as the paper does.

    Args:
        network: The network whose predicted relation gives the pairs.
        options: Shares, seed, held-out nodes; with ``file`` the pairs are read, not drawn.

    Example::

        split = make_split(network, SplitOptions(hold_out=0.1, seed=1))
    """
    options = options or SplitOptions()
    if options.file is not None:
        return Split.open(options.file, network)
    rng = np.random.default_rng(options.seed)
    relation = network.schema.predicted
    sources, targets = network.edges(relation.name)
    queries = np.unique(sources)
    hidden: dict[NodeType, NDArray[np.int64]] = {}
    if options.by == "random":
        parts, hidden[relation.source] = _divide_at_random(queries, options, rng)
        if options.hold_out_with is not None:
            hidden[options.hold_out_with] = _neighbors(
                network, hidden[relation.source], options.hold_out_with
            )
    elif options.by == "time":
        parts, hidden_from = _divide_by_time(queries, network.times(relation.source), options)
        timed_types = [t for t in network.schema.node_types if network.has_times(t)]
        hidden = {t: np.flatnonzero(network.times(t) >= hidden_from) for t in timed_types}
    else:
        parts = _divide_by_column(queries, network.splits(relation.source))
    hidden = {t: rows for t, rows in hidden.items() if len(rows)}
    pairs = _draw_pairs(network, sources, targets.astype(np.int64), parts, hidden, rng)
    for part in PARTS:
        if not len(pairs[part]):
            size = f"relation {relation.name!r} has {len(queries)} query nodes"
            remedy = "check the 'split' column" if options.by == "column" else "choose other shares"
            raise InputError(f"{network.path}: the {part} part is empty ({size}); {remedy}.")
    also = named_relations(network, options.also) if options.also else ()
    others = {relation.name: draw_other_pairs(network, relation, options.seed) for relation in also}
    return Split(**pairs, hidden=hidden, others=others)


def _neighbors(network: Network, rows: NDArray[np.int64], node_type: NodeType) -> NDArray[np.int64]:
    """The textless neighbours of the query nodes ``rows``."""
    source, schema = network.schema.predicted.source, network.schema
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
    queries: NDArray[np.int64], times: NDArray[np.float64], options: SplitOptions
) -> tuple[Parts, float]:
    """Earlier queries train, later ones test; and the time from which on training must not see a node.

    Queries of the same time are in the same part. Queries without a time count as the earliest.
    """
    known = np.where(np.isnan(times), -np.inf, times)
    ordered = np.sort(known[queries])
    last = len(ordered) - 1
    train_until = ordered[min(round(options.train * len(ordered)), last)]
    validation_until = ordered[min(round((options.train + options.validation) * len(ordered)), last)]
    query_times = known[queries]
    parts: Parts = {
        "train": queries[query_times < train_until],
        "validation": queries[(query_times >= train_until) & (query_times < validation_until)],
        "test": queries[query_times >= validation_until],
    }
    return parts, float(train_until)


def _divide_by_column(queries: NDArray[np.int64], splits: pl.Series) -> Parts:
    """Parts of the user's column; a query without a value is in no part."""
    values = splits.gather(queries).to_numpy()
    return {part: queries[values == part] for part in PARTS}


def _draw_pairs(
    network: Network,
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    parts: Parts,
    hidden: Mapping[NodeType, NDArray[np.int64]],
    rng: np.random.Generator,
) -> dict[Part, Pairs]:
    """One pair per query. Two nodes that are a pair of one part are a pair of no other, in either order."""
    relation, counts = network.schema.predicted, network.schema.counts
    homogeneous = relation.source == relation.target
    unseen = {end: np.zeros(counts[end], dtype=bool) for end in (relation.source, relation.target)}
    for end, rows in unseen.items():
        rows[hidden.get(end, np.empty(0, dtype=np.int64))] = True
    taken = np.empty(0, dtype=np.int64)
    drawn: dict[Part, Pairs] = {}
    for part in ("test", "validation", "train"):  # held-out pairs have precedence
        in_part = np.zeros(counts[relation.source], dtype=bool)
        in_part[parts[part]] = True
        allowed = in_part[sources]
        if part == "train":
            allowed &= ~unseen[relation.source][sources] & ~unseen[relation.target][targets]
        source, target = sources[allowed], targets[allowed]
        key = unordered_key(source, target, counts[relation.target], homogeneous)
        available = ~np.isin(key, taken)
        pairs = one_per_query(source[available], target[available], rng)
        taken = np.concatenate(
            [taken, unordered_key(pairs[:, 0], pairs[:, 1], counts[relation.target], homogeneous)]
        )
        drawn[part] = rng.permutation(pairs)
    return drawn
