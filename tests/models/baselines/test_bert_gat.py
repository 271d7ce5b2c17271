from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.models.baselines.toy import Toy, assert_equal, attended, heads


def vector(toy: Toy, i: int) -> Tensor:
    gat = toy.model.convolution
    projected = [gat.lin.weight @ h for h in (toy.centers[i], *toy.text_neighbors(i))]  # itself first
    parts = []
    for k in range(4):
        values = [heads(p, 4)[k] for p in projected]
        source, target = gat.att_src[0, k], gat.att_dst[0, k]
        scores = [F.leaky_relu(source @ v + target @ values[0], 0.2) for v in values]
        parts.append(attended(scores, values))
    return torch.cat(parts) + gat.bias


def test_formula() -> None:
    toy = Toy.build("bert_gat")
    assert_equal(toy, [vector(toy, i) for i in range(len(toy.centers))])


def test_starts_as_nearly_the_mean_of_itself_and_its_neighbours() -> None:
    toy = Toy.build("bert_gat", aggregation_init="identity")
    toy.model.start(toy.model.convolution)
    with torch.no_grad():
        toy.model.convolution.bias.zero_()
        toy.model.convolution.att_src.mul_(0.01)  # the tests' PLM starts with larger numbers than others
        toy.model.convolution.att_dst.mul_(0.01)
    for i, found in enumerate(toy.vectors()):
        mean = torch.stack([toy.centers[i], *toy.text_neighbors(i)]).mean(0)
        torch.testing.assert_close(found, mean, atol=0.02, rtol=0)
