from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer.explanation import figure as attention_figure
from heterformer.explanation.core import TextExplanation
from heterformer.explanation.figure import (
    attention_matrix,
    draw_attention,
    figure_path,
    is_nearly_uniform,
    titles,
)
from heterformer.figures import canvas
from heterformer.search.searcher import NamedNode
from tests.explanation.explaining import TITLE, text_explanation, text_only_explanation
from tests.pictures import check_picture, size_of

VIRTUAL = ["text-rich\nneighbours", "textless\nneighbours"]


class Drawn:
    """A figure that was drawn, and its axes."""

    def __init__(self, drawing: Any) -> None:
        self.drawing = drawing
        upper, *lower = drawing.subfigs
        self.title = upper.get_suptitle()
        *self.maps, self.scale = upper.axes
        self.shares = [axes for part in lower for axes in part.axes]

    def words(self, place: int = 0) -> list[str]:
        return [label.get_text() for label in self.maps[place].get_xticklabels()]

    def values(self, place: int = 0) -> Any:
        return self.maps[place].images[0].get_array()

    def labels(self, place: int) -> list[str]:
        return [text.get_text() for text in self.shares[place].texts]

    def bars(self, place: int) -> list[float]:
        return [bar.get_width() for bar in self.shares[place].patches]


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    def drawn(*found: TextExplanation, top: int = 10) -> Drawn:
        kept = []

        @contextmanager
        def keeping(path: Path, height: float) -> Iterator[Any]:
            with canvas(path, height) as drawing:
                kept.append(drawing)
                yield drawing

        monkeypatch.setattr(attention_figure, "canvas", keeping)
        draw_attention(found, tmp_path / "figure.png", top)
        check_picture(tmp_path / "figure.png")
        return Drawn(kept[0])

    return drawn


def test_layers_against_tokens(draw: Any) -> None:
    found = draw(text_explanation())
    assert found.title == TITLE
    (axes,) = found.maps
    words = ["[CLS]", "attention", "is", "all", "you", "need", "[SEP]"]
    assert found.words() == [*VIRTUAL, *words]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2", "3"]
    values = found.values()
    assert values.shape == (3, 9)
    assert values.mask.tolist() == [[True, True, *[False] * 7], [False] * 9, [False] * 9]
    assert values[1, :3].tolist() == [0.25, 0.05, 0.1]
    assert found.scale.get_ylabel() == "attention of [CLS]"
    assert draw(text_explanation(queries="all")).scale.get_ylabel() == "attention of all tokens"


def test_the_first_eight_tokens(draw: Any) -> None:
    words = tuple(f"w{i}" for i in range(20))
    layers = tuple(
        replace(layer, tokens=tuple(np.linspace(0.01, 0.05, 20))) for layer in text_explanation().layers
    )
    found = draw(text_explanation(tokens=words, layers=layers))
    assert found.words() == [*VIRTUAL, *words[:7], f"{words[7]} …"]
    assert found.values()[2, -1] == pytest.approx(layers[2].tokens[7])


def test_shares_of_neighbours(draw: Any) -> None:
    found = draw(text_explanation())
    papers, authors = found.labels(0), found.labels(1)
    assert papers == [
        *("cites → Neural machine translation", "50%"),
        *("cites ← BERT", "30%"),
        *("the node itself", "20%"),
    ]
    assert authors == ["the node itself", "90%", "written_by → a1", "10%"]
    assert found.bars(0) == [0.5, 0.3, 0.2]
    assert found.shares[0].get_xlim() == found.shares[1].get_xlim() == (0, 0.9)
    assert draw(text_explanation(), top=1).bars(0) == [0.5, 0.2]


def test_nearly_uniform_shares_are_called_so(draw: Any) -> None:
    token, other = text_explanation().virtual_tokens
    even = replace(token, own_share=0.34, neighbors=tuple(replace(n, share=0.33) for n in token.neighbors))
    found = draw(text_explanation(virtual_tokens=(even, other)))
    assert [axes.get_title(loc="left") for axes in found.shares] == [
        "shares of text-rich neighbours (mean over layers): nearly uniform",
        "shares of textless neighbours (mean over layers)",
    ]


def test_two_runs_share_one_colour_scale_and_the_one_without_warm_up_is_left(draw: Any) -> None:
    layers = tuple(replace(layer, tokens=(0.8, *layer.tokens[1:])) for layer in text_explanation().layers)
    token, other = text_explanation().virtual_tokens
    fewer = (replace(token, own_share=0.4, neighbors=token.neighbors[1:]), other)
    without = text_explanation(warm_up=False, run="runs/cold", layers=layers, virtual_tokens=fewer)
    found = draw(text_explanation(), without)
    assert [axes.get_title() for axes in found.maps] == ["w/o warm-up", "w/ warm-up"]
    assert found.values(0)[0, 2] == 0.8
    assert found.values(1)[0, 2] == 0.4
    assert {axes.images[0].norm.vmax for axes in found.maps} == {0.8}
    assert found.labels(0) == [
        *("cites → Neural machine translation", "- | 50%"),
        *("the node itself", "40% | 20%"),
        *("cites ← BERT", "30% | 30%"),
    ]
    assert found.bars(0) == [0, 0.5, 0.4, 0.2, 0.3, 0.3]


def test_a_run_that_lacks_a_token(draw: Any) -> None:
    found = draw(text_only_explanation(), text_explanation())
    assert [axes.get_title() for axes in found.maps] == ["text", "small"]
    assert found.words(0)[:2] == ["[CLS]", "attention"]
    assert found.labels(1) == ["the node itself", "- | 90%", "written_by → a1", "- | 10%"]


def test_a_run_without_any(tmp_path: Path) -> None:
    draw_attention([text_only_explanation()], tmp_path / "figure.png", 10)
    assert size_of(tmp_path / "figure.png")[0] == 660


def test_many_layers(tmp_path: Path) -> None:
    layers = tuple(replace(text_explanation().layers[2], number=number) for number in range(1, 25))
    draw_attention([text_explanation(layers=layers)], tmp_path / "figure.png", 10)
    assert size_of(tmp_path / "figure.png")[1] > 900


@pytest.mark.parametrize("odd", ["$x$ costs $5", "$\\frac", "論文", "two\nlines", "word " * 100, "\\n_{}^"])
def test_odd_names(draw: Any, odd: str) -> None:
    token, other = text_explanation().virtual_tokens
    token = replace(token, neighbors=tuple(replace(n, name=odd) for n in token.neighbors))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = draw(
            text_explanation(
                node=NamedNode("paper", "p1", odd), tokens=(odd,) * 7, virtual_tokens=(token, other)
            )
        )
    assert found.title.rstrip("…") in " ".join(odd.split())
    assert found.labels(0)[0].startswith("cites → ")


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (["runs/a"], ["a"]),
        (["runs/a", "runs/b"], ["a", "b"]),
        (["cmp/bert/seed-0", "cmp/other/seed-0"], ["bert/seed-0", "other/seed-0"]),
        (["runs/a", "runs/a"], ["runs/a", "runs/a"]),
    ],
)
def test_runs_are_told_apart_by_as_little_as_it_takes(runs: list[str], expected: list[str]) -> None:
    assert titles([text_explanation(run=run) for run in runs]) == expected


def test_the_matrix_has_gaps_where_there_is_no_token() -> None:
    matrix = attention_matrix(text_explanation())
    assert np.isnan(matrix).sum(1).tolist() == [2, 0, 0]
    assert attention_matrix(text_only_explanation()).shape == (2, 7)


def test_file_names_are_safe_and_differ() -> None:
    assert figure_path(Path("run"), "P05-3014") == Path("run/figures/attention-P05-3014.png")
    beside = figure_path(Path("run"), "P05-3014", Path("runs/cold"))
    assert beside == Path("run/figures/attention-P05-3014-against-cold.png")
    ids = ["a/b", "a_b", "../../etc", "論文", "é", "a b", "a:b", "A" * 300, "A" * 301, "", ".", "x\n"]
    paths = [figure_path(Path("run"), i) for i in ids]
    assert len({str(path).lower() for path in paths}) == len(ids)
    for path in paths:
        assert path.parent == Path("run/figures")
        assert len(path.name) < 120
        assert path.name.isascii()
        assert path.name.startswith("attention-")
        assert path.name.endswith(".png")


def test_shares_that_tell_nothing_apart_are_said_to_be_uniform() -> None:
    assert is_nearly_uniform([0.26, 0.25, 0.25, 0.24])
    assert not is_nearly_uniform([0.7, 0.1, 0.1, 0.1])
    assert not is_nearly_uniform([1.0])
