r"""The training files of Heterformer's authors (train.tsv, val.tsv, test.tsv): a network and fixed pairs.

A line is a pair, ``query\$\$key``. Each side is a text, a fixed number of neighbours' texts (empty where there
are fewer) and a fixed number of textless neighbours' numbers (-1 where there are fewer), grouped by type. Nodes
with text have no ids there, so a node is its text, and its id a digest of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from tyro.conf import Positional, arg

from heterformer.datasets.raw_build import DatasetBuild, RawTables, build_from_raw, textless
from heterformer.datasets.raw_file import RawFile, found_in, opened
from heterformer.errors import InputError
from heterformer.network.schema import NodeType
from heterformer.network.split import Part, Split
from heterformer.network.store import Network

SEPARATOR = r"\$\$"
PLACE = "https://github.com/PeterGriffinJin/Heterformer"
# The part that must not be known comes first: of a pair in two files the earlier one here has it.
FILES: dict[Part, RawFile] = {
    "test": RawFile("test.tsv", PLACE),
    "validation": RawFile("val.tsv", PLACE),
    "train": RawFile("train.tsv", PLACE),
}
LINES = 5_000  # held at a time
LONGEST = 1 << 22  # bytes of one line


@dataclass(frozen=True)
class AuthorsTsvOptions:
    """How the lines are laid out; the defaults are those of the authors' Goodreads files."""

    text_type: str = "book"
    """What to call the nodes with text."""
    text_neighbors: int = 5
    """Neighbours' texts on each side of a line."""
    textless: tuple[str, ...] = ("shelf=5", "author=2", "publisher=1", "language_code=1", "format=1")
    """The types of the numbers that follow, in the order of the file, each with how many there are of it."""
    counts: tuple[str, ...] = ()
    """Nodes of textless types (the authors' mta_num.pkl), such as shelf=6632: higher numbers are errors."""
    max_tokens: int = 64
    """Texts are cut at so many tokens."""
    test_batch_size: int = 100
    """Pairs that are ranked together in the paper's evaluation."""

    def __post_init__(self) -> None:
        if self.text_neighbors < 0:
            raise InputError(f"--text-neighbors is {self.text_neighbors}, expected 0 or more.")
        if self.text_type in self.widths:
            raise InputError(f"--text-type is {self.text_type!r}, which --textless names as well.")
        if unknown := set(self.limits) - set(self.widths):
            known = ", ".join(self.widths)
            raise InputError(f"--counts names {min(unknown)!r}, the types of --textless are {known}.")

    @cached_property
    def widths(self) -> dict[NodeType, int]:
        """Numbers on each side of a line, by textless type, in order."""
        return _numbered("--textless", self.textless)

    @cached_property
    def limits(self) -> dict[NodeType, int]:
        """How many nodes a textless type has, as far as it was said."""
        return _numbered("--counts", self.counts)

    @property
    def fields(self) -> int:
        """Fields on each side of a line."""
        return 1 + self.text_neighbors + sum(self.widths.values())


def _numbered(option: str, values: tuple[str, ...]) -> dict[NodeType, int]:
    found: dict[NodeType, int] = {}
    for value in values:
        name, _, number = value.partition("=")
        if not name or name in found or not (number.isdecimal() and int(number) > 0):
            expected = "expected each type once with a number, such as shelf=5"
            raise InputError(f"{option}: found {value!r}, {expected}.")
        found[name] = int(number)
    return found


def build_authors_tsv(
    raw: Annotated[Path, Positional, arg(metavar="RAW")],
    out: Annotated[Path, Positional, arg(metavar="OUT")],
    options: Annotated[AuthorsTsvOptions, arg(name="")],
) -> DatasetBuild:
    """The original authors' prepared files, with their pairs as the split: results compare line by line.

    The pairs are written to OUT/split.parquet, to be given to train and compare as --split.file.

    Args:
        raw: The folder with train.tsv, val.tsv and test.tsv.
        out: The network folder to write; it must not exist.
        options: How the lines are laid out.
    """
    files = dict(zip(FILES, found_in(raw, list(FILES.values())), strict=True))
    return build_from_raw(
        out, _specification(options), lambda tables: _fill(tables, files, options), split=_write_split
    )


def _specification(options: AuthorsTsvOptions) -> dict[str, Any]:
    text_type = options.text_type
    relations = {
        f"has_{other}": {
            "from": text_type,
            "to": other,
            "file": f"has_{other}",
            "columns": ["node", "number"],
        }
        for other in options.widths
    }
    linked = {"from": text_type, "to": text_type, "file": "linked", "columns": ["source", "target"]}
    return {
        "name": "authors-tsv",
        "nodes": {text_type: {"file": "nodes", "text": "text"}, **textless(*options.widths)},
        "relations": {"linked": linked, **relations},
        "predict": "linked",
        "neighbors": {text_type: options.text_neighbors, **options.widths},
        "max_tokens": options.max_tokens,
        "test_batch_size": options.test_batch_size,
    }


@dataclass(frozen=True)
class _Side:
    """One side of a line: a node and some of its neighbours."""

    text: str
    neighbors: list[str]
    numbers: dict[str, list[int]]  # by textless type


def node_id(text: str) -> str:
    """The id of the node with this text."""
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _fill(tables: RawTables, files: Mapping[Part, Path], options: AuthorsTsvOptions) -> None:
    known: set[str] = set()  # nodes that have been written
    taken: set[tuple[str, str]] = set()  # pairs of earlier parts, either way round
    for part, file in files.items():
        own: set[tuple[str, str]] = set()
        lines = _lines(file, options)
        while chunk := list(islice(lines, LINES)):
            sides = [side for pair in chunk for side in pair if side.text]
            _write_nodes(tables, sides, known)
            _write_neighbors(tables, sides, options)
            pairs = _pairs(tables, file, chunk, taken)
            own |= {_unordered(query, key) for query, key in pairs}
            query, key = [q for q, _ in pairs], [k for _, k in pairs]
            tables.write("linked", _edges("source", query, "target", key))
            tables.write(
                "pairs",
                pl.DataFrame({"query": query, "key": key}, schema=PAIR).with_columns(part=pl.lit(part)),
            )
        taken |= own


PAIR = {"query": pl.String, "key": pl.String}


def _lines(file: Path, options: AuthorsTsvOptions) -> Iterator[tuple[_Side, _Side]]:
    with opened(file) as (stream, tell):
        number = 0
        while line := stream.readline(LONGEST):
            number += 1
            place = f"{file}: line {number}"
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise InputError(f"{place}: byte {error.start + 1} is not UTF-8.") from None
            if not text.strip():
                continue
            sides = text.split(SEPARATOR)
            if len(sides) != 2:
                raise InputError(
                    rf"{place}: found {len(sides)} sides, expected two with {SEPARATOR} between."
                )
            yield _side(sides[0], options, place), _side(sides[1], options, place)
            if number % LINES == 0:
                tell()


def _side(text: str, options: AuthorsTsvOptions, place: str) -> _Side:
    fields = text.split("\t")
    if len(fields) != options.fields:
        rest = options.fields - 1 - options.text_neighbors
        expected = (
            f"{options.fields}: a text, {options.text_neighbors} texts of neighbours and {rest} numbers"
        )
        remedy = "--text-neighbors and --textless say how many there are"
        raise InputError(f"{place}: found {len(fields)} fields on one side, expected {expected}; {remedy}.")
    at = 1 + options.text_neighbors
    numbers = {}
    for node_type, width in options.widths.items():
        found = [_number(f, node_type, options, place) for f in fields[at : at + width]]
        numbers[node_type] = [number for number in found if number >= 0]
        at += width
    neighbors = [t.strip() for t in fields[1 : 1 + options.text_neighbors]]
    return _Side(fields[0].strip(), [t for t in neighbors if t], numbers)


def _number(text: str, node_type: str, options: AuthorsTsvOptions, place: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -2
    limit = options.limits.get(node_type)
    if number < -1 or (limit is not None and number >= limit):
        expected = "-1 or the number of a node" + ("" if limit is None else f" below {limit}")
        raise InputError(f"{place}: found {text!r} for {node_type!r}, expected {expected}.")
    return number


def _write_nodes(tables: RawTables, sides: list[_Side], known: set[str]) -> None:
    """The nodes that are met for the first time."""
    rows = []
    for text in (text for side in sides for text in (side.text, *side.neighbors)):
        if (found := node_id(text)) not in known:
            known.add(found)
            rows.append((found, text))
    tables.write("nodes", pl.DataFrame(rows, schema={"id": pl.String, "text": pl.String}, orient="row"))


def _write_neighbors(tables: RawTables, sides: list[_Side], options: AuthorsTsvOptions) -> None:
    nodes = [node_id(side.text) for side in sides]
    links = [(node, node_id(t)) for node, side in zip(nodes, sides, strict=True) for t in side.neighbors]
    tables.write("linked", _edges("source", [s for s, _ in links], "target", [t for _, t in links]))
    for other in options.widths:
        met = [(node, str(n)) for node, side in zip(nodes, sides, strict=True) for n in side.numbers[other]]
        tables.write(
            f"has_{other}",
            _edges("node", [s for s, _ in met], "number", [n for _, n in met]).unique(maintain_order=True),
        )


def _edges(source: str, sources: list[str], target: str, targets: list[str]) -> pl.DataFrame:
    return pl.DataFrame(
        {source: pl.Series(sources, dtype=pl.String), target: pl.Series(targets, dtype=pl.String)}
    )


def _pairs(
    tables: RawTables, file: Path, chunk: list[tuple[_Side, _Side]], taken: set[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The pairs that can be learnt from or asked for; the others are counted."""
    tally = tables.tally(file)
    tally.read += len(chunk)
    pairs = []
    for query, key in chunk:
        ids = (node_id(query.text), node_id(key.text))
        if not query.text or not key.text:
            tally.drop("no text", 1, [query.text or key.text])
        elif ids[0] == ids[1]:
            tally.drop("query and key are the same text", 1, [query.text])
        elif _unordered(*ids) in taken:
            tally.drop("a pair of another file, too", 1, [f"{query.text} -> {key.text}"])
        else:
            pairs.append(ids)
    tally.kept += len(pairs)
    return pairs


def _unordered(query: str, key: str) -> tuple[str, str]:
    return (query, key) if query < key else (key, query)


def _write_split(tables: RawTables, network: Network, path: Path) -> None:
    tables.scan("pairs").select("part", "query", "key").sink_parquet(path)
    Split.open(path, network)  # says what is wrong with it, if anything is
