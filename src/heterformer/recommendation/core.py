"""Recommendation: nodes at the other end of a predicted relation, ranked for a node at this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heterformer.device import Device, chosen_device
from heterformer.embedding.newcomers import NewcomerEncoder
from heterformer.errors import OptionError
from heterformer.models.contract import NodeEncoder
from heterformer.network.schema import NodeType, Relation
from heterformer.options import check_argument
from heterformer.recommendation.options import RecommendOptions
from heterformer.recommendation.resolve import Recipient, check_request, resolve_request
from heterformer.search.options import check_link_weight
from heterformer.search.searcher import NamedNode, Query, Ranking, Searcher


@dataclass(frozen=True)
class Recommendations:
    """What is recommended to one user, or to somebody who has some items."""

    user: NamedNode | None
    likes: tuple[NamedNode, ...]  # of somebody who is not in the network
    relation: str
    ranking: Ranking


class Recommender:
    """Recommend nodes at one end of a predicted relation to nodes at the other: items to users.

    The vectors of all nodes are computed the first time and kept in ``RUN/search``, as for searching.

    Args:
        path: A folder that ``train`` wrote.
        network: Recommend from another network of the same types, with nodes that training did not see.
        device: Where to compute: "auto" takes a GPU if there is one; or "cpu".

    Example:
        >>> recommender = Recommender("runs/shop")
        >>> (answer,) = recommender.recommend("user-17", top=5, exclude_known=True)
        >>> [hit.name for hit in answer.ranking.hits]
        >>> (answer,) = recommender.recommend(likes=["item-3", "item-8"])  # a user who is not in the network
    """

    def __init__(self, path: Path | str, network: Path | str | None = None, device: Device = "auto") -> None:
        self.searcher = Searcher(path, network=network, device=device)
        self.run, self.network, self.schema = self.searcher.run, self.searcher.network, self.searcher.schema

    def recommend(
        self,
        users: str | Sequence[str] = (),
        *,
        likes: Sequence[str] = (),
        type: str = "",
        top: int = 10,
        exclude_known: bool = False,
        link_weight: float | Literal["auto"] = "auto",
        where: str = "",
    ) -> list[Recommendations]:
        """Rank the nodes that each user may be linked to.

        Args:
            users: Ids or names of users: of nodes at either end of a predicted relation.
            likes: Instead, ids or names of the items of a user who is not in the network.
            type: Recommend nodes of this type; unless given, what the first predicted relation of the user's
                type joins it to.
            top: How many nodes to return for each user.
            exclude_known: Leave out what is linked to the user already.
            link_weight: How much a node's links count: 0 for what is closest to the user, 1 for what the user
                is most likely linked to; "auto" is 1 less what training has corrected for.
            where: A filter over the columns of the recommended type: ``"year >= 2015"``.

        Example:
            >>> [hit.name for hit in recommender.recommend("u1", top=5)[0].ranking.hits]
            >>> recommender.recommend(likes=["book-7", "book-9"])
        """
        check_argument(RecommendOptions, "top", top)
        if top < 1:
            raise OptionError(RecommendOptions, "top", f"is {top}, expected at least 1.")
        check_argument(RecommendOptions, "link_weight", link_weight)
        check_link_weight(RecommendOptions, link_weight)
        users = [users] if isinstance(users, str) else list(users)
        recipients = resolve_request(self.network, users, likes, type, where)
        ranked = {"top": top, "exclude_known": exclude_known, "where": where}
        return [self._to(recipient, link_weight, **ranked) for recipient in recipients]

    def _to(
        self, recipient: Recipient, link_weight: float | Literal["auto"], **ranked: object
    ) -> Recommendations:
        node, items, relation = recipient.node, recipient.items, recipient.relation
        if node is None:
            vector = self.newcomer(recipient.node_type, relation, [item.row for item in items])
            query = Query(vector, neighbors=items)
        else:
            query = self.searcher.like(node)
        query = replace(query, vector=self._scaled(query.vector, relation))
        if link_weight == "auto":
            link_weight = self.run.options().link_weight_of(self.schema, relation)
        ranked |= {"link_weight": link_weight, "relation": relation}
        ranking = self.searcher.rank(query, recipient.target, **ranked)  # type: ignore[arg-type]
        user = None if node is None else NamedNode.from_node(self.network, node)
        named = tuple(NamedNode.from_node(self.network, item) for item in items)
        return Recommendations(user, named, relation.name, ranking)

    @cached_property
    def _model(self) -> NodeEncoder:
        model: NodeEncoder = self.run.model().to(chosen_device(self.searcher.device))
        return model

    @cached_property
    def newcomers(self) -> NewcomerEncoder:
        """Encodes nodes without text that are not in the network."""
        return NewcomerEncoder(self._model, self.network)

    def newcomer(self, node_type: NodeType, relation: Relation, items: Sequence[int]) -> NDArray[np.float32]:
        """(d,): the vector of a textless node that is not in the network, joined to the rows ``items``.

        Its embedding is folded in from the items' texts; a model that aggregates neighbours has them as well.

        Args:
            node_type: The type of the node, which has no text.
            relation: The predicted relation that joins it to its items.
            items: Rows of its items.
        """
        edge_type = relation.forward if relation.source == node_type else relation.backward
        vector: NDArray[np.float32] = self.newcomers.encode(node_type, [{edge_type: items}])[0]
        return vector

    def _scaled(self, vector: NDArray[np.float32], relation: Relation) -> NDArray[np.float32]:
        """The vector with the relation's own weights, which there are if several relations are predicted."""
        if len(self.schema.predicted) == 1:
            return vector
        scale = self._model.relation_scale(relation.name)
        return vector if scale is None else vector * scale.detach().float().cpu().numpy()


def recommend_run(path: Path | str, users: Sequence[str], options: RecommendOptions) -> list[Recommendations]:
    """What ``heterformer recommend`` does."""
    check_request(users, options.likes, options.where)  # before the run is opened
    return Recommender(path, options.network, options.device).recommend(
        users,
        likes=options.likes,
        type=options.type,
        top=options.top,
        exclude_known=options.exclude_known,
        link_weight=options.link_weight,
        where=options.where,
    )
