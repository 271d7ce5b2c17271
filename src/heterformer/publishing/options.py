"""Options of a push. Each option has one sentence, which is also its help text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from heterformer.errors import InputError

REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class PushOptions:
    """What is uploaded, and whether it is."""

    upload: bool = False
    """Upload; without this the command only shows what it would upload."""
    private: bool = False
    """Make a repository that only its owner sees, if there is none yet."""
    license: str = ""
    """The model's license in the card, such as apache-2.0; by default, that of a backbone we know."""
    dataset: str = ""
    """The dataset in the card, as owner/name on the Hub; by default, the network's name."""
    message: str = "Upload model"
    """The commit message."""


def check_repository(name: str) -> None:
    """Refuse what no repository can be called."""
    if not REPOSITORY.fullmatch(name) or "--" in name or ".." in name:
        raise InputError(f"the repository is {name!r}, expected OWNER/NAME.")
