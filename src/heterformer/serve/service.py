"""What the server can do, without HTTP: requests in, data out, safe to call from many threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heterformer import __version__
from heterformer.errors import InputError
from heterformer.network.lookup import node_type_named
from heterformer.recommendation.core import Recommendations
from heterformer.search.filters import Columns
from heterformer.search.searcher import Answer
from heterformer.serve.batching import BatchingEncoder, EncodedText, Observer
from heterformer.serve.deadline import Deadline
from heterformer.serve.errors import NotFoundError, OverloadedError, TooLargeError, as_request_error
from heterformer.serve.explaining import explained
from heterformer.serve.map_data import MapData
from heterformer.serve.new_nodes import NeighborNames, NewNode, encode, resolve
from heterformer.serve.nodes import Page, find_by_id, node_page, nodes_named
from heterformer.serve.options import ServeOptions
from heterformer.serve.pair import compare_pair
from heterformer.serve.runs import RequestSearcher, ServedRun


@dataclass(frozen=True)
class TextEmbeddings:
    """Vectors of texts, and how many tokens were read."""

    run: str
    vectors: NDArray[np.float32]  # (n, d)
    tokens: tuple[int, ...]
    max_tokens: int  # longer texts were cut
    is_normalized: bool  # whether the model's vectors have length 1


class Service:
    """Serves runs by their folders' names; the first one is asked if a request names none.

    Args:
        paths: Folders that ``train`` wrote.
        options: Limits, and where to compute.
        observe: Called with the texts and tokens of each batch.

    Example::

        service = Service(["runs/papers"], ServeOptions())
        answer = service.search("", text="news recommendation", top=3)
    """

    def __init__(
        self,
        paths: Sequence[Path | str],
        options: ServeOptions,
        observe: Observer = lambda texts, tokens: None,
    ) -> None:
        self.options, self._paths = options, tuple(paths)
        self._runs = self._opened()
        self.batches = BatchingEncoder(options.batch_tokens, options.max_waiting, observe)
        self._reloading = threading.Lock()

    def _opened(self) -> dict[str, ServedRun]:
        runs: dict[str, ServedRun] = {}
        for path in self._paths:
            run = ServedRun(path, self.options.device)
            if run.name in runs:
                raise InputError(
                    f"{path}: another run is called {run.name!r} too; rename one of the folders."
                )
            runs[run.name] = run
        return runs

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._runs)

    def deadline(self) -> Deadline:
        """The time that a request has."""
        return Deadline(self.options.timeout)

    def embed(
        self,
        run: str,
        texts: Sequence[str],
        neighbors: Sequence[NeighborNames] = (),
        deadline: Deadline | None = None,
    ) -> TextEmbeddings:
        """Vectors of texts that are no nodes, each alone or with neighbours of the network by id or name.

        They are read as nodes of the schema's ``query_type``.
        """
        near = neighbors or [{}] * len(texts)
        nodes = [NewNode(text=text, neighbors=names) for text, names in zip(texts, near, strict=True)]
        return self.embed_nodes(run, nodes, deadline)

    def embed_nodes(
        self, run: str, nodes: Sequence[NewNode], deadline: Deadline | None = None
    ) -> TextEmbeddings:
        """Vectors of nodes that the network does not have, of any type that the model has vectors of.

        Those with text are read together with others' texts. Those without are folded in from the texts of
        their neighbours, one request at a time.
        """
        self._check_number(len(nodes), "inputs")
        self._check_number(sum(len(names) for n in nodes for names in n.neighbors.values()), "neighbors")
        self._check_lengths([node.text or "" for node in nodes])
        deadline = deadline or self.deadline()
        with self._run(run) as served:
            resolved = [resolve(served, node, deadline) for node in nodes]
            return _embedded(served, encode(served, self.batches, resolved, deadline))

    def search(self, run: str, *, deadline: Deadline | None = None, **query: Any) -> Answer:
        """What ``Searcher.search`` answers; ``query`` is its arguments."""
        self._check_lengths([query.get("text", "")])
        self._check_number(len(query.get("neighbors", ())), "neighbors")
        with self._run(run) as served:
            return RequestSearcher(served, self.batches, deadline or self.deadline()).search(**query)

    def recommend(
        self, run: str, users: Sequence[str], *, deadline: Deadline | None = None, **query: Any
    ) -> list[Recommendations]:
        """What ``Recommender.recommend`` answers; ``query`` is its arguments."""
        self._check_number(len(users), "users")
        self._check_number(len(query.get("likes", ())), "likes")
        with self._run(run) as served, served.exclusive(deadline or self.deadline()):
            return served.recommender.recommend(users, **query)

    def node(self, run: str, node_type: str, node_id: str, page: Page | None = None) -> dict[str, Any]:
        """A node's columns, its relations, and a page of its neighbours."""
        with self._run(run) as served:
            node = find_by_id(served.network, node_type, node_id)
            return node_page(served.network, node, page or Page())

    def nodes_named(
        self, run: str, letters: str, node_type: str = "", limit: int = 10
    ) -> list[dict[str, Any]]:
        """Nodes whose names begin with or contain some letters."""
        with self._run(run) as served:
            types = (node_type_named(served.schema, node_type, None, "type"),) if node_type else ()
            return nodes_named(served.network, letters, types or served.schema.node_types, limit)

    def pair(self, run: str, one: tuple[str, str], other: tuple[str, str]) -> dict[str, Any]:
        """Two nodes, each a type and an id, side by side."""
        with self._run(run) as served:
            nodes = [find_by_id(served.network, *each) for each in (one, other)]
            return compare_pair(served.searcher, nodes[0], nodes[1])

    @contextmanager
    def map_data(self, run: str) -> Iterator[MapData]:
        """The map of a run."""
        with self._run(run) as served:
            yield served.map_data

    def explain(
        self,
        run: str,
        node: str,
        node_type: str = "",
        *,
        pair: str = "",
        pair_type: str = "",
        queries: Literal["auto", "cls", "all"] = "auto",
        effects: bool = True,
        deadline: Deadline | None = None,
    ) -> dict[str, Any]:
        """A node's explanation, one at a time, with the effects of leaving out each of its inputs."""
        with self._run(run) as served, served.exclusive(deadline or self.deadline()):
            explainer = served.explainer
            place = explainer.find(node, node_type)
            other = explainer.find(pair, pair_type) if pair else None
            return explained(explainer, place, other, queries, effects) | {"run": served.name}

    def info(self) -> dict[str, Any]:
        """The runs, their types and columns, and the limits."""
        limits = ("max_inputs", "max_characters", "max_body", "max_waiting", "max_requests", "timeout")
        return {
            "version": __version__,
            "runs": [_described(run) for run in self._runs.values()],
            "limits": {name: getattr(self.options, name) for name in limits},
        }

    def reload(self, wait: bool = False) -> dict[str, Any]:
        """Open all runs anew and serve them from now on; requests under way keep those they began with.

        While that is under way already, another call is refused, or waits its turn.
        """
        if not self._reloading.acquire(blocking=wait):
            raise OverloadedError("the runs are being opened anew already; try again when that is done.")
        try:
            start = time.monotonic()
            try:
                self._runs = self._opened()
            except InputError as error:
                raise as_request_error(error, self._all_paths()) from None
            return {"runs": list(self._runs), "seconds": round(time.monotonic() - start, 3)}
        finally:
            self._reloading.release()

    def close(self) -> None:
        """Encode what waits, then end."""
        self.batches.close()

    @contextmanager
    def _run(self, name: str) -> Iterator[ServedRun]:
        """The run of that name; mistakes in the input leave without its paths."""
        runs = self._runs
        if name and name not in runs:
            raise NotFoundError(f"there is no run {name!r}, the runs are {', '.join(runs)}.")
        run = runs[name] if name else next(iter(runs.values()))
        try:
            yield run
        except InputError as error:
            raise as_request_error(error, run.paths) from error

    def _check_number(self, number: int, what: str) -> None:
        """Refuse more than a request may have: each of them is looked up, or read by the model."""
        if number > self.options.max_inputs:
            raise TooLargeError(f"found {number:,} {what}, expected at most {self.options.max_inputs:,}.")

    def _check_lengths(self, texts: Sequence[str]) -> None:
        most = self.options.max_characters
        for number, text in enumerate(texts, 1):
            if len(text) > most:
                raise TooLargeError(f"text {number} has {len(text):,} characters, expected at most {most:,}.")

    def _all_paths(self) -> set[str]:
        paths = {str(p) for path in self._paths for p in (path, Path(path).resolve())}
        return paths | {p for run in self._runs.values() for p in run.paths}


def _embedded(run: ServedRun, encoded: Sequence[EncodedText]) -> TextEmbeddings:
    vectors = np.stack([each.vector for each in encoded]) if encoded else np.empty((0, run.width), np.float32)
    tokens = tuple(each.tokens for each in encoded)
    return TextEmbeddings(run.name, vectors, tokens, run.text_limit, run.is_normalized)


def _described(run: ServedRun) -> dict[str, Any]:
    schema, network = run.schema, run.network
    types = {
        t: {
            "nodes": schema.counts[t],
            "text": t in schema.text_rich,
            "columns": list(Columns(network, t).names),
            "attributes": list(network.attributes(t)),
            "labels": network.label_kinds.get(t),
            "searchable": t in run.searcher.store.types,
            "recall": run.searcher.store.recall(t),
        }
        for t in schema.node_types
    }
    relations = [{"name": r.name, "from": r.source, "to": r.target} for r in schema.relations]
    about = {"run": run.name, "model": run.model_name, "network": network.name, "dimensions": run.width}
    about |= {"max_tokens": run.text_limit, "normalized": run.is_normalized}
    return about | {"predict": schema.predict, "types": types, "relations": relations}
