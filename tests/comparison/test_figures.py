from __future__ import annotations

from pathlib import Path

import pytest

from heterformer.comparison.figures import draw_comparison, draw_models
from heterformer.comparison.variants import VARIANTS
from tests.comparison.comparing import pretended_comparison
from tests.pictures import check_picture, drawings, size_of


def drawn(tmp_path: Path, *models: str, seeds: tuple[int, ...] = (0,), **more: object) -> dict[str, Path]:
    comparison = pretended_comparison(tmp_path / "out", dict.fromkeys(models, 0.4), seeds=seeds, **more)
    return {path.stem: path for path in draw_comparison(comparison, tmp_path / "figures")}


def test_a_whole_comparison_gives_all_figures(tmp_path: Path) -> None:
    found = drawn(tmp_path, *VARIANTS, seeds=(0, 1), textless_dim=64)
    assert list(found) == ["models", "learning_curves", "warm_up", "ablations", "textless_dim"]
    for path in found.values():
        check_picture(path)


@pytest.mark.parametrize(
    ("models", "figures"),
    [
        (("heterformer",), ["learning_curves"]),
        (("heterformer", "bert"), ["models", "learning_curves"]),
        (("heterformer", "no_hp"), ["learning_curves", "ablations"]),
        (("heterformer", "no_warm_up"), ["learning_curves", "warm_up", "ablations"]),
        (("heterformer", "textless_dim_4"), ["learning_curves", "textless_dim"]),
        (("no_hp",), []),
    ],
)
def test_what_the_runs_allow_is_drawn(tmp_path: Path, models: tuple[str, ...], figures: list[str]) -> None:
    assert list(drawn(tmp_path, *models)) == figures


@pytest.mark.parametrize(("seeds", "told"), [((0,), "one seed"), ((0, 1), "mean and deviation over 2 seeds")])
def test_models_have_their_values_and_the_number_of_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: tuple[int, ...], told: str
) -> None:
    values = {"heterformer": 0.42, "bert": 0.31}
    comparison = pretended_comparison(tmp_path / "out", values, seeds=seeds)
    written = drawings(monkeypatch)
    assert draw_models(comparison, tmp_path / "models.png")
    rows = sorted(comparison.models, key=lambda row: row.mean("prec"))
    for axis, name in zip(written[0].axes, ("prec", "full_mrr"), strict=True):
        shown = [float(text.get_text()) for text in axis.texts]
        assert shown == pytest.approx([row.mean(name) for row in rows], abs=5.1e-4)
        assert axis.get_xlabel() == f"test {axis.get_title()}"
    assert written[0].get_supxlabel() == told


def test_nothing_is_drawn_of_failed_runs(tmp_path: Path) -> None:
    comparison = pretended_comparison(tmp_path / "out", {}, models=("heterformer", "bert"), seeds=(0,))
    assert draw_comparison(comparison, tmp_path / "figures") == []
    assert not (tmp_path / "figures").exists()


def test_more_models_need_more_room(tmp_path: Path) -> None:
    two, four = tmp_path / "two", tmp_path / "four"
    two.mkdir()
    four.mkdir()
    heights = [
        size_of(drawn(two, "heterformer", "bert")["models"])[1],
        size_of(drawn(four, "heterformer", "bert", "mean_sage", "graph_formers")["models"])[1],
    ]
    assert heights[0] < heights[1]
