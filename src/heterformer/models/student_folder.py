"""What a student's folder is known by, without importing what reads it."""

from __future__ import annotations

from pathlib import Path

MODULES = "modules.json"  # of sentence-transformers


def is_student(path: Path) -> bool:
    """Whether a folder is what 'heterformer distill' wrote."""
    return (path / MODULES).is_file()
