"""What a comparison's folder is known by, without importing what runs it."""

from __future__ import annotations

from pathlib import Path

CONFIG = "compare.yaml"


def is_comparison(out: Path) -> bool:
    """Whether a folder is one that ``compare`` wrote."""
    return (out / CONFIG).is_file()
