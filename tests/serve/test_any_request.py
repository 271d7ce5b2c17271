"""Requests made up from the OpenAPI document: whatever is sent, the server makes no mistake of its own."""

from __future__ import annotations

from collections import Counter

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from heterformer.serve.app import make_app
from heterformer.serve.metrics import Metrics
from tests.serve.serving import service, wait_for

EXAMPLES = 12  # of each verb
LOCAL = {"host": "localhost"}
BOUNDED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def test_no_request_is_a_mistake_of_the_server() -> None:
    """All verbs but the reload, which takes seconds, no body and no parameters, and has tests of its own."""
    with service().map_data("") as data:  # which is made once, and meanwhile answers 503
        wait_for(lambda: data.describe()["status"] != "working")
    app = make_app(service(), Metrics())
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers=LOCAL).exclude(path="/admin/reload")
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
            case.validate_response(answer, checks=[not_a_server_error])
            if answer.status_code >= 400:
                assert set(answer.json()) == {"error", "error_type"}

        check()
    assert {"POST /search", "POST /v1/embeddings", "GET /nodes/{node_type}/{node_id}"} < set(sent)
    assert statuses[200] > 20  # some of them are sensible
    assert statuses[403] == 0
