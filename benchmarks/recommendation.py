"""A run on a user-item network beside popularity, item-kNN, LightGCN and the texts alone, on the same pairs.

    python benchmarks/recommendation.py RUN

Every method is given the pairs that the run's evaluation may see, and ranks for each user all items that it
is not linked to. item-kNN is the cosine of items' users; LightGCN is PyTorch Geometric's, trained with its
BPR loss; "text alone" ranks by the PLM's mean vector of what a user has.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from heterformer import evaluate
from heterformer.evaluation.open_run import OpenRun, open_run
from heterformer.metrics import RECOMMENDATION_METRICS, recommendation_metrics
from heterformer.models.inference import plm_vectors
from heterformer.network.schema import Relation

Scores = NDArray[np.floating]  # (users, items)


class UserItems:
    """The first predicted relation of a run with a textless end: what is known, and what is asked."""

    def __init__(self, opened: OpenRun) -> None:
        schema = opened.network.schema
        self.relation: Relation = next(r for r in schema.predicted if schema.textless_end(r) is not None)
        self.users, self.items = schema.counts[self.relation.source], schema.counts[self.relation.target]
        self.known = np.zeros((self.users, self.items), dtype=bool)
        self.known[opened.network.edges(self.relation.name)] = True
        self.training = self.known.copy()
        parts = opened.split.pairs[self.relation.name]
        self.training[tuple(parts.held_out.T)] = False
        self.test = parts.test
        self.cold = np.flatnonzero(~self.training.any(0))

    def figures(self, scores: Scores, cold: bool = False) -> dict[str, float]:
        """The metrics of the test pairs, or of cold items among each other; ties count against a method."""
        pairs = self.test[np.isin(self.test[:, 1], self.cold)] if cold else self.test
        others = np.isin(np.arange(self.items), self.cold) if cold else np.ones(self.items, dtype=bool)
        ranks = np.empty(len(pairs), dtype=np.int64)
        for place, (user, item) in enumerate(pairs):
            candidates = others & ~self.known[user]
            ranks[place] = 1 + int((scores[user, candidates] >= scores[user, item]).sum())
        return recommendation_metrics(pairs[:, 0], ranks)


def popularity(data: UserItems) -> Scores:
    jitter = np.random.default_rng(0).random(data.items)  # ties in a random order
    return np.tile(data.training.sum(0) + jitter, (data.users, 1))


def item_knn(data: UserItems, neighbors: int = 100) -> Scores:
    """The sum of the cosines with what the user has, of each item's closest ones."""
    matrix = data.training.astype(np.float64)
    norm = np.maximum(np.sqrt(matrix.sum(0)), 1)
    cosine = (matrix.T @ matrix) / norm[:, None] / norm
    np.fill_diagonal(cosine, 0)
    least = np.partition(cosine, -neighbors, axis=1)[:, -neighbors, None]
    return matrix @ np.where(cosine >= np.maximum(least, 1e-12), cosine, 0).T


def light_gcn(data: UserItems, dim: int, epochs: int, rate: float, seed: int) -> Scores:
    from torch_geometric.nn import LightGCN

    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(data.training)
    edges = torch.from_numpy(np.stack([users, items + data.users]))
    both = torch.cat([edges, edges.flip(0)], 1)
    model = LightGCN(data.users + data.items, dim, num_layers=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(epochs):
        for chosen in np.array_split(rng.permutation(len(users)), max(1, len(users) // 2048)):
            negatives = data.users + rng.integers(0, data.items, len(chosen))
            pairs = torch.stack([edges[0, chosen], torch.from_numpy(negatives)])
            ranks = model(both, torch.cat([edges[:, chosen], pairs], 1)).chunk(2)
            loss = model.recommendation_loss(*ranks, node_id=torch.cat([edges[:, chosen], pairs], 1).unique())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        vectors = model.get_embedding(both)
    return (vectors[: data.users] @ vectors[data.users :].T).numpy()


def text_alone(data: UserItems, opened: OpenRun) -> Scores:
    offset = opened.batcher.tokens.text_offset[data.relation.target]
    vectors = plm_vectors(opened.model, opened.batcher.tokens, offset + np.arange(data.items)).numpy()
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return data.training.astype(np.float32) @ vectors @ vectors.T


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--neighbors", type=int, default=100, help="of item-kNN")
    parser.add_argument("--dim", type=int, default=64, help="of LightGCN")
    parser.add_argument("--epochs", type=int, default=50, help="of LightGCN")
    parser.add_argument("--rate", type=float, default=1e-2, help="the learning rate of LightGCN")
    parser.add_argument("--without-run", action="store_true", help="leave out the run's own figures")
    options = parser.parse_args()
    opened = open_run(options.run, "cpu")
    data = UserItems(opened)
    methods = {
        "popularity": popularity(data),
        "item-kNN": item_knn(data, min(options.neighbors, data.items - 1)),
        "LightGCN": light_gcn(data, options.dim, options.epochs, options.rate, seed=0),
        "text alone": text_alone(data, opened),
    }
    rows = {name: (data.figures(scores), data.figures(scores, cold=True)) for name, scores in methods.items()}
    if not options.without_run:
        results = evaluate(
            options.run, tasks=("link_prediction",), parts=("test",), device="cpu"
        ).recommendation
        of_run = {one.group: one.metrics for one in results if one.relation == data.relation.name}
        nothing = dict.fromkeys((m.name for m in RECOMMENDATION_METRICS), float("nan"))
        rows[opened.run.options().model.display_name] = (of_run["all"], of_run.get("cold targets", nothing))
    of_cold = data.test[np.isin(data.test[:, 1], data.cold)]
    users, cold_users = (len(np.unique(pairs[:, 0])) for pairs in (data.test, of_cold))
    print(f"{users:,} users, {data.items:,} items; {cold_users:,} users of {len(data.cold):,} cold items")
    headings = [m.heading for m in RECOMMENDATION_METRICS]
    print(f"{'':12}", *(f"{h:>10}" for h in headings), *(f"{'cold ' + h:>15}" for h in headings))
    for name, (every, cold) in rows.items():
        cells = [f"{every[m.name]:10.4f}" for m in RECOMMENDATION_METRICS]
        cells += [f"{cold[m.name]:15.4f}" for m in RECOMMENDATION_METRICS]
        print(f"{name:12}", *cells, flush=True)


if __name__ == "__main__":
    main()
