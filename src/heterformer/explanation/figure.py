"""The paper's Figure 7 for one node: attention by layer and token, neighbours' shares in virtual tokens."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.explanation.core import KINDS, SampledNeighbor, TextExplanation, VirtualToken
from heterformer.figures import COLORS, COLUMN, HIGHLIGHT, canvas, cut_to

UNIFORM = 1.25  # times the mean share: if the largest is no more, shares hardly tell neighbours apart
TOKENS = 8  # of the text, as in the paper
SMALL = 6  # points
TICKS = (0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1)  # of the colour scale
LAYER, ROW = 0.15, 0.2  # inches of a layer and of a neighbour
WORDS, TITLE, HEADING = 0.55, 0.2, 0.22  # inches around them


def draw_attention(explanations: Sequence[TextExplanation], path: Path, top: int) -> None:
    """One run, or two side by side on one colour scale; below, the neighbours and their shares.

    If the runs differ in their warm-up, the one without it stands at the left, as in the paper.
    """
    named = list(zip(explanations, titles(explanations), strict=True))
    if len({explanation.warm_up for explanation in explanations}) > 1:
        named.sort(key=lambda pair: pair[0].warm_up)
    ordered = [explanation for explanation, _ in named]
    kinds = list(dict.fromkeys(token.kind for e in ordered for token in e.virtual_tokens))
    shares = {kind: _rows([_token(e, kind) for e in ordered], top) for kind in kinds}
    deepest = max(5, *(len(e.layers) for e in ordered))  # or there would be no room for the colour scale
    heights = [TITLE * len(ordered) + LAYER * deepest + WORDS]
    heights += [HEADING + ROW * len(rows) for rows in shares.values()]
    colors = [HIGHLIGHT] if len(ordered) == 1 else [COLORS[0], HIGHLIGHT]
    with any_letters(), canvas(path, sum(heights)) as drawing:
        upper, *lower = drawing.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        upper.suptitle(cut_to(ordered[0].node.name, COLUMN - 0.1, 7.5), fontsize=7.5)
        _draw_maps(upper, named, colors)
        highest = max((s or 0 for rows in shares.values() for _, each in rows for s in each), default=1)
        for part, (kind, rows) in zip(lower, shares.items(), strict=True):
            _draw_shares(part.subplots(), kind, rows, highest, colors)


def titles(explanations: Sequence[TextExplanation]) -> list[str]:
    """What tells the runs apart: their warm-up, else as much of their folders' names as it takes."""
    if len(explanations) == 2 and explanations[0].warm_up != explanations[1].warm_up:
        return ["w/ warm-up" if e.warm_up else "w/o warm-up" for e in explanations]
    parts = [Path(e.run).parts for e in explanations]
    for count in range(1, max(map(len, parts))):
        names = ["/".join(p[-count:]) for p in parts]
        if len(set(names)) == len(names):
            return names
    return [e.run for e in explanations]


def figure_path(run: Path, node_id: str, against: Path | None = None) -> Path:
    """Where a node's figure is unless the user says it; ``against`` another run it has another name."""
    beside = "" if against is None else f"-against-{safe_name(against.resolve().name)}"
    return run / "figures" / f"attention-{safe_name(node_id)}{beside}.png"


def safe_name(name: str) -> str:
    """A file's name; what is none gets a digest."""
    safe = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)[:80]
    return safe if safe == name else f"{safe}-{blake2b(name.encode(), digest_size=4).hexdigest()}"


def _draw_maps(part: Any, named: Sequence[tuple[TextExplanation, str]], colors: Sequence[str]) -> None:
    from matplotlib.colors import PowerNorm

    maps = [attention_matrix(explanation) for explanation, _ in named]
    # Most attention goes to [CLS]; its square root makes the rest visible as well.
    highest = max(float(np.nanmax(values)) for values in maps)
    scale = PowerNorm(0.5, vmin=0, vmax=highest)
    axes = part.subplots(1, len(named), squeeze=False)[0]
    for axis, values, (explanation, name), color in zip(axes, maps, named, colors, strict=True):
        image = axis.imshow(values, cmap="Blues", norm=scale, aspect="auto", origin="lower")
        _label_map(axis, explanation)
        if len(named) > 1:
            axis.set_title(name, color=color)
    axes[0].set_ylabel("layer")
    ticks = [tick for tick in TICKS if tick <= highest]
    bar = part.colorbar(image, ax=list(axes), fraction=0.05, pad=0.02, aspect=30, ticks=ticks)
    asking = "[CLS]" if named[0][0].queries == "cls" else "all tokens"
    bar.set_label(f"attention of {asking}", fontsize=SMALL)
    bar.outline.set_visible(False)
    bar.ax.set_yticklabels([f"{tick:g}" for tick in ticks], fontsize=SMALL)
    bar.ax.tick_params(length=0)


def _label_map(axis: Any, explanation: TextExplanation) -> None:
    names = [KINDS[token.kind] for token in explanation.virtual_tokens]
    virtual = [name if name == "attributes" else f"{name}\nneighbours" for name in names]
    words = [cut_to(word, WORDS - 0.1, SMALL) for word in explanation.tokens[:TOKENS]]
    if len(explanation.tokens) > TOKENS:
        words[-1] += " …"
    axis.set_xticks(range(len(virtual) + len(words)), virtual + words, rotation=90, fontsize=SMALL)
    numbers = [layer.number for layer in explanation.layers]
    axis.set_yticks(range(len(numbers)), numbers, fontsize=SMALL)
    axis.grid(visible=False)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.patch.set(facecolor="white", edgecolor="#BBBBBB", hatch="//////")  # seen where there is no token
    if virtual:
        axis.axvline(len(virtual) - 0.5, color="white", linewidth=2.5)


def is_nearly_uniform(shares: Sequence[float]) -> bool:
    """Whether the largest of several shares is hardly larger than their mean."""
    return len(shares) > 1 and max(shares) <= UNIFORM * sum(shares) / len(shares)


def attention_matrix(explanation: TextExplanation) -> NDArray[np.float64]:
    """(layers, virtual tokens + the first words): attention, NaN where a layer has no such token."""
    kinds = [token.kind for token in explanation.virtual_tokens]
    return np.array(
        [
            [*(layer.virtual.get(kind, np.nan) for kind in kinds), *layer.tokens[:TOKENS]]
            for layer in explanation.layers
        ]
    )


Row = tuple[str, list[float | None]]  # a label and the share in each run


def _token(explanation: TextExplanation, kind: str) -> VirtualToken | None:
    return next((token for token in explanation.virtual_tokens if token.kind == kind), None)


def _rows(tokens: Sequence[VirtualToken | None], top: int) -> list[Row]:
    """The node itself and the neighbours, largest share first, each with its share in every run."""
    shares: dict[str, list[float | None]] = {"": [t.own_share if t else None for t in tokens]}
    labels = {"": "the node itself"}
    for number, token in enumerate(tokens):
        for neighbor in token.neighbors if token else ():
            key = f"{neighbor.node_type} {neighbor.id} {neighbor.relation} {neighbor.direction}"
            labels[key] = _label(neighbor)
            shares.setdefault(key, [None] * len(tokens))[number] = neighbor.share
    order = sorted(shares, key=lambda key: -max(share or 0 for share in shares[key]))
    kept = [key for key in order if key][:top]
    return [(labels[key], shares[key]) for key in order if not key or key in kept]


def _label(neighbor: SampledNeighbor) -> str:
    return f"{neighbor.relation} {'→' if neighbor.direction == 'out' else '←'} {neighbor.name}"


def _draw_shares(axis: Any, kind: str, rows: Sequence[Row], highest: float, colors: Sequence[str]) -> None:
    """A line per neighbour: its name, and under it a thin bar per run."""
    thickness = 0.28 / len(colors)
    for place, (label, shares) in enumerate(rows):
        percents = " | ".join("-" if share is None else f"{share:.0%}" for share in shares)
        room = COLUMN - 0.2 - 0.35 * len(colors)
        axis.text(0, place + 0.55, cut_to(label, room, SMALL), va="bottom", fontsize=SMALL)
        axis.text(highest, place + 0.55, percents, va="bottom", ha="right", fontsize=SMALL)
        for number, (share, color) in enumerate(zip(shares, colors, strict=True)):
            axis.barh(place + 0.6 + thickness * (number + 0.5), share or 0, thickness, color=color)
    axis.set(xlim=(0, highest), ylim=(len(rows), 0))
    title = f"shares of {KINDS[kind]} neighbours (mean over layers)"
    if is_nearly_uniform([share for _, each in rows for share in each if share is not None]):
        title += ": nearly uniform"
    axis.set_title(title, loc="left", fontsize=7)
    axis.set_axis_off()


@contextmanager
def any_letters() -> Iterator[None]:
    """Letters that the font lacks are drawn as boxes; nobody needs a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        yield
