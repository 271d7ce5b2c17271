"""Pairs of relations besides the predicted one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterformer.errors import InputError
from heterformer.network.schema import Relation
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.other_pairs import SHARE, draw_other_pairs, other_relations
from heterformer.network.split.split import Split
from tests.networks import Facts, edges_of, few, networks, pairs_of

CITES = Relation("cites", "paper", "paper")
WRITTEN, PUBLISHED = Relation("written_by", "paper", "author"), Relation("published_in", "paper", "venue")


def _written(edges: list[tuple[str, str]], venues: int = 0) -> Facts:
    papers = list(dict.fromkeys(paper for paper, _ in edges))
    ids = {"paper": papers, "author": list(dict.fromkeys(author for _, author in edges))}
    relations = {CITES: list(zip(papers, papers[1:] + papers[:1], strict=True)), WRITTEN: edges}
    if venues:
        ids["venue"] = [f"v{i}" for i in range(venues)]
        relations[PUBLISHED] = [(paper, f"v{i % venues}") for i, paper in enumerate(papers)]
    texts = {"paper": [f"paper n{i}" for i in range(len(papers))]}
    return Facts(ids, texts, relations, "cites", dict.fromkeys(ids, 3))


@pytest.fixture
def thousand() -> Facts:
    """A thousand papers, each by two of a hundred authors."""
    edges = [(f"p{i}", f"a{(i * k) % 100}") for i in range(1000) for k in (1, 7)]
    return _written(list(dict.fromkeys(edges)), venues=10)


@few
@given(networks(), st.integers(0, 3))
def test_pairs_are_edges_one_per_source_and_targets_keep_one(facts: Facts, seed: int) -> None:
    with facts.built() as network:
        for relation in other_relations(network):
            assert relation.name != facts.predict
            pairs = draw_other_pairs(network, relation, seed)
            drawn, edges = pairs_of(network, pairs, relation), edges_of(network, relation.name)
            assert set(drawn) <= set(edges)
            assert len({source for source, _ in drawn}) == len(drawn)
            assert {target for _, target in drawn} <= {target for _, target in set(edges) - set(drawn)}
            if relation.source == relation.target:
                assert not {(t, s) for s, t in drawn} & set(drawn)
            np.testing.assert_array_equal(pairs, draw_other_pairs(network, relation, seed))


def test_a_fifth_of_the_sources_is_asked_and_each_relation_draws_its_own(thousand: Facts) -> None:
    with thousand.built() as network:
        written, published = other_relations(network)
        pairs = draw_other_pairs(network, written, 0)
        assert len(pairs) == round(SHARE * 1000)
        assert pairs[:, 0].tolist() != draw_other_pairs(network, published, 0)[:, 0].tolist()
        assert pairs[:, 0].tolist() != draw_other_pairs(network, written, 1)[:, 0].tolist()


def test_an_author_of_one_paper_is_not_asked_for() -> None:
    with _written([("p0", "ann"), ("p1", "bob"), ("p2", "bob")]).built() as network:
        asked = {
            pair
            for seed in range(20)
            for pair in pairs_of(network, draw_other_pairs(network, *other_relations(network), seed), WRITTEN)
        }
        assert asked == {("p1", "bob"), ("p2", "bob")}


def test_a_split_keeps_them_and_a_wrong_pair_is_refused(thousand: Facts, tmp_path: Path) -> None:
    with thousand.built() as network:
        split = make_split(network, SplitOptions(also="written_by, published_in"))
        assert list(split.others) == ["written_by", "published_in"]
        split.save(tmp_path / "split.parquet", network)
        again = Split.open(tmp_path / "split.parquet", network)
        np.testing.assert_array_equal(again.test, split.test)
        for name, pairs in split.others.items():
            np.testing.assert_array_equal(again.others[name], pairs)
        table = pl.read_parquet(tmp_path / "split.parquet")
        wrong = table.with_columns(
            key=pl.when(pl.col("relation") == "written_by").then(pl.lit("a0")).otherwise("key")
        )
        wrong.write_parquet(tmp_path / "wrong.parquet")
        with pytest.raises(InputError, match=r"'a0', expected an edge of 'written_by'"):
            Split.open(tmp_path / "wrong.parquet", network)
        table.with_columns(relation=pl.lit("likes")).write_parquet(tmp_path / "wrong.parquet")
        with pytest.raises(InputError, match="'likes', expected a relation besides the predicted"):
            Split.open(tmp_path / "wrong.parquet", network)


def test_an_unknown_relation_is_refused(thousand: Facts) -> None:
    with (
        thousand.built() as network,
        pytest.raises(InputError, match=r"also has 'writes', expected .*: 'written_by', 'published_in'."),
    ):
        make_split(network, SplitOptions(also="writes"))
