"""Debian's or Ubuntu's packages, from the lists that APT keeps on disk.

A package is a node with its description as text and its section as label; maintainers (and uploaders, if
source lists are there) and debtags are textless nodes; Depends, Recommends and Suggests join packages. What
would make the network easier or worse than it looks is treated here:

- A package met in several lists or architectures is one node, of its newest version.
- Transitional packages have no subject and are left out. So are the documentation, debugging symbols,
  profiling libraries, examples and tests of a source that has other packages: their descriptions are those
  of the others over again. Packages of one description but for numbers (compilers for twenty targets), or
  within one source but for their masked names (drivers of one kit), are one node, under the shortest name,
  with the needs, people and tags of all of them.
- Of alternatives ``a | b`` the first that is a node counts, the packager's preference. Versions,
  architectures and build profiles are passed over. A virtual package stands for the one package that
  provides it; one that several provide tells nothing of any of them. Pre-Depends counts as Depends.
- No edges inside one source package, where they are trivial; none to a hub such as libc6, which says nothing
  of those that need it.
- If several packages of one source have to do with the same package, as needing or needed, one edge stays:
  with all of them, a neighbour of nearly the same description would give the others away. So of several
  relations between two packages the strongest stays.
- The section is the label and therefore no neighbour. Nobody's packages (orphaned ones) have no maintainer.
- Names are masked in the texts, see ``debian_names``.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from heterformer.datasets.debian_names import NameMask, PackageText
from heterformer.datasets.debian_packages import (
    RELATIONS,
    SHORT,
    Package,
    Text,
    read_packages,
    read_uploaders,
)
from heterformer.errors import OptionError
from heterformer.files import check_new
from heterformer.network.build.frames import build_from_frames
from heterformer.network.store import Network
from heterformer.progress import say, waiting

NOBODY = ("packages@qa.debian.org", "ubuntu-devel-discuss@lists.ubuntu.com")  # of orphaned or of all packages
COMPANION = re.compile(r"-(?:dbg|dbgsym|doc|docs|prof|examples?|tests?)$")
TRANSITIONAL = re.compile(r"\b(?:transitional|transition package|dummy package)\b|\(dummy\)$", re.IGNORECASE)


@dataclass(frozen=True)
class DebianOptions:
    """Where the lists are, and what of them becomes the network."""

    lists: Path = Path("/var/lib/apt/lists")
    """APT's folder of package lists and translations, or another of its kind."""

    text: Text = "long"
    """The whole description, or its first line alone, for which no translation lists are needed."""

    mask_names: bool = True
    """Replace package names in the descriptions by an ellipsis: names give dependencies away."""

    ordinary: int = 100
    """A word of a package's own name stays if more than this number of other source packages use it too."""

    max_dependents: int = 200
    """Maximum number of packages of other sources that may need a package; edges to others are dropped."""

    max_tokens: int = 64
    """Maximum number of tokens of a text; 64 hold the first line and the first sentences of the long text."""

    sections: tuple[str, ...] = ()
    """Only packages of these sections, such as 'games' and 'sound'; all if none is given."""

    predict: tuple[str, ...] = ("depends",)
    """The relations that training predicts: any of 'depends', 'recommends' and 'suggests'."""

    def __post_init__(self) -> None:
        for option, value, least in (
            ("ordinary", self.ordinary, 0),
            ("max_dependents", self.max_dependents, 1),
            ("max_tokens", self.max_tokens, 3),
        ):
            if value < least:
                raise OptionError(self, option, f"is {value}, expected at least {least}.")
        names = " ".join(self.predict)
        if (
            not self.predict
            or len(set(self.predict)) < len(self.predict)
            or set(self.predict) - set(RELATIONS)
        ):
            expected = f"expected one or more of {', '.join(RELATIONS)}, each once"
            raise OptionError(self, "predict", f"is {names!r}, {expected}.")


def build_debian(out: Path | str, options: DebianOptions | None = None) -> Network:
    """Build the network of the packages in APT's lists into the new folder ``out``."""
    options = options or DebianOptions()
    check_new(Path(out))
    with waiting("reading APT's lists"):
        packages, dropped = read_packages(options.lists, options.text)
        kept = distinct_packages(packages, options, dropped)
        edges = package_edges(kept, options, dropped)
        uploaders = read_uploaders(options.lists)
    network = _built(kept, edges, uploaders, options, out)
    short = dropped.pop(SHORT, 0)
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.items() if count)
    if reasons:
        say(f"Excluded from {len(packages):,} packages and their relations: {reasons}.")
    if short:
        say(f"{short:,} packages have no long description; their text is the first line.")
    return network


@dataclass
class PackageSelection:
    """The packages that are nodes, and which node stands for each name met in a relation."""

    packages: list[Package]
    stands_for: dict[str, str]  # real names, merged ones included
    needing: list[Package]  # whose edges are read: the merged ones' as well

    def node(self, name: str, providers: Mapping[str, set[str]]) -> str | None:
        """The node that a name in a relation means; None if there is none, or no single one."""
        if name in self.stands_for:
            return self.stands_for[name]
        provided = providers.get(name, set())
        return next(iter(provided)) if len(provided) == 1 else None


def distinct_packages(
    packages: list[Package], options: DebianOptions, dropped: Counter[str]
) -> PackageSelection:
    """The packages that say something of their own, with names masked; what is left out is counted."""
    with_subject = [p for p in packages if not TRANSITIONAL.search(p.synopsis)]
    dropped["transitional packages"] = len(packages) - len(with_subject)
    main = {p.source for p in with_subject if not COMPANION.search(p.name)}
    leading = [p for p in with_subject if not (COMPANION.search(p.name) and p.source in main)]
    dropped["-doc, -dbg, -prof, -examples and -tests packages"] = len(with_subject) - len(leading)
    kept = PackageSelection(leading, {p.name: p.name for p in leading}, leading)
    kept = _merged(kept, lambda p: (p.text,))
    if options.mask_names:
        mask = NameMask((_described(p) for p in packages), options.ordinary)
        kept.packages = [replace(p, text=mask.masked(_described(p))) for p in kept.packages]
        kept = _merged(kept, lambda p: (p.text, p.source))
    dropped["packages of the same description as another"] = len(leading) - len(kept.packages)
    if options.sections:
        before = len(kept.packages)
        kept = _of_sections(kept, options.sections)
        dropped["packages of other sections"] = before - len(kept.packages)
    return kept


def package_edges(
    kept: PackageSelection, options: DebianOptions, dropped: Counter[str]
) -> dict[str, list[tuple[str, str]]]:
    """The edges of each relation between packages of different sources, without those to hubs."""
    source = {p.name: p.source for p in kept.packages}
    own_source = {p.name: p.source for p in kept.needing}  # of merged packages, too
    providers: dict[str, set[str]] = defaultdict(set)
    for package in kept.needing:
        for name in package.provides:
            providers[name].add(kept.stands_for[package.name])
    edges: dict[str, set[tuple[str, str]]] = {relation: set() for relation in RELATIONS}
    for package in kept.needing:
        for relation, clauses in package.needs.items():
            for alternatives in clauses:
                candidates = ((name, kept.node(name, providers)) for name in alternatives)
                name, target = next(((n, node) for n, node in candidates if node is not None), ("", ""))
                if not target:
                    dropped["needs that name no package here, or no single one"] += 1
                elif own_source.get(name) == package.source:
                    dropped["edges inside one source package"] += 1
                else:
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
    distinct = _without_siblings(edges, source)
    dropped["edges that repeat a sibling's"] = sum(len(edges[r]) - len(distinct[r]) for r in edges)
    return distinct


def _without_siblings(
    edges: Mapping[str, set[tuple[str, str]]], source: Mapping[str, str]
) -> dict[str, list[tuple[str, str]]]:
    """Of a source's packages one that has to do with a given package, whichever of the two needs the other.

    Shorter names, which are the main packages', go first, and so does the stronger relation.
    """
    taken: set[tuple[str, str]] = set()
    kept: dict[str, list[tuple[str, str]]] = {relation: [] for relation in edges}
    for relation, pairs in edges.items():
        for a, b in sorted(pairs, key=lambda pair: (len(pair[0]) + len(pair[1]), pair)):
            ways = {(source[a], b), (source[b], a)}
            if not ways & taken:
                taken |= ways
                kept[relation].append((a, b))
    return {relation: sorted(pairs) for relation, pairs in kept.items()}


def _built(
    kept: PackageSelection,
    edges: Mapping[str, list[tuple[str, str]]],
    uploaders: Mapping[str, list[str]],
    options: DebianOptions,
    out: Path | str,
) -> Network:
    people: dict[str, str] = {}  # address -> the first name met for it
    maintained, uploaded, tagged = [], [], []
    for package in kept.needing:
        node = kept.stands_for[package.name]
        maintained += [(node, who) for who in _known(people, [package.maintainer])]
        uploaded += [(node, who) for who in _known(people, uploaders.get(package.source, []))]
        tagged += [(node, tag) for tag in package.tags]
    relations: dict[str, Any] = {r: ("package", "package", pairs) for r, pairs in edges.items()}
    relations["maintained_by"] = ("package", "maintainer", sorted(set(maintained)))
    relations["uploaded_by"] = ("package", "maintainer", sorted(set(uploaded)))
    relations["tagged"] = ("package", "tag", sorted(set(tagged)))
    relations = {
        name: relation for name, relation in relations.items() if relation[2] or name in options.predict
    }
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
        "predict": list(options.predict),
        # A package has one maintainer (and few uploaders), a handful of tags, and more needs than the five
        # text-rich neighbours that the paper samples.
        "neighbors": {
            t: n
            for t, n in {"package": 5, "maintainer": 3 if uploaded else 1, "tag": 5}.items()
            if t in reached
        },
        "max_tokens": options.max_tokens,
    }
    tables: dict[str, pl.DataFrame] = {
        "package": pl.DataFrame(
            [(p.name, p.text, p.synopsis, p.section or None, p.source) for p in kept.packages],
            schema=dict.fromkeys(("id", "text", "synopsis", "section", "source"), pl.String),
            orient="row",
        )
    }
    if "maintainer" in reached:
        tables["maintainer"] = pl.DataFrame({"id": list(people), "name": list(people.values())})
    frames = {
        name: pl.DataFrame(pairs, schema={"source": pl.String, "target": pl.String}, orient="row")
        for name, (_, _, pairs) in relations.items()
    }
    return build_from_frames({"missing": [], **spec}, tables, frames, out)


def _merged(kept: PackageSelection, key: Callable[[Package], tuple[str, ...]]) -> PackageSelection:
    """One node for all packages of the same key but for numbers: the one of the shortest name."""
    groups: dict[str, list[Package]] = defaultdict(list)
    for package in kept.packages:
        groups[re.sub(r"[0-9]+", "", "\n".join(key(package))).lower()].append(package)
    first = [min(group, key=lambda p: (len(p.name), p.name)) for group in groups.values()]
    node = {p.name: one.name for one, group in zip(first, groups.values(), strict=True) for p in group}
    stands_for = {name: node[known] for name, known in kept.stands_for.items()}
    return PackageSelection(sorted(first, key=lambda p: p.name), stands_for, kept.needing)


def _described(package: Package) -> PackageText:
    return PackageText(package.name, package.source, package.text)


def _of_sections(kept: PackageSelection, sections: Iterable[str]) -> PackageSelection:
    known = {p.section for p in kept.packages}
    for section in sections:
        if section not in known:
            listed = ", ".join(sorted(known - {""}))
            raise OptionError(DebianOptions, "sections", f"has {section!r}, expected some of {listed}.")
    packages = [p for p in kept.packages if p.section in set(sections)]
    nodes = {p.name for p in packages}
    stands_for = {name: node for name, node in kept.stands_for.items() if node in nodes}
    return PackageSelection(packages, stands_for, [p for p in kept.needing if p.name in stands_for])


def _known(people: dict[str, str], fields: Iterable[str]) -> Iterator[str]:
    """The address (or the name, if there is none) of each person, who is entered if new."""
    for value in fields:
        name, _, address = value.partition("<")
        name, address = name.strip(' "'), address.rpartition(">")[0].strip()
        who = address.lower() or name
        if who and who not in NOBODY:
            people.setdefault(who, name or who)
            yield who
