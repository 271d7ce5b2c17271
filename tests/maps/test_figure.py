from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from heterformer.maps.core import NodeMap
from heterformer.maps.figure import class_centers, draw_map_figure
from heterformer.maps.palette import CLASSES, OTHER
from heterformer.maps.style import colors_of_groups
from tests.maps.maps import GREY, classes, random_map, types
from tests.pictures import check_picture, drawings, size_of


def colors_in(path: Path) -> set[str]:
    with Image.open(path) as picture:
        found = picture.convert("RGB").getcolors(1 << 16) or []
    return {"#{:02X}{:02X}{:02X}".format(*color) for _, color in found}


def test_every_group_has_its_colour(tmp_path: Path) -> None:
    found = random_map(400, [*classes(*"abcdefgh"), *GREY])
    path = draw_map_figure(found, tmp_path / "new" / "map.png")
    check_picture(path)
    assert {color.light for color in colors_of_groups(found.groups).values()} <= colors_in(path)
    assert {CLASSES[0].light, OTHER.light} <= colors_in(path)


def test_thousands_of_nodes_are_no_heavy_file(tmp_path: Path) -> None:
    check_picture(draw_map_figure(random_map(8000, [*classes(*"abcdefgh"), *GREY]), tmp_path / "map.png"))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_nodes(tmp_path: Path, count: int) -> None:
    path = draw_map_figure(random_map(count, classes("a")), tmp_path / "map.png")
    assert size_of(path)[0] == 660
    assert CLASSES[0].light in colors_in(path)


def test_several_types_have_several_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    drawn: dict[str, int] = {}
    scatter = Axes.scatter

    def counted(self: Axes, x: list[float], *rest: object, marker: str, **more: object) -> object:
        drawn[marker] = drawn.get(marker, 0) + len(x)
        return scatter(self, x, *rest, marker=marker, **more)

    monkeypatch.setattr(Axes, "scatter", counted)
    names = ("paper", "author", "venue")
    draw_map_figure(random_map(90, types(*names), names), tmp_path / "map.png")
    assert drawn == {"o": 30, "s": 30, "D": 30}


def test_the_more_nodes_the_smaller_the_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = drawings(monkeypatch)
    for count in (50, 2000, 6000, 8000):
        draw_map_figure(random_map(count, classes("a")), tmp_path / "map.png")
    sizes = [figure.axes[0].collections[0].get_sizes()[0] for figure in found]
    assert sizes == pytest.approx([16.0, 6.5, 2.5, 2.5])


def named(*names: str) -> NodeMap:
    return random_map(300, classes(*names))


@pytest.mark.parametrize(
    "name",
    ["_hidden", "$x$", "$\\frac{$", "two\nlines", "論文 🎉", "<b>", "%s {}", "mystery, crime"],
)
def test_labels_are_drawn_as_they_are(tmp_path: Path, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = draw_map_figure(named(name, "other"), tmp_path / "map.png")
        draw_map_figure(named("", "other"), tmp_path / "without.png")
    check_picture(path)
    assert path.read_bytes() != (tmp_path / "without.png").read_bytes()


def test_long_labels_leave_the_map_its_room(tmp_path: Path) -> None:
    short = draw_map_figure(named("a", "b", "c", "d"), tmp_path / "short.png")
    long = draw_map_figure(named(*(letter * 100 for letter in "abcd")), tmp_path / "long.png")
    assert size_of(long)[1] - size_of(short)[1] == 3 * 32  # three lines more
    check_picture(long)


def test_many_labels_stand_in_two_columns_at_least(tmp_path: Path) -> None:
    short = draw_map_figure(named(*"abcdefgh"), tmp_path / "short.png")  # four columns
    long = draw_map_figure(named(*(letter * 100 for letter in "abcdefgh")), tmp_path / "long.png")
    assert size_of(long)[1] - size_of(short)[1] == 2 * 32


def test_title_and_caption_say_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = drawings(monkeypatch)
    some = replace(random_map(30, classes("a")), network="papers", nodes=1234)
    draw_map_figure(some, tmp_path / "some.png")
    draw_map_figure(replace(random_map(30, classes("a")), placed=("author",)), tmp_path / "all.png")
    assert [figure.get_suptitle() for figure in found] == [
        "papers: t-SNE of 30 of 1,234 paper nodes",
        "small: t-SNE of 30 paper nodes",
    ]
    captions = [" ".join(figure.axes[0].get_title().split()) for figure in found]
    meaning = "close nodes have similar vectors; large distances mean little"
    assert captions == [meaning, f"{meaning}; author nodes are placed among the texts closest to them"]


def test_three_types_are_listed_as_in_a_sentence() -> None:
    names = ("paper", "author", "venue")
    found = replace(random_map(30, types(*names), names), placed=names[1:])
    assert found.contents == "t-SNE of 30 paper, author and venue nodes"
    assert found.caption.endswith("author and venue nodes are placed among the texts closest to them")


def test_no_name_covers_another_or_leaves_the_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All classes are densest at one of the two sides."""
    found = drawings(monkeypatch)
    names = [f"a class of a long name {letter}" for letter in "abcdefgh"]
    chaos = random_map(80, classes(*names))
    sides = [replace(p, x=200.0 if i % 3 else -200.0, y=i / 10) for i, p in enumerate(chaos.points)]
    draw_map_figure(replace(chaos, points=tuple(sides)), tmp_path / "map.png")
    boxes = [text.get_window_extent() for text in found[0].axes[0].texts]
    assert len(boxes) == 8
    for number, box in enumerate(boxes):
        assert box.x0 >= -0.5
        assert box.x1 <= 660.5
        assert not any(box.overlaps(other) for other in boxes[:number])


def test_a_class_is_named_where_it_is_densest() -> None:
    """Not between two of its clusters, where nothing of it is."""
    found = random_map(40, [*classes("a"), *GREY])
    own = [p for p in found.points if p.group.name == "a"]
    places = {p.id: (50.0 if i else -50.0, i / 10) for i, p in enumerate(own)}
    points = tuple(
        replace(p, x=places[p.id][0], y=places[p.id][1]) if p.id in places else p for p in found.points
    )
    centers = class_centers(replace(found, points=points))
    assert list(centers) == ["a"]
    assert centers["a"][0] == 50.0
