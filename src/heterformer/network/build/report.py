"""The build report: rows read, kept and dropped, with reasons and examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from heterformer.progress import say

EXAMPLES = 5


@dataclass
class Finding:
    """Rows of one kind in a table: how many, and up to five examples."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, count: int, examples: Iterable[str]) -> None:
        self.count += count
        for example in examples:
            if len(self.examples) == EXAMPLES:
                break
            self.examples.append(example)


@dataclass
class Tally:
    """The rows of a node table or relation: read, kept, dropped by reason, and kept but noted."""

    read: int = 0
    kept: int = 0
    dropped: dict[str, Finding] = field(default_factory=dict)
    noted: dict[str, Finding] = field(default_factory=dict)

    def drop(self, reason: str, count: int, examples: Iterable[str]) -> None:
        if count:
            self.dropped.setdefault(reason, Finding()).add(count, examples)

    def note(self, reason: str, count: int, examples: Iterable[str]) -> None:
        if count:
            self.noted.setdefault(reason, Finding()).add(count, examples)

    def findings(self) -> Iterator[str]:
        """A line per reason for which rows were dropped or noted, with its examples."""
        for verb, findings in (("dropped", self.dropped), ("kept", self.noted)):
            for reason, finding in findings.items():
                yield f"{verb} {finding.count:,}: {reason} ({'; '.join(finding.examples)})"


@dataclass
class BuildReport:
    """One tally per node type and per relation, in the order of the specification."""

    nodes: dict[str, Tally] = field(default_factory=dict)
    relations: dict[str, Tally] = field(default_factory=dict)

    def tallies(self) -> dict[str, Tally]:
        """By the name of a node type or a relation, as people read it."""
        nodes = {f"node {name}": tally for name, tally in self.nodes.items()}
        return nodes | {f"relation {name}": tally for name, tally in self.relations.items()}

    def say_findings(self) -> None:
        """Say on standard error what was dropped or noted, a line for each table that has any."""
        for name, tally in self.tallies().items():
            if findings := "; ".join(tally.findings()):
                say(f"{name}: {tally.read:,} rows read, {tally.kept:,} kept: {findings}")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> BuildReport:
        return cls(
            nodes={k: _tally(v) for k, v in values["nodes"].items()},
            relations={k: _tally(v) for k, v in values["relations"].items()},
        )


def _tally(values: dict[str, Any]) -> Tally:
    findings = {
        part: {reason: Finding(**finding) for reason, finding in values[part].items()}
        for part in ("dropped", "noted")
    }
    return Tally(read=values["read"], kept=values["kept"], **findings)
