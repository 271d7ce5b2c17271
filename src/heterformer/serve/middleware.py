"""What every request passes before a verb sees it (key, host, size, load), and what every answer has."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import time
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heterformer.serve.deadline import Deadline
from heterformer.serve.errors import OverloadedError, RequestError, TooLargeError
from heterformer.serve.explorer import is_static
from heterformer.serve.logs import LOGGER
from heterformer.serve.metrics import Metrics
from heterformer.serve.options import ServeOptions

OPEN = ("/health", "/ready")  # answered without a key, however busy the server is
UNCOUNTED = (*OPEN, "/metrics")
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
REQUEST_ID = re.compile(r"[\w.-]{1,64}")
ANSWER_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class ForbiddenError(RequestError):
    """From a page of another site, or under a name that is not this server's."""

    status, error_type = 403, "forbidden"


class NoKeyError(RequestError):
    """Without the key, or with another."""

    status, error_type = 401, "unauthorized"


class SlowBodyError(RequestError):
    """A body that does not arrive."""

    status, error_type = 408, "timeout"


class RequestMiddleware:
    """ASGI middleware. It answers what is refused itself, and logs and counts every request."""

    def __init__(self, app: ASGIApp, options: ServeOptions, metrics: Metrics) -> None:
        self.app, self.options, self.metrics = app, options, metrics
        self._key = _digest(options.key) if options.key else None
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Answer(send, _request_id(Headers(scope=scope)))
        start = time.perf_counter()
        counted = scope["path"] not in UNCOUNTED
        self._under_way += counted
        self.metrics.under_way.set(self._under_way)
        try:
            await self._answered(scope, receive, answer, counted)
        finally:
            self._under_way -= counted
            self.metrics.under_way.set(self._under_way)
            self._note(scope, answer, time.perf_counter() - start)

    async def _answered(self, scope: Scope, receive: Receive, answer: _Answer, counted: bool) -> None:
        scope.setdefault("state", {})
        scope["state"]["deadline"] = Deadline(self.options.timeout)
        try:
            headers = Headers(scope=scope)
            self._check(scope, headers)
            if counted and self._under_way > self.options.max_requests:
                raise OverloadedError
            body = await self._body(headers, receive)
            await self.app(scope, _replayed(body, receive), answer.send)
        except RequestError as error:
            await answer.problem(error.status, str(error), error.error_type)
        except Exception:
            LOGGER.exception("a request failed", extra={"fields": {"request_id": answer.request_id}})
            if answer.status == 0:
                await answer.problem(500, "internal error; the server's log has more.", "internal")

    def _check(self, scope: Scope, headers: Headers) -> None:
        if self._key is not None:
            scheme, _, token = headers.get("authorization", "").partition(" ")
            sent = _digest(token.strip()) if scheme.lower() == "bearer" else b""
            if not hmac.compare_digest(sent, self._key) and not _needs_no_key(scope["path"]):
                raise NoKeyError("expected the header 'Authorization: Bearer KEY' with the server's key.")
            return
        host = urlsplit(f"//{headers.get('host', '')}")
        name = f"[{host.hostname}]" if ":" in (host.hostname or "") else host.hostname
        # A page whose name resolves to this machine must not read what only this machine may.
        if self.options.is_local and name not in (*LOCAL_NAMES, self.options.host):
            raise ForbiddenError("this server answers under localhost only.")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host.netloc:
            raise ForbiddenError("pages of other sites may not ask this server.")

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        most = self.options.max_body
        declared = headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > most:
            raise TooLargeError(f"the body has {int(declared):,} bytes, expected at most {most:,}.")
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self.options.timeout):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise SlowBodyError("the connection ended before the body.")
                    parts.append(message.get("body", b""))
                    size, more = size + len(parts[-1]), message.get("more_body", False)
                    if size > most:
                        raise TooLargeError(f"the body has more than {most:,} bytes.")
        except TimeoutError:
            raise SlowBodyError(f"the body did not arrive within {self.options.timeout:g} seconds.") from None
        return b"".join(parts)

    def _note(self, scope: Scope, answer: _Answer, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self.metrics.requests.labels(_method(scope), route, str(answer.status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        fields = {
            "request_id": answer.request_id,
            "method": scope["method"],
            "path": scope["path"],
            "status": answer.status,
            "ms": round(1000 * seconds, 1),
        }
        LOGGER.info("request", extra={"fields": fields})


class _Answer:
    """Adds headers to an answer and knows how far it is."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self.request_id, self.status = send, request_id, 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self.request_id
            for name, value in ANSWER_HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)

    async def problem(self, status: int, sentence: str, error_type: str) -> None:
        if self.status:
            return
        body = json.dumps(problem(sentence, error_type)).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        headers |= {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "1"}}.get(status, {})
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})


def problem(sentence: str, error_type: str) -> Mapping[str, Any]:
    """The body of every error."""
    return {"error": sentence, "error_type": error_type}


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read, then whatever comes: the end of the connection."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _request_id(headers: Headers) -> str:
    """The client's own, if it is harmless in a log."""
    sent = headers.get("x-request-id", "")
    return sent if REQUEST_ID.fullmatch(sent) else uuid.uuid4().hex


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in ("GET", "POST", "HEAD", "PUT", "DELETE") else "other"


def _needs_no_key(path: str) -> bool:
    return path in OPEN or is_static(path)


def _digest(key: str) -> bytes:
    """Of one length, so that comparing takes the same time whatever was sent."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
