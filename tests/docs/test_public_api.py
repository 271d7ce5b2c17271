"""README.md, docs/, examples/ and benchmarks/ import nothing deeper where a public name serves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import heterformer
from heterformer import datasets
from tests.docs.blocks import ROOT, blocks, pages

PUBLIC = {*heterformer.__all__, "datasets"}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


def imports(source: str) -> Iterator[tuple[str, str]]:
    """(module, name) of everything of ours that a piece of code imports, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "heterformer":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            ours = [a.name for a in node.names if a.name.split(".")[0] == "heterformer"]
            yield from ((name, "") for name in ours)


def check(source: str, where: str) -> None:
    for module, name in imports(source):
        if module == "heterformer":
            assert not name or name in PUBLIC, f"{where}: {name} is not public"
        else:
            raise AssertionError(f"{where}: imports {name} from {module}")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_a_page_imports_public_names(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            check(block.text, block.place)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_imports_public_names(example: Path) -> None:
    check(example.read_text(encoding="utf-8"), example.name)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_benchmark_imports_public_names_as_such(benchmark: Path) -> None:
    """It may measure parts that are not public, but imports no public name from where it is defined."""
    imported = imports(benchmark.read_text(encoding="utf-8"))
    assert [f"{m}.{n}" for m, n in imported if m != "heterformer" and n in heterformer.__all__] == []


def test_datasets_offers_what_it_names() -> None:
    assert [name for name in datasets.__all__ if not hasattr(datasets, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        datasets.nothing  # noqa: B018


def test_a_deeper_import_is_found() -> None:
    with pytest.raises(AssertionError, match=r"imports embed from heterformer\.embedding\.embed"):
        check("def f():\n    from heterformer.embedding.embed import embed", "here")
    with pytest.raises(AssertionError, match="nothing is not public"):
        check("from heterformer import nothing", "here")


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_prose_names_no_module_as_the_way_in(page: Path) -> None:
    """'In Python it is heterformer.search.searcher.Searcher' is what ``from heterformer import`` is for."""
    text = page.read_text(encoding="utf-8")
    assert [n for n in heterformer.__all__ if any(f"heterformer.{m}.{n}`" in text for m in MODULES)] == []


MODULES = sorted(set(heterformer._MODULES.values()))
