"""CSV and TSV tables."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from heterformer.network.tables import Column
from heterformer.network.tables.delimited import DelimitedTable
from tests.network.tables.damage import DAMAGES, damaged_papers
from tests.networks import CITES, PAPERS, Tables, nodes_of


def texts(tables: Tables) -> list[str]:
    return tables.build().texts("paper")


def test_quotes_protect_delimiters_line_ends_and_quotes(tables: Tables) -> None:
    tables.write("papers.csv", 'id,title\np1,"a, b"\np2,"two\nlines"\np3,"a ""word"""\np4,plain "quotes"\n')
    assert texts(tables) == ["a, b", "two\nlines", 'a "word"', 'plain "quotes"']


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\n", "\n\n"),
    ],
    ids=["byte order mark", "Windows line ends", "no last line end", "empty lines"],
)
def test_marks_and_line_ends_are_no_part_of_the_values(change: Callable[[str], str], tables: Tables) -> None:
    expected = nodes_of(tables.build(), "paper")
    tables.out = tables.folder / "again"
    tables.write("papers.csv", change(PAPERS))
    assert nodes_of(tables.build(), "paper") == expected


def test_any_script_is_text(tables: Tables) -> None:
    tables.write("papers.csv", "id,title\np1,Ἑλένη\np2,机器翻译\np3,تعلم\np4,naïve 🙂\n")
    assert texts(tables) == ["Ἑλένη", "机器翻译", "تعلم", "naïve 🙂"]


def test_columns_nobody_asked_for_do_not_matter(tables: Tables) -> None:
    tables.write("papers.csv", "x,id,y,title\n1,p1,,A\n2,p2,,B\n3,p3,,C\n4,p4,,D\n")
    assert texts(tables) == ["A", "B", "C", "D"]


def test_rows_are_numbered_over_all_blocks(tables: Tables) -> None:
    rows = [f"p{i},word {i}" for i in range(1, 200)]
    path = tables.write("papers.csv", "\n".join(["id,title", *rows]))
    tables.node_tables["paper"] = DelimitedTable(path, ",", block_size=256)
    assert len(list(tables.node_tables["paper"].chunks([Column("id", "id")]))) > 5
    assert texts(tables) == [f"word {i}" for i in range(1, 200)]
    rows[149] = ",word"
    tables.write("papers.csv", "\n".join(["id,title", *rows]))
    tables.out = tables.folder / "again"
    assert tables.complaint() == "papers.csv: row 150, column 'id': found nothing, expected an id."


def test_a_short_row_of_a_wide_table_does_not_repeat_the_header(tables: Tables) -> None:
    names = ["id", "title", *(f"column{number}" for number in range(1000))]
    tables.write("papers.csv", ",".join(names) + "\np1,A\n" + ",".join(["p2"] * 1002) + ",more\n")
    assert tables.complaint() == "papers.csv: line 2: found 2 fields, expected 1,002."


def test_of_a_thousand_columns_a_few_are_listed(tables: Tables) -> None:
    tables.write("papers.csv", ",".join(f"column{number}" for number in range(1000)) + "\n")
    tables.paper["id"] = "colum7"
    complaint = tables.complaint()
    assert complaint.startswith("papers.csv: no column 'colum7', the columns are 'column0', 'column1', ")
    assert complaint.endswith("'column19' and 980 more (did you mean 'column7'?).")


def test_a_missing_column_is_named_with_those_there_are(tables: Tables) -> None:
    tables.paper["text"] = ["titel"]
    assert tables.complaint() == "papers.csv: no column 'titel', the columns are 'id', 'title'."
    tables.paper["text"] = ["title"]
    tables.cites["columns"] = ["source", "to"]
    assert tables.complaint() == "cites.csv: no column 'to', the columns are 'source', 'target'."


def test_a_wrong_delimiter_shows_in_the_columns_found(tables: Tables) -> None:
    tables.write("papers.csv", PAPERS.replace(",", ";"))
    assert tables.complaint() == (
        "papers.csv: no column 'id', the columns are 'id;title'; they seem to be separated by ';': "
        'add delimiter: ";".'
    )


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
@pytest.mark.parametrize("name", ["papers.csv", "papers.tsv.gz"])
def test_another_delimiter_may_be_named(delimiter: str, name: str, tables: Tables) -> None:
    expected = nodes_of(tables.build(), "paper")
    tables.papers(name, PAPERS.replace(",", delimiter))
    tables.paper["delimiter"] = delimiter
    tables.write("cites.csv", CITES.replace(",", delimiter))
    tables.cites["delimiter"] = delimiter
    tables.out = tables.folder / "again"
    network = tables.build()
    assert nodes_of(network, "paper") == expected
    assert len(network.edges("cites")[0]) == 3


def test_a_delimiter_for_a_file_that_has_none(tables: Tables) -> None:
    tables.papers("papers.jsonl", [{"id": "p1", "title": "A"}])
    tables.paper["delimiter"] = ";"
    said = tables.complaint()
    assert said == "papers.jsonl: has a delimiter in the specification, expected a .csv or .tsv file."


def test_a_column_that_is_there_twice(tables: Tables) -> None:
    tables.write("papers.csv", "id,title,title\np1,A,B\n")
    assert tables.complaint() == "papers.csv: line 1: duplicate column 'title'."


BAD_ROWS = {
    "too few": ("p1,A\np2\n", "line 3: found 1 fields, expected 2 (id, title)."),
    "too many": ("p1,A\np2,B,C\n", "line 3: found 3 fields, expected 2 (id, title)."),
    "after a field of three lines": (
        'p1,"A\nB\nC"\np2\n',
        "line 5: found 1 fields, expected 2 (id, title).",
    ),
    "after an empty line": ("p1,A\n\np2\n", "line 4: found 1 fields, expected 2 (id, title)."),
    "after a very long field": (
        f"p1,{'word ' * 40_000}\np2\n",
        "line 3: found 1 fields, expected 2 (id, title).",
    ),
}


@pytest.mark.parametrize("what", BAD_ROWS)
@pytest.mark.parametrize("name", ["papers.csv", "papers.csv.gz"])
def test_a_row_with_a_wrong_number_of_fields(what: str, name: str, tables: Tables) -> None:
    rows, message = BAD_ROWS[what]
    tables.papers(name, "id,title\n" + rows)
    assert tables.complaint() == f"{name}: {message}"


def test_a_tsv_row_with_a_wrong_number_of_fields(tables: Tables) -> None:
    tables.papers("papers.tsv", "id\ttitle\np1\tA, b, c\np2\tB\tC\n")
    assert tables.complaint() == "papers.tsv: line 3: found 3 fields, expected 2 (id, title)."


def test_a_quote_that_is_never_closed(tables: Tables) -> None:
    tables.write("papers.csv", PAPERS + 'p5,"open\np6,swallowed\np7,swallowed\n')
    assert tables.complaint().startswith("papers.csv: line 6: ")


def test_quotes_that_pair_up_wrongly_do_not_swallow_rows(tables: Tables) -> None:
    tables.write("papers.csv", 'id,title,venue\np1,"foo,x\np2,"bar,y\np3,z,w\n')
    said = tables.complaint()
    assert said.startswith("papers.csv: line 2: unclosed or undoubled quote in the row that starts here")


def test_a_file_in_utf16(tables: Tables) -> None:
    tables.write("papers.csv", "id,title\np1,A\n".encode("utf-16"))
    assert tables.complaint() == "papers.csv: line 1: found UTF-16, expected UTF-8; convert the file."


@pytest.mark.parametrize(
    ("contents", "found", "remedy"),
    [
        (gzip.compress(b"id,title\np1,A\n", mtime=0), "a gzip file", "let its name end in .gz"),
        (b"PAR1\x15\x04\x15", "a Parquet file", "let its name end in .parquet"),
        (b"PK\x03\x04\x14\t", "a ZIP archive or an Excel file", "unpack it, or save the sheet as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1", "an Excel file", "save the sheet as CSV"),
    ],
)
def test_a_file_of_another_format(tables: Tables, contents: bytes, found: str, remedy: str) -> None:
    tables.write("papers.csv", contents)
    assert tables.complaint() == f"papers.csv: found {found}, expected text; {remedy}."


def test_bytes_that_are_not_utf8(tables: Tables) -> None:
    tables.write("papers.csv", b"id,title\np1,fine\np2,caf\xe9\n")
    assert tables.complaint() == ("papers.csv: line 3: byte 7 (0xe9) is not UTF-8; convert the file.")


@pytest.mark.parametrize("what", DAMAGES)
def test_a_broken_gzip_file(what: str, tables: Tables) -> None:
    reason = damaged_papers(tables, "papers.csv.gz", what)
    said = tables.complaint()
    assert said.startswith(f"papers.csv.gz: damaged gzip file ({reason}")
    assert said.endswith("); download it again.")


def test_a_column_of_numbers_is_no_text(tables: Tables) -> None:
    tables.write("papers.csv", "id,title,year\np1,A,2001\np2,B,2002\np3,C,\np4,D,2004\n")
    tables.paper["text"] = ["title", "year"]
    assert tables.complaint() == (
        "papers.csv: column 'year' holds no letters, only numbers or nothing; expected text."
    )


@pytest.mark.parametrize("content", ["", "\n"])
def test_an_empty_file(content: str, tables: Tables) -> None:
    tables.write("papers.csv", content)
    assert tables.complaint() == ("papers.csv: the file is empty, expected a header line with column names.")


def test_a_header_without_rows(tables: Tables) -> None:
    tables.write("papers.csv", "id,title\n")
    assert tables.complaint() == "papers.csv: the table has no rows."


def test_a_line_separator_inside_a_column_name(tables: Tables) -> None:
    tables.write("papers.csv", PAPERS.replace("id,title", "id,ti\u2028tle"))
    tables.paper["text"] = ["ti\u2028tle"]
    assert texts(tables)[0] == "Byzantine generals"


def test_one_stray_quote_in_a_large_file_is_blamed_where_it_is(tables: Tables) -> None:
    rows = [f"p{i},word {i}" for i in range(20_000)]
    rows[99] = 'p99,"word'
    path = tables.write("papers.csv", "\n".join(["id,title", *rows]))
    tables.node_tables["paper"] = DelimitedTable(path, ",", block_size=1 << 14)
    said = tables.complaint()
    assert said.startswith("papers.csv: line 101: a quote in the row that starts here is not closed")
