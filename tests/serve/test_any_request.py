"""Requests made up from the OpenAPI document: whatever is sent, the server makes no mistake of its own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from heterformer.serve.app import make_app
from heterformer.serve.metrics import Metrics
from tests.serve.serving import service, wait_for

EXAMPLES = 12  # of each verb
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
LOCAL = {"host": "localhost"}
BOUNDED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


SENSIBLE: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/v1/embeddings", {"body": {"input": ["a", "b"]}}),
    ("POST", "/v1/embeddings", {"body": {"input": "a", "encoding_format": "base64"}}),
    ("POST", "/embed", {"body": {"inputs": "a"}}),
    ("POST", "/nodes", {"body": {"nodes": [{"text": "a", "neighbors": {"author": ["a5"]}}]}}),
    ("POST", "/search", {"body": {"text": "kernel", "neighbors": {"author": ["a5"]}}}),
    ("POST", "/search", {"body": {"like": "p7", "types": ["paper", "author"]}}),
    ("POST", "/recommend", {"body": {"users": "p3"}}),
    ("GET", "/nodes", {"query": {"q": "a"}}),
    ("GET", "/nodes/{node_type}/{node_id}", {"path_parameters": {"node_type": "paper", "node_id": "p7"}}),
    ("GET", "/nodes/{node_type}/{node_id}", {"path_parameters": {"node_type": "author", "node_id": "a5"}}),
    ("POST", "/explain", {"body": {"node": "p7", "pair": "a5"}}),
    ("POST", "/explain", {"body": {"node": "a5"}}),
    ("GET", "/info", {}),
    ("GET", "/health", {}),
    ("GET", "/ready", {}),
    ("GET", "/metrics", {}),
    ("POST", "/admin/reload", {}),
    ("GET", "/map", {}),
    ("GET", "/map/points", {"query": {"limit": 5}}),
    ("GET", "/map/colors", {"query": {"by": "label"}}),
    ("GET", "/map/nodes/{number}", {"path_parameters": {"number": 3}}),
    ("POST", "/map/places", {"body": {"nodes": [{"type": "paper", "id": "p7"}, {"type": "x", "id": "y"}]}}),
    (
        "POST",
        "/pair",
        {"body": {"one": {"type": "paper", "id": "p7"}, "other": {"type": "paper", "id": "p8"}}},
    ),
]


def loaded_schema() -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", make_app(service(), Metrics()), headers=LOCAL)


def lay_out_the_map() -> None:
    """It is made once, and meanwhile answers 503."""
    with service().map_data("") as data:
        wait_for(lambda: data.describe()["status"] != "working")


@pytest.mark.parametrize(("method", "path", "request_parts"), SENSIBLE)
def test_answers_have_the_forms_that_the_document_shows(
    method: str, path: str, request_parts: dict[str, Any]
) -> None:
    lay_out_the_map()
    case = loaded_schema()[path][method].Case(**request_parts)
    answer = case.call(headers=LOCAL)
    assert answer.status_code == 200, answer.text
    case.validate_response(answer, checks=CHECKS)
    (content,) = case.operation.definition.raw["responses"]["200"]["content"].items()
    assert content[0] != "application/json" or content[1]["schema"]


def test_no_verb_is_left_out() -> None:
    verbs = {
        (result.ok().method.upper(), result.ok().path) for result in loaded_schema().get_all_operations()
    }
    assert verbs == {(method, path) for method, path, _ in SENSIBLE}


def test_no_request_is_a_mistake_of_the_server() -> None:
    """All verbs but the reload, which takes seconds, no body and no parameters, and has tests of its own."""
    lay_out_the_map()
    schema = loaded_schema().exclude(path="/admin/reload")
    sent: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    for result in schema.get_all_operations():
        operation = result.ok()

        @BOUNDED
        @given(case=operation.as_strategy())
        def check(case: schemathesis.Case) -> None:
            answer = case.call(headers=LOCAL)
            sent[case.operation.label] += 1
            statuses[answer.status_code] += 1
            case.validate_response(answer, checks=CHECKS)
            if answer.status_code >= 400:
                assert set(answer.json()) == {"error", "error_type"}

        check()
    assert {"POST /search", "POST /v1/embeddings", "GET /nodes/{node_type}/{node_id}"} < set(sent)
    assert statuses[200] > 20  # some of them are sensible
    assert statuses[403] == 0
