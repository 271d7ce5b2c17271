"""How long a frame of the map's page takes while it is panned, in Chromium without a GPU.

Times are median / 95 % / maximum. On a busy machine frames wait for others; the CPU time of all processes of
the browser together is then what a frame takes at most by itself.

    python benchmarks/map_page.py --nodes 60000
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from chromium import chromium

from heterformer.maps.core import OTHER, Group, NodeMap, Point
from heterformer.maps.page import write_map_page

# Moves the map by a few pixels in every frame. A frame's time is that until the next one; what the page's own
# function takes is told apart, since the browser copies the canvas besides.
PAN = """
new Promise((done) => {
  const [frames, drawn] = [[], []];
  const plain = draw;
  let last = null;
  const next = (now) => {
    if (last !== null) frames.push(now - last);
    last = now;
    if (frames.length === COUNT) return done({ frames, drawn });
    awaited = true; // so that it is drawn here and not once more
    pan(frames.length % 40 < 20 ? 7 : -7, 3 * Math.sin(frames.length / 9));
    const before = performance.now();
    plain();
    drawn.push(performance.now() - before);
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})
"""


def planted_map(nodes: int, seed: int = 0) -> NodeMap:
    """Clusters of nodes in eight colours, as a map of a large network looks."""
    rng = np.random.default_rng(seed)
    groups = (*(Group(f"class {i}", "class") for i in range(8)), OTHER)
    centers = rng.normal(0, 40, (40, 2))
    points = []
    for i, cluster in enumerate(rng.integers(0, len(centers), nodes).tolist()):
        x, y = (centers[cluster] + rng.normal(0, 5, 2)).tolist()
        group, node_type = groups[cluster % len(groups)], "author" if i % 5 == 0 else "paper"
        points.append(Point(x, y, node_type, f"n{i}", f"Node number {i}", group.name, group))
    return NodeMap("planted", ("paper", "author"), groups, tuple(points), nodes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=60_000)
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--screenshot", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        browser.open(write_map_page(planted_map(arguments.nodes), Path(folder) / "map.html"))
        for what, zoom in (("whole map", "1"), ("zoomed in, 4 times", "4"), ("zoomed in, 16 times", "4")):
            browser.run(f"zoom({zoom})")
            before = browser.cpu_seconds()
            times = browser.run(PAN.replace("COUNT", str(arguments.frames)))
            cpu = 1000 * (browser.cpu_seconds() - before) / arguments.frames
            parts = []
            for name, values in times.items():
                quantiles = np.quantile(values, (0.5, 0.95, 1))
                parts.append(f"{name} {' / '.join(f'{q:.1f}' for q in quantiles)} ms")
            print(f"{what}: {'; '.join(parts)}; {cpu:.1f} ms of CPU per frame")
            if arguments.screenshot and zoom == "1":
                browser.screenshot(arguments.screenshot)


if __name__ == "__main__":
    main()
