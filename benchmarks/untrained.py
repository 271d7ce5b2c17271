"""What the backbone knows before any training: link prediction of a network's test pairs.

    python benchmarks/untrained.py NET [--seed 0]

MiniLM's vectors of the texts alone, read from [CLS] and as the mean over tokens, and that mean averaged with
the means of sampled text-rich neighbours, which no test pair shows: what a trained model has to beat.
In-batch PREC and MRR, as 'heterformer evaluate' computes them.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from transformers import AutoTokenizer

from heterformer import Heterformer, Network
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_key
from heterformer.batches.visible import VisibleNetwork
from heterformer.metrics import ranking_metrics
from heterformer.models.inference import plm_vectors
from heterformer.models.plm.minilm import backbone_path
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.tokens import open_tokens
from heterformer.ranking import in_batch_ranks


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("network")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    network = Network.open(options.network)
    schema, split = network.schema, make_split(network, SplitOptions())
    tokens = open_tokens(network, AutoTokenizer.from_pretrained(backbone_path("minilm")))
    batcher = Batcher(VisibleNetwork.for_evaluation(network, split), tokens)
    every = np.arange(len(tokens))
    figures = []
    for readout in ("cls", "mean"):
        model = Heterformer.from_backbone("minilm", network, readout=readout)
        texts = F.normalize(plm_vectors(model, tokens, every), dim=1)
        queries, keys, near_queries, near_keys = [], [], [], []
        for start in range(0, len(split.test), schema.test_batch_size):
            pairs = split.test[start : start + schema.test_batch_size]
            batch = batcher.pairs(pairs, evaluation_key(options.seed))
            assert batch.text_rows is not None
            read = texts[batch.text_rows]
            own = read[batch.centers]
            near, count = own.clone(), torch.ones(len(own), 1)
            for edge_type, edges in batch.neighbors.items():
                if edge_type.neighbor in schema.text_rich:
                    near.index_add_(0, edges.center, read[edges.node])
                    count.index_add_(0, edges.center, torch.ones(len(edges.center), 1))
            for kept, role in zip((queries, keys), batch.by_role(own), strict=False):
                kept.append(role)
            for kept, role in zip((near_queries, near_keys), batch.by_role(near / count), strict=False):
                kept.append(role)
        rows = {f"{readout}, texts alone": (queries, keys)}
        rows[f"{readout}, averaged with neighbours"] = (near_queries, near_keys)
        for name, (q, k) in rows.items():
            size, key_rows = schema.test_batch_size, torch.from_numpy(split.test[:, 1].copy())
            ranks = in_batch_ranks(torch.cat(q), torch.cat(k), size, model.scores, key_rows)
            metrics = ranking_metrics({"in_batch": ranks.numpy()})
            figures.append(f"{name} {metrics['prec']:.4f}/{metrics['mrr']:.4f}")
            print(f"{name:35} PREC {metrics['prec']:.4f}  MRR {metrics['mrr']:.4f}", flush=True)
    print("test PREC/MRR: " + "; ".join(figures))


if __name__ == "__main__":
    main()
