"""``heterformer explain`` as a user meets it."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from heterformer.cli.main import main
from heterformer.explanation.core import explain
from heterformer.explanation.effects import leave_one_out
from heterformer.network.store import Network
from tests.explanation.explaining import other_run, untrained
from tests.learning import tiny_network
from tests.pictures import check_picture
from tests.search.searching import tiny_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return shutil.copytree(tiny_run(), tmp_path / "run", ignore=shutil.ignore_patterns("figures"))


class Explained:
    """What the command prints."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> str:
        self.capsys.readouterr()
        main(["explain", *map(str, words)])
        return self.capsys.readouterr().out

    def failed(self, *words: object) -> str:
        """The one sentence with which it fails."""
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main(["explain", *map(str, words)])
        captured = self.capsys.readouterr()
        assert (exit_.value.code, captured.out) == (1, "")
        assert captured.err.startswith("error: ")
        assert captured.err.endswith(".\n")
        assert captured.err.count("\n") == 1
        return captured.err.removeprefix("error: ").rstrip("\n")


@pytest.fixture
def explained(capsys: pytest.CaptureFixture[str]) -> Explained:
    return Explained(capsys)


def test_tables_then_the_figure(explained: Explained, run: Path) -> None:
    shown = explained(run, "p7")
    figure = run / "figures" / "attention-p7.png"
    check_picture(figure, tallest=1000)
    assert shown.endswith(f"\n{figure}\n")
    drawn = run / "figures" / "leave-one-out-p7.png"
    check_picture(drawn, tallest=1200)
    order = [
        "Without each kind of input: the vector of paper",
        "Without each neighbour: the vector of paper",
        "Without each word: the vector of paper",
        "Attention of [CLS] in paper",
        "Shares in the virtual token of text-rich neighbours",
        "Shares in the virtual token of textless neighbours",
        "Shares in the network readout of text-rich neighbours",
        str(drawn),
        str(figure),
    ]
    places = [" ".join(shown.split()).index(title) for title in order]
    assert places == sorted(places)


def test_json_is_the_explanation(explained: Explained, run: Path, tmp_path: Path) -> None:
    figure = tmp_path / "new" / "figure.PNG"
    values = json.loads(explained(run, "p7", "--json", "--figure", figure, "--queries", "all"))
    assert values.pop("figure") == str(figure)
    assert values["leave_one_out_figure"] is None  # one file was named
    assert values["leave_one_out"]["neighbors"]
    assert values["queries"] == "all"
    expected = asdict(explain(run, "p7"))
    assert values["virtual_tokens"] == json.loads(json.dumps(expected["virtual_tokens"]))
    check_picture(figure, tallest=1000)
    assert not (run / "figures").exists()


def test_against_another_run(explained: Explained, run: Path, tmp_path: Path) -> None:
    other = other_run(virtual_tokens="text_rich")
    figure = tmp_path / "figure.png"
    values = json.loads(explained(run, "p7", "--json", "--against", other, "--figure", figure))
    assert (values["run"], values["against"]["run"]) == (str(run), str(other))
    assert [token["kind"] for token in values["against"]["virtual_tokens"]] == ["text_rich"]
    check_picture(figure, tallest=1000)
    figure.unlink()  # an existing file is not overwritten
    shown = "".join(explained(run, "p7", "--against", other, "--figure", figure).split())
    assert shown.index(f"({run})") < shown.index(f"({other})") < shown.index(str(figure))
    usual = explained(run, "p7", "--against", other).splitlines()[-1]  # not the place of the run's own
    assert usual == str(run / "figures" / f"attention-p7-against-{other.name}.png")


def test_a_textless_node_by_its_name(explained: Explained, run: Path) -> None:
    (name,) = tiny_network().names("author", [3])
    values = json.loads(explained(run, name, "--json", "--type", "author"))
    assert values["figure"] is None
    assert values["node"] == {"node_type": "author", "id": "a3", "name": name}
    shown = explained(run, "a3", "--top", 1)
    assert "Neighbours with text closest to author" in shown
    assert f"{values['closest'][0]['score']:#.4g}" in shown
    assert f"{values['closest'][1]['score']:#.4g}" not in shown
    assert not (run / "figures").exists()


def two_types(folder: Path) -> Path:
    """A run whose network has one id in two types, and another with a slash."""
    both: dict[str, Any] = {"from": "paper", "columns": ["a", "b"]}
    network = Network.from_frames(
        {
            "nodes": {"paper": {"text": "title"}, "author": {}},
            "relations": {"cites": {**both, "to": "paper"}, "written_by": {**both, "to": "author"}},
        },
        {"paper": {"id": ["x", "a/b"], "title": ["One", "Two"]}},
        {"cites": {"a": ["x"], "b": ["a/b"]}, "written_by": {"a": ["x"], "b": ["x"]}},
        folder / "network",
    )
    return untrained(folder / "run", network)


def test_mistakes_are_one_sentence(explained: Explained, tmp_path: Path) -> None:
    run = two_types(tmp_path)
    said = "--type is missing: the id 'x' exists in the node types 'paper', 'author'; choose one."
    assert explained.failed(run, "x") == said
    assert explained.failed(run, "x", "--type", "author").endswith("run 'heterformer train' again.")
    found = "there is no paper or author with the id or name 'qq'"
    assert explained.failed(run, "qq") == f"{tmp_path / 'network'}: {found}."
    assert explained.failed(run, "a/b", "--type", "z") == "--type is 'z', expected one of 'paper', 'author'."
    assert explained.failed(run, "a/b", "--top", 0) == "--top is 0, expected at least 1."
    said = "--figure is 'x.pdf', expected a name that ends in .png."
    assert explained.failed(run, "a/b", "--figure", "x.pdf") == said
    nowhere = tmp_path / "nowhere"
    said = f"{nowhere}: not a run, expected a folder that 'heterformer train' wrote."
    assert explained.failed(nowhere, "x") == said
    assert explained.failed(run, "a/b", "--against", nowhere) == said


def test_the_score_of_a_pair(explained: Explained, run: Path, tmp_path: Path) -> None:
    shown = " ".join(explained(run, "p7", "--pair", "a3", "--top", 2).split())
    figure = run / "figures" / "leave-one-out-p7-with-a3.png"
    check_picture(figure, tallest=1200)
    assert shown.endswith(str(figure))
    assert "positive supports the pair" in shown
    assert "Attention of" not in shown
    own = tmp_path / "own.png"
    values = json.loads(explained(run, "p7", "--pair", "p11", "--json", "--figure", own))
    effects = leave_one_out(run, "p7", pair="p11")
    assert values == {
        "leave_one_out": json.loads(json.dumps(asdict(effects))),
        "leave_one_out_figure": str(own),
        "figure": None,
    }
    check_picture(own, tallest=1200)
    said = "--against shows the attention of two runs; leave out --pair."
    assert explained.failed(run, "p7", "--pair", "p11", "--against", run) == said
    assert "give --pair as well" in explained.failed(run, "p7", "--pair-type", "paper")
    assert "has no text, and its vector is learnt" in explained.failed(run, "a3", "--pair", "p7")


def test_a_baseline_has_effects_only(explained: Explained, tmp_path: Path) -> None:
    run = shutil.copytree(other_run(model="bert"), tmp_path / "run")
    values = json.loads(explained(run, "p7", "--json"))
    assert values["leave_one_out"]["words"]
    assert values["leave_one_out"]["neighbors"] == []
    assert "virtual_tokens" not in values
    against = explained.failed(run, "p7", "--against", run)
    assert "its model is BERT, which has no virtual neighbour tokens" in against


def test_a_figure_that_cannot_be_written(explained: Explained, run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as exit_:
        main(["explain", str(run), "p7", "--figure", str(tmp_path / "file" / "x.png")])
    captured = explained.capsys.readouterr()
    assert exit_.value.code == 1
    assert captured.err.count("\n") == 1
    assert str(tmp_path / "file") in captured.err


def test_help_names_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "--help"])
    shown = capsys.readouterr().out
    assert "heterformer explain RUN P05-3014 --against RUN_WITHOUT_WARM_UP" in shown
    assert "--against OTHER_RUN" in shown


def test_a_figure_is_not_written_over_another_file(explained: Explained, run: Path, tmp_path: Path) -> None:
    mine = tmp_path / "thesis.png"
    mine.write_text("mine")
    (tmp_path / "link.png").symlink_to(tmp_path / "nowhere.png")
    for path in (mine, tmp_path / "link.png"):
        told = explained.failed(run, "p7", "--figure", path)
        assert told == f"{path}: exists already; remove it or choose another name."
    assert mine.read_text() == "mine"
    assert not (tmp_path / "nowhere.png").exists()
