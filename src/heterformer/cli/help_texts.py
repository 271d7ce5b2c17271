"""Help of options: the docstrings below their fields, as flowing text.

tyro would keep the line breaks of a docstring of several lines, because its further lines are indented.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from sys import modules
from typing import Any, get_type_hints

from tyro import MISSING
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo

REGISTRY = ConstructorRegistry()
"""tyro's rules, with ours for groups of options."""


@REGISTRY.struct_rule
def _options(info: StructTypeInfo) -> StructConstructorSpec | None:
    """A group of options; its help is looked up only if it is shown."""
    if not dataclasses.is_dataclass(info.type) or not _is_ours(info.type):
        return None
    hints = get_type_hints(info.type, include_extras=True)
    has_default = isinstance(info.default, info.type)
    fields = (
        StructFieldSpec(
            name=field.name,
            type=hints[field.name],
            default=getattr(info.default, field.name) if has_default else _default(field),
            helptext=partial(help_text, info.type, field.name),
        )
        for field in dataclasses.fields(info.type)
    )
    return StructConstructorSpec(instantiate=info.type, fields=tuple(fields))


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return MISSING


def _is_ours(options: type) -> bool:
    """Whether a class is one of ours or made of one, and not tyro's own."""
    return any(base.__module__.startswith("heterformer.") for base in options.__mro__)


def help_text(options: type, field: str) -> str | None:
    """The docstring of a field in one line; of a field that is defined anew, the first that there is."""
    texts = (_field_texts(base.__module__).get((base.__qualname__, field)) for base in options.__mro__)
    return next((text for text in texts if text), None)


@cache
def _field_texts(module: str) -> dict[tuple[str, str], str]:
    """The docstrings of all fields of a module's classes, by class and field."""
    file = getattr(modules.get(module), "__file__", None)
    if file is None or not file.endswith(".py"):
        return {}
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {
        (node.name, name): " ".join(text.split())
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for name, text in _texts(node)
    }


def _texts(tree: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for line, after in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(line, ast.AnnAssign)
            and isinstance(line.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
            and isinstance(after.value.value, str)
        ):
            yield line.target.id, after.value.value
