from __future__ import annotations

import pytest
import tyro

from heterformer.errors import InputError
from heterformer.search.options import SearchOptions


def test_options_can_be_repeated() -> None:
    found = tyro.cli(SearchOptions, args=["--with", "a=b c", "--with", "d=e", "--type", "f", "--type", "g"])
    assert (found.neighbors, found.types) == (("a=b c", "d=e"), ("f", "g"))


def test_no_results_wanted() -> None:
    with pytest.raises(InputError, match=r"^top is 0, expected at least 1\.$"):
        SearchOptions(top=0)
