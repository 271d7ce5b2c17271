"""What the package says of itself: version, changelog, addresses, pinned versions."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import heterformer

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
HOST = "https://github.com/heterformer/heterformer"


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_version_is_defined_once() -> None:
    assert PROJECT["dynamic"] == ["version", "readme"]
    assert "version" not in (ROOT / "setup.py").read_text(encoding="utf-8")
    assert re.fullmatch(r"\d+\.\d+\.\d+", heterformer.__version__)


def test_the_changelog_keeps_the_form() -> None:
    versions = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert versions[0].startswith(f"[{heterformer.__version__}] - ")
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d|Unreleased)", v) for v in versions)
    assert set(re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE)) <= KINDS
    for version in versions:
        assert f"\n{version.split()[0]}: {HOST}/" in CHANGELOG


def test_no_change_stands_outside_a_kind() -> None:
    for entry in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        assert "\n- " not in entry.partition("\n### ")[0]


def test_addresses_are_those_of_the_project() -> None:
    urls = PROJECT["urls"]
    assert urls["Repository"] == HOST
    places = (HOST, "https://heterformer.github.io/heterformer/", "https://doi.org/")
    assert all(url.startswith(places) for url in urls.values())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["repository-code"] == HOST
    assert PROJECT["authors"] == citation["authors"]
    assert citation["preferred-citation"]["doi"] in urls["Paper"]


def test_every_direct_dependency_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    pinned = {normalized(line.split("==")[0]) for line in pins if "==" in line}
    assert pins == sorted(pins, key=str.lower)
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    names = {normalized(re.split(r"[\[<>=!~ ]", d)[0]) for group in groups for d in group} - {"heterformer"}
    assert sorted(names - pinned) == []


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_links_of_a_page_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([\w./-]+)(?:#([^)]+))?\)", text):
        assert (ROOT / target).is_file(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", (ROOT / target).read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}
