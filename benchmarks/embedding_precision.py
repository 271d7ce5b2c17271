"""Embedding with faster matrix products: how much faster, how far off, and does the order of results hold?

    python benchmarks/embedding_precision.py RUN [--nodes 4000] [--threads 1] [--repeats 3]

A run's text-rich query type is embedded in float32, in bf16 (``heterformer embed --precision bf16``) and, for
comparison, with every product in dynamic int8 (weights by output channel, inputs by tensor, as PyTorch's
``quantized.linear_dynamic`` does it); the three are measured in turn. Of the vectors: the smallest and mean
cosine with those of float32, how often the nearest other node is the same, and the share of the ten nearest
that are. The last line is what bf16 gains in time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heterformer.batches.batcher import Batcher
from heterformer.batches.stable import StableSampler
from heterformer.evaluation.open_run import OpenRun, open_run
from heterformer.models.inference import center_vectors


class Int8:
    """``F.linear`` with int8 products; parameters are packed once, weights made for a call in the call."""

    def __init__(self) -> None:
        self.packed: dict[int, object] = {}

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        packed = self.packed.get(id(weight))  # which cannot be asked for its truth
        if packed is None:
            packed = self.pack(weight, bias)
        if isinstance(weight, nn.Parameter):
            self.packed[id(weight)] = packed
        result: Tensor = torch.ops.quantized.linear_dynamic(x, packed, reduce_range=False)
        return result

    def pack(self, weight: Tensor, bias: Tensor | None) -> object:
        scale = weight.abs().amax(1).clamp_min(1e-8).double() / 127
        zero = torch.zeros(len(weight), dtype=torch.int64)
        stored = torch.quantize_per_channel(weight.detach(), scale, zero, 0, torch.qint8)
        return torch.ops.quantized.linear_prepack(stored, bias)


def int8() -> AbstractContextManager[object]:
    return patch.object(F, "linear", Int8())


def bf16() -> AbstractContextManager[object]:
    return torch.autocast("cpu", torch.bfloat16)


def vectors_of(run: OpenRun, rows: np.ndarray) -> Tensor:
    batcher = Batcher(run.batcher.visible, run.batcher.tokens)
    return center_vectors(
        run.model, batcher, run.network.schema.predicted[0].source, rows, StableSampler(run.network, 0)
    )


def nearest(vectors: Tensor, count: int) -> Tensor:
    scores = vectors @ vectors.T
    scores.fill_diagonal_(-torch.inf)
    return scores.topk(count).indices


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore", ".*quantized tensor creation.*")  # PyTorch means to drop int8 tensors
    run = open_run(options.run)
    count = run.network.schema.counts[run.network.schema.predicted[0].source]
    rows = np.random.default_rng(0).choice(count, min(options.nodes, count), replace=False)
    engines: dict[str, Callable[[], AbstractContextManager[object]]] = {
        "float32": nullcontext,
        "bf16": bf16,
        "int8": int8,
    }
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in engines}
    by_precision: dict[str, Tensor] = {}
    for _ in range(options.repeats):
        for name, engine in engines.items():
            with engine():
                start = clock()
                by_precision[name] = vectors_of(run, rows)
                times[name].append(clock() - start)
    exact = nearest(by_precision["float32"], 10)
    for name in engines:
        cosine = F.cosine_similarity(by_precision["float32"], by_precision[name])
        close = nearest(by_precision[name], 10)
        first = (close[:, 0] == exact[:, 0]).float().mean()
        shared = (close[:, :, None] == exact[:, None]).any(2).float().mean()
        agreement = f"cosine {cosine.min():.5f} at least, {cosine.mean():.5f} in the mean"
        print(
            f"{name}: {min(times[name]):.2f} s, {agreement}, nearest {first:.3f} the same, ten {shared:.3f}"
        )
    fastest = {name: min(seconds) for name, seconds in times.items()}
    print(f"int8 takes {fastest['int8'] / fastest['float32']:.2f} of float32's time")
    print(f"bf16 is {fastest['float32'] / fastest['bf16']:.2f} times as fast as float32")


if __name__ == "__main__":
    main()
