"""Sets of training options that have a name."""

from __future__ import annotations

from typing import Any

from heterformer.models.plm.reading import PAPER

# The paper's hyper-parameter table and its plain loss; what the paper leaves open is as its words suggest.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "backbone": "bert-base-uncased",
        "aggregation_init": "random",
        "network_readout": "none",
        "second_hop": None,
        "neighbor_codes": False,
        **{name: PAPER[name] for name in ("neighbor_pooling", "readout", "normalize", "temperature")},
        "batch_size": 30,
        "learning_rate": 1e-5,
        "new_learning_rate": 1e-5,
        "gate_learning_rate": None,
        "textless_learning_rate": 1e-5,
        "weight_decay": 1e-3,
        "adam_epsilon": 1e-8,
        "patience": 3,
        "schedule": "constant",
        "positives": "fixed",
        "neighbor_dropout": 0.0,
        "neighbor_states": "live",
        "false_negatives": "keep",
        "popularity_correction": 0.0,
        "sparse_tokens": False,
        "validation_pairs": 1_000_000_000,
    }
}
