from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from heterformer.models.heads import HeadConfig, NodeHead

CLASSES = ("a", "b", "c")


def new_head(kind: Any = "single", **more: Any) -> NodeHead:
    torch.manual_seed(0)
    classes = ("year",) if kind == "number" else CLASSES
    return NodeHead(HeadConfig("paper", kind, classes, **more), 8, normalized=False).eval()


def test_configuration_survives_json() -> None:
    config = HeadConfig("paper", "number", ("year",), mean=2000.0, scale=7.5)
    assert HeadConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize("hidden", [0, 5])
def test_it_is_an_mlp(hidden: int) -> None:
    head, x = new_head(hidden=hidden), torch.randn(4, 8)
    *inner, last = head.layers
    expected = last(F.relu(inner[0](x)) if inner else x)
    torch.testing.assert_close(head(x), expected)
    assert len(inner) == (hidden > 0)


def test_short_vectors_are_stretched() -> None:
    config, x = HeadConfig("paper", "single", CLASSES), F.normalize(torch.randn(4, 8), dim=-1)
    torch.manual_seed(0)
    head = NodeHead(config, 8, normalized=True).eval()
    torch.testing.assert_close(head(x), new_head()(x * 8**0.5))


def test_probabilities_and_temperature() -> None:
    logits = torch.tensor([[2.0, 0.0, -1.0]])
    single, multi = new_head(), new_head("multi")
    assert single.probabilities(logits).sum().item() == pytest.approx(1)
    torch.testing.assert_close(multi.probabilities(logits), logits.sigmoid())
    single.temperature.fill_(4.0)
    torch.testing.assert_close(single.probabilities(logits), (logits / 4).softmax(-1))


def test_numbers_are_in_their_own_units() -> None:
    head = new_head("number", mean=2000.0, scale=10.0)
    outputs = torch.tensor([[0.0], [1.5]])
    assert head.numbers(outputs).tolist() == [2000.0, 2015.0]
    loss = head.loss(outputs, torch.tensor([[2000.0], [2005.0]]))
    assert loss.item() == pytest.approx(1.0)  # one unit of scale beside it


def test_losses() -> None:
    outputs = torch.randn(5, 3)
    single = F.one_hot(torch.tensor([0, 1, 2, 0, 1]), 3).float()
    several = torch.tensor([[1.0, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]])
    weights = torch.tensor([0.5, 1.0, 2.0])
    head, multi = new_head(), new_head("multi")
    codes = single.argmax(-1)
    torch.testing.assert_close(
        head.loss(outputs, single, weights), F.cross_entropy(outputs, codes, weights, reduction="sum")
    )
    torch.testing.assert_close(
        head.loss(outputs, single, smoothing=0.1),
        F.cross_entropy(outputs, codes, label_smoothing=0.1, reduction="sum"),
    )
    expected = F.binary_cross_entropy_with_logits(outputs, several, weights, reduction="none").mean(-1).sum()
    torch.testing.assert_close(multi.loss(outputs, several, weights), expected)
    parts = multi.loss(outputs[:2], several[:2]) + multi.loss(outputs[2:], several[2:])
    torch.testing.assert_close(parts, multi.loss(outputs, several))  # losses of parts add up
