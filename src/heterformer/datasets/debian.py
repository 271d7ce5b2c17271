"""Debian's or Ubuntu's packages, from the lists that APT keeps on disk: real text, real structure, no download.

A package is a node with its description as text and its section as label; maintainers (and uploaders, if
source lists are there) and debtags are textless nodes; Depends, Recommends and Suggests join packages. What
would make the network easier or worse than it looks is treated here:

- A package met in several lists or architectures is one node, of its newest version.
- Transitional packages have no subject and are left out. So are the documentation, debugging symbols,
  profiling libraries, examples and tests of a source that has other packages: their descriptions are those
  of the others over again. Packages of one description but for numbers (compilers for twenty targets) are
  one node, under the shortest name, with the edges of all of them.
- Of alternatives ``a | b`` the first that is a node counts, the packager's preference. Versions,
  architectures and build profiles are passed over. A virtual package stands for the one package that
  provides it; one that several provide tells nothing of any of them. Pre-Depends counts as Depends.
- No edges inside one source package, where they are trivial; none to a hub such as libc6, which says nothing
  of those that need it.
- The section is the label and therefore no neighbour. Nobody's packages (orphaned ones) have no maintainer.
- Names are masked in the texts, see ``debian_names``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parseaddr
from pathlib import Path
from typing import Any, Literal

import polars as pl

from heterformer.datasets.deb822 import VersionKey, find_lists, paragraphs, version_key
from heterformer.datasets.debian_names import Described, NameMask
from heterformer.errors import InputError
from heterformer.network.store import Network
from heterformer.progress import say, waiting

FETCH = "apt-get update -o Acquire::Languages=en"
RELATIONS = {"depends": ("Pre-Depends", "Depends"), "recommends": ("Recommends",), "suggests": ("Suggests",)}
FIELDS = (
    *("Package", "Source", "Version", "Section", "Maintainer", "Original-Maintainer", "Tag", "Provides"),
    *("Description", "Description-en", "Description-md5"),
    *(name for names in RELATIONS.values() for name in names),
)
NOBODY = ("packages@qa.debian.org", "ubuntu-devel-discuss@lists.ubuntu.com")  # of orphaned or of all packages
NO_TAGS = re.compile(r"^special::|::TODO$")  # marks of the tagging itself
COMPANION = re.compile(r"-(?:dbg|dbgsym|doc|docs|prof|examples?|tests?)$")
TRANSITIONAL = re.compile(r"\b(?:transitional|dummy)\b", re.IGNORECASE)
FIRST_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9+.-]*)")


@dataclass(frozen=True)
class DebianOptions:
    """Where the lists are, and what of them becomes the network."""

    lists: Path = Path("/var/lib/apt/lists")
    """APT's folder of package lists and translations, or another of its kind."""

    text: Literal["long", "short"] = "long"
    """The whole description, or its first line alone, for which no translation lists are needed."""

    mask_names: bool = True
    """Replace package names in the descriptions by an ellipsis: names give dependencies away."""

    ordinary: int = 100
    """A word of a package's own name stays if more than so many other source packages use it, too."""

    max_dependents: int = 200
    """Edges to a package that more than so many packages of other sources need are dropped."""

    sections: tuple[str, ...] = ()
    """Only packages of these sections, such as 'games' and 'sound'; all if none is given."""

    def __post_init__(self) -> None:
        for option, value, least in (
            ("--ordinary", self.ordinary, 0),
            ("--max-dependents", self.max_dependents, 1),
        ):
            if value < least:
                raise InputError(f"{option} is {value}, expected at least {least}.")


def build_debian(out: Path | str, options: DebianOptions | None = None) -> Network:
    """Build the network of the packages in APT's lists into the new folder ``out``."""
    options = options or DebianOptions()
    with waiting("reading APT's lists"):
        packages = read_packages(options)
        kept, dropped = distinct_packages(packages, options)
        edges = package_edges(kept, options, dropped)
        uploaders = read_uploaders(options.lists)
    network = _built(kept, edges, uploaders, out)
    shown = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items() if count)
    say(f"Left out of {len(packages):,} packages and their relations: {shown}.")
    return network


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


@dataclass
class Kept:
    """The packages that are nodes, and which node stands for each name met in a relation."""

    packages: list[Package]
    stands_for: dict[str, str] = field(default_factory=dict)  # real names, merged ones included
    needing: list[Package] = field(default_factory=list)  # whose edges are read: the merged ones' as well

    def node(self, name: str, providers: Mapping[str, set[str]]) -> str | None:
        """The node that a name in a relation means; None if there is none, or no single one."""
        if name in self.stands_for:
            return self.stands_for[name]
        provided = providers.get(name, set())
        return next(iter(provided)) if len(provided) == 1 else None


def read_packages(options: DebianOptions) -> list[Package]:
    """Every package of the lists once, by name, with its description."""
    lists = find_lists(options.lists, "Packages")
    if not lists:
        raise InputError(f"{options.lists}: no package lists ('*_Packages'); fetch them with: {FETCH}.")
    translated = _translations(options.lists) if options.text == "long" else {}
    newest: dict[str, Package] = {}
    without, read = 0, 0
    for path in lists:
        for paragraph in paragraphs(path, FIELDS):
            package = _package(paragraph, translated, options.text)
            if package is None:  # the end of a list that was cut short
                continue
            read += 1
            without += package.text == package.synopsis
            known = newest.get(package.name)
            if known is None or package.version > known.version:
                newest[package.name] = package
    if not newest:
        raise InputError(f"{lists[0]}: has no packages with descriptions; fetch it again with: {FETCH}.")
    if options.text == "long" and 2 * without > read:
        found = f"{without:,} of {read:,} packages have no long description, since translation lists are missing"
        raise InputError(f"{options.lists}: {found}; fetch them with: {FETCH} (or take --text short).")
    return sorted(newest.values(), key=lambda package: package.name)


def read_uploaders(lists: Path) -> dict[str, list[str]]:
    """The uploaders of each source package, as far as there are source lists ('deb-src')."""
    return {
        paragraph["Package"]: _split_people(paragraph["Uploaders"])
        for path in find_lists(lists, "Sources")
        for paragraph in paragraphs(path, ("Package", "Uploaders"))
        if "Package" in paragraph and "Uploaders" in paragraph
    }


def distinct_packages(packages: list[Package], options: DebianOptions) -> tuple[Kept, Counter[str]]:
    """The packages that say something of their own, with names masked; and what was left out, counted."""
    dropped: Counter[str] = Counter()
    with_subject = [p for p in packages if not TRANSITIONAL.search(p.synopsis)]
    dropped["transitional packages"] = len(packages) - len(with_subject)
    main = {p.source for p in with_subject if not COMPANION.search(p.name)}
    leading = [p for p in with_subject if not (COMPANION.search(p.name) and p.source in main)]
    dropped["-doc, -dbg, -prof, -examples and -tests packages"] = len(with_subject) - len(leading)
    kept = _merged(leading)
    dropped["packages of the same description as another"] = len(leading) - len(kept.packages)
    if options.sections:
        kept = _of_sections(kept, options.sections)
    if options.mask_names:
        described = [Described(p.name, p.source, p.text) for p in packages]
        mask = NameMask(described, options.ordinary)
        kept.packages = [
            replace(p, text=mask.masked(Described(p.name, p.source, p.text))) for p in kept.packages
        ]
    return kept, dropped


def package_edges(
    kept: Kept, options: DebianOptions, dropped: Counter[str]
) -> dict[str, list[tuple[str, str]]]:
    """The edges of each relation between packages of different sources, without those to hubs."""
    source = {p.name: p.source for p in kept.packages}
    providers: dict[str, set[str]] = defaultdict(set)
    for package in kept.needing:
        for name in package.provides:
            providers[name].add(kept.stands_for[package.name])
    edges: dict[str, set[tuple[str, str]]] = {relation: set() for relation in RELATIONS}
    for package in kept.needing:
        for relation, clauses in package.needs.items():
            for alternatives in clauses:
                target = next(filter(None, (kept.node(name, providers) for name in alternatives)), None)
                if target is not None:
                    edges[relation].add((kept.stands_for[package.name], target))
    for relation, pairs in edges.items():
        inside = {(a, b) for a, b in pairs if source[a] == source[b]}
        dropped["edges inside one source package"] += len(inside)
        edges[relation] = pairs - inside
    dependents = Counter(target for _, target in set().union(*edges.values()))
    hubs = {name for name, count in dependents.items() if count > options.max_dependents}
    for relation, pairs in edges.items():
        to_hubs = {(a, b) for a, b in pairs if b in hubs}
        dropped[f"edges to {len(hubs):,} hubs"] += len(to_hubs)
        edges[relation] = pairs - to_hubs
    return {relation: sorted(pairs) for relation, pairs in edges.items()}


def _built(
    kept: Kept,
    edges: Mapping[str, list[tuple[str, str]]],
    uploaders: Mapping[str, list[str]],
    out: Path | str,
) -> Network:
    people: dict[str, str] = {}  # address -> the first name met for it
    maintained, uploaded, tagged = [], [], []
    for package in kept.packages:
        maintained += [(package.name, who) for who in _known(people, [package.maintainer])]
        uploaded += [(package.name, who) for who in _known(people, uploaders.get(package.source, []))]
        tagged += [(package.name, tag) for tag in package.tags]
    relations: dict[str, Any] = {r: ("package", "package", pairs) for r, pairs in edges.items()}
    relations["maintained_by"] = ("package", "maintainer", maintained)
    relations["uploaded_by"] = ("package", "maintainer", uploaded)
    relations["tagged"] = ("package", "tag", tagged)
    relations = {name: relation for name, relation in relations.items() if relation[2] or name == "depends"}
    nodes: dict[str, Any] = {
        "package": {"text": "text", "name": "synopsis", "label": "section", "keep": "source"},
        "maintainer": {"name": "name"},
        "tag": {},
    }
    reached = {"package"} | {target for _, target, _ in relations.values()}
    spec = {
        "name": "debian",
        "nodes": {t: nodes[t] for t in nodes if t in reached},
        "relations": {
            name: {"from": a, "to": b, "columns": ["source", "target"]}
            for name, (a, b, _) in relations.items()
        },
        "predict": "depends",
        # A package has one maintainer (and few uploaders), a handful of tags, and more needs than the five
        # text-rich neighbours that the paper samples. 64 tokens hold the first line and the first sentences
        # of the long text; what follows is often the same for all packages of a source.
        "neighbors": {
            t: n
            for t, n in {"package": 5, "maintainer": 3 if uploaded else 1, "tag": 5}.items()
            if t in reached
        },
        "max_tokens": 64,
    }
    tables: dict[str, pl.DataFrame] = {
        "package": pl.DataFrame(
            [(p.name, p.text, p.synopsis, p.section or None, p.source) for p in kept.packages],
            schema={key: pl.String for key in ("id", "text", "synopsis", "section", "source")},
            orient="row",
        )
    }
    if "maintainer" in reached:
        tables["maintainer"] = pl.DataFrame({"id": list(people), "name": list(people.values())})
    frames = {
        name: pl.DataFrame(pairs, schema={"source": pl.String, "target": pl.String}, orient="row")
        for name, (_, _, pairs) in relations.items()
    }
    return Network.from_frames(spec, tables, frames, out)


def _package(
    paragraph: Mapping[str, str], translated: Mapping[str, str], text: Literal["long", "short"]
) -> Package | None:
    name = paragraph.get("Package", "")
    own = paragraph.get("Description") or paragraph.get("Description-en", "")
    whole = translated.get(paragraph.get("Description-md5", ""), own)
    synopsis = whole.partition("\n")[0].strip()
    if not (name and synopsis):
        return None
    return Package(
        name=name,
        source=paragraph.get("Source", name).split()[0],  # "Source: gcc-defaults (1.203)"
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
        if found := FIRST_NAME.match(part):
            yield found.group(1)


def _tags(field_value: str) -> Iterator[str]:
    """Debtags, also as ``works-with::{image,text}``."""
    for tag in re.split(r",(?![^{]*\})", field_value):
        facet, brace, inner = tag.strip().partition("{")
        for value in inner.rstrip("}").split(",") if brace else [""]:
            whole = facet + value.strip()
            if whole and not NO_TAGS.search(whole):
                yield whole


def _merged(packages: list[Package]) -> Kept:
    """One node for all packages of the same description but for numbers: the one of the shortest name."""
    groups: dict[str, list[Package]] = defaultdict(list)
    for package in packages:
        groups[re.sub(r"[0-9]+", "", package.text).lower()].append(package)
    first = {key: min(group, key=lambda p: (len(p.name), p.name)) for key, group in groups.items()}
    kept = Kept(sorted(first.values(), key=lambda p: p.name), needing=packages)
    kept.stands_for = {p.name: first[key].name for key, group in groups.items() for p in group}
    return kept


def _of_sections(kept: Kept, sections: Iterable[str]) -> Kept:
    known = {p.section for p in kept.packages}
    for section in sections:
        if section not in known:
            listed = ", ".join(sorted(known - {""}))
            raise InputError(f"--sections: there is no section {section!r}, the sections are {listed}.")
    packages = [p for p in kept.packages if p.section in set(sections)]
    nodes = {p.name for p in packages}
    stands_for = {name: node for name, node in kept.stands_for.items() if node in nodes}
    return Kept(packages, stands_for, [p for p in kept.needing if p.name in stands_for])


def _split_people(field_value: str) -> list[str]:
    """'Jane Doe <jane@example.org>, ...': a comma may also stand inside a name."""
    return [part.strip() for part in re.split(r"(?<=>)\s*,", field_value) if part.strip()]


def _known(people: dict[str, str], fields: Iterable[str]) -> Iterator[str]:
    """The address (or the name, if there is none) of each person, who is entered if new."""
    for value in fields:
        name, address = parseaddr(value) if "<" in value else (value.strip(), "")
        who = address.lower() or name
        if who and who not in NOBODY:
            people.setdefault(who, name or who)
            yield who
