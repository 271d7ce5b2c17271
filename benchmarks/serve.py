"""Requests per second and their times on loopback, under 1, 8 and 64 clients, against a process per search.

A synthetic network and a run of a few steps on the MiniLM backbone, served in a process of its own. Each
client asks again as soon as it is answered, for some seconds: a search for a text, then the vector of a text.
The last lines compare a served search with 'heterformer search' in a process of its own and with the same
searcher called in a loop.

    python benchmarks/serve.py [--papers 2000] [--seconds 5] [--clients 1 8 64] [--run RUN]
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from heterformer import Network, Searcher, train
from heterformer.datasets.synthetic import SyntheticOptions, write_synthetic

QUERIES = [
    f"{a} {b}" for a in ("kernel", "corpus", "protein", "market") for b in ("methods", "theory", "survey")
]


def new_run(folder: Path, papers: int) -> Path:
    spec = write_synthetic(folder / "tables", SyntheticOptions(papers=papers))
    network = Network.build(spec, folder / "network")
    run = train(network, folder / "run", max_steps=2, batch_size=8, warm_up_epochs=1, device="cpu")
    Searcher(run.path).search(QUERIES[0])  # makes the vectors
    return run.path


@contextmanager
def served(run: Path, *flags: str) -> Iterator[tuple[str, int]]:
    """The address of a server, and its process."""
    command = [sys.executable, "-m", "heterformer", "serve", str(run), "--port", "0", *flags]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    try:
        assert process.stdout is not None
        match = re.search(r"http://\S+?:\d+", process.stdout.readline())
        assert match is not None
        yield match[0], process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def ask(address: str, path: str, field: str, number: int, seconds: float) -> list[float]:
    """The times of one client's requests."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        while (start := time.perf_counter()) < end:
            body: dict[str, Any] = {field: f"{QUERIES[(number + len(times)) % len(QUERIES)]} {number}"}
            client.post(path, json=body).raise_for_status()
            times.append(time.perf_counter() - start)
    return times


def measure(address: str, path: str, field: str, clients: int, seconds: float) -> float:
    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        asking = [pool.submit(ask, address, path, field, i, seconds) for i in range(clients)]
        times = [t for each in asking for t in each.result()]
    elapsed = time.perf_counter() - start  # until the last answer, which comes after the seconds are over
    rate, (middle, slow) = len(times) / elapsed, 1000 * np.percentile(times, [50, 99])
    print(f"{path:15} {clients:3} clients {rate:8.1f} requests/s  p50 {middle:7.1f} ms  p99 {slow:7.1f} ms")
    return rate


def seconds_per_process(run: Path, times: int = 3) -> float:
    command = [sys.executable, "-m", "heterformer", "search", str(run), QUERIES[0], "--json"]
    results = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        results.append(time.perf_counter() - start)
    return statistics.median(results)


def seconds_in_a_loop(run: Path, seconds: float) -> float:
    searcher, count = Searcher(run), 0
    searcher.search(QUERIES[0])
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        searcher.search(QUERIES[count % len(QUERIES)])
        count += 1
    return (time.perf_counter() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--papers", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--run", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = options.run or new_run(Path(folder), options.papers)
        with served(run) as (address, _):
            ask(address, "/search", "text", 0, 1)
            rates = [measure(address, "/search", "text", n, options.seconds) for n in options.clients]
            for clients in options.clients:
                measure(address, "/embed", "inputs", clients, options.seconds)
        loop, process = seconds_in_a_loop(run, options.seconds), seconds_per_process(run)
    print(f"a search in a loop of one process {1000 * loop:.1f} ms, in a process of its own {process:.2f} s")
    times = f"one process per search {max(rates) * process:.0f}, a loop {max(rates) * loop:.1f}"
    print(f"served searches per second, at most, as a multiple of: {times}")


if __name__ == "__main__":
    main()
