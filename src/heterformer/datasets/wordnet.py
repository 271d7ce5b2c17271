"""WordNet: sets of synonyms (synsets) with their glosses as text, and the words that name them.

A synset's id is the usual name of its first word's sense, such as ``dog.n.01``; its label is its
lexicographer file, such as ``noun.animal``. What would make the network easier or worse than it looks:

- WordNet writes most pointers at both ends. One end is read, since every relation is traversed both ways.
  Of pointers that are the same at both ends (antonyms, derivations) one edge of each pair of synsets stays.
- Pointers between words join their synsets.
- Words are textless nodes and not in the text: "dog" in "hunting dog" would give the hypernym away.
- A word of a single synset joins it to nothing, and four of five words are such: they are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from heterformer.datasets.wordnet_files import Part, Place, Synset, find_parts, read_senses, read_synsets
from heterformer.errors import InputError, OptionError
from heterformer.files import check_new
from heterformer.network.build.frames import build_from_frames
from heterformer.network.store import Network
from heterformer.progress import say, waiting

# Relations by the symbol at the end that is read, wninput(5WN); the symbols of the other end are left out.
RELATIONS = {
    "@": "hypernym",
    "@i": "instance_of",
    "%p": "part",
    "%m": "member",
    "%s": "substance",
    "*": "entails",
    ">": "causes",
    ";c": "topic",
    ";r": "region",
    ";u": "usage",
    "^": "see_also",
    "\\": "pertains_to",
    "<": "participle_of",
    "+": "derivation",
    "!": "antonym",
    "$": "verb_group",
    "&": "similar",
    "=": "attribute",
}
INVERSE = {"~", "~i", "#p", "#m", "#s", "-c", "-r", "-u"}
SYMMETRIC = {"derivation", "antonym", "verb_group", "similar", "attribute"}
PREDICTED = "hypernym"


@dataclass(frozen=True)
class WordNetOptions:
    """Where the files are, and what of them becomes the network."""

    folder: Path = Path("/usr/share/wordnet")
    """The folder with data.noun, index.noun and the others, plain or gzipped."""

    parts: tuple[Part, ...] = ("noun", "verb")
    """Parts of speech; adjectives and adverbs have no hypernyms."""

    min_senses: int = 2
    """Minimum number of synsets of a word that is a node."""

    max_tokens: int = 32
    """Maximum number of tokens of a gloss."""

    def __post_init__(self) -> None:
        for option, value, least in (("min_senses", self.min_senses, 1), ("max_tokens", self.max_tokens, 3)):
            if value < least:
                raise OptionError(self, option, f"is {value}, expected at least {least}.")
        if not {"noun", "verb"} & set(self.parts):
            parts = ", ".join(self.parts) or "nothing"
            raise OptionError(
                self, "parts", f"has {parts}, expected noun or verb among them: only they have hypernyms."
            )


def build_wordnet(out: Path | str, options: WordNetOptions | None = None) -> Network:
    """Build the network of WordNet's synsets and words into the new folder ``out``."""
    options = options or WordNetOptions()
    check_new(Path(out))
    files = find_parts(options.folder, tuple(dict.fromkeys(options.parts)))
    synsets: dict[Place, Synset] = {}
    senses: dict[tuple[str, Place], int] = {}  # the number of a word's sense
    for part, (data, index) in files.items():
        synsets |= {synset.place: synset for synset in read_synsets(data, part)}
        for word, places in read_senses(index, part):
            senses |= {(word, place): i for i, place in enumerate(places, start=1)}
    if not synsets:
        raise InputError(f"{options.folder}: no synset in {', '.join(p.name for p, _ in files.values())}.")
    dropped: Counter[str] = Counter()
    with waiting("joining synsets and words"):
        ids = {place: _name(synset, senses, options.folder) for place, synset in synsets.items()}
        edges = _edges(synsets, ids, dropped)
        words = _words(synsets, ids, options.min_senses, dropped)
    network = _built(synsets, ids, edges, words, options.max_tokens, out)
    if dropped:
        say("Left out: " + ", ".join(f"{count:,} {reason}" for reason, count in dropped.items()) + ".")
    return network


def _name(synset: Synset, senses: Mapping[tuple[str, Place], int], folder: Path) -> str:
    """The usual name of a synset: first word, part of speech, number of the word's sense."""
    word = synset.words[0].lower()
    if (word, synset.place) not in senses:
        part, offset = synset.place
        raise InputError(
            f"{folder}: index.{part} does not have the synset {offset:08} of data.{part} at {word!r},"
            " expected both files of one version; install them again."
        )
    return f"{word}.{synset.letter}.{senses[word, synset.place]:02}"


def _edges(
    synsets: Mapping[Place, Synset], ids: Mapping[Place, str], dropped: Counter[str]
) -> dict[str, list[tuple[str, str]]]:
    edges: dict[str, dict[tuple[str, str], None]] = {relation: {} for relation in RELATIONS.values()}
    parts = {part for part, _ in synsets}
    for place, synset in synsets.items():
        for symbol, target in synset.pointers:
            relation = RELATIONS.get(symbol)
            if relation is None:
                if symbol not in INVERSE:
                    dropped[f"pointers of the unknown kind {symbol!r}"] += 1
            elif target in ids:
                pair = ids[place], ids[target]
                if relation not in SYMMETRIC or pair[::-1] not in edges[relation]:
                    edges[relation][pair] = None
            elif target[0] in parts:
                dropped["pointers to synsets that are not there"] += 1
            else:
                dropped["pointers to other parts of speech"] += 1
    return {relation: list(pairs) for relation, pairs in edges.items()}


def _words(
    synsets: Mapping[Place, Synset], ids: Mapping[Place, str], min_senses: int, dropped: Counter[str]
) -> list[tuple[str, str]]:
    """Synsets and the words that name them; a word is the same in every part of speech and case."""
    pairs = dict.fromkeys(
        (ids[place], _readable(word).lower()) for place, synset in synsets.items() for word in synset.words
    )
    senses = Counter(word for _, word in pairs)
    few = sum(count < min_senses for count in senses.values())
    if few:
        dropped[f"words of fewer than {min_senses} synsets"] = few
    return [(synset, word) for synset, word in pairs if senses[word] >= min_senses]


def _built(
    synsets: Mapping[Place, Synset],
    ids: Mapping[Place, str],
    edges: Mapping[str, list[tuple[str, str]]],
    words: list[tuple[str, str]],
    max_tokens: int,
    out: Path | str,
) -> Network:
    relations = {n: ("synset", pairs) for n, pairs in edges.items() if pairs or n == PREDICTED}
    if words:
        relations["word"] = ("word", words)
    spec = {
        "name": "wordnet",
        "missing": [],
        "nodes": {"synset": {"text": "gloss", "name": "words", "label": "file"}}
        | ({"word": {}} if words else {}),
        "relations": {
            name: {"from": "synset", "to": target, "columns": ["source", "target"]}
            for name, (target, _) in relations.items()
        },
        "predict": PREDICTED,
        "neighbors": {"synset": 5} | ({"word": 3} if words else {}),
        "max_tokens": max_tokens,
    }
    nodes = pl.DataFrame(
        [(ids[p], s.gloss, ", ".join(map(_readable, s.words)), s.file) for p, s in synsets.items()],
        schema=dict.fromkeys(("id", "gloss", "words", "file"), pl.String),
        orient="row",
    )
    frames = {
        name: pl.DataFrame(pairs, schema={"source": pl.String, "target": pl.String}, orient="row")
        for name, (_, pairs) in relations.items()
    }
    return build_from_frames(spec, {"synset": nodes}, frames, out)


def _readable(word: str) -> str:
    return word.replace("_", " ")
