"""A trained model meets a network that has grown."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from transformers import AutoTokenizer

from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding.embed import embed
from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError
from heterformer.evaluation.open_run import open_run
from heterformer.models import Heterformer
from heterformer.models.inference import textless_vectors
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.network.tokens import open_tokens
from heterformer.training.run import Run
from heterformer.training.train import train
from heterformer.training.unseen import (
    for_network,
)
from heterformer.training.warm_up import text_edges
from tests.embedding.growing import SPEC, State, first_state, warmed_up
from tests.learning import tiny_options, tiny_reader
from tests.shop import shop, trained_shop


@pytest.fixture(scope="module")
def before() -> State:
    return first_state()


@pytest.fixture(scope="module")
def network(before: State) -> Network:
    return before.built()


@pytest.fixture(scope="module")
def run(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return warmed_up(network, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def grown(before: State) -> Network:
    """New papers by a known author, by a new one, and by a new one who has no other text."""
    cited = list(before.titles)[:3]
    known = before.written_by[0][1]
    state = before.with_paper("new-1", "a title", cited, [known, "new author"], "new venue")
    return state.with_paper(
        "new-2", "another title", cited, ["new author"], before.published_in[0][1]
    ).built()


def rows(network: Network, node_type: str, *ids: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return network.rows(node_type, ids)


def test_all_of_a_grown_network_has_vectors(run: Run, grown: Network) -> None:
    vectors = embed(run.model(), grown)
    for node_type in grown.schema.node_types:
        assert len(vectors[node_type]) == grown.schema.counts[node_type]
        assert np.isfinite(vectors[node_type]).all()


def test_known_textless_nodes_keep_their_vectors(run: Run, network: Network, grown: Network) -> None:
    then, now = embed(run.model(), network), embed(run.model(), grown)
    for node_type in network.schema.textless:
        where = rows(grown, node_type, *network.ids(node_type))
        assert where.tolist() != list(range(len(where)))  # or the test would prove nothing
        np.testing.assert_array_equal(now[node_type][where], then[node_type])


def test_papers_whose_neighbours_are_the_same_keep_their_vectors(
    run: Run, before: State, network: Network, grown: Network
) -> None:
    then = embed(run.model(), network, EmbedOptions(all_neighbors=99))["paper"]
    now = embed(run.model(), grown, EmbedOptions(all_neighbors=99))["paper"]
    cited = set(list(before.titles)[:3])
    same = np.isclose(now[rows(grown, "paper", *before.titles)], then, rtol=1e-4, atol=1e-5).all(1)
    assert {paper for paper, kept in zip(before.titles, same, strict=True) if not kept} == cited


def test_a_new_node_is_not_like_any_other(run: Run, grown: Network) -> None:
    authors = embed(run.model(), grown)["author"]
    new = authors[rows(grown, "author", "new author")[0]]
    others = np.delete(authors, rows(grown, "author", "new author"), axis=0)
    assert (np.abs(others - new).max(1) > 1e-4).all()
    assert 0.1 < np.linalg.norm(new) / np.linalg.norm(others, axis=1).mean() < 10


def test_only_textless_tables_differ(run: Run, grown: Network, tmp_path: Path) -> None:
    model, known = run.model(), KnownNodes.open(run.path)
    assert known is not None
    visible = VisibleNetwork.whole(grown)
    tokens = open_tokens(grown, AutoTokenizer.from_pretrained(run.path))
    adapted, new = for_network(model, known, visible, tokens, tmp_path)
    assert set(new) == {"author", "venue"}
    for name, value in model.state_dict().items():
        if not name.startswith("textless.tables."):
            assert torch.equal(adapted.state_dict()[name], value), name


def test_nodes_that_training_could_not_see_are_folded_in(network: Network, tmp_path: Path) -> None:
    """With nodes hidden from training, an author of hidden papers alone has an embedding by chance only."""
    options = tiny_options(tiny_reader(), max_steps=1, split=SplitOptions(hold_out=0.2))
    run = train(network, tmp_path / "run", options)
    known = KnownNodes.open(run.path)
    assert known is not None
    visible = VisibleNetwork.for_training(network, run.split(network))
    opened = open_run(run.path)
    seen = set(text_edges(visible, opened.batcher.tokens, "author").rows.tolist())
    unknown = {row for row, name in enumerate(known.ids["author"]) if name is None}
    assert unknown == set(range(network.schema.counts["author"])) - seen
    assert unknown  # or the test would prove nothing
    (trained, _), (used, _) = (m.textless.parameters_of("author") for m in (run.model(), opened.model))
    changed = {row for row in range(len(used)) if not torch.equal(used[row], trained[row])}
    assert changed == unknown


def test_another_schema_is_refused(run: Run, before: State) -> None:
    papers = pl.DataFrame({"id": ["a", "b"], "title": ["x", "y"]})
    spec = SPEC | {"nodes": {"paper": {"text": ["title"]}}, "neighbors": {"paper": 2}}
    spec["relations"] = {"cites": {"from": "paper", "to": "paper", "columns": ["source", "target"]}}
    cites = pl.DataFrame({"source": ["a"], "target": ["b"]})
    other = Network.from_frames(spec, {"paper": papers}, {"cites": cites})
    with pytest.raises(
        InputError, match="types without text are none; the model was trained with author, venue"
    ):
        embed(run.model(), other)


def test_a_model_that_does_not_say_whom_it_knows(run: Run, grown: Network, tmp_path: Path) -> None:
    model = run.model()
    model.save_pretrained(tmp_path / "model")
    model.name_or_path = str(tmp_path / "model")
    words = AutoTokenizer.from_pretrained(run.path)
    with pytest.raises(InputError, match="does not say which textless nodes it knows"):
        embed(model, grown, tokenizer=words)


def test_the_order_of_types_and_relations_does_not_matter(run: Run, before: State, network: Network) -> None:
    turned = before.built(turned=True)
    assert turned.schema.relations == network.schema.relations[::-1]
    then, now = embed(run.model(), network), embed(run.model(), turned)
    for node_type in network.schema.node_types:
        where = rows(turned, node_type, *network.ids(node_type))
        np.testing.assert_allclose(now[node_type][where], then[node_type], rtol=1e-4, atol=1e-5)


def test_longer_texts_and_more_neighbours_are_the_models_to_allow(
    run: Run, before: State, network: Network
) -> None:
    other = before.built(max_tokens=64, neighbors={"paper": 9, "author": 9, "venue": 9})
    then, now = embed(run.model(), network), embed(run.model(), other)
    np.testing.assert_allclose(now["paper"], then["paper"], rtol=1e-4, atol=1e-5)


def test_a_type_next_to_no_text_is_embedded_as_nothing(before: State, tmp_path: Path) -> None:
    """Universities have authors only: training meets none of them, and nothing can be folded in."""
    authors = sorted({author for _, author in before.written_by})
    relations = SPEC["relations"] | {
        "works_at": {"from": "author", "to": "university", "columns": ["author", "university"]}
    }
    spec = SPEC | {"nodes": SPEC["nodes"] | {"university": {}}, "relations": relations}
    tables = {
        name: pl.DataFrame(getattr(before, name), schema=SPEC["relations"][name]["columns"], orient="row")
        for name in SPEC["relations"]
    }
    tables["works_at"] = pl.DataFrame({"author": authors, "university": [f"u{len(a) % 3}" for a in authors]})
    papers = pl.DataFrame({"id": [*before.titles], "title": [*before.titles.values()]})
    network = Network.from_frames(spec, {"paper": papers}, tables, tmp_path / "net")
    run = train(network, tmp_path / "run", tiny_options(tiny_reader(), max_steps=2))
    vectors = embed(run.model(), network)
    assert set(vectors) == {"paper", "author", "venue", "university"}
    assert all(np.isfinite(matrix).all() for matrix in vectors.values())
    assert not vectors["university"].any()
    assert vectors["author"].any(1).all()


def test_a_network_in_which_no_known_node_of_a_type_is_left(run: Run, before: State) -> None:
    renamed = tuple((paper, f"{venue} 2024") for paper, venue in before.published_in)
    later = replace(before, published_in=renamed).built()
    vectors = embed(run.model(), later)
    assert np.isfinite(vectors["venue"]).all()
    assert vectors["venue"].any(1).all()


def test_a_user_of_whom_nothing_is_known_is_like_most_users() -> None:
    """Neither in training nor since: by what most users have, not by a row that is like nobody's."""
    run, network = Run(trained_shop()), shop()
    split = run.split(network)
    users, items = network.edges("bought")
    own = np.stack([users, items], 1)[users == 0].astype(np.int64)  # all that user 0 has bought
    parts = replace(split.first, test=np.concatenate([split.test, own]))
    visible = VisibleNetwork.for_evaluation(network, replace(split, pairs={"bought": parts}))
    model, folder = run.model(), run.path
    known = KnownNodes.open(folder)
    assert known is not None
    ids = known.ids["user"].scatter(0, None)  # as if training had not seen the user
    known = replace(known, ids={**known.ids, "user": ids})
    tokens = model.open_tokens(network)
    with tempfile.TemporaryDirectory() as work:
        adapted, folded = for_network(model, known, visible, tokens, Path(work))
    assert folded["user"].nodes.tolist() == [0]
    assert isinstance(adapted, Heterformer)
    everyone = np.arange(network.schema.counts["user"])
    sampler = StableSampler(network, 0)
    vectors = textless_vectors(adapted, adapted.new_batcher(visible, tokens), "user", everyone, sampler)
    mean = vectors[1:].mean(0)
    by_mean_row = adapted.textless.project("user", adapted.textless.tables[0].weight[1:].mean(0)).detach()
    likeness = [torch.cosine_similarity(v, mean, dim=0) for v in (vectors[0], by_mean_row)]
    assert likeness[0] > 0.7
    assert likeness[0] > likeness[1] + 0.1
