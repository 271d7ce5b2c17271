from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from heterformer.cli.training_flags import training_defaults
from heterformer.comparison.core import compare, finished_comparison
from heterformer.comparison.folder import is_comparison
from heterformer.comparison.job import Job
from heterformer.comparison.results import Comparison
from heterformer.errors import InputError
from heterformer.models.options import EveryModelOptions
from heterformer.training.options import TrainingOptions
from tests.comparison.comparing import pretended, pretended_comparison
from tests.learning import synthetic_network, tiny_network, tiny_options, tiny_reader

SKILL = {"bert": 0.3, "heterformer": 0.5, "no_tl": 0.4}


def times(out: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in out.glob("runs/**/*") if path.is_file()}


def variants(comparison: Comparison) -> list[str]:
    return [row.variant.name for row in comparison.rows]


def test_every_variant_and_seed_has_a_run(tmp_path: Path) -> None:
    found = pretended_comparison(tmp_path / "out", SKILL, seeds=(0, 3))
    assert variants(found) == list(SKILL)
    paths = {str(seed.path.relative_to(tmp_path)) for row in found.rows for seed in row.seeds}
    assert paths == {f"out/runs/{name}/seed-{seed}" for name in SKILL for seed in (0, 3)}
    assert all(seed.status == "finished" for row in found.rows for seed in row.seeds)


def test_runs_differ_in_variant_and_seed_and_share_the_rest(tmp_path: Path) -> None:
    jobs: list[Job] = []
    options = tiny_options(tiny_reader(), max_steps=9)
    compare(tiny_network(), tmp_path / "out", SKILL, (0, 3), options, runner=jobs.append)
    assert [(job.variant.name, job.seed) for job in jobs] == [
        (name, seed) for name in SKILL for seed in (0, 3)
    ]
    for job in jobs:
        own = job.options()
        assert (own.seed, own.split, own.max_steps) == (job.seed, options.split, 9)


@pytest.mark.parametrize(
    ("budget", "announced"),
    [
        (
            {"max_steps": None},
            "6 runs, one after the other, each until early stopping, at most 7 epochs of 17 steps; "
            "fewer steps, minutes or epochs set a budget.\n",
        ),
        ({"max_steps": 9}, "6 runs of 9 steps each, less than an epoch (17 steps).\n"),
        ({"max_steps": 17}, ""),
    ],
)
def test_what_is_to_come_is_announced_before_the_first_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], budget: dict[str, int | None], announced: str
) -> None:
    said: list[str] = []
    options = replace(tiny_options(tiny_reader(), epochs=7, batch_size=8), **budget)
    compare(
        tiny_network(),
        tmp_path / "out",
        SKILL,
        (0, 3),
        options,
        runner=lambda _: said.append(capsys.readouterr().err),
    )
    assert len(said) == 6
    assert "".join(line for line in said[0].splitlines(keepends=True) if "6 runs" in line) == announced
    assert ("Estimate by a few timed steps of Heterformer: at most about" in said[0]) == (
        not options.max_steps
    )


def test_a_network_is_given_by_its_folder_and_options_by_name(tmp_path: Path) -> None:
    jobs: list[Job] = []
    folder, keywords = str(tiny_network().path), {"backbone": tiny_reader(), "max_steps": 4}
    compare(folder, str(tmp_path / "out"), ["bert"], [1], runner=jobs.append, **keywords)
    assert [(job.network, job.seed, job.options().max_steps) for job in jobs] == [(tiny_network().path, 1, 4)]


def test_what_is_finished_is_not_repeated(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = pretended_comparison(out, SKILL)
    before = times(out)
    again = pretended_comparison(out, SKILL)
    assert times(out) == before
    assert again == first


def test_more_seeds_and_models_join_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    pretended_comparison(out, {"heterformer": 0.5}, seeds=(0,))
    before = times(out)
    found = pretended_comparison(out, SKILL, models=("bert",), seeds=(1,))
    assert [(row.variant.name, seed.seed) for row in found.rows for seed in row.seeds] == [
        ("bert", 1),
        ("heterformer", 0),
    ]
    assert before.items() <= times(out).items()


def test_a_failed_run_is_noted_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = {name: SKILL[name] for name in ("bert", "heterformer")}
    found = pretended_comparison(tmp_path / "out", skill, models=tuple(SKILL), seeds=(0,))
    ((row, seed),) = found.failed
    assert (row.variant.name, seed.reason) == ("no_tl", "it was not meant to be")
    assert {row.variant.name for row in found.rows if row.results} == {"bert", "heterformer"}
    assert "No-TL, seed 0 failed: it was not meant to be" in capsys.readouterr().err
    mended = pretended_comparison(tmp_path / "out", SKILL, seeds=(0,))
    assert not mended.failed
    assert "failed:" not in capsys.readouterr().err
    assert len(mended.rows[-1].results) == 1


def test_an_interruption_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs: list[Job] = []

    def interrupted(job: Job) -> None:
        if len(jobs) == 2:
            raise KeyboardInterrupt
        jobs.append(job)
        pretended(SKILL)(job)

    options = tiny_options(tiny_reader(), max_steps=300)
    with pytest.raises(KeyboardInterrupt):
        compare(tiny_network(), tmp_path / "out", SKILL, (0,), options, runner=interrupted)
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == f"{tmp_path / 'out'}: 2 of 3 runs finished; the same command resumes."
    capsys.readouterr()
    pretended_comparison(tmp_path / "out", SKILL, seeds=(0,))
    assert "2 of 3 runs are finished already." in capsys.readouterr().err


def test_each_new_state_is_shown(tmp_path: Path) -> None:
    seen: list[list[int]] = []
    options = tiny_options(tiny_reader(), max_steps=300)
    compare(
        tiny_network(),
        tmp_path / "out",
        SKILL,
        (0,),
        options,
        observe=lambda state: seen.append([len(row.results) for row in state.rows]),
        runner=pretended(SKILL),
    )
    assert seen == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_a_larger_budget_goes_on_with_what_is_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "out"
    pretended_comparison(out, SKILL, seeds=(0,))
    jobs: list[Job] = []
    options = tiny_options(tiny_reader(), max_steps=400)
    found = compare(tiny_network(), out, ("bert",), (0,), options, runner=jobs.append)
    assert [job.variant.name for job in jobs] == ["bert"]
    assert all(seed.status == "unfinished" for row in found.rows for seed in row.seeds)


@pytest.mark.parametrize(
    ("changes", "name"), [({"batch_size": 17}, "batch_size"), ({"max_steps": 200}, "max_steps")]
)
def test_other_options_or_a_smaller_budget_want_another_folder(
    tmp_path: Path, changes: dict[str, int], name: str
) -> None:
    out = tmp_path / "out"
    pretended_comparison(out, SKILL, seeds=(0,))
    options = replace(tiny_options(tiny_reader(), max_steps=300), **changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=rf"cannot resume with {name} changed; give the old values"):
        compare(tiny_network(), out, SKILL, (0,), options, runner=pretended(SKILL))


def test_another_network_wants_another_folder(tmp_path: Path) -> None:
    pretended_comparison(tmp_path / "out", {"bert": 0.3}, seeds=(0,))
    other = synthetic_network(tmp_path, seed=1)
    with pytest.raises(InputError, match="network is not the network it compares on"):
        compare(other, tmp_path / "out", ("bert",), (0,), tiny_options(tiny_reader(), max_steps=300))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="exists and is not a comparison; choose another name"):
        pretended_comparison(tmp_path, SKILL)
    assert os.listdir(tmp_path) == ["thesis.tex"]


@pytest.mark.parametrize("seeds", [(), (1, 1)])
def test_seeds_must_differ(tmp_path: Path, seeds: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="expected different whole numbers"):
        pretended_comparison(tmp_path / "out", SKILL, seeds=seeds)
    assert not (tmp_path / "out").exists()


def test_a_comparison_is_read_from_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert not is_comparison(out)
    made = pretended_comparison(out, SKILL)
    assert is_comparison(out)
    assert finished_comparison(out) == replace(made, setup=finished_comparison(out).setup)
    with pytest.raises(InputError, match="not a comparison, expected a folder that 'heterformer compare'"):
        finished_comparison(tmp_path)


def test_the_folder_keeps_the_common_options(tmp_path: Path) -> None:
    out = tmp_path / "out"
    pretended_comparison(out, {"bert": 0.3}, seeds=(0,), evaluate_every=7)
    kept = yaml.safe_load((out / "compare.yaml").read_text())
    assert TrainingOptions.from_dict(kept["options"]).evaluate_every == 7
    common = training_defaults(["net", "out", "--config", str(out / "compare.yaml")], every_model=True)
    assert common == TrainingOptions.from_dict(kept["options"], EveryModelOptions)
    assert common.evaluate_every == 7
