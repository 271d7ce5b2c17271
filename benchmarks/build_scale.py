"""Building a DBLP-sized network: memory, speed, and how both grow with the size.

The synthetic generator writes Parquet tables of the size of the paper's DBLP network (3.6 million
papers, 2.7 million authors, 28 thousand venues, 36.8 + 10.2 + 3.6 million edges) and of a tenth of
it; each is built in a process of its own, whose peak memory is read afterwards.

    python benchmarks/build_scale.py [--papers 3600000] [--folder FOLDER]

With --folder the tables and networks are kept there (benchmarks/sampling.py can use them).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memory import peak_bytes

from heterformer import Network
from heterformer.datasets.synthetic import SyntheticOptions, write_synthetic


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--papers", type=int, default=3_600_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--build", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build:
        build_in_this_process(*arguments.build)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        tenth = measured(folder, arguments.papers // 10)
        whole = measured(folder, arguments.papers)
    rows, seconds, memory, opening = whole
    print(f"opening the network: {opening * 1000:.0f} ms")
    print(f"growth from one tenth: time {seconds / tenth[1]:.1f} times, memory {memory / tenth[2]:.1f} times")
    print(f"{rows / seconds:,.0f} rows per second, peak memory {memory / 2**30:.2f} GiB")


def measured(folder: Path, papers: int) -> tuple[int, float, float, float]:
    """Rows read, seconds, peak bytes, and seconds to open the result."""
    tables, network = folder / f"tables-{papers}", folder / f"network-{papers}.net"
    if not tables.exists():
        write_synthetic(tables, dblp_shaped(papers))
    subprocess.run(["rm", "-rf", str(network)], check=True)
    command = [sys.executable, __file__, "--build", str(tables), str(network)]
    seconds, memory = map(
        float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    )
    start = time.perf_counter()
    built = Network.open(network)
    built.ids("paper", [papers - 1])
    built.adjacency("paper", "paper").neighbor[-1]
    opening = time.perf_counter() - start
    tallies = [*built.report.nodes.values(), *built.report.relations.values()]
    rows = sum(t.read for t in tallies)
    edges = {name: t.kept for name, t in built.report.relations.items()}
    print(
        f"{papers:>9,} papers: {rows:,} rows in {seconds:.1f} s, peak {memory / 2**30:.2f} GiB; edges {edges}"
    )
    return rows, seconds, memory, opening


def dblp_shaped(papers: int) -> SyntheticOptions:
    return SyntheticOptions(
        papers=papers,
        authors=papers * 3 // 4,
        venues=max(50, papers // 128),  # one for each sub-topic at least
        citations_per_paper=10.22,
        authors_per_paper=2.84,
    )


def build_in_this_process(tables: Path, network: Path) -> None:
    start = time.perf_counter()
    Network.build(tables / "network.yaml", network)
    seconds = time.perf_counter() - start
    print(seconds, peak_bytes())


if __name__ == "__main__":
    main()
