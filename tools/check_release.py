"""What a maintainer checks before a tag: 'make check-release', or with TAG=v0.2.0 that the tag fits, too.

Builds wheel and sdist into dist/, checks their metadata and contents and the files that hosting services
read, then installs the wheel into a new virtual environment and runs the README there (tools/smoke_test.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SCHEMAS = {
    "github-workflows": ".github/workflows/*.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "dependabot": ".github/dependabot.yml",
    "citation-file-format": "CITATION.cff",
}
# Of an sdist, beside the package.
SDIST = {
    *("pyproject.toml", "setup.py", "setup.cfg", "MANIFEST.in", "PKG-INFO"),
    *("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"),
}
OWN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")  # variables that would show a new environment this one


def main(tag: str = "") -> None:
    """Run all checks; the first one that fails ends the program."""
    version = _version()
    step("changelog")
    print(check_changelog((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version, tag))
    step("files of hosting services")
    for schema, pattern in SCHEMAS.items():
        files = [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(pattern))]
        tool("check_jsonschema", "--builtin-schema", f"vendor.{schema}", *files)
    run("hadolint", "Dockerfile") if shutil.which("hadolint") else print("hadolint: not installed, skipped.")
    step("wheel and sdist")
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # or files that are gone would be in the wheel
    tool("build", "--no-isolation", "--outdir", str(DIST))
    wheel, sdist = next(DIST.glob("*.whl")), next(DIST.glob("*.tar.gz"))
    tool("twine", "check", "--strict", str(wheel), str(sdist))
    check_contents(wheel, sdist)
    step("known vulnerabilities")
    audit()
    step("a new virtual environment")
    smoke_test(wheel)
    print(f"\nheterformer {version} is ready: {wheel.name}, {sdist.name}.")


def check_changelog(text: str, version: str, tag: str = "") -> str:
    """A sentence about the version's entry; the program ends if there is none, or none that fits the tag."""
    entry = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", text, re.MULTILINE)
    if entry is None:
        sys.exit(f"CHANGELOG.md: no entry '## [{version}] - DATE'.")
    if tag and tag != f"v{version}":
        sys.exit(f"the tag is {tag}, but the version is {version}.")
    if re.fullmatch(r"\d{4}-\d\d-\d\d", entry[1]):
        return f"{version} is dated {entry[1]}."
    if tag:
        sys.exit(f"CHANGELOG.md: {version} is dated {entry[1]!r}, expected the day of its release.")
    return f"{version} has no date yet ({entry[1]}); set it before the tag."


def check_contents(wheel: Path, sdist: Path) -> None:
    """The wheel has every tracked file of the package and no other; the sdist what it takes to build it."""
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
        about = archive.read(next(name for name in files if name.endswith(".dist-info/METADATA"))).decode()
    if relative := re.findall(r"\]\((?!https?:|#)([^)]*)", about):
        sys.exit(f"{wheel.name}: its description has relative links, {relative[0]} for one.")
    package = {name for name in files if not PurePosixPath(name).parts[0].endswith(".dist-info")}
    listed = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\n")
    tracked = {name.removeprefix("src/") for name in listed if name}
    if package != tracked:
        sys.exit(f"{wheel.name}: lacks {sorted(tracked - package)}, has besides {sorted(package - tracked)}.")
    print(*files, sep="\n")
    print(f"{wheel.name}: {len(files)} files, {wheel.stat().st_size / 1e6:.1f} MB")
    with tarfile.open(sdist) as sources:
        names = {member.name.partition("/")[2] for member in sources if member.isfile()}
    if lacking := {"pyproject.toml", "README.md", "LICENSE", *listed} - names - {""}:
        sys.exit(f"{sdist.name}: lacks {sorted(lacking)}.")
    if besides := {n for n in names - SDIST - set(listed) if not n.startswith("src/heterformer.egg-info/")}:
        sys.exit(f"{sdist.name}: has besides {sorted(besides)}.")
    print(f"{sdist.name}: {len(names)} files, {sdist.stat().st_size / 1e6:.1f} MB")


def audit() -> None:
    """Look the pinned versions up in PyPI's database of vulnerabilities, if it can be reached."""
    command = ["pip_audit", "-r", "constraints.txt", "--no-deps", "--disable-pip", "-f", "json"]
    done = subprocess.run(
        [sys.executable, "-m", *command, "--progress-spinner", "off"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        print(f"pip-audit: the database cannot be reached, nothing was looked up ({reason[:120]}).")
        return
    known = [f"{p['name']} {p['version']}: {v['id']}" for p in packages for v in p.get("vulns", ())]
    print(*known, f"{len(packages)} packages, {len(known)} known vulnerabilities", sep="\n")
    if known:
        sys.exit("known vulnerabilities: raise the versions in constraints.txt.")


def smoke_test(wheel: Path) -> None:
    """Install the wheel as a user would, with pinned versions, and run the README."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        python = str(Path(folder) / "bin" / "python")
        install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        install = (*install, "-c", str(ROOT / "constraints.txt"))
        run(*install, "torch")  # first and pinned, as in the Makefile
        run(*install, f"{wheel}[index,minilm,pyg,serve]")
        run(python, "-m", "pip", "check")
        run(python, str(ROOT / "tools" / "smoke_test.py"), cwd=Path(folder))


def step(title: str) -> None:
    """Print a heading."""
    print(f"\n== {title}", flush=True)


def tool(module: str, *arguments: str) -> None:
    """Run a module of the extra 'release'."""
    subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, check=True)


def run(*words: str, cwd: Path = ROOT) -> None:
    """Run a program outside of this script's own environment."""
    environment = {name: value for name, value in os.environ.items() if name not in OWN}
    subprocess.run(words, cwd=cwd, check=True, env=environment)


def _version() -> str:
    text = (ROOT / "src" / "heterformer" / "__init__.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert match is not None
    return match[1]


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"failed: {' '.join(map(str, error.cmd))}")
