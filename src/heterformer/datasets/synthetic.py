"""An academic network with a planted truth, of 200 to 5 million papers.

What is planted, and so what a model can find at best:

- A paper belongs to a research group of about 30 papers (of five times ``citations_per_paper`` if that is
  more), a group to one of 50 sub-topics, a sub-topic to one of 10 fields. All fields are equally large.
- 75 % of the citations are drawn from the earlier papers of the own group, 20 % from those of the own
  sub-topic (own group included), 5 % from all earlier papers. Nothing else explains a citation.
- Authors write only for their own group. 85 % of the papers appear in a venue of their sub-topic, the others
  in any venue.
- A title tells the sub-topic and never the group. A share of the titles (``ambiguous``) tells neither
  sub-topic nor field: all its words are shared by a pair of fields which use them equally often, so that no
  reader of the title alone can be right about the field more than half the time. Neighbours can tell.

``synthetic_ceiling`` turns this into the best PREC@1 that link prediction can reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from heterformer.arrays import AnyInts
from heterformer.datasets.synthetic_words import (
    AMBIGUOUS,
    FIELD_NAMES,
    FIELDS,
    FIRST_NAMES,
    INITIALS,
    LAST_NAMES,
    PAIR_LISTS,
    PHRASES,
    SUBTOPICS,
    VOCABULARY,
    WORD_LISTS,
    WORDS_PER_LIST,
)
from heterformer.errors import OptionError
from heterformer.files import new_folder
from heterformer.options import check_seed

Column = Any  # a pyarrow array; pyarrow comes without types

GROUP_SHARE, SUBTOPIC_SHARE = 0.75, 0.2  # of the citations; the rest is drawn from all earlier papers
OWN_VENUE_SHARE = 0.85  # of the papers, published in a venue of their own sub-topic
AMBIGUOUS_WORD_SHARE = 0.2  # of the later content words of a clear title
PAPERS_PER_GROUP = 30
FIRST_YEAR, YEARS = 1975, 50
NODES = 250_000  # nodes whose rows are in memory at a time
ROUNDS = 40  # of drawing distinct links; more than two or three only where almost every link exists

PAIRS_OF_FIELD = np.array([[i for i, pair in enumerate(AMBIGUOUS) if f in pair] for f in FIELD_NAMES])
SPECIFICATION = """\
name: synthetic
nodes:
  paper:  {file: papers.parquet, id: id, text: [title], label: field, keep: [subtopic], time: year}
  author: {file: authors.parquet, id: id, name: name, label: field}
  venue:  {}
relations:
  cites:        {from: paper, to: paper, file: cites.parquet, columns: [source, target]}
  written_by:   {from: paper, to: author, file: written_by.parquet, columns: [paper, author]}
  published_in: {from: paper, to: venue, file: published_in.parquet, columns: [paper, venue]}
predict: cites
neighbors: {paper: 5, author: 3, venue: 1}
max_tokens: 32
"""

# Opening, three content words, connector, two content words, ending: how often each is there.
SLOT_SHARE = np.array([0.5, 1.0, 1.0, 0.5, 1.0, 1.0, 0.5, 0.25])


@dataclass(frozen=True)
class SyntheticOptions:
    """The size of a synthetic network and how much its titles tell."""

    papers: int = 10_000
    """Number of papers, 200 to 5,000,000."""

    authors: int | None = None
    """Number of authors; three for every four papers if not given."""

    venues: int | None = None
    """Number of venues; one for every 125 papers, but at least one per sub-topic, if not given."""

    citations_per_paper: float = 6.0
    """Mean number of papers that a paper cites, 1 to 50 and at most 3 % of the papers."""

    authors_per_paper: float = 2.8
    """Mean number of authors of a paper, 1 to 7; each paper has at least one."""

    ambiguous: float = 0.4
    """Share of the titles that reveal neither sub-topic nor field, 0 to 1."""

    seed: int = 0
    """Seed of all random draws: the same options and seed give the same tables."""

    def __post_init__(self) -> None:
        self._check("papers", self.papers, 200, 5_000_000)
        self._check("ambiguous", self.ambiguous, 0, 1)
        check_seed(self)
        # Limits that leave enough papers and authors in a group for the links planted there.
        sizes = f" for {self.papers} papers"
        self._check(
            "citations_per_paper", self.citations_per_paper, 1, min(50, self.papers * 3 // 100), sizes
        )
        self._check("authors_per_paper", self.authors_per_paper, 1, 7)
        fewest_authors = self.group_count * ceil(2 * self.authors_per_paper)
        most_authors = int(self.papers * self.authors_per_paper)  # more would leave some without a paper
        self._check("authors", self.author_count, fewest_authors, most_authors, sizes)
        self._check("venues", self.venue_count, self.subtopic_count, self.papers // 10, sizes)

    def _check(self, option: str, value: float, low: int, high: int, sizes: str = "") -> None:
        if not low <= value <= high:  # also refuses NaN
            raise OptionError(self, option, f"is {value}, expected a value from {low} to {high}{sizes}.")

    @property
    def author_count(self) -> int:
        return self.papers * 3 // 4 if self.authors is None else self.authors

    @property
    def venue_count(self) -> int:
        return max(self.papers // 125, self.subtopic_count) if self.venues is None else self.venues

    @property
    def group_count(self) -> int:
        """Research groups: as many for each field, and large enough for the citations within them."""
        papers_per_group = max(PAPERS_PER_GROUP, 5 * self.citations_per_paper)
        return len(FIELDS) * max(1, round(self.papers / papers_per_group / len(FIELDS)))

    @property
    def subtopic_count(self) -> int:
        """Sub-topics in use: all 50 if there are as many groups, otherwise as many as there are groups."""
        return min(len(SUBTOPICS), self.group_count)


def write_synthetic(folder: Path, options: SyntheticOptions, nodes_at_once: int = NODES) -> Path:
    """Write the tables and the specification of a synthetic network to a new folder.

    Returns the path of the specification, ``network.yaml``. ``papers.parquet`` has a column ``group`` that
    the specification does not name: the planted truth, which a model must not see.
    """
    with new_folder(Path(folder)) as partial:
        _write_tables(partial, options, nodes_at_once)
    return Path(folder) / "network.yaml"


def _write_tables(folder: Path, options: SyntheticOptions, nodes_at_once: int) -> None:
    truth = _Truth(options, np.random.default_rng(options.seed), nodes_at_once)
    _write(folder / "papers.parquet", _papers(truth))
    _write(folder / "authors.parquet", _authors(truth))
    _write(folder / "cites.parquet", _cites(truth))
    _write(folder / "written_by.parquet", _written_by(truth))
    _write(folder / "published_in.parquet", _published_in(truth))
    (folder / "network.yaml").write_text(SPECIFICATION, encoding="utf-8")


def _write(path: Path, tables: Iterator[pa.Table]) -> None:
    """One row group per table, so that no more than one is in memory."""
    first = next(tables)
    with pq.ParquetWriter(path, first.schema, compression="zstd", compression_level=1) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)


class _Truth:
    """Who belongs where. Groups are numbered so that group g is of sub-topic g % S and of field g % 10."""

    def __init__(
        self, options: SyntheticOptions, rng: np.random.Generator, nodes_at_once: int = NODES
    ) -> None:
        self.options, self.rng, self.nodes_at_once = options, rng, nodes_at_once
        groups = options.group_count
        self.papers = _Cells(rng.permutation(options.papers).astype(np.int32) % groups, groups)
        self.authors = _Cells(rng.permutation(options.author_count).astype(np.int32) % groups, groups)

    def subtopic(self, group: AnyInts) -> AnyInts:
        return group % self.options.subtopic_count

    def group_chunks(self, links_per_paper: float) -> Iterator[tuple[slice, int]]:
        """Ranges of whole groups, each with the number of links that its papers are to have."""
        start = self.papers.start
        groups = max(1, self.nodes_at_once * self.options.group_count // self.options.papers)
        for low in range(0, self.options.group_count, groups):
            high = min(low + groups, self.options.group_count)
            quota = round(links_per_paper * start[high]) - round(links_per_paper * start[low])
            yield slice(low, high), quota

    def chunks(self, count: int) -> Iterator[AnyInts]:
        """The numbers of papers or authors, some at a time."""
        for low in range(0, count, self.nodes_at_once):
            yield np.arange(low, min(low + self.nodes_at_once, count))


class _Cells:
    """Nodes sorted by the cell (group, sub-topic) that they belong to; within a cell by their number."""

    def __init__(self, cell: AnyInts, count: int) -> None:
        self.cell = cell
        self.order = np.argsort(cell, kind="stable").astype(np.int32)
        self.size = np.bincount(cell, minlength=count).astype(np.int32)
        self.start = np.concatenate([[0], np.cumsum(self.size)]).astype(np.int32)

    def members(self, cells: slice) -> AnyInts:
        """All nodes of a range of cells."""
        return self.order[self.start[cells.start] : self.start[cells.stop]]

    def earlier(self) -> _Circle:
        """For every node, the nodes before it in its cell."""
        start = self.start[self.cell]
        rank = np.empty_like(start)
        rank[self.order] = np.arange(len(rank), dtype=np.int32) - start[self.order]
        return _Circle(self.order, start, rank)

    def all_of(self, cell: AnyInts) -> _Circle:
        """For nodes of another kind, whose cells are given, all nodes of the same cell."""
        return _Circle(self.order, self.start[cell], self.size[cell])


@dataclass(frozen=True)
class _Circle:
    """What each paper may link to: paper p to the ``choices[p]`` nodes of ``order`` from ``start[p]`` on."""

    order: AnyInts
    start: AnyInts
    choices: AnyInts

    def draw(self, papers: AnyInts, rng: np.random.Generator) -> AnyInts:
        """One random link of each of the papers that have any choice, as packed pairs."""
        papers = papers[self.choices[papers] > 0]
        return _pack(papers, self.order[self.start[papers] + rng.integers(self.choices[papers])])


def _pack(source: AnyInts, target: AnyInts) -> AnyInts:
    """A pair as one number, so that sorting finds the duplicates."""
    return (source.astype(np.int64) << 32) | target


def _unpack(pairs: AnyInts) -> tuple[AnyInts, AnyInts]:
    return pairs >> 32, pairs & 0xFFFFFFFF


def _fill(pairs: AnyInts, quota: int, circle: _Circle, papers: AnyInts, rng: np.random.Generator) -> AnyInts:
    """Add random new links of ``papers`` until there are ``quota`` or the circle gives hardly any more.

    ``pairs`` is sorted and so is the result. Each round draws more than is missing, then trims.
    """
    for _ in range(ROUNDS):
        missing = quota - len(pairs)
        if missing <= 0:
            break
        new = _distinct(circle.draw(rng.choice(papers, missing * 5 // 4 + 16), rng))
        if len(pairs):
            place = np.minimum(np.searchsorted(pairs, new), len(pairs) - 1)
            new = new[pairs[place] != new]
        if len(new) > missing:
            new = rng.choice(new, missing, replace=False, shuffle=False)
        pairs = np.sort(np.concatenate([pairs, new]))
    return pairs


def _distinct(values: AnyInts) -> AnyInts:
    """Sorted, without duplicates; several times as fast as ``np.unique``."""
    values = np.sort(values)
    return values[np.diff(values, prepend=-1) > 0]


def _cites(truth: _Truth) -> Iterator[pa.Table]:
    """Citations, from the narrowest circle to the widest; what one cannot hold is left to the next."""
    options, rng = truth.options, truth.rng
    subtopic = truth.subtopic(truth.papers.cell)
    circles = (
        (GROUP_SHARE, truth.papers.earlier()),
        (GROUP_SHARE + SUBTOPIC_SHARE, _Cells(subtopic, options.subtopic_count).earlier()),
        (1.0, _Cells(np.zeros_like(subtopic), 1).earlier()),
    )
    for groups, quota in truth.group_chunks(options.citations_per_paper):
        pairs: AnyInts = np.empty(0, np.int64)
        for share, circle in circles:
            pairs = _fill(pairs, round(share * quota), circle, truth.papers.members(groups), rng)
        source, target = _unpack(pairs)
        yield pa.table({"source": _ids("p", source), "target": _ids("p", target)})


def _written_by(truth: _Truth) -> Iterator[pa.Table]:
    """Authorships: first one for everybody, then random ones."""
    circle = truth.authors.all_of(truth.papers.cell)
    for groups, quota in truth.group_chunks(truth.options.authors_per_paper):
        pairs = _one_for_everybody(truth, groups)
        pairs = _fill(pairs, quota, circle, truth.papers.members(groups), truth.rng)
        paper, author = _unpack(pairs)
        yield pa.table({"paper": _ids("p", paper), "author": _ids("a", author)})


def _one_for_everybody(truth: _Truth, groups: slice) -> AnyInts:
    """In each group pair papers with authors in turn, until every paper and every author has had one."""
    papers, authors = truth.papers, truth.authors
    turns = np.maximum(papers.size, authors.size)[groups]
    group = np.repeat(np.arange(groups.start, groups.stop), turns)
    turn = np.arange(len(group)) - np.repeat(np.cumsum(turns) - turns, turns)
    paper = papers.order[papers.start[group] + turn % papers.size[group]]
    author = authors.order[authors.start[group] + turn % authors.size[group]]
    return np.sort(_pack(paper, author))


def _published_in(truth: _Truth) -> Iterator[pa.Table]:
    """One venue per paper. Venue v is of sub-topic v % S."""
    options, rng = truth.options, truth.rng
    for papers in truth.chunks(options.papers):
        subtopic = truth.subtopic(truth.papers.cell[papers]).astype(np.int64)
        own_venues = -((subtopic - options.venue_count) // options.subtopic_count)
        own = subtopic + options.subtopic_count * rng.integers(own_venues)
        other = rng.integers(options.venue_count, size=len(own))
        venue = np.where(rng.random(len(own)) < OWN_VENUE_SHARE, own, other)
        yield pa.table({"paper": _ids("p", papers), "venue": _ids("v", venue)})


def _papers(truth: _Truth) -> Iterator[pa.Table]:
    """Papers in the order of time, more of them in later years."""
    fields, subtopics = (pa.array(names) for names in zip(*SUBTOPICS, strict=True))
    for papers in truth.chunks(truth.options.papers):
        group = truth.papers.cell[papers]
        subtopic = truth.subtopic(group)
        year = FIRST_YEAR + (YEARS * np.sqrt(papers / truth.options.papers)).astype(np.int32)
        columns = {
            "id": _ids("p", papers),
            "title": _titles(subtopic, truth.options.ambiguous, truth.rng),
            "field": fields.take(subtopic),
            "subtopic": subtopics.take(subtopic),
            "year": pa.array(year),
            "group": pa.array(group),
        }
        yield pa.table(columns)


def _authors(truth: _Truth) -> Iterator[pa.Table]:
    parts = [pa.array(names.split()) for names in (FIRST_NAMES, INITIALS, LAST_NAMES)]
    fields = pa.array(FIELD_NAMES)
    for authors in truth.chunks(truth.options.author_count):
        names = [part.take(truth.rng.integers(len(part), size=len(authors))) for part in parts]
        field = fields.take(truth.authors.cell[authors] % len(FIELDS))
        yield pa.table({"id": _ids("a", authors), "name": _joined(*names, " "), "field": field})


def _ids(letter: str, numbers: AnyInts) -> Column:
    return _joined(letter, pa.array(numbers).cast(pa.string()), "")


def _joined(*parts: Any) -> Column:
    """The columns joined row by row; the last part is the separator."""
    return pc.binary_join_element_wise(*parts)


def _titles(subtopic: AnyInts, ambiguous: float, rng: np.random.Generator) -> Column:
    """Titles that say a paper's sub-topic, or, for a share of them, only a pair of fields."""
    count = len(subtopic)
    content = _content_words(subtopic, rng.random(count) < ambiguous, rng)  # (count, 5)
    ends = np.cumsum([WORDS_PER_LIST * len(WORD_LISTS + PAIR_LISTS), *map(len, PHRASES)])
    opening, connector, ending = (rng.integers(ends[i], ends[i + 1], count) for i in range(len(PHRASES)))
    words = np.column_stack([opening, content[:, :3], connector, content[:, 3:], ending])  # (count, 8)
    present = rng.random(words.shape) < SLOT_SHARE
    offsets: Column = pa.array(np.concatenate([[0], np.cumsum(present.sum(axis=1))]), pa.int32())
    lists: Column = pa.ListArray.from_arrays(offsets, pa.array(VOCABULARY).take(words[present]))
    titles: Column = pc.binary_join(lists, " ")
    return pc.utf8_capitalize(titles)


def _content_words(subtopic: AnyInts, ambiguous: NDArray[np.bool_], rng: np.random.Generator) -> AnyInts:
    """Five distinct words for each title: its sub-topic's and some ambiguous ones, or only ambiguous ones."""
    count = len(subtopic)
    pairs = PAIRS_OF_FIELD[subtopic % len(FIELDS)]
    pair = pairs[np.arange(count), rng.integers(pairs.shape[1], size=count)]
    shared = rng.random((count, 5)) < AMBIGUOUS_WORD_SHARE
    shared[:, 0] = False  # the first word of a clear title tells the sub-topic
    shared[ambiguous] = True
    word = np.argsort(rng.random((count, WORDS_PER_LIST), dtype=np.float32), axis=1)[:, :5]
    return np.where(shared, len(WORD_LISTS) + pair[:, None], subtopic[:, None]) * WORDS_PER_LIST + word
