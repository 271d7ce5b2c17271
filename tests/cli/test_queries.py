"""Queries of a file, one per line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from heterformer.cli.queries import read_queries
from heterformer.errors import InputError
from heterformer.search.options import SearchOptions


def test_lines_are_read_without_spaces_around_them(tmp_path: Path) -> None:
    file = tmp_path / "queries.txt"
    file.write_bytes("\ufeffnews\r\n\n  näher \n".encode())
    assert read_queries("", SearchOptions(queries=file)) == ["news", "näher"]
    assert read_queries("one", SearchOptions()) == ["one"]


def test_typed_lines_that_are_not_text_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"n\xe4her\n"), encoding="utf-8"))
    with pytest.raises(InputError, match=r"^standard input is not UTF-8, expected a query per line\.$"):
        list(read_queries("", SearchOptions(interactive=True)))


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "queries.txt"
    file.write_bytes(b"n\xe4her\n")
    with pytest.raises(InputError, match="is not UTF-8, expected a text file with one query per line"):
        read_queries("", SearchOptions(queries=file))
