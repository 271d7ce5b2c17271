"""tools/check_release.py: what it refuses."""

from __future__ import annotations

import io
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


def archives(folder: Path, package: set[str], sources: set[str]) -> tuple[Path, Path]:
    wheel, sdist = folder / "x.whl", folder / "x.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (*package, "heterformer-1.dist-info/METADATA"):
            archive.writestr(name, "")
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


def test_the_smoke_test_needs_nothing_that_tests_need() -> None:
    """It runs where pytest is not installed."""
    code = "import sys; sys.modules['pytest'] = None; sys.modules['hypothesis'] = None; import smoke_test"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT / "tools", check=True)
