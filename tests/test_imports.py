"""The import graph: modules import downwards only, and a feature's core knows no table, figure or card."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import heterformer

ROOT = Path(heterformer.__file__).parent
# From the bottom to the top. A room may import itself and what stands before it.
ROOMS = (
    "errors",
    "escapes",
    "untrusted",
    "temporary",
    "allocator",
    "options",
    "precision",
    "recipe",
    "progress",
    "files",
    "digests",
    "stored",
    "arrays",
    "metrics",
    "tables",
    "figures",
    "device",
    "ranking",
    "distributed",
    "network",
    "datasets",
    "batches",
    "models",
    "states",
    "training",
    "geometric",
    "embedding",
    "search",
    "recommendation",
    "maps",
    "evaluation",
    "prediction",
    "finetuning",
    "explanation",
    "plan",
    "comparison",
    "tuning",
    "distillation",
    "publishing",
    "checks",
    "serve",
    "cli",
    "auto_classes",
)
FEATURES = (
    "network",
    "datasets",
    "models",
    "training",
    "geometric",
    "embedding",
    "search",
    "recommendation",
    "maps",
    "evaluation",
    "prediction",
    "finetuning",
    "explanation",
    "comparison",
    "tuning",
    "distillation",
    "publishing",
    "plan",
    "checks",
    "serve",
)
# Modules of a feature that show what its core has found. A core must not need them.
SHOWING = ("table", "tables", "figure", "figures", "page", "report", "draw", "curves", "style", "card")
# Modules of such a name that show nothing: they draw pairs, read tables or hold the build report.
NOT_SHOWING = (
    "heterformer.network.build.node_tables",
    "heterformer.network.build.report",
    "heterformer.network.split.draw",
    "heterformer.network.tables",
)
# What a user calls to get a folder with a card in it: it joins the core and the card, and no core imports it.
ENTRIES = ("heterformer.training.train", "heterformer.distillation.entry")


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}
INSIDE = {name: path for name, path in MODULES.items() if name.count(".") and "__main__" not in name}


def imports(path: Path) -> Iterator[str]:
    """Every module of ours that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def ours(path: Path) -> list[str]:
    return [name for name in imports(path) if name.startswith("heterformer.")]


def room(module: str) -> str:
    return module.split(".")[1]


def test_every_module_is_in_a_room() -> None:
    assert {room(name) for name in INSIDE} == set(ROOMS)


@pytest.mark.parametrize("module", sorted(INSIDE))
def test_imports_go_downwards(module: str) -> None:
    order = {name: place for place, name in enumerate(ROOMS)}
    above = [name for name in ours(INSIDE[module]) if order[room(name)] > order[room(module)]]
    assert above == []


def test_a_core_imports_no_table_figure_or_card() -> None:
    wrong = []
    for module, path in INSIDE.items():
        if room(module) in FEATURES and not shows(module) and module not in ENTRIES:
            wrong += [f"{module} imports {name}" for name in ours(path) if shows(name)]
    assert wrong == []


def test_an_entry_is_imported_from_outside_its_feature() -> None:
    importers = {m for m, path in INSIDE.items() if set(ours(path)) & set(ENTRIES)}
    rooms = {room(entry) for entry in ENTRIES}
    assert {m for m in importers if room(m) in rooms} == set()


def shows(module: str) -> bool:
    last = module.rsplit(".", 1)[1]
    if room(module) not in FEATURES or module in NOT_SHOWING:
        return False
    return any(last == word or last.endswith(f"_{word}") for word in SHOWING)
