"""A split: the pairs to learn from, the pairs to test on, and the nodes that training never sees."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.files import replace_file
from heterformer.network.columns import PARTS_BY_WORD
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.other_pairs import named_relations
from heterformer.network.split.pairs import Pairs, pair_keys
from heterformer.network.store import Network
from heterformer.stored import parquet_metadata, read_parquet

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")
TIMES = "heterformer.times"  # in the metadata of a stored split


class TimeCuts(NamedTuple):
    """Where a split by time divides: training sees what is earlier, the test begins."""

    train_until: float
    validation_until: float


@dataclass(frozen=True)
class PairParts:
    """The pairs of one predicted relation, in three parts."""

    train: Pairs
    validation: Pairs
    test: Pairs
    new: Pairs = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    """Of nodes that a network has got since training; see ``on_other_network``."""

    @property
    def held_out(self) -> Pairs:
        """The pairs that no neighbourhood may show, in either direction."""
        return np.concatenate([self.validation, self.test, self.new])


@dataclass(frozen=True)
class Split:
    """The pairs of each predicted relation, in three parts, and the nodes that training must not see."""

    pairs: dict[str, PairParts]  # by predicted relation
    hidden: dict[NodeType, NDArray[np.int64]] = field(default_factory=dict)
    others: dict[str, Pairs] = field(default_factory=dict)  # test pairs of other relations, by name
    times: TimeCuts | None = None  # of a split by time

    @property
    def first(self) -> PairParts:
        """The pairs of the first predicted relation, which is the only one of most networks."""
        return next(iter(self.pairs.values()))

    @property
    def train(self) -> Pairs:
        """The first predicted relation's."""
        return self.first.train

    @property
    def validation(self) -> Pairs:
        """The first predicted relation's."""
        return self.first.validation

    @property
    def test(self) -> Pairs:
        """The first predicted relation's."""
        return self.first.test

    @property
    def held_out(self) -> Pairs:
        """The first predicted relation's."""
        return self.first.held_out

    @property
    def hidden_pairs(self) -> dict[str, Pairs]:
        """Of each relation, the pairs that no neighbourhood may show, in either direction."""
        return {name: parts.held_out for name, parts in self.pairs.items()} | self.others

    def part(self, part: Part | Literal["new"]) -> dict[str, Pairs]:
        """One part of each predicted relation."""
        return {name: getattr(parts, part) for name, parts in self.pairs.items()}

    def save(self, path: Path | str, network: Network) -> None:
        """A Parquet table of ids: (part, query, key), and ("hidden", id, type) for hidden nodes.

        Pairs of all relations but the first predicted one have the relation's name in a fourth column.
        """
        schema, (first, *more) = network.schema, self.pairs.items()
        frames = [_as_frame(network, schema.relation(first[0]), p, getattr(first[1], p)) for p in PARTS]
        named = [(name, part, getattr(parts, part)) for name, parts in more for part in PARTS]
        tests: list[tuple[str, Part, Pairs]] = [(n, "test", pairs) for n, pairs in self.others.items()]
        for name, part, pairs in named + tests:
            frame = _as_frame(network, schema.relation(name), part, pairs)
            frames.append(frame.with_columns(relation=pl.lit(name)))
        for node_type, rows in self.hidden.items():
            ids = pl.Series(network.ids(node_type), dtype=pl.String).gather(rows)
            types = [node_type] * len(rows)
            frames.append(pl.DataFrame({"part": ["hidden"] * len(rows), "query": ids, "key": types}))
        try:
            with replace_file(Path(path)) as partial:
                metadata = {} if self.times is None else {TIMES: json.dumps(self.times)}
                pl.concat(frames, how="diagonal_relaxed").write_parquet(partial, metadata=metadata)
        except OSError as error:
            raise InputError(f"{path}: the split cannot be written ({error.strerror or error}).") from None

    @classmethod
    def open(cls, path: Path | str, network: Network) -> Split:
        """Read a split that ``save`` wrote, or a table of the same form."""
        return cls.from_table(SplitTable.open(path), network, path)

    @classmethod
    def from_table(cls, table: SplitTable, network: Network, path: Path | str) -> Split:
        """A split whose ids are those of a network; ``path`` is for errors."""
        frame, first = table.pairs, network.schema.predicted[0]
        pairs = {}
        for predicted in network.schema.predicted:
            own = pl.col("relation") == predicted.name
            own = own | pl.col("relation").is_null() if predicted == first else own
            pairs[predicted.name] = _pair_parts(frame.filter(own), network, predicted)
        others = _other_pairs(frame.filter(~pl.col("relation").is_in(list(pairs))), network, path)
        types = table.hidden["key"].unique(maintain_order=True)
        ids = {t: table.hidden.filter(pl.col("key") == t)["query"].to_list() for t in types}
        _check_pairs(network, pairs, path)
        hidden_rows = {t: network.rows(t, ids[t]) for t in types}
        return cls(pairs, hidden=hidden_rows, others=others, times=table.times)


class SplitTable(NamedTuple):
    """A stored split before its ids are looked up."""

    pairs: pl.DataFrame  # part, query, key, relation (null: the first predicted one)
    hidden: pl.DataFrame  # the id is in the column query, the type in the column key
    times: TimeCuts | None

    @classmethod
    def open(cls, path: Path | str) -> SplitTable:
        """Read a table whose form is checked, its ids are not."""
        try:
            table, metadata = read_parquet(Path(path)), parquet_metadata(Path(path))
            saved = metadata.get(TIMES)
            times = None if saved is None else TimeCuts(*map(float, json.loads(saved)))
            frame = table.select(pl.col("part", "query", "key").cast(pl.String))
        except (InputError, pl.exceptions.PolarsError, ValueError, TypeError):
            expected = "expected a Parquet table with the columns part, query and key"
            raise InputError(f"{path}: not a split, {expected}.") from None
        named = "relation" in table.columns
        relation = table["relation"].cast(pl.String) if named else pl.lit(None, pl.String)
        frame = frame.with_columns(relation=relation)
        words = {**PARTS_BY_WORD, "hidden": "hidden"}
        if unknown := sorted(set(frame["part"].unique().fill_null("").to_list()) - set(words)):
            expected = "expected 'train', 'validation', 'test' or 'hidden'"
            raise InputError(f"{path}: column 'part': found {unknown[0]!r}, {expected}.")
        frame = frame.with_columns(pl.col("part").replace_strict(words))
        is_hidden = pl.col("part") == "hidden"
        return cls(frame.filter(~is_hidden), frame.filter(is_hidden), times)


def _pair_parts(frame: pl.DataFrame, network: Network, relation: Relation) -> PairParts:
    """The rows of one relation by part."""
    parts: dict[Part, Pairs] = {}
    for part in PARTS:
        rows = frame.filter(pl.col("part") == part)
        query = network.rows(relation.source, rows["query"].to_list())
        parts[part] = np.stack([query, network.rows(relation.target, rows["key"].to_list())], axis=1)
    return PairParts(**parts)


def _as_frame(network: Network, relation: Relation, part: Part, pairs: Pairs) -> pl.DataFrame:
    query = network.id_series(relation.source).gather(pairs[:, 0])
    key = network.id_series(relation.target).gather(pairs[:, 1])
    return pl.DataFrame({"part": [part] * len(pairs), "query": query, "key": key})


def _other_pairs(frame: pl.DataFrame, network: Network, path: Path | str) -> dict[str, Pairs]:
    """The pairs of relations other than the predicted ones; each must be an edge."""
    pairs: dict[str, Pairs] = {}
    for (name,), rows in frame.drop_nulls("relation").group_by("relation", maintain_order=True):
        relation = named_relations(network, str(name))[0]
        query = network.rows(relation.source, rows["query"].to_list())
        key = network.rows(relation.target, rows["key"].to_list())
        number = network.schema.edge_types.index(relation.forward)
        joined = network.adjacency(relation.source, relation.target).joined(query, key, [number])
        if not joined.all():
            wrong = rows.row(int((~joined).argmax()), named=True)
            expected = f"expected an edge of {relation.name!r}"
            raise InputError(f"{path}: found the pair {wrong['query']!r}, {wrong['key']!r}, {expected}.")
        pairs[relation.name] = np.stack([query, key], axis=1)
    return pairs


def _check_pairs(network: Network, pairs: Mapping[str, PairParts], path: Path | str) -> None:
    """Pairs of a table must be edges, and no two nodes a pair of two parts, in either order.

    That holds across relations as well: two nodes that one relation holds out are no pair that another
    learns from.
    """
    taken: dict[frozenset[NodeType], dict[Part, NDArray[np.int64]]] = {}
    for name, parts in pairs.items():
        relation = network.schema.relation(name)
        adjacency = network.adjacency(relation.source, relation.target)
        number = network.schema.edge_types.index(relation.forward)
        known = taken.setdefault(frozenset((relation.source, relation.target)), {})
        for part in PARTS:
            of_part = getattr(parts, part)
            keys = pair_keys(network.schema, relation, of_part)
            wrong = ~adjacency.joined(of_part[:, 0], of_part[:, 1], [number])
            for other, others in known.items():
                if other != part:
                    wrong |= np.isin(keys, others)
            if wrong.any():
                query, key = of_part[int(wrong.argmax())]
                ids = (network.ids(relation.source, [query])[0], network.ids(relation.target, [key])[0])
                expected = f"expected an edge of {relation.name!r} that is in one part only"
                raise InputError(f"{path}: found the {part} pair {ids[0]!r}, {ids[1]!r}, {expected}.")
            known[part] = np.concatenate([known.get(part, keys[:0]), keys])
