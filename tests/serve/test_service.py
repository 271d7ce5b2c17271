"""The service without HTTP: the same answers as the library, also to many at once."""

from __future__ import annotations

import hashlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache
from typing import Any

import numpy as np
import pytest

from heterformer.batches.assembly import SampledEdges
from heterformer.errors import InputError
from heterformer.explanation.core import Explainer, explain
from heterformer.explanation.effects import leave_one_out
from heterformer.network.build.frames import temporary_folder
from heterformer.recommendation.core import Recommender
from heterformer.search.searcher import Searcher
from heterformer.serve.batching import NewText
from heterformer.serve.deadline import Deadline
from heterformer.serve.errors import NotFoundError, RequestError, TooLargeError, UnavailableError
from heterformer.serve.nodes import Page
from heterformer.serve.options import ServeOptions
from heterformer.serve.service import Service
from heterformer.training.train import train
from tests.learning import save_reader, tiny_network, tiny_options
from tests.serve.serving import copied_run, served_run, service

TEXTS = ["kernel methods", "graphs", "a survey of solution stability", "", "corpus " * 50]


@cache
def searcher() -> Searcher:
    return Searcher(served_run(), device="cpu")


def weights() -> str:
    digest = hashlib.blake2b()
    for run in service()._runs.values():
        for name, tensor in run._text_encoder.model.state_dict().items():
            digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def near(row: int) -> dict[str, list[str]]:
    return {t: tiny_network().ids(t, [row]) for t in ("author", "venue", "paper")}


def test_vectors_are_those_of_the_library() -> None:
    found = service().embed("", TEXTS)
    expected = searcher().run.model().encode(TEXTS)
    np.testing.assert_allclose(found.vectors, expected, rtol=1e-5, atol=1e-5)
    assert (found.run, found.max_tokens) == ("run", 32)
    assert found.tokens[3:] == (2, 52)


def test_tokens_are_counted_as_the_model_reads_them() -> None:
    """A backbone that reads less of a text than the network has."""
    reader = save_reader(temporary_folder(), max_position_embeddings=12)
    options = tiny_options(reader, max_steps=1, document_prompt="kernel ")
    path = train(tiny_network(), temporary_folder() / "short", options).path
    short = Service([path], ServeOptions(device="cpu"))
    (run,) = short._runs.values()
    found = short.embed("", TEXTS)
    assert found.max_tokens == run.text_limit == short.info()["runs"][0]["max_tokens"] < 32
    assert found.tokens == (5, 4, 8, 3, 53)  # with the prompt
    papers = tiny_network().texts("paper", [3, 4])
    lengths = [min(len(run._text_encoder.tokenizer(f"kernel {t}")["input_ids"]), 12) for t in papers]
    near = {"paper": [3, 4, 3], "author": [1]}
    assert run.count_tokens(NewText("graphs", near)) == (4, 4 + sum(lengths))
    assert run.count_tokens(NewText(TEXTS[-1])) == (53, run.text_limit)
    further = int(np.diff(run._tokens.offsets)[5])
    edges = SampledEdges("paper", (), np.zeros(2, int), np.array([4, 5], np.int32), np.zeros(2, np.int16))
    run._text_encoder.second_hop = lambda node_type, rows: [edges]  # 4 is there already
    assert run.count_tokens(NewText("graphs", near)) == (4, 4 + sum(lengths) + further)
    short.close()


def test_requests_at_once_give_what_they_give_one_by_one_and_change_nothing() -> None:
    before = weights()
    asked = [([text, f"{text} {i}"], [near(i % 10), {}]) for i in range(12) for text in TEXTS]
    alone = [service().embed("", *each).vectors for each in asked]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda each: service().embed("", *each).vectors, asked))
        rankings = list(pool.map(lambda text: service().search("", text=text, top=3), TEXTS[:3] * 6))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    assert all(
        rankings[i].rankings[0].hits[0].id == rankings[i % 3].rankings[0].hits[0].id for i in range(18)
    )
    assert weights() == before


@pytest.mark.parametrize(
    "query",
    [
        {"text": "kernel methods", "top": 4},
        {"text": "kernel", "where": "time > 1990", "types": ["paper"], "index": "exact"},
        {"like": "p7", "exclude_known": True, "types": ["author", "venue"]},
        {"text": "kernel", "neighbors": ["paper=p3", "author=a5"]},
    ],
)
def test_a_search_is_that_of_the_library(query: dict[str, Any]) -> None:
    found, expected = service().search("", **query), searcher().search(**query)
    assert [[hit.id for hit in r.hits] for r in found.rankings] == [
        [hit.id for hit in r.hits] for r in expected.rankings
    ]
    scores = [hit.score for r in found.rankings for hit in r.hits]
    assert scores == pytest.approx([hit.score for r in expected.rankings for hit in r.hits], rel=1e-5)
    assert (found.like, found.neighbors) == (expected.like, expected.neighbors)


def test_recommendations_are_those_of_the_library() -> None:
    query = {"top": 4, "exclude_known": True, "where": "time > 1985"}
    found = service().recommend("", ["p3", "p5"], **query)
    assert found == Recommender(served_run(), device="cpu").recommend(["p3", "p5"], **query)
    assert not any(hit.known for each in found for hit in each.ranking.hits)
    for users, problem in (
        ([], "no user to recommend to"),
        (["nope"], "there is no"),
        (["p3"] * 300, "300 users"),
    ):
        with pytest.raises(RequestError, match=problem):
            service().recommend("", users)
    with pytest.raises(RequestError, match="needs a predicted relation of nodes without text"):
        service().recommend("", [], likes=["p3"])


def test_neighbours_of_a_node_come_page_by_page() -> None:
    network = tiny_network()
    whole = service().node("run", "paper", "p7", Page(limit=1000))
    items = whole["neighbors"]["items"]
    assert whole["neighbors"]["total"] == len(items) > 5
    pages = [
        service().node("", "paper", "p7", Page(offset=o, limit=4))["neighbors"]
        for o in range(0, len(items), 4)
    ]
    assert [item for page in pages for item in page["items"]] == items
    assert {page["total"] for page in pages} == {len(items)}
    expected = set()
    for relation in network.schema.relations:
        sources, targets = network.edges(relation.name)
        ids = {end: network.ids(end) for end in (relation.source, relation.target)}
        if relation.source == "paper":
            expected |= {
                (relation.name, "out", ids[relation.target][t])
                for s, t in zip(sources, targets, strict=True)
                if ids["paper"][s] == "p7"
            }
        if relation.target == "paper":
            expected |= {
                (relation.name, "in", ids[relation.source][s])
                for s, t in zip(sources, targets, strict=True)
                if ids["paper"][t] == "p7"
            }
    assert {(i["relation"], i["direction"], i["id"]) for i in items} == expected
    authors = service().node("", "paper", "p7", Page(neighbor_type="author"))["neighbors"]["items"]
    assert authors == [item for item in items if item["node_type"] == "author"]
    cited = service().node("", "paper", "p7", Page(relation="cites", direction="in"))["neighbors"]
    assert cited["items"] == [i for i in items if (i["relation"], i["direction"]) == ("cites", "in")]
    groups = Counter((i["relation"], i["direction"], i["node_type"]) for i in items)
    counted = {(g["relation"], g["direction"], g["neighbor_type"]): g["total"] for g in whole["relations"]}
    assert {group: total for group, total in counted.items() if total} == groups
    with pytest.raises(NotFoundError, match="paper nodes have no such neighbours, only cites out paper"):
        service().node("", "paper", "p7", Page(relation="cites", neighbor_type="author"))
    assert service().node("", "paper", "p7", Page(offset=10**6))["neighbors"]["items"] == []
    (row,) = network.rows("paper", ["p7"])
    assert whole["text"] == network.texts("paper", [row])[0]
    assert whole["label"] == network.labels("paper")[int(row)].to_list()
    assert set(whole["attributes"]) == {"subtopic"}


def test_names_that_begin_with_the_letters_come_first() -> None:
    names = tiny_network().names("author")
    letters = names[3][:2].upper()
    found = [n["name"] for n in service().nodes_named("", letters, "author", limit=1000)]
    begins = [n for n in names if n.lower().startswith(letters.lower())]
    assert found[: len(begins)] == begins
    assert set(found) == {n for n in names if letters.lower() in n.lower()}
    assert len(service().nodes_named("", "a", limit=3)) == 3
    assert service().nodes_named("", ".*") == []


def test_an_explanation_is_that_of_the_library() -> None:
    explainer = Explainer(served_run())
    expected = asdict(explain(explainer, "p7"))
    effects = asdict(leave_one_out(explainer, "p7", pair="a3"))
    del effects["run"]
    assert service().explain("", "p7", pair="a3") == expected | {"run": "run", "leave_one_out": effects}
    assert service().explain("", "p7", effects=False)["leave_one_out"] is None
    assert service().explain("", "a3")["leave_one_out"] is None
    with pytest.raises(RequestError, match="has no text, and its vector is learnt"):
        service().explain("", "a3", pair="p7")


def test_what_is_refused() -> None:
    small = Service([served_run()], ServeOptions(device="cpu", max_inputs=2, max_characters=5))
    with pytest.raises(TooLargeError, match=r"^found 3 inputs, expected at most 2\.$"):
        small.embed("", ["a"] * 3)
    with pytest.raises(TooLargeError, match=r"^text 2 has 6 characters, expected at most 5\.$"):
        small.embed("", ["a", "123456"])
    with pytest.raises(TooLargeError, match=r"^text 1 has 6 characters"):
        small.search("", text="123456")
    small.close()
    with pytest.raises(NotFoundError, match=r"^there is no run 'x', the runs are run\.$"):
        service().embed("x", ["a"])
    with pytest.raises(NotFoundError, match=r"^there is no paper with the id 'p7x'\.$"):
        service().node("", "paper", "p7x")
    with pytest.raises(
        NotFoundError, match=r"^there is no node type 'x', the types are paper, author, venue\.$"
    ):
        service().node("", "x", "p7")
    with pytest.raises(NotFoundError, match=r"^there is no author with the id or name 'nobody'"):
        service().embed("", ["a"], [{"author": ["nobody"]}])
    with pytest.raises(
        RequestError, match=r"^neighbors is 'x', expected one of 'paper', 'author', 'venue'\.$"
    ):
        service().embed("", ["a"], [{"x": ["nobody"]}])
    with pytest.raises(UnavailableError, match="not answered within"):
        service().embed("", ["a"], deadline=Deadline(-1))


def test_no_refusal_has_a_path() -> None:
    for query in (
        {"like": "nobody"},
        {"text": "a", "neighbors": ["author=nobody"]},
        {"text": "a", "types": ["x"]},
    ):
        with pytest.raises(RequestError) as error:
            service().search("", **query)
        assert "/" not in str(error.value)
        assert "--" not in str(error.value)


def test_two_runs_are_asked_by_name() -> None:
    both = Service([served_run(), copied_run("second")], ServeOptions(device="cpu"))
    assert both.names == ("run", "second")
    assert both.embed("second", ["a"]).run == "second"
    assert [run["run"] for run in both.info()["runs"]] == ["run", "second"]
    both.close()
    with pytest.raises(InputError, match=r"another run is called 'run' too; rename one of the folders\.$"):
        Service([served_run(), served_run()], ServeOptions(device="cpu"))


def test_a_reload_that_fails_leaves_all_as_it_was() -> None:
    path = copied_run("fragile")
    fragile = Service([path], ServeOptions(device="cpu"))
    before = fragile.embed("", ["kernel"]).vectors
    (path / "config.yaml").unlink()
    with pytest.raises(RequestError) as error:
        fragile.reload()
    assert str(path) not in str(error.value)
    np.testing.assert_array_equal(fragile.embed("", ["kernel"]).vectors, before)
    fragile.close()
