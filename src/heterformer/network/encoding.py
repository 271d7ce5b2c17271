"""How attributes of nodes are read: numbers standardised, categories looked up or hashed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.errors import InputError
from heterformer.network.attributes import AttributeKind, booleans, numbers
from heterformer.network.hashes import Hashes, sequence_hashes, string_hashes
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

MOST_LOOKED_UP = 1000  # different values of a category; beyond them, values share as many places by hash
FURTHEST = 10.0  # standard deviations from the mean


@dataclass(frozen=True)
class EncodedColumn:
    """How one attribute is read; fitted to the nodes that training may see."""

    name: str
    kind: AttributeKind
    mean: float = 0.0
    deviation: float = 1.0
    values: tuple[str, ...] = ()  # of a category that is looked up
    buckets: int = 0  # of a category that is hashed

    @classmethod
    def fitted(cls, name: str, kind: AttributeKind, values: pl.Series) -> EncodedColumn:
        if kind == "boolean":
            return cls(name, kind, mean=0.5, deviation=0.5)  # true is 1, false is -1
        if kind == "number":
            known = numbers(values)
            known = known[~np.isnan(known)]
            deviation = float(known.std()) if len(known) else 0.0
            return cls(name, kind, float(known.mean()) if len(known) else 0.0, deviation or 1.0)
        distinct = values.drop_nulls().unique().sort()
        if len(distinct) > MOST_LOOKED_UP:
            return cls(name, kind, buckets=MOST_LOOKED_UP)
        return cls(name, kind, values=tuple(distinct))

    @property
    def places(self) -> int:
        """Of a category: one for each value or bucket, after one for a missing or unknown value."""
        return 1 + (self.buckets or len(self.values)) if self.kind == "category" else 0

    def numbers(self, values: pl.Series) -> NDArray[np.float32]:
        """(n, 2): the standardised value, 0 where there is none, and whether there is one."""
        parsed = booleans(values) if self.kind == "boolean" else numbers(values)
        known = ~np.isnan(parsed)
        standardized = np.clip((parsed - self.mean) / self.deviation, -FURTHEST, FURTHEST)
        return np.stack([np.where(known, standardized, 0.0), known], 1).astype(np.float32)

    def categories(self, values: pl.Series) -> Ints:
        """(n,): the place of each value, 0 where it is missing or unknown."""
        if self.buckets:
            hashes = string_hashes(pl.DataFrame({"v": values.fill_null("")}).to_arrow().column("v"))
            places = 1 + (hashes % np.uint64(self.buckets)).astype(np.int64)
            return np.where(values.is_null().to_numpy(), 0, places)
        known = {value: place for place, value in enumerate(self.values, start=1)}
        return values.replace_strict(known, default=0, return_dtype=pl.Int64).fill_null(0).to_numpy()


class AttributeRows(NamedTuple):
    """What an encoder reads of some nodes."""

    numbers: NDArray[np.float32]  # (n, F)
    categories: Ints  # (n, C)

    def select(self, chosen: Any) -> AttributeRows:
        return AttributeRows(self.numbers[chosen], self.categories[chosen])

    def hashes(self) -> Hashes:
        """(n,): a hash of what is read of each node."""
        bits = np.concatenate([self.numbers.view(np.uint32), self.categories.astype(np.uint32)], 1)
        return sequence_hashes(bits.ravel(), np.arange(len(bits) + 1, dtype=np.int64) * bits.shape[1])


@dataclass(frozen=True)
class TypeEncoding:
    """How the attributes of one node type are read."""

    columns: tuple[EncodedColumn, ...]

    @classmethod
    def fitted(cls, network: Network, node_type: NodeType, hidden: Ints | None = None) -> Self:
        """Fitted to all nodes of the type but the ``hidden`` rows."""
        seen = np.ones(network.schema.counts[node_type], dtype=bool)
        seen[hidden if hidden is not None else []] = False
        kinds = network.attribute_kinds.get(node_type, {})
        columns = (
            EncodedColumn.fitted(name, kind, network.attribute(node_type, name).filter(pl.Series(seen)))
            for name, kind in kinds.items()
        )
        return cls(tuple(columns))

    @property
    def numeric(self) -> tuple[EncodedColumn, ...]:
        return tuple(c for c in self.columns if c.kind != "category")

    @property
    def categorical(self) -> tuple[EncodedColumn, ...]:
        return tuple(c for c in self.columns if c.kind == "category")

    @property
    def offsets(self) -> Ints:
        """The first place of each category in the table that they share, and the number of places."""
        return np.cumsum([0, *(c.places for c in self.categorical)])

    def read(self, network: Network, node_type: NodeType) -> AttributeRows:
        """The attributes of all nodes of a type; the network must have those that the encoding is of."""
        for column in self.columns:
            if column.name not in network.attribute_kinds.get(node_type, {}):
                problem = f"{node_type!r} nodes have no attribute {column.name!r}, which the model reads"
                raise InputError(f"{network.path}: {problem}; expected it in the specification.")
        count = network.schema.counts[node_type]
        parts = [c.numbers(network.attribute(node_type, c.name)) for c in self.numeric]
        places = [
            offset + c.categories(network.attribute(node_type, c.name))
            for c, offset in zip(self.categorical, self.offsets, strict=False)
        ]
        return AttributeRows(
            np.concatenate([np.empty((count, 0), np.float32), *parts], 1),
            np.stack(places, 1) if places else np.empty((count, 0), np.int64),
        )

    def missing(self, count: int) -> AttributeRows:
        """What is read of nodes of which nothing is known."""
        places = np.broadcast_to(self.offsets[:-1], (count, len(self.categorical)))
        return AttributeRows(np.zeros((count, 2 * len(self.numeric)), np.float32), places.copy())


Encodings = Mapping[NodeType, TypeEncoding]


def fitted_encodings(
    network: Network, types: Iterable[NodeType], hidden: Mapping[NodeType, Ints] | None = None
) -> dict[NodeType, TypeEncoding]:
    """Encodings of those of ``types`` that have attributes, fitted to nodes that are not ``hidden``."""
    timed = {t: TypeEncoding.fitted(network, t, (hidden or {}).get(t)) for t in types}
    return {t: encoding for t, encoding in timed.items() if encoding.columns}


def encodings_to_dict(encodings: Encodings) -> dict[str, Any]:
    """For a configuration."""
    return {t: [asdict(column) for column in encoding.columns] for t, encoding in encodings.items()}


def encodings_from_dict(values: Mapping[str, Any] | None) -> dict[NodeType, TypeEncoding]:
    """The way back."""
    return {
        t: TypeEncoding(tuple(EncodedColumn(**{**c, "values": tuple(c["values"])}) for c in columns))
        for t, columns in (values or {}).items()
    }
