"""Options of a plan. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from heterformer.errors import InputError, OptionError
from heterformer.network.schema import NodeType

MAX_NODES = 2**31 - 1  # rows are numbered in 32 bits


@dataclass(frozen=True)
class PlanOptions:
    """Numbers of processes, size of the network, and speed of a process."""

    processes: tuple[int, ...] = (1, 8, 64)
    """Numbers of processes to plan for, each with its own GPU or CPUs."""
    counts: Annotated[tuple[str, ...], arg(metavar="TYPE=NUMBER")] = ()
    """Plan for a network like NET with these numbers of nodes: paper=1e8 author=5e7."""
    scale: float = 1.0
    """Multiply the numbers of nodes of all other types by this factor."""
    pairs: float | None = None
    """Number of training pairs; by default, that of NET's split, in proportion to the nodes."""
    pairs_per_second: float | None = None
    """Training speed of one process, in pairs per second; by default, measured on this machine."""
    nodes_per_second: float | None = None
    """Embedding speed of one process, in text-rich nodes per second; by default, measured on this machine."""
    measure: bool = True
    """Measure speeds that are not given, by a few steps with random weights."""
    bandwidth: float = 1.25
    """Network bandwidth of a process in GB/s; 1.25 is 10-Gbit Ethernet."""
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
        planned = {t: round(self.scale * n) for t, n in counts.items()}
        for value in self.counts:
            node_type, _, number = value.rpartition("=")
            if node_type not in counts:
                known = ", ".join(counts)
                problem = f"has {value!r}, expected TYPE=NUMBER with a type of {known}."
                raise OptionError(self, "counts", problem)
            planned[node_type] = _count(value, number)
        for node_type, count in planned.items():
            if not 1 <= count <= MAX_NODES:
                expected = f"expected 1 to {MAX_NODES:,} nodes of a type"
                raise InputError(f"the plan has {count:,} {node_type} nodes, {expected}.")
        return planned


def _count(value: str, number: str) -> int:
    try:
        count = round(float(number))
    except (ValueError, OverflowError):
        count = -1
    if count < 0:
        problem = f"has {value!r}, expected a number such as 100000 or 1e8."
        raise OptionError(PlanOptions, "counts", problem)
    return count
