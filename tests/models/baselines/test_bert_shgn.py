from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.models.baselines.toy import Toy, assert_equal, attended, heads


def vector(toy: Toy, i: int) -> Tensor:
    gat, kinds = toy.model.convolution, toy.model.edge_embeddings.weight
    numbers = [toy.model.edge_types.index(r) for r, _ in toy.neighbors(i)]
    edges = [gat.lin_edge.weight @ kinds[number] for number in (len(toy.model.edge_types), *numbers)]
    projected = [gat.lin.weight @ h for h in (toy.centers[i], *(h for _, h in toy.neighbors(i)))]
    parts = []
    for k in range(4):
        values = [heads(p, 4)[k] for p in projected]
        source, target, edge = gat.att_src[0, k], gat.att_dst[0, k], gat.att_edge[0, k]
        own = target @ values[0]
        scores = [
            F.leaky_relu(own + source @ v + edge @ heads(e, 4)[k], 0.2)
            for v, e in zip(values, edges, strict=True)
        ]
        parts.append(attended(scores, values))
    output = torch.cat(parts) + toy.centers[i]
    return output / output.norm() * math.sqrt(32) / 2


def test_formula() -> None:
    toy = Toy.build("bert_shgn")
    assert_equal(toy, [vector(toy, i) for i in range(len(toy.centers))])


def test_edge_types_change_the_attention() -> None:
    toy = Toy.build("bert_shgn")
    before = toy.vectors()
    with torch.no_grad():
        toy.model.edge_embeddings.weight[0] += 3
    assert not torch.allclose(toy.vectors(), before, atol=1e-3)
