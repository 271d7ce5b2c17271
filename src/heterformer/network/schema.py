"""The schema of a heterogeneous text-rich network: its node types and relations, without data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

from heterformer.errors import InputError
from heterformer.untrusted import REVERSED, check_type_name

NodeType = str


class EdgeType(NamedTuple):
    """One direction of a relation, seen from the centre node (the paper's r, which chooses ``W_r``)."""

    center: NodeType
    relation: str
    neighbor: NodeType

    @property
    def name(self) -> str:
        return "__".join(self)


@dataclass(frozen=True)
class Relation:
    """A relation as the user declared it: ``source`` nodes point at ``target`` nodes."""

    name: str
    source: NodeType
    target: NodeType

    @property
    def forward(self) -> EdgeType:
        """The edge type under which a source node sees its targets."""
        return EdgeType(self.source, self.name, self.target)

    @property
    def backward(self) -> EdgeType:
        """The edge type under which a target node sees its sources."""
        return EdgeType(self.target, REVERSED + self.name, self.source)


@dataclass(frozen=True)
class Schema:
    """Node types (split into A_TR and A_TL, Definition 2.2), relations, counts and sampling defaults."""

    text_rich: tuple[NodeType, ...]
    textless: tuple[NodeType, ...]
    counts: dict[NodeType, int]
    relations: tuple[Relation, ...]
    predict: str
    neighbors: dict[NodeType, int]
    max_tokens: int
    test_batch_size: int = 100

    @property
    def node_types(self) -> tuple[NodeType, ...]:
        return self.text_rich + self.textless

    @cached_property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """Both directions of every relation. An edge type's position here is its number in stored arrays."""
        return tuple(e for r in self.relations for e in (r.forward, r.backward))

    @property
    def predicted(self) -> Relation:
        """The text-text relation that training learns from."""
        return self.relation(self.predict)

    def relation(self, name: str) -> Relation:
        return next(r for r in self.relations if r.name == name)

    def edge_types_of(self, center: NodeType, neighbor: NodeType | None = None) -> tuple[EdgeType, ...]:
        """The edge types under which a ``center`` node sees neighbours (of one type, or of any)."""
        return tuple(e for e in self.edge_types if e.center == center and neighbor in (None, e.neighbor))

    def neighbor_types_of(self, center: NodeType) -> tuple[NodeType, ...]:
        """The types of a ``center`` node's neighbours, in schema order."""
        seen = {e.neighbor for e in self.edge_types_of(center)}
        return tuple(t for t in self.node_types if t in seen)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: str = "the network's description") -> Schema:
        """What ``to_dict`` gave. The values may be a stranger's: names in them become parts of paths."""
        values = dict(values)
        values["text_rich"] = tuple(values["text_rich"])
        values["textless"] = tuple(values["textless"])
        values["relations"] = tuple(Relation(**r) for r in values["relations"])
        schema = cls(**values)
        schema._check(where)
        return schema

    def _check(self, where: str) -> None:
        for node_type in self.node_types:
            check_type_name(node_type, f"{where}: node types")
        for relation in self.relations:
            check_type_name(relation.name, f"{where}: relations")
        types, names = set(self.node_types), [relation.name for relation in self.relations]
        ends = {end for relation in self.relations for end in (relation.source, relation.target)}
        same = len(types) == len(self.node_types) and len(set(names)) == len(names)
        known = set(self.counts) == types and ends <= types and set(self.neighbors) <= types
        if not (same and known and self.predict in names):
            raise InputError(f"{where}: its types, relations, counts and neighbors do not fit together.")
