"""What a check finds: problems, one sentence each, and what it could not compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heterformer.digests import DIGESTS, changed_files, stored_digests
from heterformer.errors import InputError


@dataclass
class Findings:
    """What is wrong with a network, a run or vectors, file by file."""

    path: Path
    kind: str
    """'network', 'run' or 'vectors'."""
    compared: int = 0
    """Files whose bytes are those that were written."""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What could not be compared, and why."""

    @property
    def is_sound(self) -> bool:
        return not self.problems

    def attempt(self, check: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a check, or None and its error among the problems."""
        try:
            return check(*arguments)
        except InputError as error:
            self.add([error])
            return None

    def add(self, errors: Iterable[InputError]) -> None:
        """Note problems, each once."""
        for error in errors:
            if str(error) not in self.problems:
                self.problems.append(str(error))

    def compare_digests(self, folder: Path, remedy: str) -> bool:
        """Compare a folder's files with its digests; false if it has none."""
        try:
            noted = stored_digests(folder, remedy)
        except InputError as error:
            self.add([error])
            return True
        if noted is None:
            self.notes.append(f"{folder}: has no {DIGESTS}; contents were checked for sense only.")
            return False
        wrong = list(changed_files(folder, remedy))
        self.add(wrong)
        self.compared += len(noted) - len(wrong)
        return True
