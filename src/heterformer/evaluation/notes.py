"""What could not be done, and why: a note on the page, or an error if somebody asked for it by name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from heterformer.errors import InputError
from heterformer.evaluation.options import Task


@dataclass
class Notes:
    """Sentences for the page, and why a task has no result."""

    sentences: list[str] = field(default_factory=list)
    why: dict[Task, str] = field(default_factory=dict)

    @contextmanager
    def trying(self, what: str, *tasks: Task) -> Iterator[None]:
        """Why something cannot be done is a note; the rest is done."""
        try:
            yield
        except InputError as error:
            sentence = f"{what}: {error}"
            self.sentences.append(sentence)
            for task in tasks:
                self.why.setdefault(task, sentence)

    def insist(self, task: Task, requested: Collection[Task], results: Collection[object]) -> None:
        """An error if the task was requested and nothing came of it."""
        if task in requested and not results:
            nothing = f"No {task.replace('_', ' ')}: there are no vectors of nodes that it needs."
            raise InputError(self.why.get(task, nothing))
