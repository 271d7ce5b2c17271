"""The split of a run on a network that has changed since: pairs that are gone, and pairs of new nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.network.ids import known_rows
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.pairs import Pairs, one_per_query
from heterformer.network.split.split import PARTS, PairParts, Split, SplitTable
from heterformer.network.store import Network
from heterformer.untrusted import short_repr


def on_other_network(
    path: Path | str, network: Network, new_rows: Mapping[NodeType, Ints], seed: int
) -> tuple[Split, list[str]]:
    """A stored split on another network, and a sentence for each part that has lost pairs.

    What has no node or edge there any more is left out. ``new_rows``, the nodes that the split's own network
    lacks, count as hidden from training, and each that begins or ends a predicted relation gives a new pair.
    """
    table, schema = SplitTable.open(path), network.schema
    kept, lost = [], list[str]()
    names = table.pairs["relation"].fill_null(schema.predicted[0].name)
    for relation in schema.relations:
        rows = table.pairs.filter(names == relation.name)
        there = _there(rows, network, relation)
        kept.append(rows.filter(pl.Series(there, dtype=pl.Boolean)))
        lost += _losses(rows, there, relation)
    known = [_known(table.hidden, network, node_type) for node_type in schema.node_types]
    left = table._replace(pairs=pl.concat(kept), hidden=pl.concat(known))
    split = Split.from_table(left, network, path)
    hidden = {
        t: np.union1d(split.hidden.get(t, np.empty(0, dtype=np.int64)), new_rows.get(t, ()))
        for t in schema.node_types
        if t in split.hidden or t in new_rows
    }
    pairs = {
        name: _with_new(parts, network, schema.relation(name), new_rows, seed)
        for name, parts in split.pairs.items()
    }
    return replace(split, pairs=pairs, hidden={t: r.astype(np.int64) for t, r in hidden.items()}), lost


def _there(rows: pl.DataFrame, network: Network, relation: Relation) -> NDArray[np.bool_]:
    """Which rows are edges of the relation in the network."""
    ends = zip(("query", "key"), (relation.source, relation.target), strict=True)
    query, key = (known_rows(rows[column], network.id_series(end)) for column, end in ends)
    there = (query >= 0) & (key >= 0)
    number = network.schema.edge_types.index(relation.forward)
    adjacency = network.adjacency(relation.source, relation.target)
    there[there] = adjacency.joined(query[there], key[there], [number])
    return there


def _losses(rows: pl.DataFrame, there: NDArray[np.bool_], relation: Relation) -> list[str]:
    """A sentence for each part some of whose pairs are gone."""
    sentences = []
    for part in PARTS:
        of_part = rows.filter(pl.col("part") == part)
        gone = rows.filter(pl.Series(~there, dtype=pl.Boolean)).filter(pl.col("part") == part)
        if len(gone):
            first = gone.row(0, named=True)
            example = f"{short_repr(first['query'])} to {short_repr(first['key'])}"
            what = f"{len(gone):,} of {len(of_part):,} {part} pairs are gone from the network"
            sentences.append(f"{relation.name}: {what}, such as {example}; they are left out.")
    return sentences


def _known(hidden: pl.DataFrame, network: Network, node_type: NodeType) -> pl.DataFrame:
    """The hidden nodes of a type that the network still has."""
    of_type = hidden.filter(pl.col("key") == node_type)
    there = known_rows(of_type["query"], network.id_series(node_type)) >= 0
    return of_type.filter(pl.Series(there, dtype=pl.Boolean))


def _with_new(
    parts: PairParts,
    network: Network,
    relation: Relation,
    new_rows: Mapping[NodeType, Ints],
    seed: int,
) -> PairParts:
    """With one pair for each query that has an edge with a new end; training saw none of these edges."""
    edges = np.stack(network.edges(relation.name), axis=1).astype(np.int64)
    is_new = [
        np.isin(edges[:, side], new_rows.get(end, ()))
        for side, end in enumerate((relation.source, relation.target))
    ]
    fresh: Pairs = edges[np.logical_or(*is_new)]
    fresh = fresh[np.argsort(fresh[:, 0], kind="stable")]
    number = network.schema.relations.index(relation)
    drawn = one_per_query(fresh[:, 0], fresh[:, 1], np.random.default_rng([seed, 1 + number]))
    return replace(parts, new=drawn)
