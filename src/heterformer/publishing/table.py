"""What is uploaded, as a table."""

from __future__ import annotations

from heterformer.publishing.core import Push
from heterformer.tables import Sheet


def push_table(result: Push) -> Sheet:
    """The files and their sizes."""
    rows = tuple((name, f"{size:,}") for name, size in result.files.items())
    total = f"{sum(result.files.values()):,} bytes in {len(result.files)} files"
    return Sheet(result.repository, ("file", "bytes"), rows, total, text_columns=1)
