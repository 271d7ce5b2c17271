from __future__ import annotations

import pytest

from heterformer.maps.options import MAX_CLASSES
from heterformer.maps.palette import CLASSES, OTHER, TYPE, UNLABELLED
from heterformer.maps.style import colors_of_groups, legend_of, markers_of, shortened
from tests.maps.maps import GREY, classes, random_map, types


def test_there_is_a_colour_for_each_class_on_white_and_on_black() -> None:
    assert len(CLASSES) == MAX_CLASSES
    for colors in zip(*CLASSES, strict=True):
        assert len({*colors}) == MAX_CLASSES


@pytest.mark.parametrize(("shade", "background"), [("light", 1.0), ("dark", 0.008)])
def test_classes_stand_out_from_the_background(shade: str, background: float) -> None:
    for color in CLASSES:
        lighter, darker = sorted([luminance(getattr(color, shade)), background], reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) > 2.2


def luminance(color: str) -> float:
    values = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_classes_have_colours_and_all_else_is_grey() -> None:
    groups = [*classes("a", "b"), *GREY, *types("venue")]
    assert list(colors_of_groups(groups).values()) == [*CLASSES[:2], OTHER, UNLABELLED, TYPE]
    assert list(colors_of_groups(types("paper", "venue")).values()) == list(CLASSES[:2])


def test_a_legend_tells_colours_and_if_need_be_markers() -> None:
    def told(groups: list, *shown: str) -> list[tuple[str, str, str]]:  # type: ignore[type-arg]
        found = random_map(12, groups, shown)
        return [(key.kind, key.name, key.marker) for key in legend_of(found)]

    assert told(classes("a", "b"), "paper") == [("group", "a", "circle"), ("group", "b", "circle")]
    assert told([*classes("a"), *GREY, *types("venue")], "paper", "venue") == [
        ("group", "a", "circle"),
        ("group", "other labels", "circle"),
        ("group", "no label", "circle"),
        ("type", "paper", "circle"),
        ("type", "venue", "square"),
    ]
    assert told(types("paper"), "paper") == [("type", "paper", "circle")]


def test_a_type_of_its_own_colour_has_it_in_the_legend() -> None:
    keys = legend_of(random_map(12, [*classes("a"), *types("venue")], ("paper", "venue")))
    assert [key.color for key in keys] == [CLASSES[0], TYPE, TYPE]
    keys = legend_of(random_map(12, types("paper", "venue"), ("paper", "venue")))
    assert [key.color for key in keys] == list(CLASSES[:2])


def test_more_types_than_markers() -> None:
    names = [f"type {i}" for i in range(9)]
    found = markers_of(names)
    assert len(set(found.values())) == 7
    assert found["type 7"] == found["type 0"]


def test_long_names_are_cut() -> None:
    assert shortened("two\n words ", 9) == "two words"
    assert shortened("a word and another", 7) == "a word…"
