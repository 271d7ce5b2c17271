"""Sections named 'Example' of our docstrings, as the site's parser of docstrings knows them."""

from __future__ import annotations

import re
from typing import Any

import griffe

HEADING = re.compile(r"^Example:$", re.MULTILINE)


class ExampleSections(griffe.Extension):
    """Reads 'Example:' as 'Examples:'; otherwise it would be a box of running text."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change an object's docstring when it has been read."""
        if obj.docstring is not None:
            obj.docstring.value = HEADING.sub("Examples:", obj.docstring.value)
