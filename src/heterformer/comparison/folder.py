"""What a comparison's folder is known by, without importing what runs it."""

from __future__ import annotations

from pathlib import Path

from heterformer.errors import InputError

CONFIG = "compare.yaml"


def is_comparison(out: Path) -> bool:
    """Whether a folder is one that ``compare`` wrote."""
    return (out / CONFIG).is_file()


def check_free(out: Path) -> None:
    """Refuse a place that a new comparison cannot take, because something else is there."""
    if out.exists() and not is_comparison(out) and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists and is not a comparison; choose another name.")
