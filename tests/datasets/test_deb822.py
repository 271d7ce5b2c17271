"""APT's lists: paragraphs, compressions, versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from heterformer.datasets.deb822 import find_lists, paragraphs, version_key
from heterformer.errors import InputError
from tests.datasets.apt_lists import PACK, SITE, write_list

LIST = (
    "Package: a\nTag: x::y,\n x::z\nDescription: first\n second\n .\n  third\n\n\n  \nPACKAGE:b\nOther: é\n"
)


@pytest.mark.parametrize("ending", PACK)
def test_paragraphs_of_a_list_as_apt_may_store_it(tmp_path: Path, ending: str) -> None:
    path = write_list(tmp_path, "Packages", LIST, ending)
    assert find_lists(tmp_path, "Packages") == [path]
    assert list(paragraphs(path, ("Package", "Description", "Tag"))) == [
        {"Package": "a", "Tag": "x::y,\nx::z", "Description": "first\nsecond\n.\n third"},
        {"Package": "b"},
    ]


def test_a_list_that_was_cut_short_or_has_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = write_list(tmp_path, "Packages", "")
    path.write_bytes(
        b" continued without a field\r\nPackage: a\r\nMaintainer: J\xf6rg\r\n\r\nPackage: b\nDescri"
    )
    assert list(paragraphs(path, ("Package", "Maintainer", "Description"))) == [
        {"Package": "a", "Maintainer": "J\ufffdrg"},
        {"Package": "b"},
    ]


def test_a_value_of_a_field_that_is_not_wanted_goes_nowhere(tmp_path: Path) -> None:
    path = write_list(tmp_path, "Packages", "Package: a\nOther: x\n Package: b\n")
    assert list(paragraphs(path, ("Package",))) == [{"Package": "a"}]


@pytest.mark.parametrize("ending", [e for e in PACK if e])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, ending: str) -> None:
    path = write_list(tmp_path, "Packages", LIST * 500, ending)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(InputError) as caught:
        list(paragraphs(path, ("Package",)))
    assert str(caught.value).startswith(f"{path}: cannot be read (")
    assert str(caught.value).endswith("; fetch it again with 'apt-get update'.")


def test_other_files_of_the_folder_are_no_lists(tmp_path: Path) -> None:
    for name in (
        "main_Packages",
        "main_NoPackages",
        "main_Packages.diff_Index",
        "main_i18n_Translation-en_GB",
    ):
        write_list(tmp_path, name, "")
    (tmp_path / "partial" / "x_Packages").mkdir(parents=True)
    (tmp_path / "Packages.gz").write_bytes(b"")
    assert [p.name for p in find_lists(tmp_path, "Packages")] == ["Packages.gz", f"{SITE}_main_Packages"]
    assert find_lists(tmp_path, "Translation-en") == []


def test_versions_are_ordered_as_dpkg_orders_them() -> None:
    shuffled = ["1.0+x", "1.2", "1.0-1", "0.10", "2:0~", "1.0~rc1-2", "1.0", "1.0.1", "0.9", "1.0-1+b1"]
    shuffled += ["1:0.1", "1.0a", "1.0-1~deb12", "1.0~rc1-1"]
    expected = ["0.9", "0.10", "1.0~rc1-1", "1.0~rc1-2", "1.0", "1.0-1~deb12", "1.0-1", "1.0-1+b1", "1.0a"]
    expected += ["1.0+x", "1.0.1", "1.2", "1:0.1", "2:0~"]
    assert sorted(shuffled, key=version_key) == expected
    assert version_key("1.0") == version_key("0:1.0")
