"""Seconds per training step with 10 thousand, 1 million and 10 million textless nodes.

The same model, the same batches (authors spread over the whole table), the same optimisers as training
uses. Steps of the three sizes are taken in turn, so that other load on the machine hits all alike.

    python benchmarks/textless_scale.py
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch

from heterformer import Heterformer, TrainingOptions
from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.network.schema import Relation, Schema
from heterformer.training.losses import link_prediction_loss
from heterformer.training.optimizers import Optimizers

PAIRS, TOKENS, PAPERS, AUTHORS = 30, 14, 5, 3
SIZES = (10_000, 1_000_000, 10_000_000)


class Training:
    """A model whose table has ``authors`` rows, and its optimisers."""

    def __init__(self, authors: int) -> None:
        torch.manual_seed(0)
        self.authors = authors
        self.model = Heterformer.from_backbone("minilm", schema(authors)).train()
        self.optimizers = Optimizers(self.model, TrainingOptions())
        self.generator = torch.Generator().manual_seed(0)

    def step(self) -> float:
        batch = self.batch()
        start = time.perf_counter()
        queries, keys = self.model.encode_batch(batch).chunk(2)
        link_prediction_loss(self.model.scores(queries, keys)).backward()
        self.optimizers.step()
        self.optimizers.zero_grad()
        return time.perf_counter() - start

    def batch(self) -> Batch:
        centers, neighbors = 2 * PAIRS, 2 * PAIRS * PAPERS
        texts = neighbors + centers
        offsets = torch.arange(texts + 1) * TOKENS
        cites, _, written_by, _ = schema(self.authors).edge_types
        rows = torch.randint(self.authors, (centers * AUTHORS,), generator=self.generator).unique()
        return Batch(
            texts=Texts(torch.randint(1000, 20_000, (texts * TOKENS,), generator=self.generator), offsets),
            neighbor_texts=neighbors,
            centers=torch.arange(neighbors, texts),
            neighbors={
                cites: Neighbors(torch.arange(centers).repeat_interleave(PAPERS), torch.arange(neighbors)),
                written_by: Neighbors(
                    torch.arange(centers).repeat_interleave(AUTHORS)[: len(rows)], torch.arange(len(rows))
                ),
            },
            textless={"author": rows},
        )


def schema(authors: int) -> Schema:
    return Schema(
        text_rich=("paper",),
        textless=("author",),
        counts={"paper": 1_000_000, "author": authors},
        relations=(Relation("cites", "paper", "paper"), Relation("written_by", "paper", "author")),
        predict="cites",
        neighbors={"paper": PAPERS, "author": AUTHORS},
        max_tokens=32,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=12)
    steps = parser.parse_args().steps
    trainings = [Training(size) for size in SIZES]
    for training in trainings:
        training.step()  # allocates the optimiser's state
    seconds: list[list[float]] = [[] for _ in SIZES]
    for _ in range(steps):
        for training, into in zip(trainings, seconds, strict=True):
            into.append(training.step())
    medians = [statistics.median(s) for s in seconds]
    for size, median in zip(SIZES, medians, strict=True):
        print(f"{size:>10,} textless nodes: {median:.3f} s per step")
    print(f"ratio of the largest to the smallest {medians[-1] / medians[0]:.2f}")


if __name__ == "__main__":
    main()
