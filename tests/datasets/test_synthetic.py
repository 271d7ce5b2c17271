"""The synthetic network: what is planted is what is written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from heterformer.datasets import synthetic, synthetic_ceiling
from heterformer.datasets.synthetic import SyntheticOptions, write_synthetic
from heterformer.datasets.synthetic_ceiling import planted_ceiling
from heterformer.errors import InputError
from heterformer.network.spec import NetworkSpec

TABLES = ("papers", "authors", "cites", "written_by", "published_in")
AMBIGUOUS_WORDS = {word for words in synthetic.AMBIGUOUS.values() for word in words.split()}
GENERIC_WORDS = {word for phrases in synthetic.PHRASES for phrase in phrases for word in phrase.split()}


@dataclass(frozen=True)
class Tables:
    """A written network, read back; papers and authors are known by the number in their id."""

    folder: Path
    papers: pl.DataFrame
    authors: pl.DataFrame
    cites: pl.DataFrame
    written_by: pl.DataFrame
    published_in: pl.DataFrame

    @property
    def titles(self) -> list[list[str]]:
        return [title.lower().split() for title in self.papers["title"]]

    def numbers(self, relation: str) -> NDArray[np.int64]:
        """The two ends of a relation's links: (links, 2)."""
        table: pl.DataFrame = getattr(self, relation)
        return table.select(pl.all().str.slice(1).cast(pl.Int64)).to_numpy()

    def within(self, column: str) -> NDArray[np.bool_]:
        """For each citation, whether both papers have the same value."""
        source, target = self.papers[column].to_numpy()[self.numbers("cites")].T
        return source == target


def write(folder: Path, nodes_at_once: int = 250_000, **options: Any) -> Tables:
    write_synthetic(folder, SyntheticOptions(**options), nodes_at_once)
    return Tables(folder, *(pl.read_parquet(folder / f"{name}.parquet") for name in TABLES))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return write(tmp_path_factory.mktemp("synthetic") / "network", papers=20_000)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return write(tmp_path_factory.mktemp("synthetic") / "network", papers=200)


def is_ambiguous(words: list[str]) -> bool:
    return set(words) <= AMBIGUOUS_WORDS | GENERIC_WORDS


# The words


def test_word_lists_are_of_the_length_that_their_numbering_needs() -> None:
    for words in synthetic.WORD_LISTS + synthetic.PAIR_LISTS:
        assert len(set(words)) == len(words) == synthetic.WORDS_PER_LIST
    assert [len(subtopics) for subtopics in synthetic.FIELDS.values()] == [5] * 10


def test_a_clear_word_is_of_one_subtopic_and_never_ambiguous_or_generic() -> None:
    clear = [word for words in synthetic.WORD_LISTS for word in words]
    assert len(set(clear)) == len(clear)
    assert not set(clear) & (AMBIGUOUS_WORDS | GENERIC_WORDS)
    assert not AMBIGUOUS_WORDS & GENERIC_WORDS


def test_every_field_is_in_as_many_pairs() -> None:
    assert set(Counter(f for pair in synthetic.AMBIGUOUS for f in pair).values()) == {3}


# Sizes


@pytest.mark.parametrize("seed", [0, 7])
def test_same_seed_same_tables(tmp_path: Path, seed: int) -> None:
    first, second = (write(tmp_path / name, papers=300, seed=seed) for name in ("first", "second"))
    for name in TABLES:
        assert getattr(first, name).equals(getattr(second, name))


def test_another_seed_gives_other_tables(small: Tables, tmp_path: Path) -> None:
    other = write(tmp_path / "other", papers=200, seed=1)
    for name in TABLES:
        assert not getattr(small, name).equals(getattr(other, name))


def test_sizes_by_default(tables: Tables) -> None:
    assert tables.papers.height == 20_000
    assert tables.authors.height == 15_000
    assert tables.cites.height == 6 * 20_000
    assert tables.written_by.height == 2.8 * 20_000
    assert tables.published_in.height == 20_000
    assert tables.published_in["venue"].n_unique() == 160


def test_sizes_as_asked(tmp_path: Path) -> None:
    sizes = {"authors": 2250, "venues": 60, "citations_per_paper": 10.22, "authors_per_paper": 2.84}
    tables = write(tmp_path / "network", papers=3000, **sizes)
    assert tables.authors.height == 2250
    assert tables.cites.height == 30_660
    assert tables.written_by.height == 8520
    assert tables.published_in["venue"].n_unique() == 60


def test_sizes_do_not_depend_on_chunks(tmp_path: Path) -> None:
    tables = write(tmp_path / "network", nodes_at_once=400, papers=3000, citations_per_paper=6.7)
    assert (tables.papers.height, tables.cites.height, tables.written_by.height) == (3000, 20_100, 8400)
    assert tables.papers["id"].n_unique() == 3000
    assert tables.within("group").mean() == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(
    "options",
    [
        {"papers": 200},
        {"papers": 450, "citations_per_paper": 13},
        {"papers": 1667, "citations_per_paper": 50},
        {"papers": 200, "authors_per_paper": 7},
        {"papers": 200, "authors_per_paper": 1, "authors": 200},
        {"papers": 200, "authors_per_paper": 1.4, "authors": 30},
        {"papers": 200, "authors": 560, "venues": 20},
    ],
)
def test_the_limits_hold_all_links(tmp_path: Path, options: dict[str, Any]) -> None:
    tables = write(tmp_path / "network", **options)
    asked = SyntheticOptions(**options)
    assert tables.cites.height == round(asked.citations_per_paper * asked.papers)
    assert tables.written_by.height == round(asked.authors_per_paper * asked.papers)
    assert tables.within("group").mean() >= 0.75


def test_group_sizes(tables: Tables, small: Tables) -> None:
    for written, low, high in ((tables, 29, 31), (small, 20, 20)):
        sizes = np.bincount(written.papers["group"])
        assert low <= sizes.min() <= sizes.max() <= high
        assert written.papers["field"].value_counts()["count"].n_unique() <= 2
    assert tables.papers["subtopic"].n_unique() == 50
    assert small.papers["field"].n_unique() == 10


# Links


def test_only_earlier_papers_are_cited_and_once(tables: Tables, small: Tables) -> None:
    for written in (tables, small):
        source, target = written.numbers("cites").T
        assert (target < source).all()
        assert not written.cites.is_duplicated().any()
        assert not written.written_by.is_duplicated().any()


def test_time_order(tables: Tables) -> None:
    assert tables.papers["id"].to_list() == [f"p{i}" for i in range(20_000)]
    assert tables.papers["year"].is_sorted()
    assert (tables.papers["year"].min(), tables.papers["year"].max()) == (1975, 2024)


def test_citations_follow_group_and_subtopic(tables: Tables) -> None:
    # A sub-topic has 13 groups: one in thirteen of the citations drawn from it stay in the group by chance.
    assert tables.within("group").mean() == pytest.approx(0.75 + 0.2 / 13, abs=0.01)
    assert tables.within("subtopic").mean() == pytest.approx(0.95 + 0.05 / 50, abs=0.01)


def test_authors_write_for_their_group_and_have_its_field(tables: Tables) -> None:
    papers = tables.papers.select("group", paper="id", paper_field="field")
    links = tables.written_by.join(papers, on="paper").join(tables.authors, left_on="author", right_on="id")
    assert links.height == tables.written_by.height
    assert (links["field"] == links["paper_field"]).all()
    assert links.group_by("author").agg(pl.col("group").n_unique())["group"].max() == 1


def test_every_paper_has_an_author_and_every_author_a_paper(tables: Tables) -> None:
    assert tables.written_by["paper"].n_unique() == tables.papers.height
    assert tables.written_by["author"].n_unique() == tables.authors.height


def test_a_venue_publishes_mostly_its_subtopic(tables: Tables) -> None:
    papers = tables.published_in.join(tables.papers, left_on="paper", right_on="id")
    counts = papers.group_by("venue", "subtopic").len()
    main = counts.group_by("venue").agg(pl.col("len").max() / pl.col("len").sum())["len"]
    assert main.mean() == pytest.approx(0.85, abs=0.02)
    assert papers["paper"].is_unique().all()


# Titles


def test_share_of_ambiguous_titles(tables: Tables) -> None:
    assert np.mean([is_ambiguous(words) for words in tables.titles]) == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 500)])
def test_no_or_only_ambiguous_titles(tmp_path: Path, share: float, expected: int) -> None:
    tables = write(tmp_path / "network", papers=500, ambiguous=share)
    assert sum(map(is_ambiguous, tables.titles)) == expected


def test_ambiguous_titles_leave_the_field_open(tables: Tables) -> None:
    fields_of: dict[str, Counter[str]] = {word: Counter() for word in AMBIGUOUS_WORDS}
    for words, field in zip(tables.titles, tables.papers["field"], strict=True):
        if is_ambiguous(words):
            for word in AMBIGUOUS_WORDS.intersection(words):
                fields_of[word][field] += 1
    for word, fields in fields_of.items():
        assert len(fields) >= 2, word
        # One half by construction; at about 80 occurrences at least chance adds some.
        assert max(fields.values()) <= 0.7 * fields.total(), word


def test_clear_titles_tell_the_subtopic(tables: Tables) -> None:
    subtopic_of = {
        word: subtopic
        for (_, subtopic), words in zip(synthetic.SUBTOPICS, synthetic.WORD_LISTS, strict=True)
        for word in words
    }
    for words, subtopic in zip(tables.titles, tables.papers["subtopic"], strict=True):
        assert {subtopic_of[w] for w in words if w in subtopic_of} == (
            set() if is_ambiguous(words) else {subtopic}
        )


def test_no_word_twice_in_a_title(tables: Tables) -> None:
    content = ([w for w in words if w not in GENERIC_WORDS] for words in tables.titles)
    assert all(3 <= len(set(words)) == len(words) <= 5 for words in content)


# The folder


def test_specification(small: Tables) -> None:
    spec = NetworkSpec.load(small.folder / "network.yaml")
    assert spec.text_rich == ("paper",)
    assert spec.textless == ("author", "venue")
    assert spec.predict == "cites"
    assert spec.neighbors == {"paper": 5, "author": 3, "venue": 1}
    assert spec.max_tokens == 32
    paper, author = spec.nodes["paper"], spec.nodes["author"]
    assert {*chain(*paper.columns.values()), "group"} == set(small.papers.columns)
    assert set(chain(*author.columns.values())) == set(small.authors.columns)
    for name, relation in spec.relations.items():
        assert relation.columns == tuple(getattr(small, name).columns)
        assert relation.file == f"{name}.parquet"


def test_returns_the_specification_and_makes_parent_folders(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "network"
    assert write_synthetic(folder, SyntheticOptions(papers=200)) == folder / "network.yaml"
    assert [path.name for path in folder.parent.iterdir()] == ["network"]


def test_existing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"exists already; remove it or choose another name\.$"):
        write_synthetic(tmp_path, SyntheticOptions(papers=200))


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("No space left on device")])
def test_interrupted_writing_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def interrupted(truth: object) -> None:
        assert list(tmp_path.glob(".*/papers.parquet"))
        raise error

    monkeypatch.setattr(synthetic, "_cites", interrupted)
    with pytest.raises((KeyboardInterrupt, InputError)):
        write_synthetic(tmp_path / "network", SyntheticOptions(papers=200))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"papers": 199}, "papers is 199, expected a value from 200 to 5000000."),
        ({"papers": 5_000_001}, "papers is 5000001, expected a value from 200 to 5000000."),
        ({"authors": 10}, "authors is 10, expected a value from 1980 to 28000 for 10000 papers."),
        ({"authors": 28_001}, "authors is 28001, expected a value from 1980 to 28000 for 10000 papers."),
        ({"venues": 49}, "venues is 49, expected a value from 50 to 1000 for 10000 papers."),
        ({"venues": 1001}, "venues is 1001, expected a value from 50 to 1000 for 10000 papers."),
        (
            {"citations_per_paper": 0.5},
            "citations_per_paper is 0.5, expected a value from 1 to 50 for 10000 papers.",
        ),
        (
            {"papers": 200, "citations_per_paper": 7},
            "citations_per_paper is 7, expected a value from 1 to 6 for 200 papers.",
        ),
        ({"authors_per_paper": 0.9}, "authors_per_paper is 0.9, expected a value from 1 to 7."),
        ({"ambiguous": 1.1}, "ambiguous is 1.1, expected a value from 0 to 1."),
        ({"ambiguous": float("nan")}, "ambiguous is nan, expected a value from 0 to 1."),
        ({"seed": -1}, "seed is -1, expected 0 to 2,147,483,647."),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        SyntheticOptions(**options)
    assert str(caught.value) == message


# The ceiling


def test_ceiling_is_higher_with_the_network(tables: Tables) -> None:
    ceiling = planted_ceiling(tables.folder)
    assert ceiling == planted_ceiling(tables.folder)
    # About three of four citations are in the group; with 660 groups few of 100 keys compete with them.
    assert 0.7 < ceiling["network"] < 0.85
    assert 0.15 < ceiling["text"] < 0.3


def test_ceiling_of_text_falls_with_ambiguity(tmp_path: Path) -> None:
    ceilings = [
        planted_ceiling(write(tmp_path / str(share), papers=3000, ambiguous=share).folder)
        for share in (0.0, 0.5, 1.0)
    ]
    text = [ceiling["text"] for ceiling in ceilings]
    assert text[0] > text[1] > text[2]
    assert all(ceiling["network"] > ceiling["text"] for ceiling in ceilings)


def test_ceiling_of_one_pair_is_certain_and_a_batch_needs_enough_queries(small: Tables) -> None:
    assert planted_ceiling(small.folder, batch_size=1) == {"network": 1.0, "text": 1.0}
    with pytest.raises(InputError, match=r"^batch_size is 201, expected at most \d+, the citing papers\.$"):
        planted_ceiling(small.folder, batch_size=201)


def test_precision_shares_ties() -> None:
    score = np.array([[2.0, 2.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert synthetic_ceiling._precision_at_1(score) == pytest.approx((0.5 + 1 + 0) / 3)
