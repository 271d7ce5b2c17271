"""Options of a search. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import UseAppendAction, arg

from heterformer.errors import OptionError

IndexChoice = Literal["auto", "exact", "approximate"]


@dataclass(frozen=True)
class SearchOptions:
    """What to search with, and for what."""

    neighbors: Annotated[tuple[str, ...], arg(name="with", metavar="TYPE=NAME"), UseAppendAction] = ()
    """A neighbour of the query by id or name: --with author="Jane Doe" or, for short, --author "Jane Doe"."""
    like: Annotated[str, arg(metavar="ID")] = ""
    """Instead of a query text: more like this node, given by id or name; it may have no text of its own."""
    like_type: Annotated[str, arg(metavar="TYPE")] = ""
    """The type of the --like node, if nodes of several types have its id or name."""
    types: Annotated[tuple[str, ...], arg(name="type", metavar="TYPE"), UseAppendAction] = ()
    """Rank nodes of this type; unless given, what a query may link to or, for --like, nodes with text."""
    top: int = 10
    """Show so many nodes of each type."""
    where: Annotated[str, arg(metavar="FILTER")] = ""
    """Rank only nodes that meet this filter over their columns: "year >= 2015 and venue == 'ACL'"."""
    exclude_known: bool = False
    """Leave out nodes that are neighbours of the query or of the --like node already."""
    index: IndexChoice = "auto"
    """Exact search, an approximate index, or (auto) an index for types of a million nodes or more."""
    network: Path | None = None
    """Search another network of the same types, with nodes that training did not see."""
    vectors: Path | None = None
    """Search in these vectors ('heterformer embed' wrote them) instead of in those that the run keeps."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    json: bool = False
    """Print JSON instead of tables."""

    def __post_init__(self) -> None:
        if self.top < 1:
            raise OptionError(self, "top", f"is {self.top}, expected at least 1.")
