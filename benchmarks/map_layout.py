"""What the explorer's layout of a million nodes takes: t-SNE of the landmarks, then every node beside them.

Planted vectors of as many clusters as a large network may have topics, in a mapped file as a run keeps them.
Everything runs in one thread; on a busy machine the CPU time is what it takes by itself. The last line says
how many of the nodes stand closest to the middle of their own cluster.

    python benchmarks/map_layout.py [--nodes 1000000] [--width 384] [--landmarks 10000]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from heterformer.maps.landmarks import lay_out
from heterformer.maps.options import MapOptions

CLUSTERS = 100
BLOCK = 50_000
CHECKED = 20_000  # nodes whose places are looked at


def planted(path: Path, nodes: int, width: int, seed: int = 0) -> tuple[np.memmap, np.ndarray]:
    """Vectors around as many middles as there are clusters, and the cluster of each."""
    rng = np.random.default_rng(seed)
    middles = rng.standard_normal((CLUSTERS, width), dtype=np.float32)
    clusters = rng.integers(0, CLUSTERS, nodes)
    matrix = np.memmap(path, dtype=np.float16, mode="w+", shape=(nodes, width))
    for start in range(0, nodes, BLOCK):
        own = clusters[start : start + BLOCK]
        matrix[start : start + BLOCK] = middles[own] + rng.standard_normal((len(own), width), np.float32)
    return matrix, clusters


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--landmarks", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        matrix, clusters = planted(Path(folder, "vectors"), options.nodes, options.width)
        start, cpu = time.perf_counter(), time.process_time()
        places = lay_out({"paper": matrix}, ["paper"], MapOptions(), options.landmarks)["paper"]
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{options.nodes:,} nodes: {cpu / 60:.1f} minutes of CPU, {took / 60:.1f} minutes, {peak:,.0f} MB")
    middles = np.stack([np.median(places[clusters == c], axis=0) for c in range(CLUSTERS)])
    some = np.linspace(0, options.nodes - 1, min(CHECKED, options.nodes)).astype(np.int64)
    away = np.linalg.norm(places[some, None] - middles, axis=-1)  # (n, c)
    print(f"closest to the middle of their own cluster: {(away.argmin(1) == clusters[some]).mean():.1%}")


if __name__ == "__main__":
    main()
