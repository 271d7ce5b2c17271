"""What APT's lists say of each package: the newest version of every name, with its English description."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heterformer.datasets.deb822 import VersionKey, find_lists, paragraphs, version_key
from heterformer.errors import InputError, OptionError

Text = Literal["long", "short"]

SHORT = "packages without a long description"
FETCH = "apt-get update -o Acquire::Languages=en"
RELATIONS = {"depends": ("Pre-Depends", "Depends"), "recommends": ("Recommends",), "suggests": ("Suggests",)}
FIELDS = (
    *("Package", "Source", "Version", "Section", "Maintainer", "Original-Maintainer", "Tag", "Provides"),
    *("Description", "Description-en", "Description-md5"),
    *(name for names in RELATIONS.values() for name in names),
)
# What Debtags writes where a package or a facet is not tagged yet; the second is a value of its vocabulary.
NO_TAGS = re.compile(r"^special::|::TODO$")
FIRST_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9+.-]*)")


@dataclass(frozen=True)
class Package:
    """What the lists say of one package."""

    name: str
    source: str
    version: VersionKey
    section: str
    synopsis: str
    text: str
    maintainer: str
    tags: tuple[str, ...]
    provides: tuple[str, ...]
    needs: Mapping[str, tuple[tuple[str, ...], ...]]  # relation -> clauses -> alternatives


def read_packages(lists: Path, text: Text) -> tuple[list[Package], Counter[str]]:
    """Every package of the lists once, by name, with its description; and what is missing, counted."""
    files = find_lists(lists, "Packages")
    if not files:
        raise InputError(f"{lists}: no package lists ('*_Packages'); fetch them with: {FETCH}.")
    translated = _translations(lists) if text == "long" else {}
    newest: dict[str, Package] = {}
    missing: Counter[str] = Counter()
    without, read = 0, 0
    for path in files:
        for paragraph in paragraphs(path, FIELDS):
            package = _package(paragraph, translated, text)
            if package is None:  # such as the end of a list that was cut short
                missing["packages without a description"] += 1
                continue
            read += 1
            without += package.text == package.synopsis
            known = newest.get(package.name)
            if known is None or package.version > known.version:
                newest[package.name] = package
    if not newest:
        raise InputError(f"{files[0]}: has no packages with descriptions; fetch it again with: {FETCH}.")
    if text == "long" and 2 * without > read:
        lacking = (
            f"{without:,} of {read:,} packages have no long description, since translation lists are missing"
        )
        problem = f"{lacking}; fetch them with: {FETCH} (or set {{text}} to short)."
        raise OptionError(None, (), problem, place=f"{lists}: ")
    if text == "long":
        missing[SHORT] = sum(package.text == package.synopsis for package in newest.values())
    return sorted(newest.values(), key=lambda package: package.name), missing


def read_uploaders(lists: Path) -> dict[str, list[str]]:
    """The uploaders of each source package, as far as there are source lists ('deb-src')."""
    return {
        paragraph["Package"]: _split_people(paragraph["Uploaders"])
        for path in find_lists(lists, "Sources")
        for paragraph in paragraphs(path, ("Package", "Uploaders"))
        if "Package" in paragraph and "Uploaders" in paragraph
    }


def _package(paragraph: Mapping[str, str], translated: Mapping[str, str], text: Text) -> Package | None:
    name = paragraph.get("Package", "")
    own = paragraph.get("Description") or paragraph.get("Description-en", "")
    whole = translated.get(paragraph.get("Description-md5", ""), own)
    synopsis = whole.partition("\n")[0].strip()
    if not (name and synopsis):
        return None
    return Package(
        name=name,
        source=(paragraph.get("Source") or name).split()[0],  # "Source: gcc-defaults (1.203)"
        version=version_key(paragraph.get("Version", "0")),
        section=paragraph.get("Section", "").rpartition("/")[2],  # "contrib/games" is about games
        synopsis=synopsis,
        text=_as_text(whole) if text == "long" else synopsis,
        maintainer=paragraph.get("Original-Maintainer") or paragraph.get("Maintainer", ""),
        tags=tuple(dict.fromkeys(_tags(paragraph.get("Tag", "")))),
        provides=tuple(_names(paragraph.get("Provides", ""), ",")),
        needs={
            relation: tuple(
                tuple(_names(clause, "|"))
                for name in fields
                for clause in paragraph.get(name, "").split(",")
                if clause.strip()
            )
            for relation, fields in RELATIONS.items()
        },
    )


def _translations(lists: Path) -> dict[str, str]:
    """English descriptions by their digest, which is how a package names its own."""
    fields = ("Description-md5", "Description-en")
    return {
        paragraph["Description-md5"]: paragraph["Description-en"]
        for path in find_lists(lists, "Translation-en")
        for paragraph in paragraphs(path, fields)
        if len(paragraph) == len(fields)
    }


def _as_text(description: str) -> str:
    """First line and paragraphs as running text; a line of a single dot parts paragraphs."""
    first, *rest = description.split("\n")
    words = " ".join(line for line in rest if line.strip() != ".").split()
    first = first.strip()
    return " ".join([first if first.endswith((".", "!", "?")) or not words else f"{first}.", *words])


def _names(field_value: str, separator: str) -> Iterator[str]:
    """The names in a relation field, without versions, architectures and build profiles."""
    for part in field_value.split(separator):
        if match := FIRST_NAME.match(part):
            yield match.group(1)


def _tags(field_value: str) -> Iterator[str]:
    """Debtags, also as ``works-with::{image,text}``."""
    for tag in re.split(r",(?![^{]*\})", field_value):
        facet, brace, inner = tag.strip().partition("{")
        for value in inner.rstrip("}").split(",") if brace else [""]:
            whole = facet + value.strip()
            if whole and not NO_TAGS.search(whole):
                yield whole


def _split_people(field_value: str) -> list[str]:
    """'Jane Doe <jane@example.org>, ...': a comma may also stand inside a name."""
    return [part.strip() for part in re.split(r"(?<=>)\s*,", field_value) if part.strip()]
