"""The map of a network's nodes as files: a picture for a paper and a page to explore."""

from __future__ import annotations

from pathlib import Path

from heterformer.embedding.node_vectors import NodeVectors, Vectorized, given_vectors
from heterformer.files import check_new
from heterformer.maps.atlas import write_atlas
from heterformer.maps.core import Selection, map_of
from heterformer.maps.figure import draw_map_figure
from heterformer.maps.landmarks import LANDMARKS
from heterformer.maps.layout import Layout
from heterformer.maps.options import MapOptions
from heterformer.maps.page import write_map_page
from heterformer.maps.projection import ITERATIONS
from heterformer.network.store import Network
from heterformer.progress import progress_bar, say, waiting
from heterformer.search.store import SearchStore
from heterformer.training.run import Run


def draw_map(
    network: Network,
    vectors: Vectorized,
    out: Path,
    options: MapOptions | None = None,
) -> list[Path]:
    """Write ``map.png`` and ``map.html`` of the nodes that have vectors into ``out``."""
    with progress_bar("laying out the map", ITERATIONS, "iterations") as bar:
        node_map = map_of(network, vectors, options, advance=bar.advance)
    drawn = []
    with progress_bar("drawing the map", 2, "files") as bar:  # of a figure alone matplotlib tells no share
        for draw, name in ((draw_map_figure, "map.png"), (write_map_page, "map.html")):
            drawn.append(draw(node_map, out / name))
            bar.advance()
    return drawn


def draw_run_map(
    path: Path,
    options: MapOptions,
    vectors: Path | None = None,
    out: Path | None = None,
    landmarks: int = LANDMARKS,
    atlas: Path | None = None,
    other_network: Path | None = None,
) -> list[Path]:
    """The map of a run's network or another one, by the vectors that searching keeps or by those in a file.

    It is written into RUN/map, since RUN/figures has that of the report, of another network into
    RUN/NETWORK.map, by vectors of a file into FILE.map. By the run's own vectors all nodes are laid out as
    well, for the explorer and, if given, for the table ``atlas``.
    """
    if atlas is not None:
        check_new(atlas)
    run = Run(path)
    network = run.open_network(other_network)
    for node_type, rows in run.new_rows(network).items():
        say(f"{network.path}: {len(rows):,} {node_type} nodes are new since training.")
    Selection.choose(network, network.schema.node_types, options)  # a mistake shows before vectors are made
    if vectors is not None:
        place = out or vectors.with_name(f"{vectors.name}.map")
        return draw_map(network, given_vectors(vectors, network), place, options)
    store = SearchStore.open(run, network)
    types = Selection.choose(network, store.types, options).types
    own_vectors = {t: NodeVectors.from_matrix(store.matrix(t)) for t in types}
    place = path / ("map" if other_network is None else f"{other_network.resolve().name}.map")
    files = draw_map(network, own_vectors, out or place, options)
    with waiting("laying out all nodes", spinner=False):  # which has bars of its own
        layout = Layout.make(store, options, landmarks, followed=True)
    return files if atlas is None else [*files, write_atlas(store, layout, atlas)]
