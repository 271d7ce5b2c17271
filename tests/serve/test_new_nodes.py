"""New nodes of every type over HTTP, against the same nodes in a network that has grown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from heterformer.embedding.embed import embed
from heterformer.network.build.frames import temporary_folder
from heterformer.network.store import Network
from heterformer.search.searcher import Searcher
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.learning import WORDS, tiny_options, tiny_reader
from tests.networks import files
from tests.serve.serving import Server, server
from tests.serve.test_app import check_problem

SPEC: dict[str, Any] = {
    "name": "reviews",
    "nodes": {"paper": {"text": ["title"]}, "review": {"text": ["body"]}, "author": {}, "venue": {}},
    "relations": {
        "cites": {"from": "paper", "to": "paper", "columns": ["source", "target"]},
        "about": {"from": "review", "to": "paper", "columns": ["review", "paper"]},
        "wrote": {"from": "author", "to": "paper", "columns": ["author", "paper"]},
        "reviewed": {"from": "author", "to": "review", "columns": ["author", "review"]},
        "held": {"from": "venue", "to": "author", "columns": ["venue", "author"]},
    },
    "predict": "cites",
    "neighbors": {"paper": 9, "review": 9, "author": 9, "venue": 9},
    "max_tokens": 16,
}
NEW: list[dict[str, Any]] = [
    {"id": "new-paper", "text": "kernel methods", "neighbors": {"paper": ["p3"], "author": ["a1"]}},
    {
        "id": "new-author",
        "type": "author",
        "neighbors": {"paper": ["p3", "p9", "p4"], "review": ["r2"]},
    },
    {
        "id": "new-review",
        "type": "review",
        "text": "graph kernels",
        "neighbors": {"author": ["a2", "a3"], "paper": ["p5"]},
    },
    {"id": "lone-review", "type": "review", "text": "corpus"},
    {"id": "other-author", "type": "author", "neighbors": {"review": ["r7"]}},
]


def network(new: Sequence[dict[str, Any]] = ()) -> Network:
    """Papers and reviews with texts, authors and venues without, and new nodes."""
    rng, words = np.random.default_rng(0), WORDS[5:]
    ids = {t: [f"{t[0]}{i}" for i in range(n)] for t, n in (("paper", 80), ("review", 40), ("author", 20))}
    ids["venue"] = ["v0", "v1"]
    texts = {t: {i: " ".join(rng.choice(words, 5)) for i in ids[t]} for t in ("paper", "review")}
    edges = {
        name: sorted(
            {
                (s, t)
                for s in ids[relation["from"]]
                for t in rng.choice(ids[relation["to"]], 2 if name != "cites" else 3)
                if s != t
            }
        )
        for name, relation in SPEC["relations"].items()
    }
    joined = {("paper", "paper"): "cites", ("review", "paper"): "about", ("author", "paper"): "wrote"}
    joined |= {("author", "review"): "reviewed"}
    for node in new:
        own = node.get("type", "paper")
        if own in texts:
            texts[own][node["id"]] = node["text"]
        for other, names in node.get("neighbors", {}).items():
            forward = (own, other) in joined
            name = joined[(own, other) if forward else (other, own)]
            edges[name] += [(node["id"], n) if forward else (n, node["id"]) for n in names]
    nodes = {
        t: pl.DataFrame({"id": [*texts[t]], column: [*texts[t].values()]})
        for t, column in (("paper", "title"), ("review", "body"))
    }
    relations = {
        name: pl.DataFrame(pairs, schema=SPEC["relations"][name]["columns"], orient="row")
        for name, pairs in edges.items()
    }
    return Network.from_frames(SPEC, nodes, relations, temporary_folder() / "net")


@cache
def run(**options: Any) -> Path:
    path = train(
        network(), temporary_folder() / "run", tiny_options(tiny_reader(), max_steps=4, **options)
    ).path
    Searcher(path).store  # noqa: B018 - makes the vectors
    return path


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with server(run(textless_neighbors=4, network_readout="both")) as started:
        yield started


@pytest.fixture
def client(running: Server) -> Iterator[httpx.Client]:
    with running.client() as opened:
        yield opened


def vectors(client: httpx.Client, *nodes: dict[str, Any]) -> NDArray[np.float64]:
    answer = client.post("/nodes", json={"nodes": nodes})
    assert answer.status_code == 200, answer.text
    made = answer.json()["nodes"]
    assert [node["id"] for node in made] == [node["id"] for node in nodes]
    return np.array([node["vector"] for node in made])


def test_a_new_node_of_any_type_is_what_it_would_be_in_a_grown_network(client: httpx.Client) -> None:
    found = dict(zip([node["id"] for node in NEW], vectors(client, *NEW), strict=True))
    authors = [node for node in NEW if node.get("type") == "author"]
    texts = [node for node in NEW if node not in authors]  # which are also texts of known authors
    for nodes in (authors, texts):
        grown = network(nodes)
        expected = embed(Run(run(textless_neighbors=4, network_readout="both")).model(), grown)
        for node in nodes:
            node_type = node.get("type", "paper")
            (row,) = grown.rows(node_type, [node["id"]])
            np.testing.assert_allclose(found[node["id"]], expected[node_type][row], rtol=1e-4, atol=1e-4)


def test_requests_at_once_do_not_influence_each_other(client: httpx.Client) -> None:
    folder = run(textless_neighbors=4, network_readout="both")
    before = client.post("/search", json={"like": "a1", "types": ["author"], "top": 5}).json()
    info, stored = client.get("/info").json(), files(folder)
    alone = [vectors(client, node) for node in NEW]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda node: vectors(client, node), NEW * 4))
    for place, vector in enumerate(together):
        np.testing.assert_allclose(vector, alone[place % len(NEW)], rtol=1e-4, atol=1e-5)
    assert client.post("/search", json={"like": "a1", "types": ["author"], "top": 5}).json() == before
    assert client.get("/info").json() == info
    assert files(folder) == stored
    assert check_problem(client.get("/nodes/author/new-author"), 404, "not_found")


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ({"type": "review"}, "a new 'review' node needs a text; give it as 'text'."),
        ({"type": "author", "text": "x", "neighbors": {"paper": ["p1"]}}, "have no text; leave it out."),
        ({"type": "author"}, "give neighbours of type 'paper' or 'review'."),
        ({"type": "author", "neighbors": {"paper": []}}, "give neighbours of type 'paper' or 'review'."),
        ({"type": "author", "neighbors": {"venue": ["v1"]}}, "neighbours of type 'venue' say nothing"),
        ({"type": "venue", "neighbors": {"author": ["a1"]}}, "have neither text nor neighbours that have"),
        ({"type": "review", "text": "x", "neighbors": {"venue": ["v1"]}}, "no relation joins 'review' and"),
        ({"type": "x", "text": "x"}, "type is 'x', expected one of 'paper', 'review', 'author', 'venue'."),
    ],
)
def test_what_cannot_be_embedded_is_one_sentence(client: httpx.Client, node: Any, words: str) -> None:
    answer = client.post("/nodes", json={"nodes": [NEW[0], node]})
    assert words in check_problem(answer, 400, "invalid_request")


def test_a_model_that_knows_texts_alone_refuses_nodes_without() -> None:
    with server(run(model="mean_sage")) as started, started.client() as client:
        answer = client.post("/nodes", json={"nodes": [NEW[1]]})
        assert "the model (MeanSAGE) has no vectors of 'author'" in check_problem(
            answer, 400, "invalid_request"
        )
        assert len(vectors(client, NEW[3])[0]) > 0
