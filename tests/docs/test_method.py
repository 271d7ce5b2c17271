"""docs/method.md: every file and every symbol that it names exists; docs/architecture.md: every file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import heterformer
from tests.docs.blocks import ROOT

PAGE, ARCHITECTURE = (
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("method.md", "architecture.md")
)
SOURCE = Path(heterformer.__file__).parent
FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.py)`")
# A name in code font: `Class`, `Class.member`, `function`, `function(…)`, `CONSTANT["key"]`.
SYMBOL = r"`([A-Za-z_][\w.]*)(?:[(\[][^`]*)?`"


def members(tree: ast.AST) -> set[str]:
    """Every name that a module defines, alone and with its class."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner}" for inner in names(node)}
    return found | names(tree)


def names(node: ast.AST) -> set[str]:
    """The functions, classes and variables in the body of a module or class."""
    found: set[str] = set()
    for statement in getattr(node, "body", ()):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found.add(statement.name)
        targets = (
            [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
        )
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


DEFINED = {
    path.relative_to(SOURCE).as_posix(): members(ast.parse(path.read_text(encoding="utf-8")))
    for path in SOURCE.rglob("*.py")
}
EVERYTHING = set().union(*DEFINED.values())


def path_of(file: str) -> Path | None:
    rooms = (SOURCE / "models" / "baselines", SOURCE / "datasets", SOURCE / "maps")
    folders = (SOURCE, *rooms, ROOT)
    return next((folder / file for folder in folders if (folder / file).is_file()), None)


@pytest.mark.parametrize("file", sorted(set(FILE.findall(PAGE + ARCHITECTURE))))
def test_a_file_exists(file: str) -> None:
    assert path_of(file) is not None


def pairs() -> list[tuple[str, str]]:
    """(file, symbol) wherever the page says `file`: `symbol`, `symbol` … or `file` (`symbol`)."""
    found = []
    for match in re.finditer(rf"{FILE.pattern}(?:: | \(|, )((?:{SYMBOL}(?:, )?)+)", PAGE):
        found += [(match[1], symbol) for symbol in re.findall(SYMBOL, match[2]) if path_of(symbol) is None]
    return found


@pytest.mark.parametrize(("file", "symbol"), pairs())
def test_a_symbol_is_in_its_file(file: str, symbol: str) -> None:
    path = path_of(file)
    assert path is not None
    assert symbol in members(ast.parse(path.read_text(encoding="utf-8")))


def test_the_page_names_many_symbols() -> None:
    assert len(pairs()) > 20


@pytest.mark.parametrize("symbol", sorted(set(re.findall(r"`([A-Z]\w+\.[a-z_]\w*)(?:\([^`]*)?`", PAGE))))
def test_a_member_exists_somewhere(symbol: str) -> None:
    assert symbol in EVERYTHING
