"""A network with everything that can be stored, and with what other formats trip over."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from heterformer import Network

PAPERS = {
    "id": ["p 1", 'p"2', "p,3\nx", "<p4>&", "論5"],
    "title": [
        "Byzantine <generals> & poems",
        "Kernel\r\nbugs\tand\x0bmore",
        "",
        'say "so", they',
        "é ] ]]> 😀",
    ],
    "field": [["a; b", "c"], [], ["c"], ["d"], ["a; b"]],
    "shown": ["Generals", None, None, "Say", "E"],
    "year": [1999.5, None, 2001.0, 2002.0, 1e-7],
    "part": ["train", "test", None, "validation", "train"],
    "type": ["t1", None, "t3", "t4", "t5"],
    "id_": ["k1", "k2", None, "k4", "k5"],
    "rank": [1, 2, None, 4, 5],
}
SPEC = {
    "name": "ödd",
    "nodes": {
        "paper": {
            "text": "title",
            "label": "field",
            "name": "shown",
            "time": "year",
            "split": "part",
            "keep": ["type", "id_"],
            "attributes": ["rank"],
        },
        "author": {},
        "venue": {"label": "kind"},
    },
    "relations": {
        "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
        "extends": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
        "written_by": {"from": "paper", "to": "author", "columns": ["a", "b"]},
        "published_in": {"from": "paper", "to": "venue", "columns": ["a", "b"]},
    },
    "predict": "cites",
    "neighbors": {"paper": 4, "author": 2, "venue": 0},
    "max_tokens": 17,
    "test_batch_size": 9,
}
EDGES = {
    "cites": [("p 1", 'p"2'), ("p,3\nx", "<p4>&"), ("論5", "p 1")],
    "extends": [("p 1", 'p"2')],
    "written_by": [("p 1", "B"), ("論5", "A\r"), ('p"2', "p 1")],
}


def odd_network(out: Path) -> Network:
    """Ids, texts, labels and attributes full of separators and markup; a relation without edges."""
    edges = {
        name: pl.DataFrame(EDGES.get(name, []), schema={"a": str, "b": str}, orient="row")
        for name in SPEC["relations"]
    }
    venues = {"id": ["ACL", "alone"], "kind": ["conference", None]}
    nodes = {"paper": pl.DataFrame(PAPERS), "venue": pl.DataFrame(venues)}
    return Network.from_frames(SPEC, nodes, edges, out)


def stored(network: Network) -> dict[str, list[dict[str, object]]]:
    """Every stored value of every node, in row order."""
    types = network.schema.node_types
    return {t: [row for batch in network.batches(t) for row in batch.to_pylist()] for t in types}


def contents(network: Network) -> dict[str, object]:
    """All that a network holds. Its fingerprint is of bytes, among them those that nulls leave undefined."""
    edges = {r.name: [end.tolist() for end in network.edges(r.name)] for r in network.schema.relations}
    about = {"schema": network.schema, "name": network.name, "labels": network.label_kinds}
    return {**about, "nodes": stored(network), "edges": edges}
