"""Rankings, and the supporting neighbours of their results."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from heterformer.errors import InputError
from heterformer.network.lookup import Node, node_type_named
from heterformer.network.schema import NodeType, Schema
from heterformer.search.options import SearchOptions
from heterformer.search.searcher import Query, Ranking, Searcher, SupportingNeighbor
from tests.learning import tiny_network
from tests.search.searching import tiny_run

TYPES = ("paper", "author", "venue")


@cache
def searcher() -> Searcher:
    return Searcher(tiny_run())


def ids_of(ranking: Ranking) -> list[str]:
    return [hit.id for hit in ranking.hits]


def sorted_ids(query: Query, node_type: NodeType) -> list[str]:
    """All nodes of a type, best first."""
    scores = searcher().store.matrix(node_type).astype(np.float64) @ query.vector
    ids = tiny_network().ids(node_type)
    return [ids[row] for row in np.argsort(-scores, kind="stable")]


def around(node: Node, node_type: NodeType) -> set[str]:
    """The ids of a node's neighbours, from the lists of edges."""
    found = set()
    for relation in tiny_network().schema.relations:
        source, target = tiny_network().edges(relation.name)
        if (relation.source, relation.target) == (node.node_type, node_type):
            found |= set(tiny_network().ids(node_type, target[source == node.row]))
        if (relation.target, relation.source) == (node.node_type, node_type):
            found |= set(tiny_network().ids(node_type, source[target == node.row]))
    return found


def test_half_a_character_is_refused() -> None:
    with pytest.raises(InputError, match=r"^the query 'a\\udcff' is not UTF-8, expected text in UTF-8\.$"):
        searcher().search("a\udcff")
    with pytest.raises(InputError, match=r"^the id or name '\\udcff' is not UTF-8"):
        searcher().like("\udcff")


def test_a_search_is_one_call() -> None:
    author = tiny_network().ids("author")[3]
    near, types = [f"author={author}"], ["venue", "paper"]
    answer = searcher().search("kernel methods", neighbors=near, types=types, top=4)
    assert [ranking.node_type for ranking in answer.rankings] == types
    assert [neighbor.id for neighbor in answer.neighbors] == [author]
    query = searcher().text("kernel methods", [Node("author", 3)])
    assert answer.rankings == tuple(searcher().rank(query, t, 4) for t in types)
    like = searcher().search(like=author, like_type="author")
    assert like.like is not None
    assert like.rankings == (searcher().rank(searcher().like(Node("author", 3)), "paper"),)


def test_links_count_by_their_weight() -> None:
    query, cited = (
        searcher().text("kernel methods"),
        np.bincount(tiny_network().edges("cites")[1], minlength=200),
    )
    products = searcher().store.matrix("paper").astype(np.float64) @ query.vector
    temperature = searcher().run.model().config.temperature
    for weight in (0.5, 1):
        scores = products + weight * temperature * np.log(1 + cited)
        best = np.argsort(-scores, kind="stable")[:20]
        answer = searcher().search("kernel methods", types=["paper"], top=20, link_weight=weight)
        (ranking,) = answer.rankings
        assert ids_of(ranking) == tiny_network().ids("paper", best)
        assert [hit.score for hit in ranking.hits] == pytest.approx(scores[best], rel=1e-5)
        assert ids_of(ranking) != ids_of(searcher().rank(query, "paper", 20))
    assert ids_of(searcher().rank(query, "paper", 20, link_weight=0)) == sorted_ids(query, "paper")[:20]


def test_no_index_is_built_where_links_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("an index was asked for")

    monkeypatch.setattr(type(searcher().store), "index", refused)
    query = searcher().text("kernel methods")
    ranking = searcher().rank(query, "paper", 3, index="approximate", link_weight=1)
    assert (len(ranking.hits), ranking.index) == (3, "exact")
    with pytest.raises(AssertionError, match="asked for"):
        searcher().rank(query, "paper", 3)


def test_links_of_a_type_that_nothing_is_predicted_of() -> None:
    expected = "needs a predicted relation that leads to author nodes, and there is none"
    with pytest.raises(InputError, match=expected):
        searcher().search("kernel methods", types=["paper", "author"], link_weight=1)


@pytest.mark.parametrize("weight", [-1, float("nan"), 11])
def test_weights_of_links_that_no_ranking_has(weight: float) -> None:
    with pytest.raises(InputError, match=r"link_weight is .*, expected a number"):
        searcher().search("kernel methods", link_weight=weight)
    with pytest.raises(InputError, match=r"link_weight is .*, expected a number"):
        SearchOptions(link_weight=weight)


@pytest.mark.parametrize("node_type", TYPES)
def test_a_text_ranks_nodes_of_any_type(node_type: NodeType) -> None:
    query = searcher().text("kernel methods for graphs")
    ranking = searcher().rank(query, node_type, 7)
    assert ids_of(ranking) == sorted_ids(query, node_type)[:7]
    assert (ranking.node_type, ranking.index) == (node_type, "exact")
    assert ranking.candidates == tiny_network().schema.counts[node_type]
    (row,) = tiny_network().rows(node_type, [ranking.hits[0].id])
    assert ranking.hits[0].name == tiny_network().names(node_type, [row])[0]
    score = searcher().store.matrix(node_type)[row] @ query.vector
    assert ranking.hits[0].score == pytest.approx(float(score), rel=1e-5)
    assert not any(hit.known for hit in ranking.hits)


@pytest.mark.parametrize("asking", TYPES)
@pytest.mark.parametrize("node_type", TYPES)
def test_a_node_of_any_type_ranks_nodes_of_any_type(asking: NodeType, node_type: NodeType) -> None:
    node = Node(asking, 3)
    query = searcher().like(node)
    own = set(tiny_network().ids(asking, [3])) if asking == node_type else set()
    expected = [i for i in sorted_ids(query, node_type) if i not in own]
    ranking = searcher().rank(query, node_type, 12)
    assert ids_of(ranking) == expected[:12]
    known = around(node, node_type)
    assert [hit.known for hit in ranking.hits] == [hit.id in known for hit in ranking.hits]


def test_papers_of_an_author_can_be_left_out() -> None:
    node = Node("author", 3)
    query, known = searcher().like(node), around(node, "paper")
    everything = searcher().rank(query, "paper", 1000)
    assert len(known) > 1
    assert {hit.id for hit in everything.hits if hit.known} == known
    rest = searcher().rank(query, "paper", 1000, exclude_known=True)
    assert ids_of(rest) == [i for i in ids_of(everything) if i not in known]


def test_neighbours_given_with_a_text_are_known() -> None:
    given = [Node("paper", 5), Node("paper", 6), Node("author", 1)]
    query = searcher().text("kernel methods", given)
    papers = set(tiny_network().ids("paper", [5, 6]))
    ranking = searcher().rank(query, "paper", 1000)
    assert {hit.id for hit in ranking.hits if hit.known} == papers
    assert (
        set(ids_of(searcher().rank(query, "paper", 1000, exclude_known=True)))
        == set(tiny_network().ids("paper")) - papers
    )
    assert not np.allclose(query.vector, searcher().text("kernel methods").vector)


def speaking(query: Query, node: Node) -> list[tuple[NodeType, str, float]]:
    """All neighbours above what is usual among their type, most so first."""
    found = []
    for node_type in tiny_network().schema.neighbor_types_of(node.node_type):
        scores = searcher().store.matrix(node_type) @ query.vector
        above = (scores - scores.mean()) / scores.std()
        rows = tiny_network().rows(node_type, sorted(around(node, node_type)))
        ids = tiny_network().ids(node_type)
        found += [(above[row], node_type, ids[row], scores[row]) for row in rows if above[row] > 0]
    return [(t, i, float(score)) for _, t, i, score in sorted(found, key=lambda one: -one[0])]


@pytest.mark.parametrize("node_type", TYPES)
def test_the_neighbours_nearest_to_the_query_speak_for_a_result(node_type: NodeType) -> None:
    query = searcher().text("kernel methods for graphs")
    met = set()
    for hit in searcher().rank(query, node_type, 60).hits:
        (row,) = tiny_network().rows(node_type, [hit.id])
        expected = speaking(query, Node(node_type, int(row)))[:3]
        assert [(n.node_type, n.id) for n in hit.neighbors] == [(t, i) for t, i, _ in expected]
        assert [n.score for n in hit.neighbors] == pytest.approx([score for *_, score in expected], rel=1e-4)
        for n in hit.neighbors:
            (place,) = tiny_network().rows(n.node_type, [n.id])
            assert n.name == tiny_network().names(n.node_type, [place])[0]
        met |= {n.node_type for n in hit.neighbors}
    assert met == set(tiny_network().schema.neighbor_types_of(node_type))


def test_the_node_that_asks_does_not_speak_for_its_neighbours() -> None:
    node = Node("author", 3)
    (own,) = tiny_network().ids("author", [3])
    hits = searcher().rank(searcher().like(node), "paper", 1000).hits
    speakers = [n for hit in hits if hit.known for n in hit.neighbors]
    assert speakers
    assert all(isinstance(n, SupportingNeighbor) and n.id != own for n in speakers)


def test_of_a_hub_only_some_neighbours_are_considered() -> None:
    query = searcher().text("kernel methods for graphs")
    for hit in searcher().rank(query, "venue", 10, max_neighbors=1).hits:
        (row,) = tiny_network().rows("venue", [hit.id])
        first = min(tiny_network().rows("paper", sorted(around(Node("venue", int(row)), "paper"))))
        assert {n.id for n in hit.neighbors} <= set(tiny_network().ids("paper", [first]))


def test_what_is_looked_for_unless_it_is_said() -> None:
    assert searcher().default_types(searcher().text("kernel")) == ("paper",)
    assert searcher().default_types(searcher().like(Node("paper", 0))) == ("paper",)
    assert searcher().default_types(searcher().like(Node("author", 0))) == ("paper",)


def test_a_dash_may_stand_for_an_underscore_in_a_type() -> None:
    schema = Schema(("a_post",), ("sub-reddit", "sub_reddit", "year_of_birth"), {}, (), "", {}, 8)

    def named(name: str) -> str:
        return node_type_named(schema, name, SearchOptions, "types")

    assert named("a-post") == "a_post"
    assert named("year-of-birth") == named("year_of_birth")
    assert named("sub-reddit") == "sub-reddit"
    assert named("sub_reddit") == "sub_reddit"
    with pytest.raises(InputError, match="types is 'book', expected one of 'a_post'"):
        named("book")


def test_a_node_may_be_given_by_its_id() -> None:
    searcher = Searcher(tiny_run())
    (own,) = tiny_network().ids("paper", [4])
    np.testing.assert_array_equal(searcher.like(own).vector, searcher.like(Node("paper", 4)).vector)
    with pytest.raises(InputError, match="there is no paper, author or venue with the id or name 'nobody'"):
        searcher.like("nobody")
