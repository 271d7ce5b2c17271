"""One run, opened to be served: everything that a request needs is in memory or mapped."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heterformer.device import Device
from heterformer.explanation.core import Explainer
from heterformer.models.contract import NodeEncoder
from heterformer.network.lookup import Node
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.recommendation.core import Recommender
from heterformer.search.searcher import Searcher
from heterformer.serve.batching import BatchingEncoder, NewText, Rows, TokenCounts
from heterformer.serve.deadline import Deadline
from heterformer.serve.map_data import MapData


class ServedRun:
    """A run as it was when it was opened. One that was made anew is opened again beside it."""

    def __init__(self, path: Path | str, device: Device = "auto") -> None:
        self.path, self.name = Path(path), Path(path).resolve().name
        self.searcher = Searcher(path, device=device)
        self.network: Network = self.searcher.network
        self.schema = self.network.schema
        # Now, not in the first request: vectors are made if there are none, and the model is read.
        for node_type in self.searcher.store.types:
            self.searcher.store.matrix(node_type)
        self._text_encoder = self.searcher.encoder.encoder
        self.model_name: str = self._text_encoder.model.config.options_class.display_name
        self.is_normalized = bool(self._text_encoder.model.config.normalize)
        self.width = int(self._text_encoder.model.width)
        self._device = device
        self._lock = threading.Lock()  # of the models beside the encoder's, which few requests need

    @property
    def paths(self) -> tuple[str, ...]:
        """What must not be in an answer."""
        network = self.network.path
        return tuple({str(p) for each in (self.path, network) for p in (each, each.resolve())})

    @cached_property
    def explainer(self) -> Explainer:
        """A model with all tables; to be used while ``exclusive``."""
        return Explainer(self.path)

    @cached_property
    def recommender(self) -> Recommender:
        """With the vectors that searches use; to be used while ``exclusive``."""
        recommender = Recommender(self.path, device=self._device)
        recommender.searcher = self.searcher
        return recommender

    @contextmanager
    def exclusive(self, deadline: Deadline) -> Iterator[None]:
        """Wait until no other request uses the explainer or the recommender."""
        if not self._lock.acquire(timeout=deadline.left()):
            raise deadline.passed()
        try:
            yield
        finally:
            self._lock.release()

    @cached_property
    def map_data(self) -> MapData:
        """The map of all nodes."""
        return MapData(self.searcher)

    @property
    def model(self) -> NodeEncoder:
        """The model that encodes texts; nobody but the encoding thread calls it."""
        return self._text_encoder.model

    @property
    def text_limit(self) -> int:
        """The tokens of a text that the model reads."""
        return int(self._text_encoder.model.text_limit)

    def count_tokens(self, new: NewText) -> TokenCounts:
        """The tokens of a text with its prompt; up to the limit, and with its neighbours, they are read."""
        prompt = self._text_encoder.model.prompts[new.node_type or self.schema.query_type]
        prompted = prompt + new.text.strip()
        tokens = len(self._text_encoder.tokenizer(prompted, truncation=False)["input_ids"])
        return TokenCounts(tokens, min(tokens, self.text_limit) + self._neighbor_tokens(new.neighbors))

    def _neighbor_tokens(self, neighbors: Rows) -> int:
        """The tokens of the neighbours' texts, and of those that these are read with."""
        offset, further = self._tokens.text_offset, self._text_encoder.second_hop
        texts = [np.empty(0, dtype=np.int64)]
        for node_type, rows in neighbors.items():
            if node_type not in offset:
                continue
            near = np.unique(np.asarray(rows, dtype=np.int64))
            texts.append(near + offset[node_type])
            for edges in further(node_type, near) if further is not None else ():
                if edges.neighbor_type in offset:
                    texts.append(edges.neighbor.astype(np.int64) + offset[edges.neighbor_type])
        distinct = np.unique(np.concatenate(texts))
        return int((self._tokens.offsets[distinct + 1] - self._tokens.offsets[distinct]).sum())

    @cached_property
    def _tokens(self) -> PackedTokens:
        return self._text_encoder.model.open_tokens(self.network, self._text_encoder.tokenizer)

    def encode(self, texts: Sequence[NewText]) -> NDArray[np.float32]:
        """(n, d): the vectors of some texts; called by the thread of ``BatchingEncoder`` alone."""
        types = [new.node_type or self.schema.query_type for new in texts]
        neighbors = [new.neighbors for new in texts]
        return self._text_encoder.encode([new.text for new in texts], neighbors, len(texts), types)

    def check_neighbors(self, rows: Rows, node_type: NodeType = "") -> None:
        """Refuse neighbours that the model does not look at, before others' texts are in the batch."""
        for neighbor in rows:
            self._text_encoder.edge_type(neighbor, node_type)


class RequestSearcher(Searcher):
    """The searcher of one request: its text is encoded together with those of others."""

    def __init__(self, run: ServedRun, batches: BatchingEncoder, deadline: Deadline) -> None:
        vars(self).update(vars(run.searcher))
        self._served, self._batches, self._deadline = run, batches, deadline

    def encode(self, text: str, neighbors: Sequence[Node] = ()) -> NDArray[np.float32]:
        rows = rows_by_type(neighbors)
        self._served.check_neighbors(rows)
        (encoded,) = self._batches.encode(self._served, [NewText(text, rows)], self._deadline)
        return encoded.vector


def rows_by_type(nodes: Sequence[Node]) -> dict[str, list[int]]:
    """Nodes as the text encoder takes neighbours."""
    rows: dict[str, list[int]] = {}
    for node in nodes:
        rows.setdefault(node.node_type, []).append(node.row)
    return rows
