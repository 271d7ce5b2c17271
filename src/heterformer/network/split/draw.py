"""Draw a split: divide the query nodes, then one positive pair for each, without leaks between the parts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import ranges
from heterformer.errors import InputError
from heterformer.network.schema import NodeType
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.other_pairs import draw_other_pairs, named_relations
from heterformer.network.split.pairs import Pairs, one_per_query, unordered_key
from heterformer.network.split.split import PARTS, Part, Split
from heterformer.network.store import Network

Parts = dict[Part, NDArray[np.int64]]  # the query rows of each part


def make_split(network: Network, options: SplitOptions | None = None) -> Split:
    """Divide the query nodes 7:1:2 (or as asked) and draw one positive pair for each, as the paper does."""
    options = options or SplitOptions()
    if options.file is not None:
        return Split.open(options.file, network)
    rng = np.random.default_rng(options.seed)
    relation = network.schema.predicted
    sources, targets = network.edges(relation.name)
    queries = np.unique(sources)
    hidden: dict[NodeType, NDArray[np.int64]] = {}
    if options.by == "random":
        parts, hidden[relation.source] = _divided(queries, options, rng)
        if options.hold_out_with is not None:
            hidden[options.hold_out_with] = _next_to(network, hidden[relation.source], options.hold_out_with)
    elif options.by == "time":
        parts, begin = _by_time(queries, network.times(relation.source), options)
        timed = [t for t in network.schema.node_types if network.has_times(t)]
        hidden = {t: np.flatnonzero(network.times(t) >= begin) for t in timed}
    else:
        parts = _by_column(queries, network.splits(relation.source))
    hidden = {t: rows for t, rows in hidden.items() if len(rows)}
    pairs = _drawn(network, sources, targets.astype(np.int64), parts, hidden, rng)
    for part in PARTS:
        if not len(pairs[part]):
            found = f"relation {relation.name!r} has {len(queries)} query nodes"
            remedy = "check the 'split' column" if options.by == "column" else "choose other shares"
            raise InputError(f"{network.path}: the {part} part is empty ({found}); {remedy}.")
    asked = named_relations(network, options.also) if options.also else ()
    others = {relation.name: draw_other_pairs(network, relation, options.seed) for relation in asked}
    return Split(**pairs, hidden=hidden, others=others)


def _next_to(network: Network, rows: NDArray[np.int64], node_type: NodeType) -> NDArray[np.int64]:
    """The nodes of a type that are neighbours of the query nodes ``rows``."""
    source, schema = network.schema.predicted.source, network.schema
    known = tuple(t for t in schema.neighbor_types_of(source) if t in schema.textless)
    if node_type not in known:
        expected = ", ".join(map(repr, known)) or "none here"
        raise InputError(f"--hold-out-with names {node_type!r}, expected a type without text: {expected}.")
    adjacency = network.adjacency(source, node_type)
    found = adjacency.neighbor[ranges(adjacency.indptr[rows], adjacency.indptr[rows + 1])]
    return np.unique(found).astype(np.int64)


def _divided(
    queries: NDArray[np.int64], options: SplitOptions, rng: np.random.Generator
) -> tuple[Parts, NDArray[np.int64]]:
    """At random; hidden nodes are the first of the test part."""
    shuffled = rng.permutation(queries)
    count = len(shuffled)
    hidden = shuffled[: round(options.hold_out * count)]
    test = max(round((1 - options.train - options.validation) * count), len(hidden))
    validation = round(options.validation / (options.train + options.validation) * (count - test))
    test_rows, validation_rows, train_rows = np.split(shuffled, [test, test + validation])
    return {"train": train_rows, "validation": validation_rows, "test": test_rows}, np.sort(hidden)


def _by_time(
    queries: NDArray[np.int64], times: NDArray[np.float64], options: SplitOptions
) -> tuple[Parts, float]:
    """The earliest train, the latest test; and the time from which on training must not see a node.

    A year is never cut in two. Queries without a time count as the earliest.
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


def _by_column(queries: NDArray[np.int64], splits: pl.Series) -> Parts:
    """As the user's column says; a query without a value is in no part."""
    values = splits.gather(queries).to_numpy()
    return {part: queries[values == part] for part in PARTS}


def _drawn(
    network: Network,
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    parts: Parts,
    hidden: Mapping[NodeType, NDArray[np.int64]],
    rng: np.random.Generator,
) -> dict[Part, Pairs]:
    """One pair per query. Two nodes that are a pair of one part are, either way round, a pair of no other."""
    relation, counts = network.schema.predicted, network.schema.counts
    homogeneous = relation.source == relation.target
    unseen = {end: np.zeros(counts[end], dtype=bool) for end in (relation.source, relation.target)}
    for end, rows in unseen.items():
        rows[hidden.get(end, np.empty(0, dtype=np.int64))] = True
    taken = np.empty(0, dtype=np.int64)
    drawn: dict[Part, Pairs] = {}
    for part in ("test", "validation", "train"):  # the part that must not be known first
        asked = np.zeros(counts[relation.source], dtype=bool)
        asked[parts[part]] = True
        free = asked[sources]
        if part == "train":
            free &= ~unseen[relation.source][sources] & ~unseen[relation.target][targets]
        source, target = sources[free], targets[free]
        key = unordered_key(source, target, counts[relation.target], homogeneous)
        fresh = ~np.isin(key, taken)
        pairs = one_per_query(source[fresh], target[fresh], rng)
        taken = np.concatenate(
            [taken, unordered_key(pairs[:, 0], pairs[:, 1], counts[relation.target], homogeneous)]
        )
        drawn[part] = rng.permutation(pairs)
    return drawn
