from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer.network.schema import EdgeType
from tests.models.baselines.toy import Toy, assert_equal, attended, heads


def kqv(toy: Toy, h: Tensor, node_type: str) -> tuple[Tensor, Tensor, Tensor]:
    name = "text" if node_type in toy.model.schema.text_rich else f"textless_{node_type}"
    key, query, value = toy.model.convolution.kqv_lin.lins[name](h).chunk(3)
    return key, query, value


def message(toy: Toy, k: int, r: EdgeType, h: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
    """The attention score and the message of one neighbour in head k."""
    hgt, number = toy.model.convolution, toy.model.edge_types.index(r)
    key, _, value = (heads(x, 4)[k] for x in kqv(toy, h, r.neighbor))
    matrix = k * len(toy.model.edge_types) + number
    prior = hgt.p_rel["__".join(toy.model.triple(r))][0, k]
    score = (key @ hgt.k_rel.weight[matrix]) @ query * prior / math.sqrt(len(key))
    return score, value @ hgt.v_rel.weight[matrix]


def vector(toy: Toy, i: int) -> Tensor:
    hgt, h = toy.model.convolution, toy.centers[i]
    query = heads(kqv(toy, h, "paper")[1], 4)
    parts = []
    for k in range(4):
        messages = [message(toy, k, r, n, query[k]) for r, n in toy.neighbors(i)]
        zero = torch.zeros(8, dtype=torch.float64)
        parts.append(attended(*map(list, zip(*messages, strict=True))) if messages else zero)
    gate = torch.sigmoid(hgt.skip["text"])
    return gate * hgt.out_lin.lins["text"](F.gelu(torch.cat(parts))) + (1 - gate) * h


def test_formula() -> None:
    toy = Toy.build("bert_hgt")
    assert_equal(toy, [vector(toy, i) for i in range(len(toy.centers))])


def test_starts_half_as_it_was() -> None:
    toy = Toy.build("bert_hgt", aggregation_init="identity")
    with torch.no_grad():
        toy.model.start(toy.model.convolution)
        for prior in toy.model.convolution.p_rel.values():
            prior.fill_(1)
    for i, found in enumerate(toy.vectors()):
        neighbors = [h for _, h in toy.neighbors(i)]
        parts = [torch.zeros(8, dtype=torch.float64)] * 4
        for k in range(4 if neighbors else 0):
            own, values = heads(toy.centers[i], 4)[k], [heads(h, 4)[k] for h in neighbors]
            parts[k] = attended([own @ v / 4 / math.sqrt(8) for v in values], values)
        torch.testing.assert_close(found, toy.centers[i] / 2 + F.gelu(torch.cat(parts)))


def test_no_parameters_for_what_textless_nodes_would_receive() -> None:
    names = [name for name, _ in Toy.build("bert_hgt").model.convolution.named_parameters()]
    assert not [name for name in names if name.startswith(("out_lin", "skip")) and "textless" in name]
    assert "out_lin.lins.text.weight" in names
