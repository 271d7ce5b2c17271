"""Splits without leaks: the pairs to learn from, the pairs to ask for, the nodes training never sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import ranges
from heterformer.errors import InputError
from heterformer.files import replace_file
from heterformer.network.build.node_tables import SPLITS
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.other_pairs import draw_other_pairs, named_relations
from heterformer.network.split.pairs import Pairs, one_per_query, unordered_key
from heterformer.network.store import Network

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")


@dataclass(frozen=True)
class SplitOptions:
    """How the query nodes of the predicted relation are divided."""

    by: Literal["random", "column", "time"] = "random"
    """Divide at random, by the node table's 'split' column, or by its 'time' column."""
    train: float = 0.7
    """Share of the query nodes that training learns from."""
    validation: float = 0.1
    """Share of the query nodes for early stopping; the rest is the test part."""
    hold_out: float = 0.0
    """Share of the query nodes that training must not see, not even as neighbours (inductive setting)."""
    hold_out_with: str | None = None
    """Hide the nodes of this type next to held-out nodes as well, such as their authors."""
    also: str | None = None
    """Hide pairs of this relation too, for 'evaluate' to ask for unseen ones (with commas, of several)."""
    seed: int = 0
    """Seed of the division and of the one positive pair drawn per query."""
    file: str | None = None
    """Take the pairs from this table, as 'heterformer split' writes it, instead of drawing them."""

    def __post_init__(self) -> None:
        if not (self.train > 0 and self.validation > 0 and self.train + self.validation < 1):
            found = f"found --train {self.train} and --validation {self.validation}"
            raise InputError(f"{found}, expected positive shares that leave some for the test.")
        if not 0 <= self.hold_out < 1 - self.train:
            found = f"found --hold-out {self.hold_out}"
            raise InputError(f"{found}, expected at least 0 and less than {1 - self.train:g} (1 - --train).")
        if self.hold_out_with is not None and not self.hold_out:
            raise InputError("--hold-out-with needs --hold-out, the share of query nodes to hide.")
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}, expected 0 or more.")
        if self.hold_out and self.by != "random":
            raise InputError(
                "--hold-out applies to a random split only; a time split hides later nodes itself."
            )


@dataclass(frozen=True)
class Split:
    """One positive pair per query node, in three parts, and the nodes that training must not see."""

    train: Pairs
    validation: Pairs
    test: Pairs
    hidden: dict[NodeType, NDArray[np.int64]] = field(default_factory=dict)
    others: dict[str, Pairs] = field(default_factory=dict)  # test pairs of other relations, by name

    @property
    def held_out(self) -> Pairs:
        """The pairs of the predicted relation that no neighbourhood may show, in either direction."""
        return np.concatenate([self.validation, self.test])

    def save(self, path: Path | str, network: Network) -> None:
        """A Parquet table of ids: (part, query, key), and ("hidden", id, type) for hidden nodes.

        Test pairs of other relations have the relation's name in a fourth column.
        """
        schema = network.schema
        frames = [_as_frame(network, schema.predicted, part, getattr(self, part)) for part in PARTS]
        for name, pairs in self.others.items():
            frames.append(
                _as_frame(network, schema.relation(name), "test", pairs).with_columns(relation=pl.lit(name))
            )
        for node_type, rows in self.hidden.items():
            ids = pl.Series(network.ids(node_type), dtype=pl.String).gather(rows)
            kind = [node_type] * len(rows)
            frames.append(pl.DataFrame({"part": ["hidden"] * len(rows), "query": ids, "key": kind}))
        try:
            with replace_file(Path(path)) as partial:
                pl.concat(frames, how="diagonal_relaxed").write_parquet(partial)
        except OSError as error:
            raise InputError(f"{path}: the split cannot be written ({error.strerror or error}).") from None

    @classmethod
    def open(cls, path: Path | str, network: Network) -> Split:
        """Read what ``save`` wrote (or a table of the same form that the user made)."""
        try:
            table = pl.read_parquet(path, glob=False)
            frame = table.select(pl.col("part", "query", "key").cast(pl.String))
        except (OSError, pl.exceptions.PolarsError):
            expected = "expected a Parquet table with the columns part, query and key"
            raise InputError(f"{path}: not a split, {expected}.") from None
        others: dict[str, Pairs] = {}
        if "relation" in table.columns:
            others = _other_pairs(frame.with_columns(table["relation"].cast(pl.String)), network, path)
            frame = frame.filter(table["relation"].is_null())
        named = {**SPLITS, "hidden": "hidden"}
        if unknown := sorted(set(frame["part"].unique().fill_null("").to_list()) - set(named)):
            found = f"column 'part' holds {unknown[0]!r}"
            raise InputError(f"{path}: {found}, expected 'train', 'validation', 'test' or 'hidden'.")
        frame = frame.with_columns(pl.col("part").replace_strict(named))
        predicted = network.schema.predicted
        parts: dict[Part, Pairs] = {}
        for part in PARTS:
            rows = frame.filter(pl.col("part") == part)
            query = network.rows(predicted.source, rows["query"].to_list())
            parts[part] = np.stack([query, network.rows(predicted.target, rows["key"].to_list())], axis=1)
        hidden = frame.filter(pl.col("part") == "hidden")
        types = hidden["key"].unique(maintain_order=True)
        ids = {t: hidden.filter(pl.col("key") == t)["query"].to_list() for t in types}
        _check_pairs(network, parts, path)
        return cls(**parts, hidden={t: network.rows(t, ids[t]) for t in types}, others=others)


def _as_frame(network: Network, relation: Relation, part: Part, pairs: Pairs) -> pl.DataFrame:
    query = network.id_series(relation.source).gather(pairs[:, 0])
    key = network.id_series(relation.target).gather(pairs[:, 1])
    return pl.DataFrame({"part": [part] * len(pairs), "query": query, "key": key})


def _other_pairs(frame: pl.DataFrame, network: Network, path: Path | str) -> dict[str, Pairs]:
    """The pairs of relations besides the predicted one, which must be edges of theirs."""
    found = {}
    for (name,), rows in frame.drop_nulls("relation").group_by("relation", maintain_order=True):
        relation = named_relations(network, str(name))[0]
        query = network.rows(relation.source, rows["query"].to_list())
        key = network.rows(relation.target, rows["key"].to_list())
        number = network.schema.edge_types.index(relation.forward)
        joined = network.adjacency(relation.source, relation.target).joined(query, key, [number])
        if not joined.all():
            wrong = rows.row(int((~joined).argmax()), named=True)
            rule = f"expected an edge of {relation.name!r}"
            raise InputError(f"{path}: the pair {wrong['query']!r}, {wrong['key']!r}: {rule}.")
        found[relation.name] = np.stack([query, key], axis=1)
    return found


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


Parts = dict[Part, NDArray[np.int64]]  # the query rows of each part


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


def _check_pairs(network: Network, parts: Mapping[Part, Pairs], path: Path | str) -> None:
    """Pairs from a table are edges, and no two nodes are a pair of two parts, either way round."""
    relation, counts = network.schema.predicted, network.schema.counts
    homogeneous = relation.source == relation.target
    adjacency = network.adjacency(relation.source, relation.target)
    number = network.schema.edge_types.index(relation.forward)
    keys = {}
    for part, pairs in parts.items():
        keys[part] = unordered_key(pairs[:, 0], pairs[:, 1], counts[relation.target], homogeneous)
        wrong = ~adjacency.joined(pairs[:, 0], pairs[:, 1], [number])
        for other in keys:
            if other != part:
                wrong |= np.isin(keys[part], keys[other])
        if wrong.any():
            query, key = pairs[int(wrong.argmax())]
            ids = (network.ids(relation.source, [query])[0], network.ids(relation.target, [key])[0])
            rule = f"expected an edge of {relation.name!r} that is a pair of one part only"
            raise InputError(f"{path}: the {part} pair {ids[0]!r}, {ids[1]!r}: {rule}.")
