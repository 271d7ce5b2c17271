"""``heterformer compare`` and ``heterformer plot``, as a user meets them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from heterformer.cli.main import main
from heterformer.comparison import core as compare_module
from tests.comparison.comparing import pretended, pretended_comparison
from tests.learning import tiny_network, tiny_reader

SMALL = ("--textless-dim", "8", "--batch-size", "16", "--warm-up-epochs", "1", "--device", "cpu")
SKILL = {"bert": 0.3, "heterformer": 0.5}


def compare(out: Path, *words: object) -> None:
    given = ("--max-steps", 2, "--backbone", tiny_reader(), *SMALL, *words)
    main(["compare", str(tiny_network().path), str(out), *map(str, given)])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that are only pretended."""
    monkeypatch.setattr(compare_module, "run_in_child", pretended(SKILL))


def failed(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main([str(word) for word in words])
    assert exit_.value.code == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("error: ")
    return last.removeprefix("error: ")


def test_two_models_are_trained_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The real thing, each run in a process of its own; then once more, with nothing left to do."""
    out = tmp_path / "my comparison"
    words = ("--models", "heterformer", "bert", "--evaluate-every", 1)
    compare(out, *words)
    shown = capsys.readouterr()
    assert "[2/2] Heterformer, seed 0" in shown.err
    found = json.loads((out / "compare.json").read_text())
    assert set(found["variants"]) == {"bert", "heterformer"}
    for name, variant in found["variants"].items():
        seed = variant["seeds"]["0"]
        assert (seed["status"], seed["steps"]) == ("finished", 2)
        assert seed["cost"]["memory"] > 50
        ranked = json.loads((out / "runs" / name / "seed-0" / "test.json").read_text())
        assert ranked["figures"] == variant["mean"] == seed["figures"]
    assert f"{found['variants']['bert']['mean']['mrr']:.4f}" in shown.out
    assert (out / "compare.md").is_file()
    assert {path.name for path in (out / "figures").iterdir()} == {"models.png", "learning_curves.png"}
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/**/*") if path.is_file()}
    compare(out, *words)
    assert "2 of 2 runs are finished already." in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in out.glob("runs/**/*") if path.is_file()} == before


@pytest.mark.usefixtures("quick")
def test_what_failed_makes_the_command_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    words = ["compare", tiny_network().path, out, "--models", "heterformer", "bert", "no_tl", "--seeds", 0, 1]
    said = failed(capsys, *words, "--backbone", tiny_reader())
    assert said == (
        f"{out}: failed: no_tl seed 0, no_tl seed 1; see {out / 'compare.md'}; the same command tries again."
    )
    assert "No-TL, seed 1: it was not meant to be" in (out / "compare.md").read_text()
    assert (out / "figures" / "models.png").is_file()


@pytest.mark.usefixtures("quick")
def test_the_table_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    compare(out, "--models", "bert", "heterformer")
    table = (out / "compare.md").read_text()
    for name in ("compare.md", "compare.json"):
        (out / name).unlink()
    capsys.readouterr()
    main(["compare", str(tiny_network().path), str(out), "--table-only"])
    assert (out / "compare.md").read_text().splitlines()[:9] == table.splitlines()[:9]
    assert "Heterformer" in capsys.readouterr().out
    said = failed(capsys, "compare", tiny_network().path, tmp_path, "--table-only")
    assert said == f"{tmp_path}: not a comparison, expected a folder that 'heterformer compare' wrote."


@pytest.mark.usefixtures("quick")
def test_the_preset_is_for_comparisons_too(tmp_path: Path) -> None:
    compare(tmp_path / "out", "--models", "heterformer", "--preset", "paper")
    config = (tmp_path / "out" / "runs/heterformer/seed-0/config.yaml").read_text()
    assert "false_negatives: keep" in config
    assert "aggregation_init: random" in config


def test_an_option_that_models_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = failed(capsys, "compare", tiny_network().path, tmp_path / "out", "--virtual-tokens", "none")
    assert said == "--virtual-tokens is 'none', expected nothing: a comparison varies it by --models."
    assert not (tmp_path / "out").exists()


def test_help_leaves_out_what_models_and_seeds_decide(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    words = {word.strip("│,|") for word in capsys.readouterr().out.split()}
    assert {"--seeds", "--warm-up-epochs", "--no-warm-up", "--textless-dim", "--network-readout"} <= words
    decided = {"--seed", "--virtual-tokens", "--heterogeneous-projection"}
    assert not decided & words


def test_plot_draws_a_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pretended_comparison(tmp_path / "out", SKILL, seeds=(0,))
    capsys.readouterr()
    main(["plot", str(tmp_path / "out")])
    figures = [tmp_path / "out" / "figures" / name for name in ("models.png", "learning_curves.png")]
    assert capsys.readouterr().out.splitlines() == [str(path) for path in figures]
    assert all(path.is_file() for path in figures)


def test_plot_draws_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pretended_comparison(tmp_path / "out", {"bert": 0.3}, seeds=(0,))
    run = tmp_path / "out" / "runs" / "bert" / "seed-0"
    capsys.readouterr()
    main(["plot", str(run)])
    assert capsys.readouterr().out == f"{run / 'figures' / 'training.png'}\n"


@pytest.mark.usefixtures("quick")
def test_what_is_asked_for_in_vain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", tiny_network().path, tmp_path / "cmp")
    assert failed(capsys, *words, "--models").startswith("--models is empty, expected models")
    assert (
        failed(capsys, *words, "--seeds", "-1")
        == "--seeds are -1, expected different whole numbers, 0 to 2,147,483,647."
    )
    assert not (tmp_path / "cmp").exists()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("name", "text"),
    [("compare.yaml", ""), ("compare.yaml", "a: [b"), ("runs/bert/seed-0/test.json", "{")],
)
def test_a_damaged_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    out = tmp_path / "cmp"
    compare(out, "--models", "bert")
    (out / name).write_text(text)
    assert failed(capsys, "plot", out).startswith(f"{out / name}: cannot be read or is damaged")


@pytest.mark.usefixtures("quick")
def test_ranks_that_are_gone_are_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cmp"
    compare(out, "--models", "bert", "heterformer")
    (out / "runs" / "bert" / "seed-0" / "test_ranks.npz").unlink()
    compare(out, "--models", "bert", "heterformer")
    assert "1 of 2 runs are finished already." in capsys.readouterr().err
    assert (out / "runs" / "bert" / "seed-0" / "test_ranks.npz").is_file()


@pytest.mark.usefixtures("quick")
def test_a_network_that_has_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, out = shutil.copytree(tiny_network().path, tmp_path / "net"), tmp_path / "cmp"
    words = ["--models", "bert", "--max-steps", "2", "--backbone", tiny_reader(), *SMALL]
    main(["compare", str(place), str(out), *words])
    place.rename(tmp_path / "moved")
    assert "its network is not at" in failed(capsys, "plot", out)
    main(["compare", str(tmp_path / "moved"), str(out), "--table-only"])
    assert failed(capsys, "compare", tmp_path / "nothing", out, "--table-only").startswith(
        str(tmp_path / "nothing")
    )


def test_plot_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert failed(capsys, "plot", tmp_path).endswith(
        "not a run, expected a folder that 'heterformer train' wrote."
    )
    pretended_comparison(tmp_path / "out", {}, models=("bert",), seeds=(0,))
    said = failed(capsys, "plot", tmp_path / "out")
    assert said.endswith("nothing to draw yet; figures need complete runs or evaluations.")
