"""Explanations made by hand, and the runs that a test explains."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from heterformer.explanation.core import (
    CloseNeighbor,
    Layer,
    SampledNeighbor,
    TextExplanation,
    TextlessExplanation,
    VirtualToken,
)
from heterformer.network.build.frames import temporary_folder
from heterformer.network.store import Network
from heterformer.search.searcher import NamedNode
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.learning import tiny_network, tiny_options, tiny_reader

TITLE = "Attention is all you need"
WORDS = ("[CLS]", "attention", "is", "all", "you", "need", "[SEP]")


@cache
def other_run(**changes: Any) -> Path:
    """A run on ``tiny_network`` with other options than ``tiny_run``; whoever changes it works on a copy."""
    options = tiny_options(tiny_reader(), max_steps=1, **changes)
    return train(tiny_network(), temporary_folder() / "other", options).path


def untrained(path: Path, network: Network, **changes: Any) -> Path:
    """A run that did not get beyond its configuration."""
    Run(path).start(network, tiny_options(tiny_reader(), **changes))
    return path


def text_explanation(**changes: Any) -> TextExplanation:
    """A paper of seven tokens with three neighbours, in three layers."""
    papers = (
        SampledNeighbor("paper", "p2", "Neural machine translation", "cites", "out", (0.6, 0.4), 0.5),
        SampledNeighbor("paper", "p3", "BERT", "cites", "in", (0.2, 0.4), 0.3),
    )
    authors = (SampledNeighbor("author", "a1", "a1", "written_by", "out", (0.1, 0.1), 0.1),)
    values: dict[str, Any] = {
        "run": "runs/small",
        "warm_up": True,
        "node": NamedNode("paper", "p1", TITLE),
        "queries": "cls",
        "tokens": WORDS,
        "layers": (
            Layer(1, {}, 1.0, (0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1)),
            Layer(2, {"text_rich": 0.25, "textless": 0.05}, 0.7, (0.1, 0.2, 0.1, 0.0, 0.1, 0.1, 0.1)),
            Layer(
                3, {"text_rich": 0.5, "textless": 0.125}, 0.375, (0.1, 0.05, 0.05, 0.05, 0.05, 0.05, 0.025)
            ),
        ),
        "virtual_tokens": (
            VirtualToken("text_rich", (2, 3), (0.2, 0.2), 0.2, 12, papers),
            VirtualToken("textless", (2, 3), (0.9, 0.9), 0.9, 1, authors),
        ),
    }
    return TextExplanation(**values | changes)


def text_only_explanation() -> TextExplanation:
    """The same paper under a model without virtual neighbour tokens."""
    layers = (Layer(1, {}, 1.0, (1 / 7,) * 7), Layer(2, {}, 1.0, (1 / 7,) * 7))
    return text_explanation(layers=layers, virtual_tokens=(), run="runs/text")


def textless_explanation(count: int = 2) -> TextlessExplanation:
    """An author with some papers."""
    closest = (
        CloseNeighbor("paper", "p1", TITLE, "written_by", "in", 12.345678),
        CloseNeighbor("paper", "p2", "p2", "edits", "out", -0.5),
    )
    return TextlessExplanation("runs/small", NamedNode("author", "a1", "Jane Doe"), 1200, closest[:count])
