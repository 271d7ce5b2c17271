"""The server under load for a while: 200 clients, memory, a killed worker, and reloads.

Each client asks again as soon as it is answered: searches for texts, and searches like a node. First all
clients ask for some seconds, and the memory of all processes of the server is read every second; a page that
several have mapped counts once. What the first requests make (threads and their heaps, caches) stays, so the
question is whether it grows on: each third of the time is compared with the one before. Then, under fewer
clients, a worker is killed with SIGKILL, and at last the runs are opened anew again and again. A client that
was refused with 429 waits a moment, as it is told to.

    python benchmarks/serve_endurance.py --run RUN [--clients 200] [--seconds 60] [--workers 2]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import httpx
import numpy as np
from serve import QUERIES, served

FEW = 32  # clients while workers are killed and runs reloaded
BROKEN = "broken connection"


class Load:
    """Clients that ask until they are told to stop, and what they were answered."""

    def __init__(self, address: str, clients: int) -> None:
        self.address, self.clients = address, clients
        self.answers: Counter[str] = Counter()
        self._ended = asyncio.Event()

    async def run(self, during: object) -> None:
        tasks = [asyncio.create_task(self._ask(number)) for number in range(self.clients)]
        await during  # type: ignore[misc]
        self._ended.set()
        await asyncio.gather(*tasks)

    async def _ask(self, number: int) -> None:
        rng = random.Random(number)
        async with httpx.AsyncClient(base_url=self.address, timeout=60, trust_env=False) as client:
            while not self._ended.is_set():
                text = f"{rng.choice(QUERIES)} {rng.randrange(10**6)}"
                body = {"text": text} if rng.random() < 0.5 else {"like": f"p{rng.randrange(500)}"}
                try:
                    status = (await client.post("/search", json=body | {"top": 5})).status_code
                except httpx.TransportError:
                    self.answers[BROKEN] += 1
                    continue
                self.answers[str(status)] += 1
                if status == 429:
                    await asyncio.sleep(rng.random())

    def summary(self) -> str:
        return ", ".join(f"{kind}: {count:,}" for kind, count in sorted(self.answers.items()))


def descendants(pid: int) -> list[int]:
    """A process and all that it started."""
    pids = [pid]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if parent == pid:
            pids += descendants(int(folder.name))
    return pids


def megabytes(pid: int) -> float:
    """The memory of a process and its descendants; a page that several have is divided among them."""
    total = 0
    for each in descendants(pid):
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


async def steady(pid: int, seconds: float) -> None:
    """Memory before the first request, and its highest in each of nine parts of the time."""
    before, sizes = megabytes(pid), []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(min(1, seconds / 18))
        sizes.append(megabytes(pid))
    parts = [float(max(part)) for part in np.array_split(sizes, 9)]
    print(f"memory before {before:,.0f} MB, then: " + ", ".join(f"{size:,.0f}" for size in parts) + " MB")
    thirds = [max(parts[i : i + 3]) for i in (0, 3, 6)]
    growth = [100 * (after / size - 1) for size, after in pairwise(thirds)]
    print(f"the second third against the first {growth[0]:+.1f} %, the last against it {growth[1]:+.1f} %")


async def killed(address: str, pid: int, seconds: float) -> None:
    await asyncio.sleep(seconds / 3)
    worker = next(child for child in descendants(pid) if child != pid)
    os.kill(worker, signal.SIGKILL)
    start = time.monotonic()
    async with httpx.AsyncClient(base_url=address, timeout=60, trust_env=False) as client:
        answer = await client.post("/search", json={"text": QUERIES[0]})
    waited = 1000 * (time.monotonic() - start)
    print(f"worker killed; the next request on a new connection: {answer.status_code} after {waited:.0f} ms")
    while len(descendants(pid)) < 3:
        await asyncio.sleep(0.1)
    await asyncio.sleep(seconds)


async def reloaded(address: str, seconds: float) -> None:
    end, times = time.monotonic() + seconds, []
    async with httpx.AsyncClient(base_url=address, timeout=120, trust_env=False) as client:
        while time.monotonic() < end:
            times.append((await client.post("/admin/reload")).raise_for_status().json()["seconds"])
            await asyncio.sleep(0.5)
    print(f"{len(times)} reloads, {min(times):.1f} to {max(times):.1f} s each")


async def measure(address: str, pid: int, options: argparse.Namespace) -> None:
    load = Load(address, options.clients)
    await load.run(steady(pid, options.seconds))
    print(f"{options.clients} clients for {options.seconds:.0f} s: {load.summary()}")
    load = Load(address, FEW)
    await load.run(killed(address, pid, options.seconds / 4))
    print(f"{FEW} clients while a worker was killed and replaced: {load.summary()}")
    load = Load(address, FEW)
    await load.run(reloaded(address, options.seconds / 4))
    print(f"{FEW} clients during reloads: {load.summary()}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with served(options.run, "--workers", str(options.workers)) as (address, pid):
        asyncio.run(measure(address, pid, options))


if __name__ == "__main__":
    main()
