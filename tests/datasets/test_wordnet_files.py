"""WordNet's lines, right and wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from heterformer.datasets.wordnet_files import find_parts, read_senses, read_synsets
from heterformer.errors import InputError
from tests.datasets.wordnet_lines import LICENCE, some

DOG = "00000020 05 n 02 dog 0 Canis_familiaris 0 001 @ 00000010 n 0000 | a tame animal  "


def test_a_line_is_a_synset(tmp_path: Path) -> None:
    folder = some().write(tmp_path)
    dog = next(s for s in read_synsets(folder / "data.noun", "noun") if s.place == ("noun", 20))
    assert (dog.letter, dog.file, dog.words) == ("n", "noun.animal", ("dog", "Canis_familiaris"))
    assert dog.pointers == (
        ("@", ("noun", 10)),
        ("#m", ("noun", 40)),
        ("~i", ("noun", 50)),
        ("+", ("verb", 10)),
    )
    assert dog.gloss == 'a tame animal; "the dog barked"'


def test_frames_of_verbs_are_no_pointers_and_marks_of_adjectives_no_letters(tmp_path: Path) -> None:
    folder = some().write(tmp_path)
    tail, _ = read_synsets(folder / "data.verb", "verb")
    assert tail.pointers == (("+", ("noun", 20)), ("@", ("verb", 30)))
    [beastly] = read_synsets(folder / "data.adj", "adj")
    assert (beastly.letter, beastly.words) == ("s", ("beastly",))


def test_senses_are_in_the_order_of_the_index(tmp_path: Path) -> None:
    folder = some().write(tmp_path)
    assert dict(read_senses(folder / "index.noun", "noun"))["dog"] == [("noun", 20), ("noun", 30)]


def test_gzipped_files_are_read(tmp_path: Path) -> None:
    folder = some().write(tmp_path)
    plain = list(read_synsets(folder / "data.noun", "noun"))
    (folder / "data.noun.gz").write_bytes(gzip.compress((folder / "data.noun").read_bytes()))
    (folder / "data.noun").unlink()
    [(data, _)] = find_parts(folder, ("noun",)).values()
    assert list(read_synsets(data, "noun")) == plain


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (DOG[:40], "expected a synset"),
        (DOG.replace(" | ", " "), "no ' | ' before a gloss"),
        (DOG.replace(" n 02", " v 02"), "'v' in the file of another part of speech"),
        (DOG.replace(" 05 ", " 77 "), "lexicographer file 77"),
        (DOG.replace(" 001 ", " 009 "), "2 words and 9 pointers in 13 fields"),
        (DOG.replace(" 02 ", " zz "), "invalid literal"),
        (DOG.replace("00000010 n", "00000010 q"), "'q'"),
        ("", "expected a synset"),
    ],
)
def test_a_wrong_line_is_one_sentence_with_its_number(line: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "data.noun").write_text(f"{LICENCE}{DOG}\n{line}\n")
    with pytest.raises(InputError) as error:
        list(read_synsets(tmp_path / "data.noun", "noun"))
    assert str(error.value).startswith(f"{tmp_path}/data.noun: line 3: found ")
    assert why in str(error.value)
    assert str(error.value).endswith("; install the files again.")


@pytest.mark.parametrize(
    "line", ["dog n", "dog n x 0 1 0 00000020", "dog n 9 0 1 0 00000020", "dog n 0 0 0 0"]
)
def test_a_wrong_line_of_the_index_is_one_sentence(line: str, tmp_path: Path) -> None:
    (tmp_path / "index.noun").write_text(f"{LICENCE}{line}\n")
    with pytest.raises(
        InputError, match=r"index\.noun: line 2: found 'dog n.*expected a word and its synsets"
    ):
        list(read_senses(tmp_path / "index.noun", "noun"))
