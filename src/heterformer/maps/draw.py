"""The map of a network's nodes as files: a picture for a paper and a page to explore."""

from __future__ import annotations

from pathlib import Path

from heterformer.embedding.node_vectors import NodeVectors, Vectorized, given_vectors
from heterformer.maps.core import Selection, map_of
from heterformer.maps.figure import draw_map_figure
from heterformer.maps.options import MapOptions
from heterformer.maps.page import write_map_page
from heterformer.network.store import Network
from heterformer.progress import waiting
from heterformer.search.store import SearchStore
from heterformer.training.run import Run


def draw_map(
    network: Network,
    vectors: Vectorized,
    out: Path,
    options: MapOptions | None = None,
) -> list[Path]:
    """Write ``map.png`` and ``map.html`` of the nodes that have vectors into ``out``."""
    with waiting("laying out the map"):
        node_map = map_of(network, vectors, options)
        return [draw_map_figure(node_map, out / "map.png"), write_map_page(node_map, out / "map.html")]


def draw_run_map(
    path: Path, options: MapOptions, vectors: Path | None = None, out: Path | None = None
) -> list[Path]:
    """The map of a run's network, by the vectors that searching keeps or by those in a file.

    It is written into RUN/figures or, so as not to replace the run's own, into FILE.figures.
    """
    run = Run(path)
    network = run.network()
    Selection.of(network, network.schema.node_types, options)  # a mistake shows before vectors are made
    if vectors is not None:
        place = out or vectors.with_name(f"{vectors.name}.figures")
        return draw_map(network, given_vectors(vectors, network), place, options)
    store = SearchStore.open(run, network)
    shown = Selection.of(network, store.types, options).types
    own_vectors = {t: NodeVectors.of_all(store.matrix(t)) for t in shown}
    return draw_map(network, own_vectors, out or path / "figures", options)
