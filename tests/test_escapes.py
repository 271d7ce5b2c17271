"""Text from data: on terminals, in Markdown, in spreadsheets."""

from __future__ import annotations

import io

import pytest
from rich.table import Table
from rich.text import Text

from heterformer.escapes import encodable_text, markdown_text, spreadsheet_text, terminal_text
from heterformer.progress import DataConsole, say
from heterformer.tables import Sheet

NAME = "a\x1b[31mred\x1b]0;title\x07\x9b2J\x00\u202ebackwards\x7f"
ESCAPED = r"a\x1b[31mred\x1b]0;title\x07\x9b2J\x00\u202ebackwards\x7f"


def test_control_characters_are_written_out() -> None:
    assert terminal_text(NAME) == ESCAPED
    assert terminal_text("\udc80 naïve 論文 🙂\n\tb") == "\\udc80 naïve 論文 🙂\n\tb"


def test_a_console_shows_names_and_does_not_obey_them() -> None:
    console = DataConsole(file=io.StringIO(), width=200, force_terminal=True, color_system="standard")
    table = Table(title=Text(NAME))
    table.add_column(Text(NAME))
    table.add_row(Text(NAME, style="bold"))
    console.print(table)
    console.print(Text(NAME), soft_wrap=True)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert r"\x1b[31mred" in shown
    assert not any(letter in shown for letter in ("\x1b[31m", "\x1b]", "\x07", "\x9b", "\x00", "\u202e"))
    assert "\x1b[1m" in shown  # our own styles are not text


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", r"a -> b..., n\xe4her 1 +/- 2 \u8ad6 #_ |-+*"),
        ("cp1252", "a -> b…, näher 1 ± 2 \\u8ad6 #_ |-+†"),
        ("utf-8", "a → b…, näher 1 ± 2 論 █▁ │─┼†"),
    ],
)
def test_what_an_encoding_lacks_is_replaced(encoding: str, shown: str) -> None:
    text = "a → b…, näher 1 ± 2 論 █▁ │─┼†"
    assert encodable_text(text, encoding) == shown
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = DataConsole(file=stream, width=200)
    table = Table(title=Text(text))
    table.add_row(Text(text))
    console.print(table)
    stream.flush()
    assert shown in stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


def test_a_message_shows_a_name_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"there is no {NAME}")
    told = capsys.readouterr().err
    assert "there is no a" in told
    assert "\x1b" not in told


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("<script>alert(1)</script>", r"\<script\>alert(1)\</script\>"),
        ("[here](http://x) `code` *b* _i_ #1", r"[here\](http://x) \`code\` \*b\* \_i\_ \#1"),
        ("a|b\n\n# heading", r"a\|b \# heading"),
        ("snake_case & co &amp; \\", r"snake_case & co \&amp; " + "\\\\"),
    ],
)
def test_markdown_shows_a_name_as_it_is(name: str, escaped: str) -> None:
    assert markdown_text(name) == escaped


def test_the_cells_of_a_page_are_escaped() -> None:
    sheet = Sheet("t", ("node", "n"), (("<b>|x", "1"),), "note", text_columns=1)
    assert sheet.markdown() == "| node | n |\n| --- | ---: |\n| \\<b\\>\\|x | 1 |\n\nnote"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_begins_a_formula(start: str) -> None:
    assert spreadsheet_text(f"{start}1+1") == f"'{start}1+1"
    assert spreadsheet_text(f"a{start}") == f"a{start}"
