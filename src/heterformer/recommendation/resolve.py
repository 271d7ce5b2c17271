"""What a request for recommendations names, found in the network: users, items, a relation, a filter.

It needs no vectors and no model, so that a mistake is reported before either is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heterformer.errors import InputError, OptionError
from heterformer.network.lookup import Node, find_node, node_type_named
from heterformer.network.schema import NodeType, Relation, Schema
from heterformer.network.store import Network
from heterformer.options import check_argument
from heterformer.recommendation.options import RecommendOptions
from heterformer.search.filters import check_columns, check_filter


@dataclass(frozen=True)
class Recipient:
    """Who is recommended nodes of the type ``target``, and by which relation."""

    node: Node | None  # None: somebody who is not in the network and has ``items``
    items: tuple[Node, ...]
    node_type: NodeType
    relation: Relation
    target: NodeType


def resolve_request(
    network: Network, users: Sequence[str], likes: Sequence[str] = (), type: str = "", where: str = ""
) -> list[Recipient]:
    """Find what a request names; arguments are those of ``Recommender.recommend``."""
    check_request(users, likes, where)
    schema = network.schema
    target = node_type_named(schema, type, RecommendOptions, "type") if type else None
    if likes:
        recipients = [_newcomer(network, likes, target)]
    else:
        nodes = [_user(network, name, target) for name in users]
        recipients = [Recipient(n, (), n.node_type, *_relation(schema, n.node_type, target)) for n in nodes]
    if where:
        for node_type in dict.fromkeys(each.target for each in recipients):
            check_columns(network, node_type, where)
    return recipients


def check_request(users: Sequence[str], likes: Sequence[str], where: str) -> None:
    """Somebody must be named, in one way, and the filter must be one."""
    check_argument(RecommendOptions, "likes", likes)
    if users and likes:
        problem = "is for a user who is not in the network; leave out the id of one who is."
        raise OptionError(RecommendOptions, "likes", problem)
    if not users and not likes:
        raise InputError("there is no user to recommend to: give the id of a user, or items that one has.")
    if where:
        check_filter(where)


def _user(network: Network, name: str, target: NodeType | None) -> Node:
    """A node at an end of a predicted relation whose other end is the target, if there is one."""
    schema = network.schema
    ends = [(r.source, r.target) for r in schema.predicted]
    ends += [(b, a) for a, b in ends]
    able = dict.fromkeys(a for a, b in ends if target in (None, b))
    textless = [t for t in able if t in schema.textless]
    if not able:
        known = ", ".join(map(repr, dict.fromkeys(b for _, b in ends)))
        problem = f"is {target!r}, expected an end of a predicted relation: {known}."
        raise OptionError(RecommendOptions, "type", problem)
    try:  # users are textless more often than not, and an item may have the same id
        return find_node(network, name, textless or list(able))
    except InputError:
        if set(textless) in (set(), set(able)):
            raise
        return find_node(network, name, list(able))


def _relation(schema: Schema, user_type: NodeType, target: NodeType | None) -> tuple[Relation, NodeType]:
    """The first predicted relation that joins the two types, and the type at its other end."""
    for relation in schema.predicted:
        for end, other in ((relation.source, relation.target), (relation.target, relation.source)):
            if end == user_type and target in (None, other):
                return relation, other
    joined = ", ".join(f"{r.source!r} and {r.target!r}" for r in schema.predicted)
    problem = f"is {target!r}, which no predicted relation joins to {user_type!r}; they join {joined}."
    raise OptionError(RecommendOptions, "type", problem)


def _newcomer(network: Network, likes: Sequence[str], target: NodeType | None) -> Recipient:
    schema = network.schema
    for relation in schema.predicted:
        newcomer = schema.textless_end(relation)
        other = relation.source if newcomer == relation.target else relation.target
        if newcomer is not None and target in (None, other):
            items = tuple(find_node(network, name, [other]) for name in likes)
            return Recipient(None, items, newcomer, relation, other)
    problem = "needs a predicted relation of nodes without text, whose newcomer has these items."
    raise OptionError(RecommendOptions, "likes", problem)
