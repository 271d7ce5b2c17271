"""A split: the pairs to learn from, the pairs to test on, and the nodes that training never sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.files import replace_file
from heterformer.network.columns import PARTS_BY_WORD
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.other_pairs import named_relations
from heterformer.network.split.pairs import Pairs, unordered_key
from heterformer.network.store import Network

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = ("train", "validation", "test")


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

    def without_hidden(self, pairs: Pairs, relation: Relation) -> Pairs:
        """The pairs of a relation neither of whose ends training must not see."""
        none = np.empty(0, dtype=np.int64)
        seen = [
            ~np.isin(pairs[:, side], self.hidden.get(node_type, none))
            for side, node_type in enumerate((relation.source, relation.target))
        ]
        return pairs[np.logical_and(*seen)]

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
            types = [node_type] * len(rows)
            frames.append(pl.DataFrame({"part": ["hidden"] * len(rows), "query": ids, "key": types}))
        try:
            with replace_file(Path(path)) as partial:
                pl.concat(frames, how="diagonal_relaxed").write_parquet(partial)
        except OSError as error:
            raise InputError(f"{path}: the split cannot be written ({error.strerror or error}).") from None

    @classmethod
    def open(cls, path: Path | str, network: Network) -> Split:
        """Read a split that ``save`` wrote, or a table of the same form."""
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
        words = {**PARTS_BY_WORD, "hidden": "hidden"}
        if unknown := sorted(set(frame["part"].unique().fill_null("").to_list()) - set(words)):
            expected = "expected 'train', 'validation', 'test' or 'hidden'"
            raise InputError(f"{path}: column 'part': found {unknown[0]!r}, {expected}.")
        frame = frame.with_columns(pl.col("part").replace_strict(words))
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
    """The pairs of relations other than the predicted one; each must be an edge."""
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


def _check_pairs(network: Network, parts: Mapping[Part, Pairs], path: Path | str) -> None:
    """Pairs of a table must be edges, and no two nodes a pair of two parts, in either order."""
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
            expected = f"expected an edge of {relation.name!r} that is in one part only"
            raise InputError(f"{path}: found the {part} pair {ids[0]!r}, {ids[1]!r}, {expected}.")
