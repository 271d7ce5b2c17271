"""Stand-in: a vector for every node of a run's network."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer

from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import evaluation_key
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding.vectors import Vectors
from heterformer.files import replace_folder
from heterformer.models.configuration import HeterformerConfig
from heterformer.models.heterformer import Heterformer
from heterformer.models.inference import center_vectors
from heterformer.network.tokens import open_tokens
from heterformer.training.run import Run


def embed_run(path: Path | str, out: Path | str) -> Vectors:
    """Write vectors of a run's network under the run's best model."""
    run, out = Run(path), Path(out)
    network = run.network()
    model = Heterformer(HeterformerConfig.from_pretrained(run.path))
    run.load_best(model)
    model.eval()
    tokens = open_tokens(network, AutoTokenizer.from_pretrained(run.path))
    batcher = Batcher(VisibleNetwork.whole(network), tokens)
    out.parent.mkdir(parents=True, exist_ok=True)
    with replace_folder(out) as folder, torch.no_grad():
        for t in network.schema.node_types:
            rows = np.arange(network.schema.counts[t])
            if t in network.schema.text_rich:
                vectors = center_vectors(model, batcher, t, rows, evaluation_key(0))
            else:
                vectors = model.textless_vectors(t, torch.from_numpy(rows))
            np.save(folder / f"{t}.npy", vectors.numpy())
            ids = "".join(f"{i}\n" for i in network.ids(t))
            (folder / f"{t}.ids.txt").write_text(ids, encoding="utf-8")
        (folder / "vectors.json").write_text(json.dumps({"types": network.schema.node_types}))
    return Vectors.open(out)
