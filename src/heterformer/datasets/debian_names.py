"""Names of packages in descriptions: what gives a dependency away, and how it is masked.

``mate-panel`` depends on ``mate-menus`` and both descriptions say MATE: whoever has learnt to match rare
words knows the answer without knowing what a panel does. So two kinds of words are replaced by an ellipsis:

- in every description any name of a package or source package that cannot be an ordinary word, since it has
  a digit, a hyphen, a dot or a plus sign in it (``libgtk-3-0``, ``python3``);
- in a package's own description the words of its own name and its source's (``mate``, ``gimp``), unless they
  are ordinary words: those that many other sources use as well (``panel``, ``json``), or that are the name of
  a whole ecosystem (``rust``, ``perl``), which tells little of any one package.

Neither looks at the edges, so that masks say nothing of which edges there are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

MASK = "…"
SHORTEST = 3  # letters of a word that is worth masking
ECOSYSTEM = 5  # times as many sources as make a word ordinary, those named by it included

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*[A-Za-z0-9+]")
_WORD = re.compile(r"[^\W_]+")
_MASKS = re.compile(rf"{MASK}(?:[\s:_./-]*{MASK})+")


@dataclass(frozen=True)
class PackageText:
    """A package as masking sees it."""

    name: str
    source: str
    text: str


class NameMask:
    """Masks names in the descriptions of the packages it was made of."""

    def __init__(self, packages: Iterable[PackageText], ordinary: int) -> None:
        packages = list(packages)
        names = {name.lower() for package in packages for name in (package.name, package.source)}
        self.names = {name for name in names if not name.isalpha()}
        used, by_others = sources_using(packages)
        self.ordinary = {
            word for word in used if by_others[word] > ordinary or used[word] > ECOSYSTEM * ordinary
        }

    def masked(self, package: PackageText) -> str:
        own = {
            word
            for word in name_words(package.name) | name_words(package.source)
            if len(word) >= SHORTEST and word not in self.ordinary
        }
        text = _NAME.sub(lambda match: self._unless_a_name(match.group()), package.text)
        text = _WORD.sub(lambda match: MASK if match.group().lower() in own else match.group(), text)
        return _MASKS.sub(MASK, text)

    def _unless_a_name(self, word: str) -> str:
        return MASK if word.lower() in self.names else word


def name_words(name: str) -> set[str]:
    """The words of a name, as descriptions may write them: ``libgtk-3-0`` has libgtk and gtk."""
    name = name.lower()
    words = set(re.split(r"[-+._]", name)) | {"".join(re.findall(r"[a-z0-9]", name))}
    words |= {word.removeprefix("lib") for word in words}
    return {*words, *(re.sub(r"[0-9]+$", "", word) for word in words)} - {""}


def sources_using(packages: Iterable[PackageText]) -> tuple[Counter[str], Counter[str]]:
    """How many source packages use a word in their descriptions: all, and those that are not named by it."""
    words: dict[str, set[str]] = {}
    named: dict[str, set[str]] = {}
    for package in packages:
        words.setdefault(package.source, set()).update(_WORD.findall(package.text.lower()))
        named.setdefault(package.source, set()).update(name_words(package.name) | name_words(package.source))
    used = Counter(word for source in words for word in words[source])
    return used, Counter(word for source in words for word in words[source] - named[source])
