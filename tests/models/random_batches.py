"""Tiny random PLMs, schemas and batches, made directly, without a network on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.models.contract import NodeEncoder
from heterformer.models.registry import MODELS
from heterformer.network.schema import Relation, Schema
from heterformer.network.tokens import PackedTokens

VOCABULARY = 60
MAX_TOKENS = 12
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": MAX_TOKENS + 2,
    "initializer_range": 0.2,  # large enough that every weight matters to the result
    "pad_token_id": 1,
}
SPECIAL = {f"{name}_token_id": 1 for name in ("bos", "eos", "cls", "sep")}
FAMILIES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bert": (BertModel, BertConfig, {}),
    "roberta": (RobertaModel, RobertaConfig, {}),
    "xlm-roberta": (XLMRobertaModel, XLMRobertaConfig, {}),
    "electra": (ElectraModel, ElectraConfig, {"embedding_size": 16}),
    "distilbert": (DistilBertModel, DistilBertConfig, {}),
    "mpnet": (MPNetModel, MPNetConfig, {}),
    # Layers with all keys, with those at most three tokens away, with all again.
    "modernbert": (
        ModernBertModel,
        ModernBertConfig,
        SPECIAL | {"global_attn_every_n_layers": 2, "local_attention": 6, "initializer_cutoff_factor": 3.0},
    ),
}


def save_backbone(folder: Path, family: str = "bert", layers: int = 3, **sizes: object) -> str:
    """A randomly initialised PLM, saved where ``from_backbone`` can read it."""
    torch.manual_seed(0)
    options = SIZES | {"num_hidden_layers": layers} | sizes
    model, config, more = FAMILIES[family]
    if config is DistilBertConfig:
        options["hidden_dim"] = options.pop("intermediate_size")
    plm = model(config(**options | more))
    with torch.no_grad():  # biases and normalisations start where mistakes cancel out
        for parameter in plm.parameters():
            if parameter.dim() == 1:
                parameter += 0.2 * torch.randn(parameter.shape)
    plm.save_pretrained(folder)
    return str(folder)


def new_model(name: str, backbone: str, **options: Any) -> NodeEncoder:
    """A registered model that has seen texts, with random aggregation unless said otherwise.

    At the identity, mistakes in an aggregation could cancel out.
    """
    torch.manual_seed(1)
    model = MODELS[name]
    if "aggregation_init" in model.config_class.option_names():
        options = {"aggregation_init": "random", **options}
    made = model.from_backbone(backbone, schema(), **options)
    made.prepare(random_tokens(), special_tokens=(0, 1))
    return made


def random_tokens() -> PackedTokens:
    """Texts of a network, some tokens more frequent than others; the first two are special."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, MAX_TOKENS + 1, 50)
    tokens = np.minimum(rng.geometric(0.05, lengths.sum()), VOCABULARY - 1).astype(np.int32)
    tokens[::7] = 0
    return PackedTokens({"paper": 0, "review": 40}, np.concatenate([[0], np.cumsum(lengths)]), tokens)


def schema() -> Schema:
    """Two text-rich and two textless types, some of them neighbours under several edge types."""
    return Schema(
        text_rich=("paper", "review"),
        textless=("author", "venue"),
        counts={"paper": 40, "review": 10, "author": 20, "venue": 5},
        relations=(
            Relation("cites", "paper", "paper"),
            Relation("reviews", "review", "paper"),
            Relation("written_by", "paper", "author"),
            Relation("published_in", "paper", "venue"),
            Relation("signed_by", "review", "author"),
        ),
        predict="cites",
        neighbors={"paper": 3, "review": 2, "author": 2, "venue": 1},
        max_tokens=MAX_TOKENS,
    )


def random_batch(
    seed: int, centers: int = 6, texts: int = 9, edge_probability: float = 0.6, second_hops: bool = False
) -> Batch:
    """A batch with everything that can happen in one.

    Centres are papers and reviews, and texts may occur as centre several times, as neighbour of several
    centres, and as both. Some centres have no neighbours of a kind or none at all; the first text has
    one token, the second as many as are allowed. With ``second_hops`` neighbours have neighbours, too.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int, size: int) -> Tensor:
        return torch.randint(low, high, (size,), generator=generator)

    lengths = draw(1, MAX_TOKENS + 1, texts)
    lengths[0], lengths[1] = 1, MAX_TOKENS
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    tokens = draw(2, VOCABULARY, int(offsets[-1]))
    neighbor_texts = texts * 2 // 3
    center_index = draw(0, texts, centers)
    center_index[:3] = torch.tensor([0, 1, texts - 1])
    types = ["paper" if i % 3 else "review" for i in range(centers)]

    textless = {"author": torch.randperm(20, generator=generator)[:5], "venue": torch.tensor([4, 0])}
    neighbors, second_hop = {}, {}
    for edge_type in schema().edge_types:
        if edge_type.center not in ("paper", "review"):
            continue
        count = len(textless[edge_type.neighbor]) if edge_type.neighbor in textless else neighbor_texts
        pairs = [
            (i, int(draw(0, count, 1)))
            for i in range(centers)
            if types[i] == edge_type.center and i != centers - 1  # the last centre is alone
            for _ in range(int(draw(0, 4, 1)))
            if torch.rand(1, generator=generator) < edge_probability
        ]
        pairs_tensor = torch.tensor(pairs, dtype=torch.int64).view(-1, 2)
        neighbors[edge_type] = Neighbors(pairs_tensor[:, 0], pairs_tensor[:, 1])
    for edge_type in neighbors if second_hops else ():
        count = len(textless[edge_type.neighbor]) if edge_type.neighbor in textless else neighbor_texts
        size = int(draw(0, 8, 1))
        second_hop[edge_type] = Neighbors(draw(0, neighbor_texts - 1, size).sort()[0], draw(0, count, size))
    return Batch(Texts(tokens, offsets), neighbor_texts, center_index, neighbors, textless, second_hop)
