from __future__ import annotations

import pytest

from heterformer.errors import InputError
from heterformer.network.lookup import UnknownNodeError
from heterformer.serve.errors import as_request_error


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("/data/runs/a: there is no paper 'x'.", "there is no paper 'x'."),
        ("/data/runs/a/search/vectors: is damaged.", "the run…: is damaged."),
        ("cannot read /etc/secret/key.pem now.", "cannot read … now."),
    ],
)
def test_an_answer_has_no_paths(sentence: str, expected: str) -> None:
    found = as_request_error(InputError(sentence), ["/data/runs/a", "/data"])
    assert (str(found), found.status, found.error_type) == (expected, 400, "invalid_request")


def test_an_unknown_node_is_not_found() -> None:
    assert as_request_error(UnknownNodeError("there is no paper.")).status == 404
