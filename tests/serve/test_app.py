"""The server over HTTP, as its clients meet it."""

from __future__ import annotations

import base64
import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import httpx
import numpy as np
import openai
import pytest
from huggingface_hub import InferenceClient

from heterformer.search.approximate import has_faiss
from tests.serve.serving import SECONDS, Server, server, service, wait_for
from tests.serve.test_service import TEXTS

KEY = "a-key-of-the-tests"
NEAR = [{"text": "a", "neighbors": {"author": ["a5", "a6"], "venue": ["nowhere"]}}]


@pytest.fixture(scope="module")
def running() -> Iterator[Server]:
    with server(max_body=100_000, max_inputs=8, max_characters=500, max_requests=64) as started:
        yield started


@pytest.fixture
def client(running: Server) -> Iterator[httpx.Client]:
    with running.client() as opened:
        yield opened


def check_problem(response: httpx.Response, status: int, error_type: str) -> str:
    assert response.status_code == status, response.text
    problem = response.json()
    assert set(problem) == {"error", "error_type"}
    assert problem["error_type"] == error_type
    sentence: str = problem["error"]
    assert sentence.endswith(".")
    assert "Traceback" not in sentence
    assert "/tmp" not in sentence
    return sentence


@pytest.mark.parametrize("encoding", ["float", None])  # without one the client asks for base64
def test_the_openai_client(running: Server, encoding: Any) -> None:
    more = {} if encoding is None else {"encoding_format": encoding}
    with openai.OpenAI(base_url=f"{running.address}/v1", api_key="none", max_retries=0) as client:
        found = client.embeddings.create(input=TEXTS, model="run", **more)
        one = client.embeddings.create(input="graphs", model="run", dimensions=5, **more)
        with pytest.raises(openai.NotFoundError) as error:
            client.embeddings.create(input="graphs", model="other")
    assert "there is no run 'other'" in check_problem(error.value.response, 404, "not_found")
    expected = service().embed("", TEXTS).vectors
    vectors = np.array([each.embedding for each in found.data])
    np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-5)
    assert [each.index for each in found.data] == list(range(len(TEXTS)))
    np.testing.assert_allclose(one.data[0].embedding, expected[1][:5], rtol=1e-5, atol=1e-5)
    assert found.usage.prompt_tokens == found.usage.total_tokens == 4 + 3 + 7 + 2 + 32


def test_base64_is_that_of_little_endian_floats(client: httpx.Client) -> None:
    asked = {"input": "graphs", "encoding_format": "base64"}
    (found,) = client.post("/v1/embeddings", json=asked).json()["data"]
    vector = np.frombuffer(base64.b64decode(found["embedding"]), dtype="<f4")
    np.testing.assert_allclose(vector, service().embed("", ["graphs"]).vectors[0], rtol=1e-5, atol=1e-5)


def test_a_client_of_text_embeddings_inference(client: httpx.Client) -> None:
    expected = service().embed("", TEXTS).vectors
    plain = client.post("/embed", json={"inputs": TEXTS, "normalize": False, "prompt_name": None}).json()
    np.testing.assert_allclose(plain, expected, rtol=1e-5, atol=1e-5)
    unit = np.array(client.post("/embed", json={"inputs": TEXTS}).json())
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-5)
    single = client.post("/embed", json={"inputs": TEXTS[0]}).json()
    np.testing.assert_allclose(single, unit[:1], rtol=1e-4, atol=1e-5)
    refused = client.post("/embed", json={"inputs": TEXTS, "truncate": False})
    assert "52 tokens, the model reads 32" in check_problem(refused, 413, "too_large")


def test_the_client_of_hugging_face(running: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)  # it asks this machine alone
    client = InferenceClient(model=f"{running.address}/embed", token="none")
    vector = client.feature_extraction(TEXTS[0], normalize=False)
    expected = service().embed("", TEXTS[:1]).vectors
    np.testing.assert_allclose(vector, expected, rtol=1e-4, atol=1e-5)


def test_search_nodes_and_explanations(client: httpx.Client) -> None:
    asked = {
        "text": "kernel",
        "neighbors": {"author": ["a5"]},
        "types": ["paper"],
        "top": 3,
        "where": "time > 1990",
    }
    ranking = client.post("/search", json=asked).json()["rankings"][0]
    assert len(ranking["hits"]) == 3
    hit = ranking["hits"][0]
    node = client.get(f"/nodes/paper/{hit['id']}", params={"limit": 2}).json()
    assert (node["id"], node["name"]) == (hit["id"], hit["name"])
    assert node["time"] > 1990
    assert len(node["neighbors"]["items"]) == 2
    named = client.get("/nodes", params={"q": hit["name"][:12], "type": "paper"}).json()["nodes"]
    assert hit["id"] in [n["id"] for n in named]
    why = client.post("/explain", json={"node": hit["id"]}).json()
    assert (why["node"]["id"], why["run"]) == (hit["id"], "run")
    new: dict[str, list[dict[str, Any]]]
    new = {"nodes": [{"id": "n1", "text": "kernel", "neighbors": {"author": ["a5"]}}, {"text": "kernel"}]}
    made = client.post("/nodes", json=new).json()["nodes"]
    assert [n["id"] for n in made] == ["n1", ""]
    assert not np.allclose(made[0]["vector"], made[1]["vector"])
    assert check_problem(client.get("/nodes/paper/n1"), 404, "not_found")
    typed = {"nodes": [{**new["nodes"][0], "type": "paper"}]}
    (again,) = client.post("/nodes", json=typed).json()["nodes"]
    np.testing.assert_allclose(again["vector"], made[0]["vector"], rtol=1e-4, atol=1e-5)


def test_links_of_nodes_count_by_their_weight(client: httpx.Client) -> None:
    asked = {"text": "kernel", "types": ["paper"], "top": 5}
    scores = []
    for weight in (0, 1):
        ranking = client.post("/search", json=asked | {"link_weight": weight}).json()["rankings"][0]
        (expected,) = service().search("", text="kernel", types=["paper"], top=5, link_weight=weight).rankings
        assert [hit["id"] for hit in ranking["hits"]] == [hit.id for hit in expected.hits]
        scores.append([hit["score"] for hit in ranking["hits"]])
    assert scores[1] > scores[0]
    user = {"users": "p3", "top": 5}
    found = [client.post("/recommend", json=user | {"link_weight": w}).json() for w in ("auto", 1, 0)]
    assert found[0] == found[1] != found[2]


def test_recommendations_are_those_of_the_library(client: httpx.Client) -> None:
    asked = {"users": ["p3", "p5"], "top": 4, "where": "time > 1985"}
    found = client.post("/recommend", json=asked).json()["recommendations"]
    expected = service().recommend("", ["p3", "p5"], top=4, exclude_known=True, where="time > 1985")
    assert found == json.loads(json.dumps([asdict(each) for each in expected]))
    assert [len(each["ranking"]["hits"]) for each in found] == [4, 4]
    one = client.post("/recommend", json=asked | {"users": "p5"}).json()["recommendations"]
    assert one == found[1:]


def test_state_and_description(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/ready").json() == {"status": "ready"}
    info = client.get("/info").json()
    assert info["runs"][0]["types"]["paper"]["columns"] == ["id", "name", "text", "label", "time", "subtopic"]
    assert info["limits"]["max_inputs"] == 8
    assert str(service()._paths[0]) not in json.dumps(info)
    document = client.get("/openapi.json").json()
    verbs = {
        "/v1/embeddings",
        "/embed",
        "/search",
        "/nodes",
        "/nodes/{node_type}/{node_id}",
        "/explain",
        "/recommend",
    }
    verbs |= {"/info", "/health", "/ready", "/metrics", "/admin/reload"}
    assert {path for path in document["paths"] if not path.startswith(("/map", "/pair"))} == verbs
    page = client.get("/docs")
    assert "POST /search" in page.text
    assert "http" not in page.text  # nothing is loaded from anywhere
    assert "<script" not in page.text
    assert "style-src 'sha256-" in page.headers["content-security-policy"]
    client.post("/search", json={"text": "kernel"})
    counter = 'heterformer_requests_total{method="POST",route="/search",status="200"}'
    wait_for(lambda: counter in client.get("/metrics").text)
    assert "heterformer_batch_texts_count" in client.get("/metrics").text


@pytest.mark.skipif(not has_faiss(), reason="needs FAISS")
def test_the_recall_of_an_approximate_index_is_told(client: httpx.Client) -> None:
    asked = {"text": "kernel", "index": "approximate", "types": ["author"]}
    assert client.post("/search", json=asked).json()["rankings"][0]["index"] == "approximate"
    types = client.get("/info").json()["runs"][0]["types"]
    assert types["venue"]["recall"] is None  # which is searched exactly
    assert 0 < types["author"]["recall"] <= 1


def logged(running: Server, request_id: str) -> list[dict[str, Any]]:
    """The lines of the log about a request, once there are some."""

    def lines() -> list[dict[str, Any]]:
        whole = (line for line in running.log.read_text().splitlines(keepends=True) if line.endswith("\n"))
        return [line for line in map(json.loads, whole) if line.get("request_id") == request_id]

    wait_for(lines)
    return lines()


def test_every_answer_has_an_id_and_security_headers(running: Server, client: httpx.Client) -> None:
    for path in ("/health", "/nope", "/docs", "/nodes/x/y"):
        answer = client.get(path, headers={"x-request-id": "my-id.1"})
        assert answer.headers["x-request-id"] == "my-id.1"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "server" not in answer.headers
    made = client.get("/health", headers={"x-request-id": 'a"b\\c'}).headers["x-request-id"]
    assert len(made) == 32
    (line,) = logged(running, made)
    assert {"time", "level", "method", "path", "status", "ms"} <= set(line)
    wait_for(lambda: len(logged(running, "my-id.1")) == 4)


@pytest.mark.parametrize(
    ("path", "body", "status", "error_type", "words"),
    [
        ("/search", {"text": "a", "where": "tim > 3"}, 400, "invalid_request", "no column 'tim'"),
        ("/search", {}, 400, "invalid_request", "nothing to search for"),
        ("/search", {"like": "nobody"}, 404, "not_found", "'nobody'"),
        ("/search", {"text": "a", "model": "x"}, 404, "not_found", "the runs are run"),
        ("/search", {"text": "a", "top": 0}, 422, "validation", "top: "),
        ("/search", {"text": "a", "link_weight": -1}, 422, "validation", "link_weight: "),
        (
            "/search",
            {"text": "a", "link_weight": 1, "types": ["venue"]},
            400,
            "invalid_request",
            "link_weight",
        ),
        ("/search", {"text": "a", "topp": 1}, 422, "validation", "topp: "),
        ("/search", {"text": "a" * 501}, 413, "too_large", "501 characters"),
        ("/embed", {"inputs": ["a"] * 9}, 413, "too_large", "9 inputs"),
        ("/nodes", {"nodes": [{"text": "a"}] * 9}, 413, "too_large", "9 inputs"),
        ("/search", {"text": "a", "neighbors": {"author": ["a5"] * 9}}, 413, "too_large", "9 neighbors"),
        (
            "/search",
            {"neighbors": {"author": ["a5"] * 5, "venue": ["v"] * 4}},
            413,
            "too_large",
            "9 neighbors",
        ),
        ("/nodes", {"nodes": NEAR * 3}, 413, "too_large", "9 neighbors, expected at most 8"),
        ("/recommend", {"likes": ["p1"] * 9}, 413, "too_large", "9 likes"),
        ("/nodes", {"nodes": [{"text": "a", "type": "author"}]}, 400, "invalid_request", "have no text"),
        ("/nodes", {"nodes": [{"type": "author"}]}, 400, "invalid_request", "neighbours of type 'paper'"),
        ("/nodes", {"nodes": [{"neighbors": {"author": ["a5"]}}]}, 400, "invalid_request", "needs a text"),
        (
            "/nodes",
            {"nodes": [{"type": "author", "neighbors": {"venue": ["v1"]}}]},
            400,
            "invalid_request",
            "neighbours of type 'venue' say nothing",
        ),
        ("/nodes", {"nodes": [{"text": "a", "type": "x"}]}, 400, "invalid_request", "type is 'x'"),
        ("/embed", {"inputs": [1, 2]}, 422, "validation", "inputs"),
        ("/v1/embeddings", {"input": "a", "dimensions": 17}, 422, "validation", "vectors have 16 numbers"),
        ("/embed", {"inputs": "a" * 100_001}, 413, "too_large", "bytes"),
        ("/explain", {"node": "nobody"}, 404, "not_found", "'nobody'"),
        ("/nope", {}, 404, "not_found", "/docs"),
        ("/info", {}, 405, "method_not_allowed", "POST /info"),
    ],
)
def test_a_mistake_is_one_sentence(
    client: httpx.Client, path: str, body: Any, status: int, error_type: str, words: str
) -> None:
    assert words in check_problem(client.post(path, json=body), status, error_type)


def test_a_body_without_a_declared_size_is_limited_too(client: httpx.Client) -> None:
    parts = (b"x" * 10_000 for _ in range(50))
    headers = {"content-type": "application/json"}
    refused = client.post("/embed", content=parts, headers=headers)
    assert "more than 100,000 bytes" in check_problem(refused, 413, "too_large")


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""]
)
def test_a_body_that_is_not_sent_as_json(client: httpx.Client, kind: str) -> None:
    answer = client.post("/search", content=b'{"text": "kernel"}', headers={"content-type": kind})
    assert "'Content-Type: application/json'" in check_problem(answer, 422, "validation")


def test_a_body_that_is_no_json_says_where(client: httpx.Client) -> None:
    answer = client.post("/search", content=b'{"text": ', headers={"content-type": "application/json"})
    sentence = "the body is not JSON: expecting value at character 9."
    assert check_problem(answer, 422, "validation") == sentence


def test_no_hostile_body_is_a_mistake_of_the_server(client: httpx.Client) -> None:
    rng = random.Random(0)
    values: list[Any] = [
        None,
        True,
        -1,
        2**70,
        1e308,
        "",
        "\u0000",
        "\ud800",
        "'",
        [],
        [[]],
        {},
        {"": ""},
        "p7",
    ]
    fields = {
        "/v1/embeddings": ["input", "model", "encoding_format", "dimensions"],
        "/embed": ["inputs", "model", "normalize", "truncate", "dimensions"],
        "/search": ["text", "neighbors", "like", "like_type", "types", "where", "top", "index", "model"],
        "/nodes": ["nodes", "model"],
        "/explain": ["node", "type", "queries", "model", "pair"],
        "/recommend": ["users", "likes", "type", "top", "where", "model"],
    }
    bodies = [
        (p, {rng.choice(f): rng.choice(values) for _ in range(3)})
        for p, f in fields.items()
        for _ in range(30)
    ]
    raw = [
        b"",
        b"{",
        b"[" * 20_000,
        b'{"text": NaN}',
        b"\xff\xfe",
        b'"a"',
        b"1" * 5000,
        b'{"text": "\\ud800"}',
    ]
    contents = [(path, json.dumps(body).encode()) for path, body in bodies]
    contents += [(path, content) for path in fields for content in raw]
    for path, content in contents:
        answer = client.post(path, content=content, headers={"content-type": "application/json"})
        assert answer.status_code in (200, 400, 404, 413, 422), (path, content[:80], answer.text)
        if answer.status_code != 200:
            assert set(answer.json()) == {"error", "error_type"}
    paths = [
        "/nodes/paper/%00",
        "/nodes/paper/..%2f..%2fetc",
        "/nodes/%ff/x",
        "/nodes?q=%ff",
        "/nodes/paper/p7?offset=-1",
    ]
    for path in [*paths, "/nodes/paper/p7?limit=99999999999999999999", "/nodes?q=" + "x" * 300, "/nodes"]:
        assert client.get(path).status_code in (200, 404, 422), path


def test_pages_of_other_sites_and_other_names_are_refused(client: httpx.Client) -> None:
    check_problem(client.get("/info", headers={"host": "evil.example"}), 403, "forbidden")
    check_problem(client.post("/admin/reload", headers={"origin": "https://evil.example"}), 403, "forbidden")
    check_problem(client.post("/admin/reload", headers={"origin": "null"}), 403, "forbidden")
    assert client.get("/info", headers={"host": "localhost:1"}).status_code == 200


def test_clients_at_once_get_what_they_get_alone(running: Server) -> None:
    expected = {text: service().embed("", [text]).vectors[0] for text in TEXTS}

    def ask(number: int) -> None:
        with running.client() as client:
            for text in TEXTS[number % 5 :] + TEXTS[: number % 5]:
                (found,) = client.post("/embed", json={"inputs": text, "normalize": False}).json()
                np.testing.assert_allclose(found, expected[text], rtol=1e-5, atol=1e-5)
                assert client.post("/search", json={"text": text or "a"}).status_code == 200

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(ask, range(12)))


def half_a_request(running: Server, body: bytes, sent: int = 5) -> socket.socket:
    """A request of whose body so many bytes are sent, and the rest not yet."""
    host, port = running.address.removeprefix("http://").split(":")
    opened = socket.create_connection((host, int(port)), timeout=SECONDS)
    head = f"POST /embed HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}"
    head += "\r\nContent-Type: application/json\r\nConnection: close"
    opened.sendall(f"{head}\r\n\r\n".encode() + body[:sent])
    return opened


def wait_until_under_way(running: Server) -> None:
    """Until the server is at a request."""
    with running.client() as client:
        wait_for(lambda: "heterformer_requests_under_way 1.0" in client.get("/metrics").text)


def test_one_too_many_is_told_to_come_again() -> None:
    body = json.dumps({"inputs": "kernel"}).encode()
    with server(max_requests=1) as running, running.client() as client:
        with half_a_request(running, body) as opened:
            wait_until_under_way(running)
            refused = client.post("/embed", json={"inputs": "a"})
            check_problem(refused, 429, "overloaded")
            assert refused.headers["retry-after"] == "1"
            assert client.get("/health").status_code == client.get("/ready").status_code == 200
            opened.sendall(body[5:])
            assert opened.recv(15) == b"HTTP/1.1 200 OK"
        wait_for(lambda: client.post("/embed", json={"inputs": "a"}).status_code == 200)


def test_a_full_queue_refuses_what_comes_and_goes_on() -> None:
    """One text is encoded and one waits: of several clients somebody is told to come again."""
    refused, end = threading.Event(), time.monotonic() + SECONDS

    def ask(number: int) -> set[int]:
        statuses: set[int] = set()
        with running.client() as client:
            while not refused.is_set() and time.monotonic() < end:
                answer = client.post("/embed", json={"inputs": f"kernel {number}"})
                statuses.add(answer.status_code)
                if answer.status_code == 429:
                    check_problem(answer, 429, "overloaded")
                    assert answer.headers["retry-after"] == "1"
                    refused.set()
        return statuses

    with server(max_inputs=1, max_waiting=1) as running, running.client() as client:
        with ThreadPoolExecutor(12) as pool:
            seen = set().union(*pool.map(ask, range(12)))
        assert seen == {200, 429}
        assert client.post("/embed", json={"inputs": "kernel"}).status_code == 200
        wait_for(lambda: 'route="/embed",status="429"' in client.get("/metrics").text)


def test_a_request_that_is_not_answered_in_time_is_told_so() -> None:
    body = json.dumps({"inputs": "kernel"}).encode()
    answers: list[bytes] = []

    def is_late() -> bool:
        with half_a_request(running, body, sent=len(body)) as opened:
            answers.append(b"".join(iter(lambda: opened.recv(65536), b"")))
        # If the body came after the head, it was that which was late.
        assert answers[-1].startswith((b"HTTP/1.1 503", b"HTTP/1.1 408")), answers[-1]
        return answers[-1].startswith(b"HTTP/1.1 503")

    with server(timeout=1e-6) as running:
        wait_for(is_late)
    problem = json.loads(answers[-1].partition(b"\r\n\r\n")[2])
    sentence = "the request was not answered within 1e-06 seconds."
    assert problem == {"error": sentence, "error_type": "unavailable"}


def test_a_body_that_does_not_come_is_given_up() -> None:
    with server(timeout=0.5) as running, half_a_request(running, b"x" * 100) as opened:
        assert opened.recv(12) == b"HTTP/1.1 408"


def test_a_key_is_needed_if_there_is_one() -> None:
    with server(environment={"HETERFORMER_API_KEY": KEY}) as running, running.client() as client:
        for headers in (
            {},
            {"authorization": KEY},
            {"authorization": f"Bearer {KEY}x"},
            {"authorization": "Bearer"},
        ):
            for path in ("/info", "/metrics", "/docs", "/nope"):
                refused = client.get(path, headers=headers)
                assert KEY not in check_problem(refused, 401, "unauthorized")
                assert refused.headers["www-authenticate"] == "Bearer"
        assert client.get("/health").status_code == client.get("/ready").status_code == 200
        assert client.get("/info", headers={"authorization": f"bearer {KEY}"}).status_code == 200
        with openai.OpenAI(base_url=f"{running.address}/v1", api_key=KEY, max_retries=0) as known:
            assert len(known.embeddings.create(input="a", model="run").data[0].embedding) == 16
        with (
            openai.OpenAI(base_url=f"{running.address}/v1", api_key="other", max_retries=0) as unknown,
            pytest.raises(openai.AuthenticationError),
        ):
            unknown.embeddings.create(input="a", model="run")
        assert KEY not in running.log.read_text()
