from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heterformer.errors import InputError
from heterformer.untrusted import (
    check_file_name,
    check_fingerprint,
    check_no_links_out,
    check_type_name,
    is_inside,
    short_repr,
)

PATHS = ("../../thesis", "/etc/passwd", "a/b", "..", ".", "", "a\\b", "a\0b", "C:x", 7, None, ["a"])


@pytest.mark.parametrize("name", ["paper", "a-b", "a_b", "論文", "x1"])
def test_names_of_types(name: str) -> None:
    assert check_type_name(name, "network.json") == name


@pytest.mark.parametrize("name", [*PATHS, "rev_cites", "a--b", "a__b", "a b", "a.b"])
def test_a_path_is_no_name_of_a_type(name: Any) -> None:
    with pytest.raises(InputError, match=r"^network.json: the name .* is not allowed, expected letters"):
        check_type_name(name, "network.json")


@pytest.mark.parametrize("value", [*PATHS, "vectors", "0" * 31, "0" * 32 + "\n", "A" * 32])
def test_a_path_is_no_fingerprint(value: Any) -> None:
    assert check_fingerprint("0123456789abcdef" * 2, "x") == "0123456789abcdef" * 2
    with pytest.raises(InputError, match=r"^network.json: the fingerprint is .*, expected 32 hex"):
        check_fingerprint(value, "network.json")


@pytest.mark.parametrize("name", [*(p for p in PATHS if p != "C:x"), ".hidden", "x" * 201])
def test_a_path_is_no_name_of_a_file(name: Any) -> None:
    assert check_file_name("part-00000-of-00002.parquet", "x") == "part-00000-of-00002.parquet"
    with pytest.raises(InputError, match=r"^vectors.json: lists .*, expected a plain name without a path\.$"):
        check_file_name(name, "vectors.json")


def test_paths_below_a_folder() -> None:
    assert is_inside("figures/map.png")
    assert not any(map(is_inside, ("../map.png", "figures/../../map.png", "/map.png", 7)))


def test_a_link_that_leads_out_of_a_folder_is_refused(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "run-other"
    (run / "checkpoints").mkdir(parents=True)
    (run / "file").write_text("")
    (run / "inner").symlink_to("file")
    elsewhere.mkdir()
    check_no_links_out(run)
    (tmp_path / "link").symlink_to(run)
    check_no_links_out(tmp_path / "link")
    for place in ("search", "checkpoints/last", "metrics.jsonl"):
        for target in (elsewhere, Path("/nowhere"), Path("../..")):
            (run / place).symlink_to(target)
            with pytest.raises(InputError, match=rf"{place}: is a symbolic link to '.*, outside .*run; put"):
                check_no_links_out(run)
            (run / place).unlink()


def test_a_value_of_many_lines_is_on_one() -> None:
    class Model:
        def __repr__(self) -> str:
            return "Model(\n  (layer): Linear()\n)"

    assert short_repr(Model()) == "Model( (layer): Linear() )"


def test_a_long_value_is_cut() -> None:
    assert short_repr("x") == "'x'"
    assert len(short_repr("x" * 10_000)) < 100
