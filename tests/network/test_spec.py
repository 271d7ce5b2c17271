"""The specification: what it means, and one sentence for every mistake in it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from heterformer.errors import InputError
from heterformer.network.spec import NetworkSpec, NodeSpec, RelationSpec
from tests.networks import SPEC

PAPER, CITES = "nodes.paper", "relations.cites"
DELETED = object()


def changed(place: str, value: Any) -> Any:
    """The small specification with one value (at a dotted place) replaced, added or deleted."""
    values: Any = copy.deepcopy(SPEC)
    *above, last = place.split(".")
    inner = values
    for key in above:
        inner = inner[key]
    inner[last] = value
    if value is DELETED:
        del inner[last]
    return values


def complaint(values: Any) -> str:
    with pytest.raises(InputError) as caught:
        NetworkSpec.parse(values, where="net.yaml")
    return str(caught.value)


def test_defaults() -> None:
    spec = NetworkSpec.parse(changed("nodes.author", None))
    assert spec.predict == "cites"  # the only text-text relation
    assert spec.neighbors == {"paper": 20, "author": 5}
    assert (spec.max_tokens, spec.test_batch_size) == (32, 100)
    assert (spec.text_rich, spec.textless) == (("paper",), ("author",))


def test_a_full_specification_is_understood(tmp_path: Path) -> None:
    path = tmp_path / "full.yaml"
    path.write_text(
        """
name: full
nodes:
  tweet: {file: t.jsonl, id: key, text: [head, body], label: tags, split: part, name: head, time: day,
          keep: [lang], separator: "|"}
  user: {}
relations:
  answers: {from: tweet, to: tweet, file: a.tsv, columns: [from, to], unknown: error}
  by: {from: tweet, to: user, column: users, separator: ";"}
predict: answers
neighbors: {tweet: 2, user: 0}
max_tokens: 64
test_batch_size: 50
""",
        encoding="utf-8",
    )
    columns = {
        "id": ("key",),
        "text": ("head", "body"),
        "label": ("tags",),
        "split": ("part",),
        "name": ("head",),
        "time": ("day",),
        "keep": ("lang",),
    }
    node = NodeSpec("t.jsonl", columns, "|")
    answers = RelationSpec("tweet", "tweet", "a.tsv", ("from", "to"), unknown="error")
    by = RelationSpec("tweet", "user", column="users", separator=";")
    assert NetworkSpec.load(path) == NetworkSpec(
        name="full",
        nodes={"tweet": node, "user": NodeSpec()},
        relations={"answers": answers, "by": by},
        predict="answers",
        neighbors={"tweet": 2, "user": 0},
        max_tokens=64,
        test_batch_size=50,
    )


def test_text_may_be_one_column_without_a_list() -> None:
    assert NetworkSpec.parse(changed(f"{PAPER}.text", "title")).nodes["paper"].text == ("title",)


MISTAKES = [
    (
        "relatons",
        {},
        "the file: unknown key 'relatons' (did you mean 'relations'?), the keys are 'name', 'nodes', "
        "'relations', 'predict', 'neighbors', 'max_tokens', 'test_batch_size', 'missing'.",
    ),
    (
        f"{PAPER}.txet",
        "title",
        "nodes.paper: unknown key 'txet' (did you mean 'text'?), the keys are 'file', 'id', 'text', "
        "'label', 'split', 'name', 'time', 'keep', 'attributes', 'separator', 'delimiter', 'text_from'.",
    ),
    (
        f"{CITES}.zzz",
        1,
        "relations.cites: unknown key 'zzz', the keys are 'from', 'to', 'file', 'columns', 'column', "
        "'separator', 'delimiter', 'weight', 'time', 'unknown'.",
    ),
    (
        f"{PAPER}.delimiter",
        ", ",
        "nodes.paper.delimiter: found ', ', expected one ASCII character such as ';'.",
    ),
    (f"{PAPER}.delimiter", '"', "nodes.paper.delimiter: found '\"', which cannot separate columns."),
    (
        f"{CITES}.delimiter",
        "→",
        "relations.cites.delimiter: found '→', expected one ASCII character such as ';'.",
    ),
    ("nodes", DELETED, "the file: the key 'nodes' is missing."),
    (f"{CITES}.to", DELETED, "relations.cites: the key 'to' is missing."),
    ("nodes", ["paper"], "nodes: found ['paper'], expected a mapping of keys to values."),
    (PAPER, "papers.csv", "nodes.paper: found 'papers.csv', expected a mapping of keys to values."),
    ("name", 2023, "name: found 2023, expected a string."),
    (f"{PAPER}.text", ["title", 3], "nodes.paper.text: found 3, expected a string."),
    (
        f"{PAPER}.file",
        DELETED,
        "nodes.paper.text: needs 'file', the table that has this column.",
    ),
    (
        f"{PAPER}.text",
        [],
        "nodes: none of 'paper' has 'text', expected columns of text for at least one "
        "(see docs/own-data.md).",
    ),
    (f"{CITES}.from", "papr", "relations.cites.from: unknown node type 'papr', expected one of 'paper'."),
    (f"{CITES}.to", "work", "relations.cites.to: unknown node type 'work', expected one of 'paper'."),
    (f"{CITES}.to", None, "relations.cites.to: unknown node type None, expected one of 'paper'."),
    (
        f"{CITES}.column",
        "x",
        "relations.cites: expected either 'file' and 'columns' or 'column' of the 'from' table.",
    ),
    (
        f"{CITES}.file",
        DELETED,
        "relations.cites: expected either 'file' and 'columns' or 'column' of the 'from' table.",
    ),
    (
        f"{CITES}.columns",
        ["source"],
        "relations.cites.columns: found ['source'], expected the two columns [from, to].",
    ),
    (f"{CITES}.columns", DELETED, "relations.cites.columns: found [], expected the two columns [from, to]."),
    (f"{CITES}.unknown", "skip", "relations.cites.unknown: found 'skip', expected 'drop' or 'error'."),
    ("predict", "likes", "predict: unknown relation 'likes', expected one of 'cites'."),
    ("neighbors", {"papr": 5}, "neighbors: unknown node type 'papr', expected one of 'paper'."),
    ("neighbors", {"paper": -1}, "neighbors.paper: found -1, expected a whole number of at least 0."),
    ("neighbors", {"paper": True}, "neighbors.paper: found True, expected a whole number of at least 0."),
    ("neighbors", 5, "neighbors: found 5, expected a mapping of keys to values."),
    ("max_tokens", 10**8, "max_tokens: found 100000000, expected at most 32,768 tokens of a text."),
    ("max_tokens", 2, "max_tokens: found 2, expected a whole number of at least 3."),
    ("test_batch_size", 1.5, "test_batch_size: found 1.5, expected a whole number of at least 2."),
    ("predict", [["cites"]], "predict: found ['cites'], expected the name of a relation."),
    ("predict", ["cites", "cites"], "predict: duplicate relation 'cites', expected each once."),
    ("predict", [], "predict: found [], expected at least one relation."),
    ("predict", {}, "predict: found {}, expected at least one relation."),
    ("predict", {"likes": 1}, "predict: unknown relation 'likes', expected one of 'cites'."),
    *(
        (
            "predict",
            {"cites": share},
            f"predict.cites: found {share!r}, expected a share of training, a number above 0.",
        )
        for share in (0, -1, "2", True, float("inf"))
    ),
    (
        f"{CITES}.from",
        ["paper"],
        "relations.cites.from: unknown node type ['paper'], expected one of 'paper'.",
    ),
]


@pytest.mark.parametrize(("place", "value", "message"), MISTAKES, ids=[place for place, _, _ in MISTAKES])
def test_a_mistake_is_named_with_its_place_and_what_was_expected(
    place: str, value: Any, message: str
) -> None:
    assert complaint(changed(place, value)) == f"net.yaml: {message}"


@pytest.mark.parametrize("name", ["rev_paper", "pa__per", "pa per", "a/b", "é!"])
def test_a_type_name_that_files_and_edge_types_cannot_carry(name: str) -> None:
    rule = "letters, digits, single '-' and '_', and no leading 'rev_'"
    assert complaint(changed(f"nodes.{name}", None)) == (
        f"net.yaml: nodes: the name {name!r} is not allowed, expected {rule}."
    )


def test_a_column_relation_needs_a_table_to_hold_it() -> None:
    values = changed("relations.knows", {"from": "author", "to": "paper", "column": "papers"})
    values["nodes"]["author"] = {}
    assert complaint(values) == (
        "net.yaml: relations.knows.column: node type 'author' has no 'file' with this column."
    )


def test_a_predicted_relation_has_text_at_one_end_at_least() -> None:
    values = changed("nodes.author", None)
    values["relations"]["by"] = {"from": "paper", "to": "author", "column": "authors"}
    knows = {"from": "author", "to": "author", "file": "knows.csv", "columns": ["a", "b"]}
    values["relations"]["knows"] = knows
    assert NetworkSpec.parse(values | {"predict": "by"}, "net.yaml").predict == "by"
    assert complaint(values | {"predict": "knows"}) == (
        "net.yaml: predict: relation 'knows' joins 'author' and 'author', which are both without text, "
        "expected one of 'cites', 'by' (see docs/own-data.md)."
    )
    alone = values | {"relations": {"knows": knows}}
    assert complaint(alone) == (
        "net.yaml: relations: found 'knows', expected one that joins a type with text ('paper'), to be "
        "predicted (see docs/own-data.md)."
    )


def test_several_predicted_relations_have_shares() -> None:
    values = changed("relations.extends", SPEC["relations"]["cites"])
    parsed = {
        str(given): NetworkSpec.parse(values | {"predict": given}).predict
        for given in (["cites", "extends"], {"cites": 2, "extends": 0.5}, ["extends"], {"cites": 3})
    }
    assert list(parsed.values()) == [
        {"cites": 1.0, "extends": 1.0},
        {"cites": 2.0, "extends": 0.5},
        "extends",  # one alone is a name, as it always was
        "cites",
    ]


def test_predict_must_be_said_where_there_is_a_choice() -> None:
    values = changed("relations.extends", SPEC["relations"]["cites"])
    choice = "expected one of 'cites', 'extends' (see docs/own-data.md)."
    assert complaint(values) == f"net.yaml: predict: missing, {choice}"


UNREADABLE = {
    "YAML syntax": (
        b"nodes:\n  paper: {file: a.csv\nrelations: {}\n",
        "not valid YAML at line 3, column 10: expected ',' or '}', but got ':'.",
    ),
    "a key twice": (
        b"name: a\nnodes: {}\nname: b\n",
        "not valid YAML at line 3, column 1: duplicate key 'name'.",
    ),
    "a key twice further in": (
        b"nodes:\n  paper: {file: a, file: b}\n",
        "not valid YAML at line 2, column 20: duplicate key 'file'.",
    ),
    "not UTF-8": (b"name: caf\xe9\n", "byte 9 is not UTF-8; save the file as UTF-8."),
    "a list": (b"- paper\n", "the file: found ['paper'], expected a mapping of keys to values."),
    "nothing": (b"", "the file: the key 'nodes' is missing."),
    "a mapping as key": (b"name: {{x}}\n", "not valid YAML at line 1, column 8: found unhashable key."),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_a_file_that_is_not_a_specification(what: str, tmp_path: Path) -> None:
    content, message = UNREADABLE[what]
    path = tmp_path / "net.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        NetworkSpec.load(path)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize("content", [b"name: a\x07b\n", b"name: 2020-99-99\n"])
def test_yaml_that_fails_without_a_place_is_still_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"net\.yaml: not valid YAML"):
        NetworkSpec.load(path)


def test_a_specification_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "net.yaml"
    with pytest.raises(InputError) as caught:
        NetworkSpec.load(path)
    reason = "the network specification cannot be read (No such file or directory)."
    assert str(caught.value) == f"{path}: {reason}"


ODD_YAML = {
    "nested brackets": ("[" * 100_000, "not valid YAML: brackets or mappings are nested too deeply."),
    "a tag that does not fit": (
        "nodes: !!bool x",
        "not valid YAML: a value does not fit its tag, such as '!!bool'.",
    ),
    "a date that is none": (
        "nodes: !!timestamp x",
        "not valid YAML: a value does not fit its tag, such as '!!bool'.",
    ),
    "half a character": (
        'name: "\\ud800"\nnodes: {}\nrelations: {}',
        "nodes: no type has 'text', expected columns of text for at least one (see docs/own-data.md).",
    ),
}


@pytest.mark.parametrize("what", ODD_YAML)
def test_odd_yaml_is_one_sentence(what: str, tmp_path: Path) -> None:
    content, message = ODD_YAML[what]
    path = tmp_path / "net.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        NetworkSpec.load(path)
    assert str(caught.value) == f"{path}: {message}"


def test_aliases_that_explode_are_not_written_out(tmp_path: Path) -> None:
    lines = ["nodes:", " - &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f" - &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]" for i in range(30)]
    path = tmp_path / "net.yaml"
    path.write_text("\n".join([*lines, "relations: {}"]), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        NetworkSpec.load(path)
    assert len(str(caught.value)) < 200 + len(str(path))


@pytest.mark.parametrize("text", ["\ud800", "a\0b"])
def test_text_that_no_file_can_hold(text: str) -> None:
    expected = f"net.yaml: name: found {text!r}, expected text without unpaired surrogates and NUL."
    assert complaint(changed("name", text)) == expected


def test_long_values_are_cut(tmp_path: Path) -> None:
    said = complaint(changed("nodes", "x" * 100_000))
    assert said == f"net.yaml: nodes: found '{'x' * 79}…', expected a mapping of keys to values."


def test_names_whose_folders_would_collide() -> None:
    for name in ("a-", "-b"):
        values = changed("nodes", {name: {"file": "a.csv", "text": "t"}})
        expected = f"net.yaml: nodes: the name {name!r} is not allowed, expected no '-' at either end."
        assert complaint(values) == expected


def test_more_neighbors_than_a_batch_has_room_for() -> None:
    assert NetworkSpec.parse(changed("neighbors", {"paper": 1000})).neighbors["paper"] == 1000
    assert complaint(changed("neighbors", {"paper": 100_000})) == (
        "net.yaml: neighbors.paper: found 100000, expected at most 1,000 sampled neighbours of a node."
    )
