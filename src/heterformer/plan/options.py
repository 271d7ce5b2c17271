"""What a user can choose about a plan. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from heterformer.errors import InputError, OptionError
from heterformer.network.schema import NodeType

MOST_NODES = 2**31 - 1  # rows are numbered in 32 bits


@dataclass(frozen=True)
class PlanOptions:
    """For how many processes, for how large a network, and how fast one process is."""

    processes: tuple[int, ...] = (1, 8, 64)
    """Numbers of processes to plan for; a process has a GPU of its own, or CPUs."""
    counts: Annotated[tuple[str, ...], arg(metavar="TYPE=NUMBER")] = ()
    """Plan for a network like NET with other numbers of nodes: --counts paper=1e8 author=5e7."""
    scale: float = 1.0
    """Plan for a network like NET with so many times the nodes of every type that --counts leaves out."""
    pairs: float | None = None
    """Training pairs; unless given those of NET's split, in proportion to the nodes."""
    pairs_per_second: float | None = None
    """How many pairs one process trains on in a second; unless given it is measured here."""
    nodes_per_second: float | None = None
    """How many text-rich nodes one process embeds in a second; unless given it is measured here."""
    measure: bool = True
    """Take a few steps with random weights on this machine for speeds that are not given."""
    bandwidth: float = 1.25
    """Gigabytes that a process can send to the others in a second; 1.25 is Ethernet of 10 Gbit/s."""
    json: bool = False
    """Print JSON instead of tables."""

    def __post_init__(self) -> None:
        if not self.processes or min(self.processes) < 1:
            values = ", ".join(map(str, self.processes)) or "empty"
            raise OptionError(self, "processes", f"is {values}, expected 1 or more.")
        for name in ("scale", "pairs", "pairs_per_second", "nodes_per_second", "bandwidth"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise OptionError(self, name, f"is {value}, expected more than 0.")

    def counts_for(self, counts: Mapping[NodeType, int]) -> dict[NodeType, int]:
        """The numbers of nodes to plan for, given those of the network."""
        given = {}
        for words in self.counts:
            node_type, _, number = words.rpartition("=")
            if node_type not in counts:
                known = ", ".join(counts)
                problem = f"has {words!r}, expected TYPE=NUMBER with a type of {known}."
                raise OptionError(self, "counts", problem)
            given[node_type] = _count(words, number)
        found = {t: given.get(t, round(self.scale * n)) for t, n in counts.items()}
        for node_type, count in found.items():
            if not 1 <= count <= MOST_NODES:
                expected = f"expected 1 to {MOST_NODES:,}, what a network can hold of a type"
                raise InputError(f"a plan for {count:,} {node_type} nodes; {expected}.")
        return found


def _count(words: str, number: str) -> int:
    try:
        count = round(float(number))
    except (ValueError, OverflowError):
        count = -1
    if count < 0:
        problem = f"has {words!r}, expected a number such as 100000 or 1e8."
        raise OptionError(PlanOptions, "counts", problem)
    return count
