"""A network that grows: the same papers later, with new ones, new authors and new edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from heterformer.models.options import ModelName
from heterformer.network.build.frames import temporary_folder
from heterformer.network.store import Network
from heterformer.training.run import Run
from heterformer.training.train import train
from heterformer.training.warm_up_options import WarmUpOptions
from tests.learning import tiny_network, tiny_options, tiny_reader

SPEC: dict[str, Any] = {
    "name": "growing",
    "nodes": {"paper": {"text": ["title"]}, "author": {}, "venue": {}},
    "relations": {
        "cites": {"from": "paper", "to": "paper", "columns": ["source", "target"]},
        "written_by": {"from": "paper", "to": "author", "columns": ["paper", "author"]},
        "published_in": {"from": "paper", "to": "venue", "columns": ["paper", "venue"]},
    },
    "predict": "cites",
    "neighbors": {"paper": 3, "author": 2, "venue": 1},
    "max_tokens": 16,
}
Edges = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class State:
    """A network as plain facts."""

    titles: dict[str, str]
    cites: Edges
    written_by: Edges
    published_in: Edges

    def built(self, turned: bool = False, **more: Any) -> Network:
        """The network; ``turned`` with relations and textless types the other way round."""
        papers = pl.DataFrame({"id": [*self.titles], "title": [*self.titles.values()]})
        relations = {
            name: pl.DataFrame(getattr(self, name), schema=columns, orient="row")
            for name, columns in (
                ("cites", ["source", "target"]),
                ("written_by", ["paper", "author"]),
                ("published_in", ["paper", "venue"]),
            )
        }
        spec: dict[str, Any] = SPEC | more
        if turned:
            spec |= {name: dict(reversed(spec[name].items())) for name in ("nodes", "relations")}
        return Network.from_frames(spec, {"paper": papers}, relations, temporary_folder() / "net")

    def with_paper(
        self, paper: str, title: str, cites: Sequence[str], authors: Sequence[str], venue: str
    ) -> State:
        """One more paper, first in its table, so that all other rows move."""
        return replace(
            self,
            titles={paper: title} | self.titles,
            cites=(*((paper, other) for other in cites), *self.cites),
            written_by=(*((paper, author) for author in authors), *self.written_by),
            published_in=((paper, venue), *self.published_in),
        )

    def with_title(self, paper: str, title: str) -> State:
        return replace(self, titles=self.titles | {paper: title})


@cache
def first_run(model: ModelName) -> Run:
    """A model trained on the first state; whoever changes the run works on a copy."""
    options = tiny_options(tiny_reader(), model=model, max_steps=2)
    return train(first_state().built(), temporary_folder() / "run", options)


def grown_state() -> State:
    """Two new papers by a new author in a new venue."""
    before = first_state()
    papers = list(before.titles)
    later = before.with_paper("new-1", "kernel methods", papers[:2], ["new author"], "new venue")
    return later.with_paper("new-2", "graph kernels", papers[3:4], ["new author"], "new venue")


def first_state() -> State:
    """The tiny synthetic network, as facts."""
    network = tiny_network()

    def named(relation: str, target: str) -> Edges:
        sources, targets = network.edges(relation)
        return tuple(zip(network.ids("paper", sources), network.ids(target, targets), strict=True))

    titles = dict(zip(network.ids("paper"), network.texts("paper"), strict=True))
    relations = {r.target: r.name for r in network.schema.relations}
    return State(titles, *(named(relations[t], t) for t in ("paper", "author", "venue")))


def warmed_up(network: Network, folder: Path) -> Run:
    """Trained for two steps, after a warm-up that has something to say."""
    warm_up = WarmUpOptions(warm_up_batch_size=128, warm_up_learning_rate=0.03, warm_up_patience=30)
    return train(network, folder / "run", tiny_options(tiny_reader(), max_steps=2, warm_up=warm_up))
