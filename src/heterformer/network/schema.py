"""The schema of a heterogeneous text-rich network: its node types and relations, without data."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from heterformer.errors import InputError
from heterformer.untrusted import REVERSED, check_type_name, short_repr

NodeType = str
EdgeColumn = Literal["weight", "time"]  # what an edge can have besides its ends
MOST = 1 << 31  # rows are stored as 32-bit numbers


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
    predict: str | dict[str, float]
    """The predicted relation, or the share of training that each of several has."""
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

    @cached_property
    def predicted(self) -> tuple[Relation, ...]:
        """The relations that training learns from and link prediction ranks; most networks have one."""
        return tuple(self.relation(name) for name in self.shares)

    @cached_property
    def shares(self) -> dict[str, float]:
        """The share of the training steps that each predicted relation has; together 1."""
        shares = {self.predict: 1.0} if isinstance(self.predict, str) else self.predict
        return {name: share / sum(shares.values()) for name, share in shares.items()}

    @property
    def query_type(self) -> NodeType:
        """The type that a text which is no node is read as: of the first predicted relation, the source if it
        has text, else the target."""
        first = self.predicted[0]
        return first.source if first.source in self.text_rich else first.target

    @property
    def target_type(self) -> NodeType:
        """The type that such a text is linked to: the first predicted relation's target."""
        return self.predicted[0].target

    def textless_end(self, relation: Relation) -> NodeType | None:
        """The end of a predicted relation that has no text, if there is one."""
        return next((end for end in (relation.source, relation.target) if end in self.textless), None)

    def relation(self, name: str) -> Relation:
        return next(r for r in self.relations if r.name == name)

    def edge_types_of(self, center: NodeType, neighbor: NodeType | None = None) -> tuple[EdgeType, ...]:
        """The edge types under which a ``center`` node sees neighbours (of one type, or of any)."""
        return tuple(e for e in self.edge_types if e.center == center and neighbor in (None, e.neighbor))

    def edge_numbers(self, center: NodeType, neighbor: NodeType) -> tuple[int, ...]:
        """The numbers in stored arrays of the edge types that join two types of nodes."""
        ends = (center, neighbor)
        return tuple(n for n, e in enumerate(self.edge_types) if (e.center, e.neighbor) == ends)

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
        sizes = [*self.counts.values(), *self.neighbors.values(), self.max_tokens, self.test_batch_size]
        if not all(type(size) is int and 0 <= size < MOST for size in sizes):
            wrong = next(size for size in sizes if type(size) is not int or not 0 <= size < MOST)
            raise InputError(f"{where}: found {short_repr(wrong)}, expected a count from 0 to {MOST - 1:,}.")
        if not (same and known and self._predicts(names)):
            raise InputError(f"{where}: its types, relations, counts and neighbors do not fit together.")

    def _predicts(self, names: list[str]) -> bool:
        """Whether what is predicted are some of the relations, with positive shares."""
        if not isinstance(self.predict, dict):
            return self.predict in names
        shares = list(self.predict.values())
        positive = all(type(share) in (int, float) and 0 < share < math.inf for share in shares)
        return bool(shares) and set(self.predict) <= set(names) and positive


def check_schema(trained: Schema, current: Schema) -> None:
    """Types and relations must be those that the model has parameters for; counts may differ."""
    for what, words in (("text_rich", "types with text"), ("textless", "types without text")):
        before, now = set(getattr(trained, what)), set(getattr(current, what))
        if before != now:
            _refuse(words, now, before)
    relations = [{f"{r.name} ({r.source} to {r.target})" for r in s.relations} for s in (current, trained)]
    if relations[0] != relations[1]:
        _refuse("relations", *relations)


def _refuse(what: str, current: set[str], expected: set[str]) -> None:
    listed = [", ".join(sorted(names)) or "none" for names in (current, expected)]
    raise InputError(f"the network's {what} are {listed[0]}; the model was trained with {listed[1]}.")
