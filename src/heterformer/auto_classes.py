"""The Auto classes of Transformers know our models as soon as ``heterformer`` is imported.

Transformers takes seconds to import, so nothing is imported for this: when its table of configurations
is there, now or later, it gets our model types, each with a class that is imported when it is looked up.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

TABLE = "transformers.models.auto.configuration_auto"


def register_when_imported() -> None:
    """Add our model types to the table now if it is imported, else as soon as it is."""
    if TABLE in sys.modules:
        _add_model_types(sys.modules[TABLE])
    elif not any(isinstance(finder, _TableFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TableFinder())


class _Configurations(dict[str, Any]):
    """Configuration classes by model type; a text is the module that has the model, and registers it."""

    def __getitem__(self, model_type: str) -> Any:
        value = super().__getitem__(model_type)
        if isinstance(value, str):
            import_module(value)  # which puts its classes into the tables
            value = super().__getitem__(model_type)
        return value

    def values(self) -> Any:
        return [self[model_type] for model_type in self]

    def items(self) -> Any:
        return [(model_type, self[model_type]) for model_type in self]


def _add_model_types(table: ModuleType) -> None:
    from heterformer.models.options import MODEL_OPTIONS

    known = table.CONFIG_MAPPING._extra_content
    modules = {model.model_type(): model.path.partition(":")[0] for model in MODEL_OPTIONS.values()}
    table.CONFIG_MAPPING._extra_content = _Configurations({**modules, **known})


class _TableFinder(MetaPathFinder):
    """Finds the table as Python does, but for a loader that adds our types."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != TABLE:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _TableLoader(spec.loader)
        return spec


class _TableLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _add_model_types(module)
