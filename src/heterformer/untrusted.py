"""Names and paths that come from a file: nothing is joined into a path before it was checked here."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heterformer.errors import LONGEST_VALUE, InputError

REVERSED = "rev_"  # prefix of a relation's second direction, as in PyTorch Geometric
NAME_RULE = f"letters, digits, single '-' and '_', and no leading '{REVERSED}'"
FINGERPRINT = re.compile("[0-9a-f]{32}")


def is_type_name(name: Any) -> bool:
    """Whether a node type or relation may be called so. Such a name is also a safe part of a file's name."""
    if not isinstance(name, str) or name.startswith(REVERSED) or "__" in name or "--" in name:
        return False
    return name.replace("_", "a").replace("-", "a").isalnum()


def check_type_name(name: Any, what: str) -> str:
    """The name, if it is one; ``what`` says whose, and in which file."""
    if not is_type_name(name):
        raise InputError(f"{what}: the name {short_repr(name)} is not allowed, expected {NAME_RULE}.")
    return str(name)


def check_fingerprint(value: Any, where: Path | str) -> str:
    """The digest that a network is known by; it is also the name of a folder."""
    if not isinstance(value, str) or not FINGERPRINT.fullmatch(value):
        raise InputError(f"{where}: the fingerprint is {short_repr(value)}, expected 32 hexadecimal digits.")
    return value


def check_file_name(name: Any, where: Path | str) -> str:
    """The name of a file beside the one that lists it, or the beginning of such a name."""
    plain = isinstance(name, str) and name.isprintable() and not re.search(r"[/\\]", name)
    if not plain or not name or name.startswith(".") or len(name.encode()) > 200:
        raise InputError(f"{where}: lists {short_repr(name)}, expected a plain name without a path.")
    return str(name)


def is_inside(name: Any) -> bool:
    """Whether a relative path leads nowhere but below the folder that it is relative to."""
    return isinstance(name, str) and not Path(name).is_absolute() and ".." not in Path(name).parts


def check_no_links_out(folder: Path) -> None:
    """Refuse a folder that we write into or upload if a symbolic link in it leads elsewhere."""
    root = os.path.realpath(folder)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(parent, name)
            if os.path.islink(path) and not os.path.realpath(path).startswith(root + os.sep):
                problem = f"is a symbolic link to {short_repr(os.readlink(path))}, outside {folder}"
                raise InputError(f"{path}: {problem}; put the file or folder itself there.")


def checked_path(value: object, what: str, expected: str = "the path of a folder") -> Path:
    """A path that a Python caller gives in the place of ``what``, such as 'the run'."""
    if not isinstance(value, (str, os.PathLike)):
        raise InputError(f"{what} is {short_repr(value)}, expected {expected}.")
    return Path(value)


def is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8; one of a command line may have half a character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(value: str, what: str) -> None:
    """Refuse what tokenizers and tables do not take; a Python caller may give anything."""
    if not isinstance(value, str):
        raise InputError(f"{what} is {short_repr(value)}, expected a string.")
    if not is_text(value):
        raise InputError(f"{what} {short_repr(value)} is not UTF-8, expected text in UTF-8.")


def short_repr(value: Any) -> str:
    """A value as a message repeats it: at most 80 characters, however large or deep it is."""
    text = _beginning(value, LONGEST_VALUE + 1)
    if len(text) <= LONGEST_VALUE:
        return text
    return text[:LONGEST_VALUE] + "…" + (text[0] if isinstance(value, str) else "")


def short_list(names: Sequence[str], most: int = 20) -> str:
    """Names as a message lists them: at most so many, each cut where ``short_repr`` cuts it."""
    listed = ", ".join(map(short_repr, names[:most])) or "none"
    return listed if len(names) <= most else f"{listed} and {len(names) - most:,} more"


def _beginning(value: Any, room: int) -> str:
    """What ``repr`` gives, or its first ``room`` characters. Aliases in YAML can make a value endless."""
    if isinstance(value, (str, bytes)):
        return repr(value[:room])[: None if len(value) <= room else room]
    if not isinstance(value, (list, dict)):
        try:
            return " ".join(line.strip() for line in repr(value).split("\n"))  # that of a model has many
        except (ValueError, RecursionError):  # an integer of thousands of digits
            return f"a {type(value).__name__} too large to show"
    opening, closing = "[]" if isinstance(value, list) else "{}"
    text = opening
    for element in value:
        if len(text) >= room:
            break
        text += ", " if text != opening else ""
        text += _beginning(element, room - len(text))
        if isinstance(value, dict):
            text += ": " + _beginning(value[element], max(room - len(text), 1))
    return text + closing
