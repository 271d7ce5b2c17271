from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.models.baselines.toy import Toy, assert_equal, attended, heads


def meta_path(toy: Toy, i: int, number: int) -> Tensor:
    """z_i of one meta-path: GAT over the neighbours under it, the node itself included."""
    han, r = toy.model.convolution, toy.model.edge_types[number]

    def project(h: Tensor, text: bool) -> Tensor:
        return han.proj["text"](h) if text else h  # a textless node's M_phi is W_phi, applied already

    text_rich = toy.model.schema.text_rich
    seen = [project(h, kind.neighbor in text_rich) for kind, h in toy.neighbors(i) if kind == r]
    itself = project(toy.centers[i], True)
    parts = []
    for k in range(4):
        values = [heads(h, 4)[k] for h in (itself, *seen)]
        key = f"text__{number}__text"
        source, target = han.lin_src[key][0, k], han.lin_dst[key][0, k]
        parts.append(attended([F.leaky_relu(source @ v + target @ values[0], 0.2) for v in values], values))
    return F.elu(torch.cat(parts))


def test_formula() -> None:
    toy = Toy.build("bert_han")
    han = toy.model.convolution
    expected = []
    for i in range(len(toy.centers)):
        z = [meta_path(toy, i, number) for number in range(len(toy.model.edge_types))]
        expected.append(attended([han.q[0] @ torch.tanh(han.k_lin(h)) for h in z], z))
    assert_equal(toy, expected)


def test_starts_as_a_mean_of_means() -> None:
    toy = Toy.build("bert_han", aggregation_init="identity")
    toy.model.start(toy.model.convolution)
    han = toy.model.convolution
    with torch.no_grad():
        for parameter in (*han.lin_src.values(), *han.lin_dst.values(), han.q):
            parameter.mul_(0.001)  # the tests' PLM starts with larger numbers than others
    for i, vector in enumerate(toy.vectors()):
        means = []
        for r in toy.model.edge_types:
            seen = [h for kind, h in toy.neighbors(i) if kind == r]
            means.append(F.elu(torch.stack([toy.centers[i], *seen]).mean(0)))
        torch.testing.assert_close(vector, torch.stack(means).mean(0), atol=0.02, rtol=0)
