"""A stand-in of the Hub's HTTP API: makes repositories and takes commits, in memory."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hub:
    """What was asked of it."""

    def __init__(self) -> None:
        self.created: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.messages: list[str] = []
        self.tokens: set[str] = set()
        self.refuses = False
        self.url = ""


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *arguments: Any) -> None:
        pass

    def _answer(self, values: Any, status: int = 200) -> None:
        body = json.dumps(values).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if "/revision/" in self.path or self.path.startswith("/api/models/"):
            self._answer({"id": "owner/name", "sha": "0" * 40, "private": False, "siblings": []})
        else:
            self._answer({"error": "not found"}, 404)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.hub.tokens.add(self.headers.get("Authorization", ""))
        path = self.path.partition("?")[0]
        if self.hub.refuses:
            self._answer({"error": "You may not write here."}, 403)
        elif path == "/api/repos/create":
            self.hub.created.append(json.loads(body))
            self._answer({"url": f"{self.hub.url}/owner/name", "name": "owner/name", "id": "1"})
        elif path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif "/preupload/" in path:
            entries = [entry["path"] for entry in json.loads(body)["files"]]
            ready = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in entries]
            self._answer({"files": ready})
        elif "/commit/" in path:
            for line in body.splitlines():
                entry = json.loads(line)
                if entry["key"] == "header":
                    self.hub.messages.append(entry["value"]["summary"])
                elif entry["key"] == "file":
                    value = entry["value"]
                    self.hub.files[value["path"]] = base64.b64decode(value["content"])
            url = f"{self.hub.url}/owner/name/commit/{'1' * 40}"
            self._answer({"success": True, "commitOid": "1" * 40, "commitUrl": url})
        else:
            self._answer({"error": f"unknown: {path}"}, 404)


@contextmanager
def running_hub() -> Iterator[Hub]:
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
