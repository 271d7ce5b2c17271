"""How long a frame of the explorer's map takes while it is moved, in Chromium without a graphics card.

The server's own page with a planted layout of a million nodes. Keys pan and zoom it, over the whole map and
zoomed in. A frame's CPU time is that of all processes of the browser together; its time, median / longest, is
that from the key until all its points are drawn, and on a busy machine tells of the others. While the map
moves, the page draws as many of the points that are seen as the machine draws fluently. The alternatives are
next to none, which is what the browser itself takes to show a map of that size, and all of them in every
frame. The last line compares the three.

    python benchmarks/explorer_map.py [--points 1000000] [--frames 30] [--screenshot FILE]
"""

from __future__ import annotations

import argparse
import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import uvicorn
from chromium import Chromium, chromium
from serve import new_run

from heterformer import Network
from heterformer.maps.layout import Layout
from heterformer.maps.regions import Region
from heterformer.serve.app import make_app
from heterformer.serve.map_data import MapData
from heterformer.serve.metrics import Metrics
from heterformer.serve.options import ServeOptions
from heterformer.serve.service import Service

WEBGL = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader")  # computed by the processor
CLUSTERS = 60
FEW = 1000  # points that take no time to speak of
# Presses keys one after the other; reading a pixel waits until all points are drawn.
MOVE = """
(async () => {
  const { canvas, scatter, camera } = heterformerMap, { gl } = scatter;
  const [times, drawn, pixel] = [[], [], new Uint8Array(4)];
  const draw = scatter.draw.bind(scatter);
  scatter.draw = (seen, options) => {
    drawn.push((options.to - options.from) * scatter.seen(camera));
    draw(seen, options);
  };
  for (let i = 0; i < COUNT; i++) {
    const start = performance.now();
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: KEYS[Math.floor(i / 3) % KEYS.length] }));
    await new Promise(requestAnimationFrame);
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    times.push(performance.now() - start);
  }
  delete scatter.draw;
  return { times, drawn };
})()
"""
MOVEMENTS = {"panning": ["ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"], "zooming": ["+", "-"]}


def planted_map(points: int, seed: int = 0) -> MapData:
    """Papers in clusters, with years, as the server has the map of a network that size."""
    rng = np.random.default_rng(seed)
    spec = {
        "nodes": {"paper": {"text": "title", "keep": ["year"]}},
        "relations": {"cites": {"from": "paper", "to": "paper", "column": "cites"}},
        "predict": "cites",
    }
    number = pl.int_range(points, eager=True)
    years = pl.Series(rng.integers(1990, 2025, points))
    titles = pl.select(pl.format("paper number {}", number)).to_series()
    ids = number.cast(pl.String)
    cites = pl.select(pl.when(number < 100).then(ids.shift(-1))).to_series()
    frame = pl.DataFrame({"id": ids, "title": titles, "year": years.cast(pl.String), "cites": cites})
    network = Network.from_frames(spec, {"paper": frame})
    centers = rng.normal(0, 40, (CLUSTERS, 2))
    places = centers[rng.integers(0, CLUSTERS, points)] + rng.normal(0, 5, (points, 2))
    regions = tuple(
        Region(x, y, ("region", str(i)), points // CLUSTERS, 0) for i, (x, y) in enumerate(centers)
    )
    store = SimpleNamespace(types=("paper",))
    planted = MapData(SimpleNamespace(network=network, store=store))  # type: ignore[arg-type]
    planted._set(Layout({"paper": places.astype(np.float32)}, regions))
    planted._thread = threading.current_thread()  # there is nothing to lay out
    return planted


@contextmanager
def served(service: Service) -> Iterator[str]:
    """The address of the server, in a thread of this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = make_app(service, Metrics())
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def move(browser: Chromium, what: str, frames: int) -> dict[str, Any]:
    """The times of some frames, and how many points each has."""
    keys = json.dumps(MOVEMENTS[what])
    return dict(browser.run(MOVE.replace("COUNT", str(frames)).replace("KEYS", keys)))


def measure(browser: Chromium, frames: int) -> float:
    """Print the times of all movements; returns the CPU time of a frame in milliseconds."""
    cpu = []
    for place, zoom in (("whole map", 1), ("zoomed in 8 times", 8)):
        for what in MOVEMENTS:
            browser.run(f"heterformerMap.camera.showAll(); heterformerMap.camera.zoomBy({zoom})")
            move(browser, what, frames // 2)  # in which it learns how many are fluent
            before = browser.cpu_seconds()
            moved = move(browser, what, frames)
            cpu.append(1000 * (browser.cpu_seconds() - before) / frames)
            middle, drawn = np.median(moved["times"]), int(np.median(moved["drawn"]))
            times = f"{cpu[-1]:.0f} ms of CPU, {middle:.0f} / {max(moved['times']):.0f} ms"
            print(f"  {what}, {place}: {times}, {drawn:,} points", flush=True)
    return float(np.mean(cpu))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--frames", type=int, default=30, help="of each movement")
    parser.add_argument("--screenshot", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        service = Service([new_run(Path(folder), papers=200)], ServeOptions(device="cpu"))
        planted = planted_map(options.points)
        for run in service._runs.values():
            run.map_data = planted
        with served(service) as address, chromium(flags=WEBGL) as browser:
            start = time.monotonic()
            browser.open(address)
            while browser.run("document.body.dataset.map") != "ready":
                time.sleep(0.05)
            count = browser.run("heterformerMap.points.count")
            print(f"{count:,} points, shown {time.monotonic() - start:.1f} s after the page was asked for")
            print("as many points as are drawn fluently:")
            ours = measure(browser, options.frames)
            if options.screenshot:
                browser.run("heterformerMap.camera.showAll(); heterformerMap.draw()")
                browser.run("new Promise((done) => setTimeout(done, 1000))")
                browser.screenshot(options.screenshot)
            print(f"{FEW:,} points:")
            browser.run(f"Object.assign(heterformerMap.tempo, {{ points: {FEW}, note: () => {{}} }}), 0")
            few = measure(browser, options.frames)
            print("all points in every frame:")
            browser.run("heterformerMap.drawsAll = true")
            every = measure(browser, max(4, options.frames // 5))
        service.close()
    print(
        f"CPU time of a frame: as many as are fluent {ours:.0f} ms, {FEW:,} {few:.0f} ms, all {every:.0f} ms"
    )


if __name__ == "__main__":
    main()
