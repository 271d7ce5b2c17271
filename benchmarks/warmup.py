"""Warm-up of textless nodes on stored PLM vectors, against running the frozen PLM in every step.

Both take the same steps of Eq. 10 over the same edges. The second reads the texts of each step's edges with
the PLM again, as one would without a store; a share of an epoch is measured and scaled up.

    python benchmarks/warmup.py NET
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer

from heterformer import Heterformer, Network, TrainingOptions
from heterformer.batches.visible import VisibleNetwork
from heterformer.models.inference import plm_vectors
from heterformer.models.plm.minilm import backbone_path
from heterformer.network.split.draw import make_split
from heterformer.network.tokens import open_tokens
from heterformer.training.warm_up import (
    TextEdges,
    text_edges,
    warm_up_optimizers,
    warm_up_step,
    warm_up_steps,
)

PLAIN_STEPS, EPOCHS = 4, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("network", type=Path)
    network = Network.open(parser.parse_args().network)
    options = TrainingOptions().warm_up
    tokens = open_tokens(network, AutoTokenizer.from_pretrained(backbone_path("minilm")))
    visible = VisibleNetwork.for_training(network, make_split(network))
    model = Heterformer.from_backbone("minilm", network)
    node_type = max(network.schema.textless, key=lambda t: len(text_edges(visible, tokens, t).rows))
    edges = text_edges(visible, tokens, node_type)
    size = options.warm_up_batch_size

    start = time.perf_counter()
    numbers = np.unique(edges.texts)
    vectors = plm_vectors(model, tokens, numbers)
    once = time.perf_counter() - start
    stored = TextEdges(edges.rows, np.searchsorted(numbers, edges.texts))
    optimizers = warm_up_optimizers(model.textless, node_type, options)

    def stored_epoch() -> float:
        start = time.perf_counter()
        for rows, texts in warm_up_steps(stored, size, np.random.default_rng(0)):
            warm_up_step(model.textless, node_type, rows, texts, vectors[texts], optimizers)
        return time.perf_counter() - start

    def plain_steps() -> float:
        start = time.perf_counter()
        for rows, texts in itertools.islice(
            warm_up_steps(edges, size, np.random.default_rng(0)), PLAIN_STEPS
        ):
            read = plm_vectors(model, tokens, texts.numpy())
            warm_up_step(model.textless, node_type, rows, texts, read, optimizers)
        return time.perf_counter() - start

    steps = -(-len(edges.rows) // size)
    with_store, without = [], []
    for _ in range(EPOCHS):
        with_store.append(stored_epoch())
        without.append(plain_steps() / PLAIN_STEPS * steps)
    fast, slow = statistics.median(with_store), statistics.median(without)
    print(f"{node_type}: {len(edges.rows):,} edges, {len(numbers):,} texts, {steps} steps per epoch")
    print(f"the PLM's vectors, once: {once:.1f} s ({once / len(numbers) * 1000:.2f} ms per text)")
    print(f"an epoch on stored vectors: {fast:.2f} s; with the PLM in every step: {slow:.1f} s")
    print(f"ratio {slow / fast:.0f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
