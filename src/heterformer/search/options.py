"""Options of a search. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import UseAppendAction, arg

from heterformer.errors import OptionError

IndexChoice = Literal["auto", "exact", "approximate"]
MAX_LINK_WEIGHT = 10.0


def check_link_weight(options: object, weight: float | Literal["auto"]) -> None:
    """Refuse a weight of links that no ranking has."""
    if weight != "auto" and not 0 <= weight <= MAX_LINK_WEIGHT:
        problem = f"is {weight}, expected a number from 0 to {MAX_LINK_WEIGHT:g}."
        raise OptionError(options, "link_weight", problem)


@dataclass(frozen=True)
class SearchOptions:
    """The query's neighbours, the types to rank, and how to search."""

    neighbors: Annotated[tuple[str, ...], arg(name="with", metavar="TYPE=NAME"), UseAppendAction] = ()
    """A neighbour of the query text, by id or name: author="Jane Doe". On the command line each node type
    is a flag of its own as well."""
    like: Annotated[str, arg(metavar="ID")] = ""
    """Search with this node, given by id or name, instead of a query text; it need not have a text."""
    like_type: Annotated[str, arg(metavar="TYPE")] = ""
    """The type of that node, if nodes of several types have its id or name."""
    types: Annotated[tuple[str, ...], arg(name="type", metavar="TYPE"), UseAppendAction] = ()
    """Rank nodes of this type; by default, the predicted relation's target type or, with a node, text-rich
    types."""
    top: int = 10
    """Number of results of each type."""
    where: Annotated[str, arg(metavar="FILTER")] = ""
    """Rank only nodes that meet this filter over their columns: "year >= 2015 and venue == 'ACL'"."""
    exclude_known: bool = False
    """Leave out nodes that are already neighbours of the query."""
    link_weight: float = 0.0
    """How much the links of a node count, by the log of their number: 0 for what is closest to the query, 1
    for what the query is most likely linked to; if they count, search is exact."""
    index: IndexChoice = "auto"
    """Exact search, an approximate index (FAISS), or (auto) an index for types of a million nodes or more."""
    network: Path | None = None
    """Search another network of the same types, with nodes that training did not see."""
    vectors: Path | None = None
    """Search in these vectors, which 'heterformer embed' wrote, instead of the run's own."""
    student: Path | None = None
    """Read the query text with this encoder, which 'heterformer distill' wrote, instead of the model."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    queries: Path | None = None
    """Search for each line of this text file, with one start-up for all."""
    interactive: bool = False
    """Read queries from the terminal, one per line, until an empty line or Ctrl-D."""
    json: bool = False
    """Print JSON instead of tables."""

    def __post_init__(self) -> None:
        if self.top < 1:
            raise OptionError(self, "top", f"is {self.top}, expected at least 1.")
        check_link_weight(self, self.link_weight)
        if self.queries is not None and self.interactive:
            raise OptionError(self, ("queries", "interactive"), "exclude each other; give one of them.")
