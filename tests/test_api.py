"""What ``import heterformer`` offers: complete, documented, and quick to import."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import heterformer

PUBLIC = {
    "Network",
    "Recommender",
    "TrainingOptions",
    "train",
    "Run",
    "Heterformer",
    "load_model",
    "predict",
    "embed",
    "Vectors",
    "Searcher",
    "evaluate",
    "explain",
    "finetune",
    "leave_one_out",
    "compare",
    "distill",
    "Student",
    "LinkLoader",
    "HeteroTextEncoder",
    "InputError",
}
HEAVY = ("torch", "transformers", "sklearn", "matplotlib", "polars", "pyarrow", "accelerate")


def test_the_public_names() -> None:
    assert set(heterformer.__all__) == PUBLIC
    assert set(dir(heterformer)) >= PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_a_public_name_stays_what_it_is_once_every_module_is_imported(name: str) -> None:
    """No subpackage takes the place of a function of its name."""
    for folder in Path(heterformer.__file__).parent.iterdir():
        if (folder / "__init__.py").is_file():
            importlib.import_module(f"heterformer.{folder.name}")
    found = getattr(heterformer, name)
    assert inspect.isclass(found) or inspect.isfunction(found)
    assert found.__name__ == name


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'heterformer' has no attribute 'nothing'"):
        _ = heterformer.nothing


def test_type_checkers_see_what_is_imported_on_first_use() -> None:
    tree = ast.parse(Path(heterformer.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: str(node.module).removeprefix("heterformer.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == heterformer._MODULES


@pytest.mark.parametrize("statement", ["import heterformer", "from heterformer import InputError; dir()"])
def test_importing_is_quick(statement: str) -> None:
    """Nothing that takes seconds is imported before it is used."""
    command = f"{statement}; import sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_documented_with_an_example(name: str) -> None:
    found = getattr(heterformer, name)
    doc = inspect.getdoc(found) or ""
    assert "Example:" in doc, f"{name} has no example"
    assert ">>>" in doc, f"{name}: the example is no Python session"
    if inspect.isfunction(found):
        arguments = [a for a in inspect.signature(found).parameters if not a.startswith("_")]
        missing = [a for a in arguments if f"\n    {a}: " not in doc and f"\n    **{a}: " not in doc]
        assert missing == [], f"{name} does not describe {missing}"
