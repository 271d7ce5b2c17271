"""tools/check_release.py: what it refuses."""

from __future__ import annotations

import inspect
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load(name: str) -> ModuleType:
    spec = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check = load("check_release")
DATED, OPEN = "# Changelog\n\n## [1.2.3] - 2030-01-02\n", "# Changelog\n\n## [1.2.3] - Unreleased\n"


def test_a_dated_version_fits_its_tag() -> None:
    assert check.check_changelog(DATED, "1.2.3", "v1.2.3") == "1.2.3 is dated 2030-01-02."


def test_a_version_without_a_date_is_only_for_a_look() -> None:
    assert "set it before the tag" in check.check_changelog(OPEN, "1.2.3")
    with pytest.raises(SystemExit, match="expected the day of its release"):
        check.check_changelog(OPEN, "1.2.3", "v1.2.3")


def test_another_version_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"no entry '## \[1\.2\.4\] - DATE'"):
        check.check_changelog(DATED, "1.2.4")
    with pytest.raises(SystemExit, match=r"the tag is v1\.2\.4, but the version is 1\.2\.3"):
        check.check_changelog(DATED, "1.2.3", "v1.2.4")


def archives(
    folder: Path, package: set[str], sources: set[str], description: str = "[a](https://example.org)"
) -> tuple[Path, Path]:
    wheel, sdist = folder / "x.whl", folder / "x.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in package:
            archive.writestr(name, "")
        archive.writestr("heterformer-1.dist-info/METADATA", f"Name: heterformer\n\n{description}\n")
    with tarfile.open(sdist, "w:gz") as archive:
        for name in sources:
            archive.addfile(tarfile.TarInfo(f"heterformer-1/{name}"), io.BytesIO())
    return wheel, sdist


def test_a_wheel_has_every_tracked_file_and_no_other(tmp_path: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    package = {name.removeprefix("src/") for name in listed}
    sources = {*listed, "pyproject.toml", "README.md", "LICENSE"}
    check.check_contents(*archives(tmp_path, package, sources))
    with pytest.raises(SystemExit, match=r"lacks \['heterformer/py\.typed'\], has besides \['tests/x\.py'\]"):
        check.check_contents(
            *archives(tmp_path, package - {"heterformer/py.typed"} | {"tests/x.py"}, sources)
        )
    with pytest.raises(SystemExit, match=r"x\.tar\.gz: lacks \['LICENSE'\]"):
        check.check_contents(*archives(tmp_path, package, sources - {"LICENSE"}))
    with pytest.raises(SystemExit, match=r"x\.tar\.gz: has besides \['tests/test_x\.py'\]"):
        check.check_contents(*archives(tmp_path, package, sources | {"tests/test_x.py"}))
    with pytest.raises(SystemExit, match=r"relative links, docs/a\.md for one"):
        check.check_contents(*archives(tmp_path, package, sources, "[a](docs/a.md)"))


def test_the_smoke_test_needs_nothing_that_tests_need() -> None:
    """It runs where pytest is not installed."""
    code = "import sys; sys.modules['pytest'] = None; sys.modules['hypothesis'] = None; import smoke_test"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT / "tools", check=True)


def answered(monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str = "") -> list[list[str]]:
    """Let pip-audit say this; the commands that were run."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, stdout, stderr)

    monkeypatch.setattr(check.subprocess, "run", run)
    return commands


def test_a_known_vulnerability_ends_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    packages: list[dict[str, object]] = [
        {"name": "good", "version": "1", "vulns": []},
        {"name": "bad", "version": "2", "vulns": [{"id": "PYSEC-1"}]},
        {"name": "local", "skip_reason": "not on the index"},
    ]
    commands = answered(monkeypatch, json.dumps({"dependencies": packages}))
    with pytest.raises(SystemExit, match=r"known vulnerabilities: raise the versions in constraints\.txt\."):
        check.audit()
    assert capsys.readouterr().out == "bad 2: PYSEC-1\n3 packages, 1 known vulnerabilities\n"
    assert commands[0][1:5] == ["-m", "pip_audit", "-r", "constraints.txt"]
    answered(monkeypatch, json.dumps({"dependencies": packages[:1]}))
    check.audit()
    assert capsys.readouterr().out == "1 packages, 0 known vulnerabilities\n"


def test_a_database_that_cannot_be_reached_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(monkeypatch, "", "WARNING: …\nConnectionError: no route to host\n")
    check.audit()
    said = "pip-audit: the database cannot be reached, nothing was looked up"
    assert capsys.readouterr().out == f"{said} (ConnectionError: no route to host).\n"


def test_the_release_check_looks_for_vulnerabilities() -> None:
    assert "audit()" in inspect.getsource(check.main).split()
