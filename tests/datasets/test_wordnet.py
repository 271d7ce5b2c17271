"""The network of WordNet's synsets, from small files of its shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from heterformer.cli.main import main
from heterformer.datasets.wordnet import INVERSE, RELATIONS, WordNetOptions, build_wordnet
from heterformer.errors import InputError
from heterformer.network.store import Network
from tests.datasets.wordnet_lines import Lines, some
from tests.networks import edges_of, files


def built(tmp_path: Path, lines: Lines | None = None, **options: Any) -> Network:
    folder = (lines or some()).write(tmp_path / "dict")
    return build_wordnet(tmp_path / "net", WordNetOptions(folder=folder, **options))


def test_synsets_have_the_usual_names_glosses_and_lexicographer_files(tmp_path: Path) -> None:
    network = built(tmp_path)
    synsets = network.ids("synset")
    assert synsets == [
        *("animal.n.01", "dog.n.01", "cad.n.01", "pack.n.01", "rex.n.01", "gentleman.n.01"),
        *("dog.v.01", "follow.v.01"),
    ]
    dog = synsets.index("dog.n.01")
    assert network.texts("synset")[dog] == 'a tame animal; "the dog barked"'
    assert network.names("synset")[dog] == "dog, Canis familiaris"
    assert network.labels("synset").to_list()[dog] == ["noun.animal"]
    assert network.schema.predicted[0].name == "hypernym"


def test_one_end_of_each_pointer_is_an_edge(tmp_path: Path) -> None:
    network = built(tmp_path)
    assert edges_of(network, "hypernym") == [("dog.n.01", "animal.n.01"), ("dog.v.01", "follow.v.01")]
    assert edges_of(network, "instance_of") == [("rex.n.01", "dog.n.01")]
    assert edges_of(network, "member") == [("pack.n.01", "dog.n.01")]
    assert edges_of(network, "antonym") == [("cad.n.01", "gentleman.n.01")]
    assert edges_of(network, "derivation") == [("dog.n.01", "dog.v.01")]


def test_words_of_several_synsets_are_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = built(tmp_path)
    assert network.ids("word") == ["dog"]
    assert edges_of(network, "word") == [("dog.n.01", "dog"), ("cad.n.01", "dog"), ("dog.v.01", "dog")]
    assert "9 words of fewer than 2 synsets" in capsys.readouterr().err


def test_all_words_if_asked_for(tmp_path: Path) -> None:
    assert "canis familiaris" in built(tmp_path, min_senses=1).ids("word")


def test_without_any_shared_word_there_is_no_such_type(tmp_path: Path) -> None:
    network = built(tmp_path, min_senses=4)
    assert set(network.schema.node_types) == {"synset"}


def test_other_parts_of_speech_are_named_not_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nouns = built(tmp_path, parts=("noun",))
    assert "dog.v.01" not in nouns.ids("synset")
    assert "1 pointers to other parts of speech" in capsys.readouterr().err


def test_adjectives_on_request(tmp_path: Path) -> None:
    network = built(tmp_path, parts=("noun", "verb", "adj", "adv"))
    assert network.ids("synset")[-1] == "beastly.s.01"
    assert ("beastly.s.01", "animal.n.01") in edges_of(network, "derivation")


def test_a_pointer_to_nothing_and_an_unknown_one_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = some()
    lines.add("noun", 80, ["cat"], "a tame animal", [("@", 10, "n"), ("%p", 99, "n"), ("?", 10, "n")])
    built(tmp_path, lines)
    said = capsys.readouterr().err
    assert "1 pointers to synsets that are not there" in said
    assert "1 pointers of the unknown kind '?'" in said


def test_no_symbol_is_read_at_both_ends() -> None:
    assert not set(RELATIONS) & INVERSE
    assert len(set(RELATIONS.values())) == len(RELATIONS)


def test_files_of_two_versions_are_one_sentence(tmp_path: Path) -> None:
    folder = some().write(tmp_path / "dict")
    index = folder / "index.noun"
    index.write_text(index.read_text().replace("00000020", "00000021"))
    with pytest.raises(
        InputError, match=r"index\.noun does not have the synset 00000020 of data\.noun at 'dog'"
    ):
        build_wordnet(tmp_path / "net", WordNetOptions(folder=folder))
    assert not (tmp_path / "net").exists()


def test_files_without_a_synset_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no synset in data\.noun, data\.verb\."):
        built(tmp_path, Lines())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"parts": ("adj",)}, "parts has adj, expected noun or verb among them"),
        ({"min_senses": 0}, "min_senses is 0, expected at least 1"),
        ({"max_tokens": 2}, "max_tokens is 2, expected at least 3"),
    ],
)
def test_wrong_options_are_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        WordNetOptions(**options)


def test_the_command_builds_it_or_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = some().write(tmp_path / "dict")
    main(["dataset", "wordnet", str(tmp_path / "net"), "--folder", str(folder)])
    assert Network.open(tmp_path / "net").schema.counts == {"synset": 8, "word": 1}
    (folder / "data.verb").unlink()
    before = files(tmp_path)
    with pytest.raises(SystemExit):
        main(["dataset", "wordnet", str(tmp_path / "other"), "--folder", str(folder)])
    assert "no data.verb; download from Debian's package wordnet-base" in capsys.readouterr().err
    assert files(tmp_path) == before
