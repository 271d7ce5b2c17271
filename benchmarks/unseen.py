"""Nodes that training never saw: link prediction of their pairs, against a model that was trained with them.

    heterformer train NET runs/inductive --split.hold-out 0.1 ...
    heterformer train NET runs/transductive ...
    python benchmarks/unseen.py runs/inductive runs/transductive

The first run hides a tenth of the query nodes, and with them the textless nodes that have no other text. The
test pairs that they are the query of, or the key, or either, and that the second run has not trained on, are
ranked, in batches, by the second model, which knew the nodes (but not the
pairs); by the first, with unseen textless nodes folded in; by the first, with unseen textless nodes left out
of all neighbourhoods; and by the first without any folding in, unseen embeddings as they were drawn.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from transformers import AutoTokenizer

from heterformer import Run
from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.schema import Relation
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import Split
from heterformer.network.tokens import open_tokens
from heterformer.training.unseen import adapt_to_network
from heterformer.training.validation import in_batch_metrics


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("inductive", type=Path)
    parser.add_argument("transductive", type=Path)
    options = parser.parse_args()
    run, other = Run(options.inductive), Run(options.transductive)
    network, split = run.network(), run.split(run.network())
    source = network.schema.predicted[0].source
    test_pairs = _touching(split, network.schema.predicted[0])
    learnt = {tuple(pair) for pair in other.split(network).train.tolist()}
    test_pairs = {name: _without(pairs, learnt) for name, pairs in test_pairs.items()}
    tokens = open_tokens(network, AutoTokenizer.from_pretrained(run.path))
    visible = VisibleNetwork.for_evaluation(network, split)
    known = KnownNodes.open(run.path)
    assert known is not None
    unseen = {t: np.flatnonzero(ids.is_null().to_numpy()) for t, ids in known.ids.items()}
    without = VisibleNetwork(network, split.hidden_pairs, unseen)
    model = run.model()
    with tempfile.TemporaryDirectory() as folder:
        folded, _ = adapt_to_network(model, visible, tokens, Path(folder))
    counts = ", ".join(f"{len(rows):,} of {network.schema.counts[t]:,} {t}s" for t, rows in unseen.items())
    print(
        f"{len(split.hidden[source]):,} hidden {source}s; unseen: {counts}; test pairs: "
        + ", ".join(f"{len(pairs):,} with {name}" for name, pairs in test_pairs.items())
    )
    rows = {
        "transductive": (other.model(), visible),
        "unseen, folded in": (folded, visible),
        "unseen textless nodes left out": (model, without),
        "unseen, embeddings as drawn": (model, visible),
    }
    for which, pairs in test_pairs.items():
        if not len(pairs):
            continue
        figures = []
        for name, (encoder, view) in rows.items():
            metrics = _metrics(encoder, view, tokens, pairs, run.options().seed)
            figures.append(f"{name} {metrics['prec']:.4f}/{metrics['mrr']:.4f}")
            values = f"PREC {metrics['prec']:.4f}  MRR {metrics['mrr']:.4f}  NDCG {metrics['ndcg']:.4f}"
            print(f"{which}: {name:32} {values}", flush=True)
        print(f"{which}, PREC/MRR: " + "; ".join(figures))


def _touching(split: Split, predicted: Relation) -> dict[str, Pairs]:
    """The test pairs with an unseen query, with an unseen key, and with either."""
    none = np.empty(0, dtype=np.int64)
    query, key = (
        np.isin(split.test[:, column], split.hidden.get(node_type, none))
        for column, node_type in ((0, predicted.source), (1, predicted.target))
    )
    chosen = {"an unseen query": query, "an unseen key": key, "either": query | key}
    return {name: split.test[rows] for name, rows in chosen.items()}


def _without(pairs: Pairs, learnt: set[tuple[int, ...]]) -> Pairs:
    """Those that the other run has not trained on."""
    return pairs[[tuple(pair) not in learnt for pair in pairs.tolist()]]


def _metrics(model, visible, tokens, pairs: Pairs, seed: int):  # type: ignore[no-untyped-def]
    batcher = Batcher(visible, tokens)
    return in_batch_metrics(model, batcher, pairs, batcher.schema.test_batch_size, seed)


if __name__ == "__main__":
    main()
