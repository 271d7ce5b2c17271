"""What commands print is for people as it is, or for programs as JSON."""

from __future__ import annotations

import io
import json
import sys

import pytest

from heterformer.cli.output import print_json, print_line


def test_a_sentence_is_printed_as_it_is_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "Wrote [bold]papers[/] to " + "a long folder/" * 20
    print_line(sentence)
    assert capsys.readouterr().out == sentence + "\n"


def test_json_keeps_letters_and_is_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": "Émile [/]"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"name": "Émile [/]"}
    assert "Émile" in printed


def test_json_is_json_in_any_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", stream)
    print_json({"name": "Émile 論"})
    stream.flush()
    assert json.loads(stream.buffer.getvalue().decode("cp1252")) == {"name": "Émile 論"}  # type: ignore[attr-defined]
