"""The training files of Heterformer's authors (train.tsv, val.tsv, test.tsv): a network and fixed pairs.

Nodes with text have no ids in them, so a node is its text, and its id a digest of that. Pairs, and a node and
the neighbours beside it, are edges of one relation, as they are in the data that the files were made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from tyro.conf import Fixed, Positional, Suppress, arg

from heterformer.datasets.authors_lines import AuthorsTsvOptions, NodeWithNeighbors, lines
from heterformer.datasets.raw_build import DatasetBuild, RawTables, build_from_raw, textless
from heterformer.datasets.raw_file import RawFile, found_in
from heterformer.errors import InputError
from heterformer.network.split.split import Part, Split
from heterformer.network.store import Network

PLACE = "https://github.com/PeterGriffinJin/Heterformer"
# The part that must not be known comes first: of a pair that is in two files the earlier one here has it.
FILES: dict[Part, RawFile] = {
    "test": RawFile("test.tsv", PLACE),
    "validation": RawFile("val.tsv", PLACE),
    "train": RawFile("train.tsv", PLACE),
}
LINES = 5_000  # held at a time

Pair = tuple[str, str]


def build_authors_tsv(
    raw: Annotated[Path, Positional, arg(metavar="RAW")],
    out: Annotated[Path, Positional, arg(metavar="OUT")],
    options: Annotated[AuthorsTsvOptions, arg(name="")],
    lines_at_once: Annotated[int, Fixed, Suppress] = LINES,
) -> DatasetBuild:
    """Build a network from the prepared files of Heterformer's authors, with their pairs as the split.

    The pairs are written to OUT/split.parquet, for the option split.file of train and compare.

    Args:
        raw: The folder with train.tsv, val.tsv and test.tsv.
        out: The network folder to write; it must not exist.
        options: The layout of the lines.
        lines_at_once: Lines held in memory.
    """
    files = dict(zip(FILES, found_in(raw, list(FILES.values())), strict=True))

    def fill(tables: RawTables) -> None:
        _fill(tables, files, options, lines_at_once)

    return build_from_raw(out, _specification(options), fill, split=_write_split)


def node_id(text: str) -> str:
    """The id of the node with this text."""
    return blake2b(text.encode(), digest_size=8).hexdigest()


def _specification(options: AuthorsTsvOptions) -> dict[str, Any]:
    text_type = options.text_type
    linked = {"from": text_type, "to": text_type, "file": "linked", "columns": ["source", "target"]}
    has = {
        f"has_{t}": {"from": text_type, "to": t, "file": f"has_{t}", "columns": ["node", "number"]}
        for t in options.widths
    }
    return {
        "name": "authors-tsv",
        "nodes": {text_type: {"file": "nodes", "text": "text"}, **textless(*options.widths)},
        "relations": {"linked": linked, **has},
        "predict": "linked",
        "neighbors": {text_type: options.text_neighbors, **options.widths},
        "max_tokens": options.max_tokens,
        "test_batch_size": options.test_batch_size,
    }


def _fill(
    tables: RawTables, files: Mapping[Part, Path], options: AuthorsTsvOptions, lines_at_once: int
) -> None:
    known: set[str] = set()  # nodes that have been written
    taken: set[Pair] = set()  # pairs of earlier parts, either way round
    for part, file in files.items():
        own: set[Pair] = set()
        read = lines(file, options)
        while chunk := list(islice(read, lines_at_once)):
            sides = [side for pair in chunk for side in pair if side.text]
            _write_nodes(tables, sides, known)
            _write_neighbors(tables, sides, options)
            pairs = _usable(tables, file, chunk, taken)
            own.update(_unordered(pair) for pair in pairs)
            tables.write("linked", _frame(pairs, "source", "target"))
            tables.write("pairs", _frame(pairs, "query", "key").with_columns(part=pl.lit(part)))
        if not own:
            raise InputError(f"{file}: no pair is usable.")
        taken |= own


def _write_nodes(tables: RawTables, sides: Sequence[NodeWithNeighbors], known: set[str]) -> None:
    """The nodes that are met for the first time."""
    texts = {node_id(text): text for side in sides for text in (side.text, *side.neighbors)}
    new = [(name, text) for name, text in texts.items() if name not in known]
    known.update(name for name, _ in new)
    tables.write("nodes", _frame(new, "id", "text"))


def _write_neighbors(
    tables: RawTables, sides: Sequence[NodeWithNeighbors], options: AuthorsTsvOptions
) -> None:
    """What stands beside a node; a node of many lines repeats much of it."""
    linked = [(node_id(side.text), node_id(text)) for side in sides for text in side.neighbors]
    tables.write("linked", _frame(linked, "source", "target").unique(maintain_order=True))
    for node_type in options.widths:
        pairs = [(node_id(s.text), str(n)) for s in sides for t, n in s.numbers if t == node_type]
        tables.write(f"has_{node_type}", _frame(pairs, "node", "number").unique(maintain_order=True))


def _usable(
    tables: RawTables,
    file: Path,
    chunk: Sequence[tuple[NodeWithNeighbors, NodeWithNeighbors]],
    taken: set[Pair],
) -> list[Pair]:
    """The pairs that can be learnt from or asked for; the others are counted."""
    tally = tables.tally(file)
    tally.read += len(chunk)
    pairs = []
    for query, key in chunk:
        pair = (node_id(query.text), node_id(key.text))
        if not query.text or not key.text:
            tally.drop("no text", 1, [query.text or key.text])
        elif query.text == key.text:
            tally.drop("query and key have the same text", 1, [query.text])
        elif _unordered(pair) in taken:
            tally.drop("also a pair of another file", 1, [f"{query.text} -> {key.text}"])
        else:
            pairs.append(pair)
    tally.kept += len(pairs)
    return pairs


def _unordered(pair: Pair) -> Pair:
    return min(pair), max(pair)


def _frame(rows: Sequence[Pair], *names: str) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _write_split(tables: RawTables, network: Network, path: Path) -> None:
    tables.scan("pairs").select("part", "query", "key").sink_parquet(path)
    Split.open(path, network)  # says what is wrong with it, if anything is
