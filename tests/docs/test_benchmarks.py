"""Benchmarks are run by hand, so a name that has moved would go unseen: every import is looked up."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

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
