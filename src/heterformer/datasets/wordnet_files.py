"""WordNet's files as Princeton publishes them and Debian's package ``wordnet-base`` installs them.

A line of ``data.PART`` is a synset: its byte offset, which other lines name it by, lexicographer file, words,
pointers to other synsets, and the gloss after ``|``. A line of ``index.PART`` has the synsets of one word,
the most frequent first. Lines that begin with a space are the licence. The formats are in wndb(5WN).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heterformer.datasets.raw_file import RawFile, found_in, opened
from heterformer.errors import InputError

Part = Literal["noun", "verb", "adj", "adv"]
LETTERS: dict[str, Part] = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
PUBLISHED = "Debian's package wordnet-base (apt-get install wordnet-base), or https://wordnet.princeton.edu"
# The lexicographer files by number, lexnames(5WN).
LEXICOGRAPHER_FILES = (
    *("adj.all", "adj.pert", "adv.all"),
    *("noun.Tops", "noun.act", "noun.animal", "noun.artifact", "noun.attribute", "noun.body"),
    *("noun.cognition", "noun.communication", "noun.event", "noun.feeling", "noun.food", "noun.group"),
    *("noun.location", "noun.motive", "noun.object", "noun.person", "noun.phenomenon", "noun.plant"),
    *("noun.possession", "noun.process", "noun.quantity", "noun.relation", "noun.shape", "noun.state"),
    *("noun.substance", "noun.time"),
    *("verb.body", "verb.change", "verb.cognition", "verb.communication", "verb.competition"),
    *("verb.consumption", "verb.contact", "verb.creation", "verb.emotion", "verb.motion"),
    *("verb.perception", "verb.possession", "verb.social", "verb.stative", "verb.weather"),
    "adj.ppl",
)
SYNTAX_MARK = re.compile(r"\((?:a|p|ip)\)$")  # where an adjective may stand: "galore(ip)"

Place = tuple[Part, int]  # a synset by its file and its offset in it


@dataclass(frozen=True)
class Synset:
    """A line of ``data.PART``."""

    place: Place
    letter: str  # n, v, a, s (an adjective that is like another) or r
    file: str  # the lexicographer file, such as "noun.animal"
    words: tuple[str, ...]
    pointers: tuple[tuple[str, Place], ...]  # symbol, and the synset it points to
    gloss: str


def find_parts(folder: Path, parts: tuple[Part, ...]) -> dict[Part, tuple[Path, Path]]:
    """The paths of ``data.PART`` and ``index.PART`` of each part of speech."""
    names = [RawFile(f"{kind}.{part}", PUBLISHED) for part in parts for kind in ("data", "index")]
    paths = found_in(folder, names)
    return {part: (paths[2 * i], paths[2 * i + 1]) for i, part in enumerate(parts)}


def read_synsets(path: Path, part: Part) -> Iterator[Synset]:
    """The synsets of ``data.PART`` in the order of the file."""
    for line, text in _lines(path):
        try:
            yield _synset(text, part)
        except (ValueError, IndexError, KeyError) as error:
            raise InputError(
                f"{path}: line {line}: found {text!r}, expected a synset as WordNet 3 writes it"
                f" ({error}); install the files again."
            ) from None


def read_senses(path: Path, part: Part) -> Iterator[tuple[str, list[Place]]]:
    """Each word of ``index.PART``, in lower case, with its synsets: sense 1 first."""
    for line, text in _lines(path):
        try:
            fields = text.split()
            count = int(fields[2])
            offsets = [int(field) for field in fields[len(fields) - count :]]
            if not 0 < count <= len(fields) - 4:
                raise ValueError(f"{count} synsets in {len(fields)} fields")
        except (ValueError, IndexError) as error:
            raise InputError(
                f"{path}: line {line}: found {text!r}, expected a word and its synsets as WordNet 3"
                f" writes them ({error}); install the files again."
            ) from None
        yield fields[0], [(part, offset) for offset in offsets]


def _synset(text: str, part: Part) -> Synset:
    head, bar, gloss = text.partition(" | ")
    fields = head.split()
    offset, file, letter, words = int(fields[0]), int(fields[1]), fields[2], int(fields[3], 16)
    if not bar:
        raise ValueError("no ' | ' before a gloss")
    if LETTERS.get(letter) != part:
        raise ValueError(f"{letter!r} in the file of another part of speech")
    if not 0 <= file < len(LEXICOGRAPHER_FILES):
        raise ValueError(f"lexicographer file {file}")
    first = 5 + 2 * words  # of the pointers, after their number
    pointers = int(fields[first - 1])
    if words < 1 or pointers < 0 or len(fields) < first + 4 * pointers:
        raise ValueError(f"{words} words and {pointers} pointers in {len(fields)} fields")
    return Synset(
        place=(part, offset),
        letter=letter,
        file=LEXICOGRAPHER_FILES[file],
        words=tuple(SYNTAX_MARK.sub("", fields[4 + 2 * i]) for i in range(words)),
        pointers=tuple(
            (symbol, (LETTERS[pos], int(target)))
            for symbol, target, pos in (fields[i : i + 3] for i in range(first, first + 4 * pointers, 4))
        ),
        gloss=gloss.strip(),
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are no licence, numbered from 1."""
    with opened(path) as (stream, tell):
        for number, line in enumerate(stream, start=1):
            if number % 1000 == 0:
                tell()
            if not line.startswith(b"  "):
                yield number, line.decode("utf-8", "replace").rstrip("\n")
        tell()
