"""Lines of the original authors' training files."""

from __future__ import annotations

from pathlib import Path

import pytest

from heterformer.datasets.authors_lines import SEPARATOR, AuthorsTsvOptions, NodeWithNeighbors, lines
from heterformer.errors import InputError
from tests.datasets.authors import LAYOUT, line, side

OPTIONS = AuthorsTsvOptions(text_neighbors=2, textless=LAYOUT)


def read(
    tmp_path: Path, content: str | bytes, options: AuthorsTsvOptions = OPTIONS
) -> list[tuple[NodeWithNeighbors, NodeWithNeighbors]]:
    path = tmp_path / "train.tsv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(lines(path, options))


def test_the_separator_is_four_characters() -> None:
    assert [ord(c) for c in SEPARATOR] == [92, 36, 92, 36]


def test_a_side_is_text_neighbours_and_numbers_by_type(tmp_path: Path) -> None:
    full = side("Dune $ 沙丘", ["Hyperion", "Ubik"], [4, 0], 7)
    found = read(
        tmp_path, line(full, side(" Emma ")) + "\n" + line(side("x", ["", "y"]), full).strip("\n") + "\r\n"
    )
    dune = NodeWithNeighbors("Dune $ 沙丘", ["Hyperion", "Ubik"], [("shelf", 4), ("shelf", 0), ("author", 7)])
    assert found == [(dune, NodeWithNeighbors("Emma", [], [])), (NodeWithNeighbors("x", ["y"], []), dune)]


def test_the_default_layout_is_that_of_goodreads(tmp_path: Path) -> None:
    numbers = "\t".join(map(str, range(10)))
    ((query, _),) = read(tmp_path, line(*[f"a\tb\tc\td\te\tf\t{numbers}"] * 2), AuthorsTsvOptions())
    assert (query.text, query.neighbors) == ("a", ["b", "c", "d", "e", "f"])
    types = ["shelf"] * 5 + ["author"] * 2 + ["publisher", "language_code", "format"]
    assert query.numbers == list(zip(types, range(10), strict=True))


GOOD = line(side("a"), side("b"))
WRONG: list[tuple[str | bytes, str]] = [
    (GOOD + "a\tb\n", r"line 2: found 1 sides, expected two with \$\$ between them."),
    (GOOD + GOOD.strip() + SEPARATOR + "x\n", r"line 2: found 3 sides, expected two with \$\$ between them."),
    (
        GOOD + GOOD[:-4],
        "line 2: found 5 fields on one side, expected 6 (a text, 2 texts of neighbours and 3 numbers); ",
    ),
    (GOOD + line(side("a"), side("b\tc")), "line 2: found 7 fields on one side, expected 6 "),
    (
        GOOD + line(side("a")[:-2] + "x", side("b")),
        "line 2: found 'x' for the type 'author', expected -1 or the",
    ),
    (
        GOOD + line(side("a", author=-2), side("b")),
        "line 2: found '-2' for the type 'author', expected -1 or the",
    ),
    (GOOD.encode() + b"\xff\n", "line 2: byte 1 is not UTF-8."),
]


@pytest.mark.parametrize(("content", "message"), WRONG)
def test_a_wrong_line_is_one_sentence_with_its_place(
    content: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path / 'train.tsv'}: {message}")


def test_counts_are_limits(tmp_path: Path) -> None:
    limited = AuthorsTsvOptions(text_neighbors=2, textless=LAYOUT, counts=("author=8",))
    assert len(read(tmp_path, line(side("a", author=7), side("b", shelves=[99])), limited)) == 1
    with pytest.raises(
        InputError, match="found '8' for the type 'author', expected -1 or the number of a node below 8"
    ):
        read(tmp_path, line(side("a", author=8), side("b")), limited)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"textless": ("shelf",)},
            "textless has 'shelf', expected each type once with a number, such as shelf=5.",
        ),
        ({"textless": ("shelf=0",)}, "textless has 'shelf=0', expected each type once with a number"),
        ({"textless": ("a=1", "a=2")}, "textless has 'a=2', expected each type once with a number"),
        ({"textless": ("book=1",)}, "text_type is 'book', which textless has as well."),
        (
            {"counts": ("user=5",)},
            "counts has 'user', the types of textless are shelf, author, publisher, ",
        ),
        ({"text_neighbors": -1}, "text_neighbors is -1, expected 0 or more."),
    ],
)
def test_a_wrong_option_is_one_sentence(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        AuthorsTsvOptions(**options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(message)
