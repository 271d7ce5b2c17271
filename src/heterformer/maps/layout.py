"""The layout of all nodes that the explorer shows, kept beside the vectors that it is made of.

RUN/search/map/
  layout.json      the vectors' digests, the options, the regions
  TYPE.npy         (n, 2): where the nodes of a type are, rows in network order
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heterformer.arrays import Float32s
from heterformer.errors import InputError
from heterformer.files import file_lock, read_folder, reading, replace_folder
from heterformer.maps.landmarks import LANDMARKS, followed_bar, lay_out
from heterformer.maps.options import MapOptions
from heterformer.maps.regions import SAMPLED, Region, region_counts, regions_of
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.search.store import MAP, SearchStore

FILE, VERSION = "layout.json", 1


@dataclass(frozen=True)
class Layout:
    """Where every node that has a vector is on the map, and what its regions are about."""

    places: Mapping[NodeType, Float32s]  # (n, 2), rows in network order
    regions: tuple[Region, ...]

    @classmethod
    def open(cls, store: SearchStore) -> Layout | None:
        """The layout that is kept, if it belongs to the vectors that the store has now."""
        return _kept(store, _digests(store), None)

    @classmethod
    def make(
        cls,
        store: SearchStore,
        options: MapOptions | None = None,
        landmarks: int = LANDMARKS,
        followed: bool = False,
    ) -> Layout:
        """The layout that is kept, made unless there is one of these vectors and options.

        If ``followed``, progress is shown, which only a command of its own should do.
        """
        options = options or MapOptions()
        digests = _digests(store)
        made_with = {"landmarks": landmarks, "perplexity": options.perplexity, "seed": options.seed}
        if layout := _kept(store, digests, made_with):
            return layout
        folder = store.folder / MAP
        busy = f"{store.run.path}: another process is laying out its map; waiting for it."
        with file_lock(folder, waiting=busy):
            if layout := _kept(store, digests, made_with):
                return layout
            matrices = {t: store.matrix(t) for t in store.types}
            places = lay_out(matrices, store.network.schema.text_rich, options, landmarks, followed)
            layout = cls(places, sampled_regions(store.network, places, options.seed, followed))
            layout._save(folder, digests, made_with)
        return layout

    def _save(self, folder: Path, digests: dict[str, str], made_with: dict[str, Any]) -> None:
        values = {"version": VERSION, "vectors": digests, "options": made_with}
        with replace_folder(folder) as new:
            for node_type, places in self.places.items():
                np.save(new / f"{node_type}.npy", places, allow_pickle=False)
            regions = [asdict(region) for region in self.regions]
            text = json.dumps(values | {"regions": regions}, ensure_ascii=False, indent=1)
            (new / FILE).write_text(text, encoding="utf-8")


def sampled_regions(
    network: Network,
    places: Mapping[NodeType, Float32s],
    seed: int,
    followed: bool = False,
    sampled: int = SAMPLED,
) -> tuple[Region, ...]:
    """The regions by a sample of the nodes with text. If ``followed``, progress is shown."""
    counts = {t: len(places[t]) for t in network.schema.text_rich if t in places}
    total = sum(counts.values())
    if not total:
        return ()
    rng, spots, texts = np.random.default_rng(seed), [], []
    for node_type, count in counts.items():
        size = min(count, max(1, round(count * min(1.0, sampled / total))))
        rows = np.sort(rng.choice(count, size, replace=False))
        spots.append(places[node_type][rows])
        texts += network.texts(node_type, rows)
    regions = sum(region_counts(len(texts)).values())
    with followed_bar("naming regions", regions, "regions", followed) as advance:
        return regions_of(np.concatenate(spots), [text or "" for text in texts], seed, advance)


def _digests(store: SearchStore) -> dict[str, str]:
    return {t: store.digest(t) for t in store.types if len(store.matrix(t))}


def _kept(store: SearchStore, digests: dict[str, str], made_with: dict[str, Any] | None) -> Layout | None:
    """The layout in the store's folder, if it is of these vectors and, if they are given, options."""
    folder = store.folder / MAP
    if not (folder / FILE).is_file():
        return None

    def read(path: Path) -> Layout | None:
        with reading(path / FILE):
            values = json.loads((path / FILE).read_text(encoding="utf-8"))
            if values["version"] != VERSION or values["vectors"] != digests:
                return None
            if made_with not in (None, values["options"]):
                return None
            regions = tuple(
                Region(**region | {"words": tuple(region["words"])}) for region in values["regions"]
            )
            # The types are the store's own: no name from this file becomes part of a path.
            places = {t: np.load(path / f"{t}.npy", mmap_mode="r") for t in store.types}
            expected = {t: (len(store.matrix(t)), 2) for t in store.types}
            if {t: one.shape for t, one in places.items()} != expected:
                raise InputError(f"{path}: is damaged; remove it to have it made anew.")
            return Layout(places, regions)

    return read_folder(folder, read)
