"""What a model's folder keeps of its network, so that the model can be used on another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.batches.visible import VisibleNetwork
from heterformer.digests import check_sizes, write_digests
from heterformer.files import readable, reading, replace_folder
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.stored import COPY_RUN, check_offsets, read_parquet

FOLDER = "known"
TEXTS = 512  # that new textless nodes are contrasted with


@dataclass(frozen=True)
class KnownNodes:
    """The ids of the textless nodes, in the order of the model's tables, and some of the texts."""

    ids: Mapping[NodeType, pl.Series]  # null where training saw no text next to the node: it is not known
    texts: PackedTokens

    @classmethod
    def from_network(
        cls, visible: VisibleNetwork, tokens: PackedTokens, max_texts: int = TEXTS
    ) -> KnownNodes:
        """What training may see. Texts are chosen by a hash of what they say, which is to say at random.

        Of equal texts one is kept: a node must not be contrasted with its own text.
        """
        seen = np.flatnonzero(_visible_texts(visible, tokens))
        _, first = np.unique(tokens.hashes()[seen], return_index=True)  # by ascending hash
        chosen = np.sort(seen[first[:max_texts]])
        packed, offsets = tokens.gather(chosen)
        ids = {t: _known(visible, t) for t in visible.network.schema.textless}
        return cls(ids, PackedTokens({}, offsets, packed.astype(np.int32)))

    def save(self, model_folder: Path) -> None:
        with replace_folder(model_folder / FOLDER) as folder:
            for node_type, ids in self.ids.items():
                ids.to_frame().write_parquet(folder / f"{node_type}.parquet")
            np.savez(folder / "texts.npz", offsets=self.texts.offsets, tokens=self.texts.tokens)
            write_digests(folder)

    def are_all(self, network: Network) -> bool:
        """Whether these are just the textless nodes of the network, in its order."""
        return all(network.id_series(t).equals(ids) for t, ids in self.ids.items())

    @classmethod
    def open(cls, model_folder: Path) -> KnownNodes | None:
        """What ``save`` wrote, or nothing."""
        folder = readable(model_folder / FOLDER)
        if not folder.is_dir():
            return None
        check_sizes(folder, COPY_RUN)
        ids = {}
        for path in sorted(folder.glob("*.parquet")):
            with reading(path, COPY_RUN):
                ids[path.stem] = read_parquet(path, COPY_RUN)["id"].cast(pl.String)
        texts = folder / "texts.npz"
        with reading(texts, COPY_RUN), np.load(texts, allow_pickle=False) as arrays:
            offsets, tokens = arrays["offsets"].astype(np.int64), arrays["tokens"].astype(np.int32)
            check_offsets(offsets, len(tokens), texts, COPY_RUN)
        return cls(ids, PackedTokens({}, offsets, tokens))


def _visible_texts(visible: VisibleNetwork, tokens: PackedTokens) -> NDArray[np.bool_]:
    seen = np.ones(len(tokens), dtype=bool)
    for node_type, rows in visible.hidden.items():
        if node_type in tokens.text_offset:
            seen[tokens.text_offset[node_type] + rows] = False
    return seen


def _known(visible: VisibleNetwork, node_type: NodeType) -> pl.Series:
    ids, schema = visible.network.id_series(node_type), visible.network.schema
    every = np.arange(len(ids))
    seen = np.zeros(len(ids), dtype=bool)
    for neighbor in schema.neighbor_types_of(node_type):
        if neighbor in schema.text_rich:
            seen |= visible.adjacency(node_type, neighbor).counts(every) > 0
    return pl.select(pl.when(pl.Series(seen)).then(ids)).to_series().alias("id")
