"""What a student's folder is known by, without importing what reads it."""

from __future__ import annotations

from pathlib import Path

from heterformer.errors import InputError

MODULES = "modules.json"  # of sentence-transformers
ABOUT = "heterformer.json"


def is_student(path: Path) -> bool:
    """Whether a folder is what 'heterformer distill' wrote."""
    return (path / MODULES).is_file()


def check_student(path: Path) -> None:
    """Refuse a folder that 'heterformer distill' did not write."""
    if not (path / ABOUT).is_file():
        raise InputError(f"{path}: not a student, expected a folder that 'heterformer distill' wrote.")
