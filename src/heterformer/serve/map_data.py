"""The map of a run as the explorer asks for it. It is laid out in a thread of its own the first time."""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.errors import InputError
from heterformer.maps.coloring import color_by, color_choices
from heterformer.maps.layout import Layout
from heterformer.network.lookup import Node
from heterformer.search.searcher import NamedNode, Searcher
from heterformer.serve.errors import InvalidError, NotFoundError, UnavailableError
from heterformer.serve.logs import LOGGER

EXTENT = 65_535  # coordinates are whole numbers up to this
RECORD = np.dtype([("node", "<u4"), ("x", "<u2"), ("y", "<u2")])  # a point as it is sent
COLORINGS = 8  # that are kept


class MapData:
    """Where nodes are, by their numbers: type after type, in network order."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher, self.network = searcher, searcher.network
        self.types = tuple(searcher.store.types)
        counts = [self.network.schema.counts[t] for t in self.types]
        self._ends = np.cumsum(counts)
        self.offsets = dict(zip(self.types, (self._ends - counts).tolist(), strict=True))
        self.nodes = sum(counts)
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None
        self._failed = ""
        self._layout: Layout | None = None
        self._points: NDArray[Any] = np.empty(0, RECORD)  # in random order: the first ones are a sample
        self._places: NDArray[np.uint16] = np.empty((0, 2), np.uint16)  # by number
        self.colors = lru_cache(COLORINGS)(self._colors)

    def describe(self) -> dict[str, Any]:
        """What there is; the first call begins to lay the nodes out, and ``status`` says how far that is."""
        self._begin()
        about: dict[str, Any] = {
            "nodes": self.nodes,
            "extent": EXTENT,
            "types": [
                {"type": t, "offset": self.offsets[t], "nodes": self.network.schema.counts[t]}
                for t in self.types
            ],
            "colors": list(color_choices(self.network, self.types)),
        }
        if self._failed:
            return about | {"status": "failed", "error": self._failed, "regions": []}
        if self._layout is None:
            return about | {"status": "working", "regions": []}
        return about | {"status": "ready", "regions": self._regions(self._layout)}

    def points(self, offset: int, limit: int, box: Sequence[int] = ()) -> bytes:
        """Points as records, after the first ``offset``: all, or those in a box (left, bottom, right, top).

        They are in random order, so that the first ones are a sample of all.
        """
        points = self._ready()[offset:]
        if box:
            if len(box) != 4:
                raise InvalidError(f"box: found {len(box)} numbers, expected left, bottom, right, top.")
            left, bottom, right, top = box
            x, y = points["x"], points["y"]
            points = points[(x >= left) & (x <= right) & (y >= bottom) & (y <= top)]
        return points[:limit].tobytes()

    def find(self, nodes: Sequence[tuple[str, str]]) -> list[dict[str, int] | None]:
        """The number and the place of each node by type and id; nothing of one that is not on the map."""
        self._ready()
        places: list[dict[str, int] | None] = []
        for node_type, node_id in nodes:
            try:
                row = int(self.network.rows(node_type, [node_id])[0]) if node_type in self.offsets else None
            except InputError:
                row = None
            if row is None:
                places.append(None)
                continue
            number = self.offsets[node_type] + row
            x, y = self._places[number].tolist()
            places.append({"number": number, "x": x, "y": y})
        return places

    def node(self, number: int) -> NamedNode:
        """The node of a number."""
        if not 0 <= number < self.nodes:
            raise NotFoundError(f"there is no node {number}, numbers go from 0 to {self.nodes - 1}.")
        node_type = self.types[int(np.searchsorted(self._ends, number, side="right"))]
        return NamedNode.from_node(self.network, Node(node_type, number - self.offsets[node_type]))

    def _colors(self, by: str) -> dict[str, Any]:
        coloring = color_by(self.network, self.types, by)
        return {
            "by": by,
            "kind": coloring.kind,
            "keys": [asdict(key) for key in coloring.keys],
            "codes": base64.b64encode(coloring.codes.tobytes()).decode(),
        }

    def _ready(self) -> NDArray[Any]:
        self._begin()
        if self._layout is None:
            raise UnavailableError(self._failed or "the map is being laid out; ask again in a few seconds.")
        return self._points

    def _begin(self) -> None:
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(target=self._make, name="map", daemon=True)
                self._thread.start()
                self._thread.join(0.2)  # one that is kept is read at once

    def _make(self) -> None:
        try:
            store = self._searcher.store
            self._set(Layout.open(store) or Layout.make(store))
        except InputError as error:
            self._failed = str(error).replace(str(self._searcher.run.path), self._searcher.run.path.name)
        except Exception:
            LOGGER.exception("the map could not be laid out")
            self._failed = "the map could not be laid out; the server's log has more."

    def _set(self, layout: Layout) -> None:
        places = np.concatenate([layout.places[t] for t in self.types])  # (n, 2)
        self._least = places.min(0, initial=np.inf)
        self._scale = EXTENT / (float((places.max(0, initial=-np.inf) - self._least).max()) or 1.0)
        self._places = self._whole(places).astype(np.uint16)
        order = np.random.default_rng(0).permutation(len(places)).astype(np.uint32)
        points = np.empty(len(places), RECORD)
        points["node"] = order
        points["x"], points["y"] = self._places[order].T
        self._points = points
        self._layout = layout  # last: others look at it to see whether all is there

    def _whole(self, places: NDArray[Any]) -> NDArray[np.float32]:
        whole: NDArray[np.float32] = np.clip(np.rint((places - self._least) * self._scale), 0, EXTENT)
        return whole

    def _regions(self, layout: Layout) -> list[dict[str, Any]]:
        spots = self._whole(np.array([(r.x, r.y) for r in layout.regions]).reshape(-1, 2)).tolist()
        return [
            {"x": int(x), "y": int(y), "words": list(r.words), "nodes": r.nodes, "level": r.level}
            for (x, y), r in zip(spots, layout.regions, strict=True)
        ]
