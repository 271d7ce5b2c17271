"""A small network with planted clusters, and vectors that show them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.embedding.node_vectors import NodeVectors
from heterformer.network.store import Network

FIELDS = ("biology", "history", "physics")
PER_FIELD = 20


def clusters(count: int, per_cluster: int, width: int = 16, seed: int = 0) -> NDArray[np.float64]:
    """(count * per_cluster, width): cluster after cluster, each of a direction, lengths vary."""
    rng = np.random.default_rng(seed)
    centers = np.repeat(3 * np.eye(count, width), per_cluster, axis=0)
    lengths = rng.uniform(0.2, 5, (len(centers), 1))
    return (centers + 0.3 * rng.normal(size=centers.shape)) * lengths


def labelled_network(**paper: Any) -> Network:
    """Papers of three fields, the first author of each and a few venues; ``paper`` has more columns."""
    fields = np.repeat(FIELDS, PER_FIELD).tolist()
    ids = [f"p{i}" for i in range(len(fields))]
    columns = {"id": ids, "title": [f"On {field} {i}" for i, field in enumerate(fields)]} | {"field": fields}
    columns |= paper
    spec = {
        "name": "fields",
        "nodes": {
            "paper": {"id": "id", "text": ["title"], **({"label": "field"} if columns["field"] else {})},
            "author": {},
            "venue": {},
        },
        "relations": {
            "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
            "written_by": {"from": "paper", "to": "author", "columns": ["a", "b"]},
            "published_in": {"from": "paper", "to": "venue", "columns": ["a", "b"]},
        },
    }
    edges = {
        "cites": [(ids[i], ids[i - 1]) for i in range(1, len(ids))],
        "written_by": [(i, f"author of {i}") for i in ids],
        "published_in": [(i, f"v{k % 4}") for k, i in enumerate(ids)],
    }
    tables = {name: pl.DataFrame(rows, schema=["a", "b"], orient="row") for name, rows in edges.items()}
    frame = pl.DataFrame({name: values for name, values in columns.items() if values})
    return Network.from_frames(spec, {"paper": frame}, tables)


def planted_vectors(network: Network) -> dict[str, NDArray[np.float64]]:
    """Papers in three clusters; an author's vector is the paper's and something all authors share."""
    papers = clusters(len(FIELDS), PER_FIELD)
    rows = [network.ids("paper").index(name.removeprefix("author of ")) for name in network.ids("author")]
    authors = papers[rows] / np.linalg.norm(papers[rows], axis=1, keepdims=True)
    authors[:, -1] += 3
    venues = np.random.default_rng(1).normal(size=(network.schema.counts["venue"], papers.shape[1]))
    return {"paper": papers, "author": authors, "venue": venues}


def of_all(matrices: dict[str, NDArray[Any]]) -> dict[str, NodeVectors]:
    """Vectors of all nodes, in the network's order."""
    return {node_type: NodeVectors.from_matrix(matrix) for node_type, matrix in matrices.items()}


def share_of_own(places: NDArray[Any], groups: list[Any], neighbors: int = 5) -> float:
    """How often a point's nearest points are of its own group."""
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :neighbors]
    known = np.array(groups)
    return float((known[nearest] == known[:, None]).mean())
