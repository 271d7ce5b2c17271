"""Docstrings and defaults of the API reference, as the site shows them."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

import griffe

import heterformer

HEADING = re.compile(r"^Example:$", re.MULTILINE)


class ExampleSections(griffe.Extension):
    """Reads 'Example:' as 'Examples:'; otherwise it would be a box of running text."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change an object's docstring when it has been read."""
        if obj.docstring is not None:
            obj.docstring.value = HEADING.sub("Examples:", obj.docstring.value)


class OptionDefaults(griffe.Extension):
    """Shows the defaults of TrainingOptions as values: some are looked up in a table."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Change the fields when the class has been read."""
        if cls.path != f"{heterformer.TrainingOptions.__module__}.TrainingOptions":
            return
        for field in fields(heterformer.TrainingOptions):
            member = cls.members[field.name]
            if isinstance(member, griffe.Attribute) and field.default is not MISSING:
                member.value = repr(field.default)
