"""The process: how it starts, takes what was made anew, and ends."""

from __future__ import annotations

import json
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from heterformer.cli.main import main
from heterformer.search.searcher import Searcher
from heterformer.training.run import Run
from tests.failing import Failed
from tests.serve.serving import SECONDS, Server, copied_run, served_run, server, wait_for
from tests.serve.test_app import half_a_request, wait_until_under_way


def vector(client: httpx.Client, text: str = "kernel methods") -> list[float]:
    answer = client.post("/embed", json={"inputs": text, "normalize": False})
    assert answer.status_code == 200, answer.text
    found: list[float] = answer.json()[0]
    return found


def remade(path: Path) -> list[float]:
    """Give a run other weights, as a training would; the vector that it then gives."""
    weights = Run(path).weights
    tensors = load_file(weights)
    words = "backbone.embeddings.word_embeddings.weight"
    save_file(tensors | {words: 1.3 * tensors[words]}, weights.with_name("new"))
    weights.with_name("new").replace(weights)
    found: list[float] = Searcher(path, device="cpu").encode("kernel methods").tolist()
    return found


def test_a_run_made_anew_is_taken_without_a_failed_request() -> None:
    path = copied_run("again")
    with server(path) as running, running.client() as admin:
        first, ended, statuses = vector(admin), threading.Event(), []

        def ask() -> None:
            with running.client() as client:
                while not ended.is_set():
                    for body in ({"text": "kernel", "top": 2}, {"like": "p7", "where": "time > 1990"}):
                        statuses.append(client.post("/search", json=body).status_code)
                    vector(client)

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            try:
                second = remade(path)
                assert admin.post("/admin/reload").json()["runs"] == ["again"]
                np.testing.assert_allclose(vector(admin), second, rtol=1e-5, atol=1e-5)
                third = remade(path)
                running.send(signal.SIGHUP)
                wait_for(lambda: np.allclose(vector(admin), third, rtol=1e-5, atol=1e-5))
            finally:
                ended.set()
            for one in asking:
                one.result(SECONDS)
        assert not np.allclose(first, second, rtol=1e-3)
        assert set(statuses) == {200}
        wait_for(lambda: 'heterformer_reloads_total{result="done"} 2.0' in admin.get("/metrics").text)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_under_way_is_answered_before_the_end(number: int) -> None:
    body = json.dumps({"inputs": "kernel"}).encode()
    with server() as running:
        with half_a_request(running, body) as opened:
            wait_until_under_way(running)
            running.send(number)
            wait_for(lambda: refused(running))
            opened.sendall(body[5:])
            answer = b"".join(iter(lambda: opened.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert len(json.loads(answer.partition(b"\r\n\r\n")[2])[0]) == 16
        assert running.process.wait(SECONDS) == 0
        assert "Traceback" not in running.log.read_text()


def refused(running: Server) -> bool:
    """Whether no new request is taken."""
    host, port = running.address.removeprefix("http://").split(":")
    try:
        socket.create_connection((host, int(port)), timeout=SECONDS).close()
    except OSError:
        return True
    return False


def test_what_cannot_be_served_is_one_sentence(failed: Failed, tmp_path: Path) -> None:
    assert failed(main, ["serve", str(tmp_path), "--port", "0"]).startswith(f"{tmp_path}: ")
    sentence = failed(main, ["serve", str(served_run()), "--host", "0.0.0.0"])
    assert (
        sentence == "--host is 0.0.0.0, which others can reach; give --api-key, or --insecure to do without."
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        sentence = failed(main, ["serve", str(served_run()), "--port", port])
        assert sentence.startswith(f"127.0.0.1: --port is {port}, on which it cannot listen (")
