"""Tests mirror the tree: whoever knows a module knows where its tests are."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import heterformer

SOURCE = Path(heterformer.__file__).parent
TESTS = Path(__file__).parent
# Tests of what no single module does.
ACROSS = {
    "batches/test_leaks.py",
    "cli/commands/test_commands.py",
    "comparison/test_commands.py",
    "datasets/test_commands.py",
    "embedding/test_baselines.py",
    "embedding/test_kills.py",
    "embedding/test_several.py",
    "evaluation/test_several.py",
    "explanation/test_command.py",
    "models/plm/layouts/test_layouts.py",
    "network/test_damage.py",
    "recommendation/test_command.py",
    "recommendation/test_learning.py",
    "search/test_baselines.py",
    "search/test_command.py",
    "search/test_grown.py",
    "serve/test_any_request.py",
    "test_api.py",
    "test_durability.py",
    "test_full_disk.py",
    "test_growth.py",
    "test_imports.py",
    "test_mirror.py",
    "training/test_attributes.py",
    "training/test_baselines.py",
    "training/test_commands.py",
    "training/test_learning.py",
    "training/test_low_rank.py",
    "training/test_relations.py",
    "training/test_strangers.py",
}
APART = (
    "browser",
    "compatibility",
    "docs",
    "release",
)  # the page, earlier versions, documentation, packaging
MODULES = [
    path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py")) if not path.name.startswith("__")
]


def test_every_test_file_has_its_module() -> None:
    modules = {(path.parent / f"test_{path.name}").as_posix() for path in MODULES}
    files = {path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    files = {path for path in files if path.parts[0] not in APART}
    assert sorted({path.as_posix() for path in files} - modules) == sorted(ACROSS)


@pytest.mark.parametrize("module", MODULES, ids=Path.as_posix)
def test_every_module_is_tested_in_its_folder(module: Path) -> None:
    """By a file of its name or the folder's, or by one that imports it or tests a module that does."""
    folder = TESTS / module.parent
    if (folder / f"test_{module.name}").is_file() or (folder / f"test_{folder.name}.py").is_file():
        return
    name = ".".join(("heterformer", *module.with_suffix("").parts))
    beside = [path for path in folder.glob("*.py") if name in imports(path)]
    users = [path for path in (SOURCE / module.parent).glob("*.py") if name in imports(path)]
    assert beside or any((folder / f"test_{path.name}").is_file() for path in users)


def imports(path: Path) -> set[str]:
    """All modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found
