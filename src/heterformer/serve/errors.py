"""What goes wrong with a request: a status, a kind, and one sentence without paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from heterformer.errors import InputError
from heterformer.network.lookup import UnknownNodeError

PATH = re.compile(r"(?:/[\w.+-]+){2,}")


class RequestError(Exception):
    """A request that is not answered as asked."""

    status, error_type = 400, "invalid_request"


class NotFoundError(RequestError):
    """There is no such run, node or page."""

    status, error_type = 404, "not_found"


class TooLargeError(RequestError):
    """More than the limits allow."""

    status, error_type = 413, "too_large"


class InvalidError(RequestError):
    """A body or parameter of the wrong form."""

    status, error_type = 422, "validation"


class OverloadedError(RequestError):
    """Too much is under way."""

    status, error_type = 429, "overloaded"

    def __init__(self, sentence: str = "the server has too much to do; try again in a second.") -> None:
        super().__init__(sentence)


class UnavailableError(RequestError):
    """Not now: too slow, stopping, or being loaded."""

    status, error_type = 503, "unavailable"


def as_request_error(error: InputError, paths: Iterable[str] = ()) -> RequestError:
    """A mistake in the input as an answer, without any path of this machine."""
    sentence = str(error)
    for path in sorted(paths, key=len, reverse=True):
        sentence = sentence.replace(f"{path}: ", "").replace(path, "the run")
    kind = NotFoundError if isinstance(error, UnknownNodeError) else RequestError
    return kind(PATH.sub("…", sentence))


def validation_sentence(mistake: Mapping[str, Any]) -> str:
    """What Pydantic says of the first mistake in a form."""
    if mistake["type"] == "json_invalid":
        return f"the body is not JSON: {mistake['ctx']['error'].lower()} at character {mistake['loc'][-1]}."
    place = ".".join(str(part) for part in mistake["loc"] if part != "body")
    return f"{place[:100] or 'the body'}: {mistake['msg'].removeprefix('Value error, ')}."
