"""Runs on a network with attributes, weights, times and names as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from heterformer import InputError, Network, embed, explain, load_model, train
from heterformer.embedding.embed import embed_to
from heterformer.embedding.options import EmbedOptions
from heterformer.explanation.core import TextExplanation
from heterformer.models.heterogeneous import HeterogeneousEncoder
from heterformer.network.build.frames import temporary_folder
from heterformer.network.hashes import string_hash
from heterformer.network.split.options import SplitOptions
from heterformer.training.run import Run
from heterformer.training.warm_up_options import WarmUpOptions
from tests.embedding.growing import SPEC, first_state
from tests.learning import tiny_network, tiny_options, tiny_reader
from tests.training.runs import LAST, tensors

WARM = WarmUpOptions(
    warm_up_batch_size=128, warm_up_learning_rate=0.03, warm_up_patience=5, warm_up_epochs=10
)


def fields() -> dict[str, str]:
    """The class of the first paper of each author."""
    network = tiny_network()
    labels = dict(zip(network.ids("paper"), network.labels("paper").list.first(), strict=True))
    return {author: labels[paper] for paper, author in reversed(first_state().written_by)}


def valued_network(
    loners: dict[str, str | None] | None = None, years: dict[str, int] | None = None, **author: Any
) -> Network:
    """The tiny network; papers have a year, authors a field and an age, edges weights and times.

    ``loners`` are authors of whom nothing but a field is known; a known author has another field then.
    """
    state, known = first_state(), {**fields(), **(loners or {})}
    ages = [None if a in (loners or {}) else int(string_hash(a) % np.uint64(50)) for a in known]
    authors = pl.DataFrame({"id": [*known], "field": [*known.values()], "age": ages})
    spec: dict[str, Any] = json.loads(json.dumps(SPEC))
    spec["nodes"]["author"] = {"attributes": ["field", "age"], **author}
    rng = np.random.default_rng(0)
    frames = {}
    for name, relation in spec["relations"].items():
        frames[name] = pl.DataFrame(getattr(state, name), schema=relation["columns"], orient="row")
        if name != "published_in":
            weights, times = (
                rng.integers(0, 5, len(frames[name])),
                rng.integers(2000, 2020, len(frames[name])),
            )
            frames[name] = frames[name].with_columns(weight=pl.Series(weights), time=pl.Series(times))
            relation |= {"weight": "weight", "time": "time"}
    paper_years = {p: 2000 + int(string_hash(p) % np.uint64(20)) for p in state.titles} | (years or {})
    papers = pl.DataFrame(
        {"id": [*state.titles], "title": [*state.titles.values()], "year": [*paper_years.values()]}
    )
    spec["nodes"]["paper"]["attributes"] = ["year"]
    return Network.from_frames(spec, {"paper": papers, "author": authors}, frames, temporary_folder() / "net")


def options(**changes: Any) -> Any:
    usual = {"max_steps": 6, "textless_attributes": True, "positives": "fresh", "warm_up": WARM}
    return tiny_options(tiny_reader(), **usual | changes)


@pytest.fixture(scope="module")
def network() -> Network:
    return valued_network()


@pytest.fixture(scope="module")
def run(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(network, tmp_path_factory.mktemp("run") / "run", options())


def encoder(run: Run) -> HeterogeneousEncoder:
    model = run.model()
    assert isinstance(model, HeterogeneousEncoder)
    return model


def assert_same_weights(run: Run, other: Run) -> None:
    """Equal to the last bit, the optimiser's state included."""
    one, two = tensors(run, *LAST), tensors(other, *LAST)
    assert one.keys() == two.keys()
    assert [name for name in one if not torch.equal(one[name], two[name])] == []


def test_a_run_that_stops_goes_on_to_the_very_same_numbers(
    run: Run, network: Network, tmp_path: Path
) -> None:
    train(network, tmp_path / "run", options(max_steps=2))
    assert_same_weights(train(network, tmp_path / "run", options()), run)


def test_a_time_split_goes_on_to_the_very_same_numbers(network: Network, tmp_path: Path) -> None:
    by_time = SplitOptions(by="time")
    whole = train(network, tmp_path / "whole", options(max_steps=4, split=by_time))
    assert whole.split(network).times is not None
    train(network, tmp_path / "parts", options(max_steps=1, split=by_time))
    assert_same_weights(train(network, tmp_path / "parts", options(max_steps=4, split=by_time)), whole)


def test_with_names_as_text_it_goes_on_to_the_very_same_numbers(network: Network, tmp_path: Path) -> None:
    named = valued_network(text_from="name")
    whole = train(named, tmp_path / "whole", options(max_steps=3))
    train(named, tmp_path / "parts", options(max_steps=1))
    assert_same_weights(train(named, tmp_path / "parts", options(max_steps=3)), whole)
    plain = train(network, tmp_path / "plain", options(max_steps=3))
    tables = [encoder(one).textless.parameters_of("author")[0] for one in (whole, plain)]
    assert not torch.allclose(*tables)


def test_attributes_are_learnt_and_saved_with_the_model(run: Run, network: Network) -> None:
    model, loaded = encoder(run), load_model(run.path)
    assert isinstance(loaded, HeterogeneousEncoder)
    assert list(model.textless.encodings) == ["author"]
    assert all(p.any() for p in model.textless.attribute_parameters_of("author"))
    rows = torch.arange(network.schema.counts["author"])
    with torch.no_grad():
        vectors = model.textless_vectors("author", rows)
        assert torch.equal(loaded.textless_vectors("author", rows), vectors)
        table, projection = model.textless.parameters_of("author")
        assert not torch.allclose(vectors, table @ projection.T)
    np.testing.assert_allclose(embed(model, network)["author"], vectors.numpy(), rtol=1e-5, atol=1e-6)


def test_an_unseen_node_starts_from_its_attributes(run: Run) -> None:
    """The papers of its field score higher with it than others do, though no text is next to it."""
    classes = sorted(set(fields().values()))
    grown = valued_network({f"new {name}": name for name in classes})
    vectors = embed(run.model(), grown)
    labels = np.array(tiny_network().labels("paper").list.first().to_list())
    papers = vectors["paper"][grown.rows("paper", tiny_network().ids("paper"))]
    ahead = 0
    for name in classes:
        scores = papers @ vectors["author"][grown.rows("author", [f"new {name}"])[0]]
        ahead += scores[labels == name].mean() > scores[labels != name].mean()
    assert ahead == len(classes)


def test_of_a_node_of_which_nothing_is_known_the_mean_is_known(run: Run) -> None:
    grown = valued_network({"unknown": None})
    h0 = embed(run.model(), grown, h0=True)["author.h0"][grown.rows("author", ["unknown"])[0]]
    textless = encoder(run).textless
    nothing = textless.attribute_offsets("author", textless.encodings["author"].missing(1))
    mean = textless.parameters_of("author")[0].mean(0) + nothing[0]
    np.testing.assert_allclose(h0, mean.detach().numpy(), rtol=1e-3, atol=1e-3)


def test_changed_attributes_of_known_nodes_count(run: Run, network: Network) -> None:
    first = network.ids("author")[0]
    before = embed(run.model(), network)["author"]
    assert np.array_equal(embed(run.model(), valued_network())["author"], before)
    other = next(f for f in fields().values() if f != fields()[first])
    again = embed(run.model(), valued_network({first: other}))["author"]
    assert not np.allclose(again[0], before[0])
    np.testing.assert_allclose(again[1:], before[1:], rtol=1e-5, atol=1e-6)


def test_what_was_folded_in_before_is_taken_over(run: Run, tmp_path: Path) -> None:
    grown = valued_network({"new": next(iter(fields().values()))})
    first = embed(run.model(), grown, out=tmp_path / "first.parquet", h0=True)
    since = tmp_path / "first.parquet"
    again = embed_to(tmp_path / "again.parquet", run.model(), grown, EmbedOptions(h0=True), since=since)
    np.testing.assert_allclose(again.matrix("author"), first.matrix("author"), rtol=1e-4, atol=1e-5)
    assert np.array_equal(again.signatures("author"), first.signatures("author"))


def test_a_run_may_start_from_one_with_attributes(run: Run, tmp_path: Path) -> None:
    grown = valued_network({"new": next(iter(fields().values()))})
    further = train(grown, tmp_path / "further", options(init=str(run.path), max_steps=1))
    assert list(encoder(further).textless.encodings) == ["author"]


def test_a_network_without_the_attributes_is_refused(run: Run) -> None:
    with pytest.raises(InputError, match="'author' nodes have no attribute 'field', which the model reads"):
        embed(run.model(), first_state().built())


def test_without_the_option_no_attribute_is_read(network: Network, tmp_path: Path) -> None:
    plain = encoder(train(network, tmp_path / "run", options(textless_attributes=False, max_steps=1)))
    assert plain.textless.encodings == {}
    assert plain.config.attributes is None
    assert not [name for name in plain.state_dict() if "attributes" in name or "numbers" in name]


# --- Attributes of text-rich nodes -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def token_run(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Run:
    asked = options(attribute_token=True, neighbor_dropout=0.3)
    return train(network, tmp_path_factory.mktemp("token") / "run", asked)


def test_a_run_with_a_token_goes_on_to_the_very_same_numbers(
    token_run: Run, network: Network, tmp_path: Path
) -> None:
    for steps in (2, 6):
        asked = options(attribute_token=True, neighbor_dropout=0.3, max_steps=steps)
        again = train(network, tmp_path / "run", asked)
    assert_same_weights(again, token_run)


def test_the_token_is_learnt_and_papers_vectors_depend_on_it(token_run: Run, network: Network) -> None:
    model: Any = encoder(token_run)
    assert list(model.attribute_encoders) == ["paper"]
    assert any(p.any() for p in model.attribute_encoders.parameters())
    before = embed(token_run.model(), network)["paper"]
    first = network.ids("paper")[0]
    after = embed(token_run.model(), valued_network(years={first: 1900}))["paper"]
    assert not np.allclose(after[0], before[0], atol=1e-7)
    np.testing.assert_allclose(after[1:], before[1:], rtol=1e-4, atol=1e-5)


def test_changed_attributes_are_computed_again_and_others_taken_over(token_run: Run, tmp_path: Path) -> None:
    network, first = valued_network(), valued_network().ids("paper")[0]
    embed(token_run.model(), network, out=tmp_path / "first.parquet")
    changed = valued_network(years={first: 1900})
    since = tmp_path / "first.parquet"
    found = embed_to(tmp_path / "again.parquet", token_run.model(), changed, EmbedOptions(), since=since)
    expected = embed(token_run.model(), changed)["paper"]
    np.testing.assert_allclose(found.matrix("paper"), expected, rtol=1e-4, atol=1e-5)


def test_an_explanation_shows_the_token(token_run: Run) -> None:
    paper = token_run.network().ids("paper")[0]
    explanation = explain(token_run.path, paper, node_type="paper")
    assert isinstance(explanation, TextExplanation)
    kinds = [token.kind for token in explanation.virtual_tokens]
    assert kinds == ["text_rich", "textless", "attributes"]
    assert explanation.virtual_tokens[2].neighbors == ()
    for layer in explanation.layers[1:]:
        assert set(layer.virtual) == set(kinds)
        assert sum(layer.virtual.values()) + layer.text == pytest.approx(1, abs=1e-5)
