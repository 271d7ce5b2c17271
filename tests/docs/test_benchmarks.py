"""Benchmarks are run by hand, so a name that has moved would go unseen: every import is looked up."""

from __future__ import annotations

import ast
import runpy
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from tests.serve.serving import wait_for

SCRIPTS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_imported_name_exists(script: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(script.read_text())) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if node.module and node.module.split(".")[0] == "heterformer"]
    for node in ours:
        module = import_module(node.module)
        missing = [name.name for name in node.names if not hasattr(module, name.name)]
        assert not missing, f"{script.name}: {node.module} has no {missing}"


def test_some_benchmarks_use_the_package() -> None:
    assert sum("heterformer" in script.read_text() for script in SCRIPTS) > 10


def test_all_processes_of_a_browser_end_with_it() -> None:
    """One that goes on would write into the profile while that is removed."""
    end = runpy.run_path(str(SCRIPTS[0].with_name("chromium.py")))["_end"]
    child = "trap '' TERM; echo $$; exec sleep 600"
    command = ["bash", "-c", 'bash -c "$0" & wait', child]
    browser = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    assert browser.stdout is not None
    other = Path("/proc", browser.stdout.readline().decode().strip(), "stat")
    assert other.exists()
    end(browser)
    browser.stdout.close()
    wait_for(lambda: has_ended(other))


def has_ended(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_stages_that_are_finished_are_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million nodes take hours, and whatever stops the benchmark must cost the stage at hand at most."""
    monkeypatch.syspath_prepend(SCRIPTS[0].parent)
    benchmark = import_module("end_to_end")
    fail_once = "test -e begun || { touch begun; exit 1; }"
    stages = {"first": "echo once >> first", "second": fail_once, "build": "mkdir network.net"}
    commands = {name: ["bash", "-c", script] for name, script in stages.items()}
    monkeypatch.setattr(benchmark.Size, "stages", lambda self: commands)
    size = benchmark.Size(200, tmp_path / "200", layers=1, steps=1)
    with pytest.raises(SystemExit, match="second failed; see"):
        size.measured()
    (size.folder / "network.net").mkdir()  # as if the stop had come just after it was written
    costs = size.measured()
    assert (size.folder / "first").read_text() == "once\n"
    assert {name: cost.resumed for name, cost in costs.items()} == {
        "first": False,
        "second": True,
        "build": False,
    }
    assert size.measured() == costs
