"""The figures of a comparison: models, learning curves, warm-up, ablations and the textless dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from heterformer.comparison.curves import Curve, draw_curves, validation_curve
from heterformer.comparison.results import Comparison, Row
from heterformer.figures import COLORS, GREY, HIGHLIGHT, colors_of, figure
from heterformer.metrics import metric_heading, ranking_metric
from heterformer.models.options import every_model
from heterformer.training.run import Run

WARM_UP = {"heterformer": "Heterformer", "no_warm_up": "w/o warm-up", "no_tl": "w/o textless"}  # Figure 6
ABLATIONS = (  # Figure 4
    "no_vnt",
    "no_tr",
    "no_tl",
    "no_readout",
    "no_codes",
    "no_hp",
    "no_warm_up",
    "heterformer",
)
LINES = 5  # learning curves with a name; the others are faint


def draw_comparison(comparison: Comparison, out: Path) -> list[Path]:
    """The figures that the finished runs allow, and the files they are in."""
    figures: dict[str, Callable[[Comparison, Path], bool]] = {
        "models": draw_models,
        "learning_curves": draw_learning_curves,
        "warm_up": draw_warm_up,
        "ablations": draw_ablations,
        "textless_dim": draw_textless_dim,
    }
    paths = {name: out / f"{name}.png" for name in figures}
    return [path for name, path in paths.items() if figures[name](comparison, path)]


def draw_models(comparison: Comparison, path: Path) -> bool:
    """PREC and full MRR of the models, best at the top, with their deviations over seeds."""
    rows = [row for row in comparison.models if row.results]
    if len(rows) < 2:
        return False
    rows.sort(key=lambda row: row.mean("prec"))
    with figure(path, 1.05 + 0.2 * len(rows), columns=2) as (drawing, axes):
        for axis, metric in zip(axes, map(ranking_metric, ("prec", "full_mrr")), strict=True):
            for height, row in enumerate(rows):
                color = HIGHLIGHT if row.variant.name == "heterformer" else COLORS[0]
                axis.errorbar(
                    row.mean(metric.name),
                    height,
                    xerr=row.deviation(metric.name),
                    fmt="o",
                    color=color,
                    elinewidth=1,
                )
                axis.annotate(
                    _short(row.mean(metric.name)),
                    (row.mean(metric.name), height),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    fontsize=5.5,
                    color=color,
                )
            axis.set(title=metric.heading, xlabel=f"test {metric.heading}", ylim=(-0.6, len(rows) - 0.2))
            axis.set_yticks(range(len(rows)), [row.variant.display_name for row in rows])
            axis.grid(axis="y", visible=False)
            axis.locator_params(axis="x", nbins=4)
            axis.margins(x=0.1)
        axes[1].set_yticklabels([])
        seeds = max(len(row.results) for row in rows)
        seeds_used = "one seed" if seeds == 1 else f"mean and deviation over {seeds} seeds"
        drawing.supxlabel(seeds_used, fontsize=6.5, color=GREY)
    return True


def draw_learning_curves(comparison: Comparison, path: Path) -> bool:
    """Validation PREC of the models: Heterformer's, the best others', and the rest without names."""
    curves = list(_curves(comparison.models))
    if not curves:
        return False
    curves.sort(key=lambda pair: (pair[0].variant.name != "heterformer", -pair[1].mean.max()))
    colors = colors_of([row.variant.name for row, _ in curves[:LINES]])
    with figure(path, 2.1) as (_, (axes,)):
        draw_curves(
            axes,
            {row.variant.display_name: curve for row, curve in curves[:LINES]},
            {row.variant.display_name: colors[row.variant.name] for row, _ in curves[:LINES]},
            [curve for _, curve in curves[LINES:]],
        )
        if curves[LINES:]:
            corner = {"xycoords": "axes fraction", "ha": "right", "fontsize": 6.5, "color": GREY}
            axes.annotate("grey: the other models", (0.99, 0.03), **corner)
    return True


def draw_warm_up(comparison: Comparison, path: Path) -> bool:
    """The paper's Figure 6: Heterformer with and without warm-up, and without textless nodes."""
    curves = {
        row.variant.name: curve for row, curve in _curves(comparison.rows) if row.variant.name in WARM_UP
    }
    if len(curves) < 2:
        return False
    colors = colors_of(list(WARM_UP))
    with figure(path, 2.1) as (_, (axes,)):
        draw_curves(
            axes,
            {WARM_UP[name]: curve for name, curve in curves.items()},
            {WARM_UP[name]: colors[name] for name in curves},
        )
    return True


def draw_ablations(comparison: Comparison, path: Path) -> bool:
    """The paper's Figure 4, and its other ablations: PREC without each part."""
    rows = {row.variant.name: row for row in comparison.rows if row.results}
    ablations = [rows[name] for name in ABLATIONS if name in rows]
    if len(ablations) < 2 or ablations == [rows.get("heterformer")]:
        return False
    with figure(path, 1.9) as (_, (axes,)):
        for place, row in enumerate(ablations):
            mean, deviation = row.mean("prec"), row.deviation("prec")
            color = HIGHLIGHT if row.variant.name == "heterformer" else COLORS[0]
            axes.bar(
                place, mean, 0.62, color=color, yerr=deviation, ecolor="#333333", error_kw={"elinewidth": 1}
            )
            top = mean + (deviation or 0)
            axes.annotate(
                _short(mean), (place, top), (0, 2), textcoords="offset points", ha="center", fontsize=7
            )
        names = [row.variant.display_name.replace(" ", "\n") for row in ablations]
        axes.set_xticks(range(len(ablations)), names, fontsize=6.5)
        axes.set_ylabel(f"test {metric_heading('prec')}")
        axes.grid(axis="x", visible=False)
        highest = max(row.mean("prec") + (row.deviation("prec") or 0) for row in ablations)
        axes.set_ylim(0, 1.12 * highest or 1)
        axes.set_xlim(-0.6, len(ablations) - 0.4)
    return True


def draw_textless_dim(comparison: Comparison, path: Path) -> bool:
    """The paper's Figure 5: PREC against the width of textless embeddings."""
    rows = [row for row in comparison.rows if row.results and _textless_dim(row)]
    if len(rows) < 2 or all(row.variant.group != "dimension" for row in rows):
        return False
    rows.sort(key=_textless_dim)
    dims, means = [_textless_dim(row) for row in rows], [row.mean("prec") for row in rows]
    with figure(path, 1.8) as (_, (axes,)):
        axes.errorbar(
            dims,
            means,
            yerr=[row.deviation("prec") or 0 for row in rows],
            color=HIGHLIGHT,
            marker="o",
            elinewidth=1,
        )
        axes.set_xscale("log", base=2)
        axes.set_xticks(dims, [str(dim) for dim in dims])
        axes.minorticks_off()
        axes.set(xlabel="dimension of textless embeddings", ylabel=f"test {metric_heading('prec')}")
        axes.margins(y=0.2)
    return True


def _curves(rows: Iterable[Row]) -> Iterable[tuple[Row, Curve]]:
    """Of variants that were validated more than once."""
    for row in rows:
        runs = [Run(seed.path) for seed in row.seeds if seed.result]
        if runs and len((curve := validation_curve(runs)).steps) > 1:
            yield row, curve


def _textless_dim(row: Row) -> int:
    """Of Heterformer with all its parts; 0 for other variants."""
    if row.variant.name != "heterformer" and row.variant.group != "dimension":
        return 0
    path = next(seed.path for seed in row.seeds if seed.result)
    return int(every_model(Run(path).options().model).textless_dim)


def _short(figure_: float) -> str:
    return f"{figure_:.3f}".removeprefix("0")
