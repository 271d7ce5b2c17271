"""Files of WordNet's shape with a few synsets, written as wndb(5WN) says."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

LETTERS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
LICENCE = "  1 This software and database is being provided to you, the LICENSEE,\n"


@dataclass
class Lines:
    """Synsets by part of speech; ``add`` returns the offset by which pointers name them."""

    data: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    senses: dict[str, dict[str, list[int]]] = field(default_factory=lambda: defaultdict(dict))

    def add(
        self,
        part: str,
        offset: int,
        words: list[str],
        gloss: str,
        pointers: list[tuple[str, int, str]] | None = None,
        *,
        file: int = 5,
        letter: str = "",
        frames: str = "",
    ) -> None:
        counted = " ".join(f"{word} 0" for word in words)
        named = "".join(f" {symbol} {target:08} {pos} 0000" for symbol, target, pos in pointers or [])
        head = f"{offset:08} {file:02} {letter or LETTERS[part]} {len(words):02x} {counted}"
        self.data[part].append(f"{head} {len(pointers or []):03}{named}{frames} | {gloss}  \n")
        for word in words:
            name = word.partition("(")[0].lower()
            self.senses[part].setdefault(name, []).append(offset)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for part in LETTERS:
            index = "".join(
                f"{word} {LETTERS[part]} {len(offsets)} 1 @ {len(offsets)} 0 "
                + " ".join(f"{offset:08}" for offset in offsets)
                + "  \n"
                for word, offsets in sorted(self.senses[part].items())
            )
            (folder / f"data.{part}").write_text(LICENCE + "".join(self.data[part]), encoding="utf-8")
            (folder / f"index.{part}").write_text(LICENCE + index, encoding="utf-8")
        return folder


def some() -> Lines:
    """Animals, what they are part of, what they do, and an adjective."""
    lines = Lines()
    lines.add("noun", 10, ["animal", "beast"], "a living organism", [("~", 20, "n")], file=3)
    dog = [("@", 10, "n"), ("#m", 40, "n"), ("~i", 50, "n"), ("+", 10, "v")]
    lines.add("noun", 20, ["dog", "Canis_familiaris"], 'a tame animal; "the dog barked"', dog)
    lines.add("noun", 30, ["cad", "dog"], "someone who is morally bad", [("!", 60, "n")], file=18)
    lines.add("noun", 40, ["pack"], "a group of dogs", [("%m", 20, "n")], file=14)
    lines.add("noun", 50, ["Rex"], "a dog", [("@i", 20, "n")])
    lines.add("noun", 60, ["gentleman"], "a man of refinement", [("!", 30, "n")], file=18)
    verb = [("+", 20, "n"), ("@", 30, "v")]
    lines.add("verb", 10, ["dog", "tail"], "go after somebody", verb, file=38, frames=" 01 + 08 00")
    lines.add("verb", 30, ["follow"], "travel behind", [("~", 10, "v")], file=38, frames=" 01 + 08 00")
    lines.add("adj", 70, ["beastly(p)"], "like a beast", [("+", 10, "n")], file=0, letter="s")
    return lines
