"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heterformer.errors import InputError


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A temporary folder beside ``out`` that takes its name on success and vanishes on any failure."""
    if out.exists():
        raise InputError(f"{out}: exists already; remove it or choose another name.")
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".partial", dir=out.parent))
    try:
        yield folder
        folder.chmod(0o777 & ~_umask())  # mkdtemp's folder is private; the result should be an ordinary one
        os.rename(folder, out)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise InputError(f"{out}: could not be written ({reason}); nothing was left behind.") from error
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
