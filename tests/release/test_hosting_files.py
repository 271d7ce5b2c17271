"""Files that GitHub, pre-commit and Docker read: they parse, and say what they must."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(set((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) - {GITHUB / "ISSUE_TEMPLATE" / "config.yml"})
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def load(path: Path) -> Any:
    """A YAML file; the key 'on' of a workflow is a text here, not true."""
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in values.items()}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_narrow_permissions_and_known_steps(path: Path) -> None:
    workflow = load(path)
    assert workflow["name"]
    assert workflow["on"]
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        assert job["timeout-minutes"] <= 90
        assert job.get("needs", "build") in workflow["jobs"] or "needs" not in job
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w./-]+@(v\d+|release/v1)", step.get("uses", "a/b@v1"))
            for target in re.findall(r"\bmake PYTHON=python ([\w-]+)", step.get("run", "")):
                assert f"\n{target}:" in MAKEFILE


def test_all_supported_versions_of_python_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    matrix = load(GITHUB / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == classified == ["3.11", "3.12", "3.13"]
    assert project["requires-python"] == f">={matrix[0]}"


def test_publishing_needs_no_token() -> None:
    workflow = load(GITHUB / "workflows" / "release.yml")
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"]["name"] == "pypi"
    assert workflow["on"] == {"push": {"tags": ["v*"]}}
    for path in WORKFLOWS:
        assert "secrets." not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_asks_for_something(path: Path) -> None:
    form = load(path)
    assert form["name"]
    assert form["description"]
    identifiers = [field["id"] for field in form["body"]]
    assert len(set(identifiers)) == len(identifiers)
    assert any(field.get("validations", {}).get("required") for field in form["body"])
    assert all(field["attributes"]["label"] for field in form["body"])


def test_dependabot_watches_what_is_pinned() -> None:
    config = load(GITHUB / "dependabot.yml")
    assert config["version"] == 2
    assert {u["package-ecosystem"] for u in config["updates"]} == {"pip", "github-actions", "docker"}
    assert all(u["directory"] == "/" and u["schedule"]["interval"] for u in config["updates"])


def test_pre_commit_runs_what_make_lint_runs() -> None:
    hooks = [h for repo in load(ROOT / ".pre-commit-config.yaml")["repos"] for h in repo["hooks"]]
    lint = re.search(r"^lint:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert lint is not None
    programs = re.findall(r"\$\(BIN\)/(ruff \w+|mypy)", lint[1])
    assert [h["name"] for h in hooks] == programs
    assert all(h["entry"].startswith(f".venv/bin/{name}") for h, name in zip(hooks, programs, strict=True))


def test_the_dockerfile_takes_its_base_and_runs_as_a_user() -> None:
    instructions = re.findall(r"^([A-Z]+) (.*)$", re.sub(r"\\\n", " ", DOCKERFILE), re.MULTILINE)
    kinds = [kind for kind, _ in instructions]
    assert instructions[0] == ("ARG", "BASE=debian:13-slim")
    assert instructions[1] == ("FROM", "${BASE}")
    assert ("ENTRYPOINT", '["heterformer"]') in instructions
    assert kinds.index("USER") > max(place for place, kind in enumerate(kinds) if kind == "RUN")
    copied = [word for kind, text in instructions if kind == "COPY" for word in text.split()[:-1]]
    assert all((ROOT / word).exists() for word in copied)
    visible = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{word}" for word in copied} <= set(visible)
    extras = re.search(r"/src\[([\w,]+)\]", DOCKERFILE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="hadolint is not installed")
def test_hadolint_accepts_the_dockerfile() -> None:
    done = subprocess.run(["hadolint", ROOT / "Dockerfile"], capture_output=True, text=True)
    assert done.stdout == ""
