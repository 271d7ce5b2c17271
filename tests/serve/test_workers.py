"""Several processes at one address, as clients meet them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np

from heterformer.cli.main import main
from heterformer.serve.options import ServeOptions
from heterformer.serve.workers import Workers
from tests.failing import Failed
from tests.serve.serving import SECONDS, Server, copied_run, server, wait_for
from tests.serve.test_server import remade, vector


def workers_of(running: Server) -> set[int]:
    """The processes that the server has started and that live."""
    children = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == running.process.pid and fields[0] != "Z":
            children.add(int(folder.name))
    return children


def counted(client: httpx.Client) -> float:
    text = client.get("/metrics").text
    found = re.findall(
        r'heterformer_requests_total\{method="POST",route="/search",status="200"\} (\S+)', text
    )
    return sum(map(float, found))


def assert_vectors_are_shared(run: Path, workers: set[int]) -> None:
    """Each worker has mapped the same files, and has no pages of them that it wrote to."""
    for node_type in ("paper", "author", "venue"):
        file = run / "search" / "vectors" / f"{node_type}.npy"
        for worker in workers:
            maps = Path(f"/proc/{worker}/smaps").read_text()
            parts = re.findall(
                rf"{re.escape(str(file.resolve()))}\n(?:\w+:.*\n)+?Private_Dirty: +(\d+)", maps
            )
            assert parts, file
            assert set(parts) == {"0"}


def test_a_killed_worker_is_replaced_and_a_reload_reaches_all() -> None:
    path = copied_run("shared")
    with server(path, workers=2) as running, running.client() as client:
        wait_for(lambda: running.log.read_text().count('"ready"') == 2)
        before = workers_of(running)
        assert len(before) == 2
        assert_vectors_are_shared(path, before)
        ended, broken, statuses = threading.Event(), [], []

        def ask() -> None:
            with running.client() as own:
                while not ended.is_set():
                    try:
                        statuses.append(own.post("/search", json={"text": "kernel", "top": 2}).status_code)
                    except httpx.TransportError as error:  # the connection of the worker that was killed
                        broken.append(error)

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            try:
                os.kill(min(before), signal.SIGKILL)
                wait_for(lambda: min(before) not in workers_of(running))  # it takes none any more
                for _ in range(20):  # new connections, while the new worker starts
                    assert httpx.get(f"{running.address}/health", trust_env=False).status_code == 200
                wait_for(lambda: running.log.read_text().count('"ready"') == 3)
            finally:
                ended.set()
            for one in asking:
                one.result(SECONDS)
        after = workers_of(running)
        assert len(after) == 2
        assert len(after & before) == 1
        assert set(statuses) == {200}
        assert len(broken) <= 4  # a request of each client at most
        assert counted(client) >= len(statuses) - 4  # whoever answers counts for both

        expected = remade(path)
        assert client.post("/admin/reload").status_code == 200
        for _ in range(2):  # one of them answered; the other takes the new run a moment later
            wait_for(lambda: all_agree(running, expected))
    assert running.process.returncode == 0
    for pid in after:
        assert not Path(f"/proc/{pid}").exists()
    lines = [json.loads(line) for line in running.log_text.splitlines()]
    assert any(line["message"] == "a worker ended and is replaced" for line in lines)


def test_a_worker_that_starts_survives_a_reload_and_takes_the_new_run() -> None:
    path = copied_run("early")
    with server(path, workers=2) as running, running.client() as client:
        wait_for(lambda: running.log.read_text().count('"ready"') == 2)
        before = workers_of(running)
        os.kill(min(before), signal.SIGKILL)
        wait_for(lambda: len(workers_of(running)) == 2 and workers_of(running) != before)
        expected = remade(path)
        for _ in range(4):  # more often than workers may fail to start
            running.send(signal.SIGHUP)
            assert client.get("/health").status_code == 200
        wait_for(lambda: running.log.read_text().count('"ready"') == 3)
        wait_for(lambda: all_agree(running, expected))
    assert running.process.returncode == 0
    assert running.log_text.count("a worker ended and is replaced") == 1


def all_agree(running: Server, expected: list[float]) -> bool:
    """Whether many new connections, which any worker takes, get the new vector."""

    def asked(_: int) -> bool:
        with running.client() as client:
            return np.allclose(vector(client), expected, rtol=1e-5, atol=1e-5)

    with ThreadPoolExecutor(4) as pool:
        return all(pool.map(asked, range(24)))


def test_workers_have_more_time_to_end_than_their_requests(tmp_path: Path) -> None:
    options = ServeOptions(timeout=600, workers=2)
    with socket.socket() as listener:
        assert Workers(["run"], options, listener, tmp_path).ending > options.ending > 600


def test_a_run_that_no_worker_can_open_is_one_sentence(failed: Failed, tmp_path: Path) -> None:
    sentence = failed(main, ["serve", str(tmp_path), "--port", "0", "--workers", "2"])
    assert sentence.startswith(f"{tmp_path}: not a run")
