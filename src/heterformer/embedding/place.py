"""Where vectors may be written."""

from __future__ import annotations

from pathlib import Path

from heterformer.embedding.vectors import is_parquet, is_vectors_file, is_vectors_folder
from heterformer.errors import InputError, OptionError


def check_place(out: Path, processes: int) -> None:
    """Never take the place of something else, and find out before hours of work."""
    if not out.name:
        raise InputError(f"{out}: expected the name of a file or folder to write.")
    if processes > 1:
        _check_place_of_parts(out)
        return
    if is_parquet(out):
        if out.is_dir():
            parts = ", of parts that several processes wrote" if is_vectors_folder(out) else ""
            raise InputError(f"{out}: is a folder{parts}, expected a file's name.")
        if out.exists() and not is_vectors_file(out):
            raise InputError(f"{out}: exists and is not what 'heterformer embed' wrote; choose another name.")
        return
    # A folder may well be named for a version, such as aan-1.2.
    if out.suffix and not out.suffix[1:].isdigit():
        raise InputError(
            f"{out}: expected a name that ends in .parquet, or one without an ending for a folder of NumPy "
            f"arrays; {out.suffix} is not written."
        )
    if out.exists() and not (out.is_dir() and (is_vectors_folder(out) or not any(out.iterdir()))):
        raise InputError(f"{out}: exists and holds something else; choose another name.")


def _check_place_of_parts(out: Path) -> None:
    if not is_parquet(out):
        expected = "expected a name that ends in .parquet, for a folder of Parquet tables"
        raise InputError(f"{out}: several processes write Parquet; {expected}.")
    if out.is_file() or (out.exists() and not is_vectors_folder(out) and any(out.iterdir())):
        taken = "exists and is no folder of parts that several processes wrote"
        raise InputError(f"{out}: {taken}; choose another name.")


def check_not_written(out: Path) -> None:
    """Refuse to replace vectors that were written before."""
    if is_vectors_file(out) or is_vectors_folder(out):
        problem = "exists already; choose another name, or replace it with {overwrite}."
        raise OptionError(None, (), problem, place=f"{out}: ")
