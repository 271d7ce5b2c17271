"""Check vectors: bytes against digests, and every id and number for what it must be."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heterformer.checks.findings import Findings
from heterformer.digests import check_parquet
from heterformer.embedding.vector_files import AGAIN, is_sealed
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError
from heterformer.network.schema import NodeType


def check_vectors(path: Path) -> Findings:
    """What is wrong with a table or a folder of vectors."""
    findings = Findings(path, "vectors")
    tables = [path]
    if path.is_dir():
        findings.compare_digests(path, AGAIN)
        tables = sorted(path.glob("*.parquet"))
    for table in tables:
        sealed = findings.attempt(check_parquet, table)
        if sealed is False and findings.attempt(is_sealed, table):
            findings.add([InputError(f"{table}: its digests are gone; {AGAIN}.")])
        elif sealed is False:
            reason = "has no digests (made by another tool or an earlier version)"
            findings.notes.append(f"{table}: {reason}; contents were checked for sense only.")
        elif sealed and not path.is_dir():
            findings.compared += 1
    vectors = findings.attempt(Vectors.open, path)
    for node_type in vectors.types if vectors is not None else ():
        findings.attempt(_check_type, vectors, node_type)
    return findings


def _check_type(vectors: Vectors, node_type: NodeType) -> None:
    ids = vectors.ids(node_type)
    if len(set(ids)) != len(ids) or not all(isinstance(i, str) for i in ids):
        problem = f"is damaged: it has a missing or duplicate id of {node_type}"
        raise InputError(f"{vectors.path}: {problem}; {AGAIN}.")
    if not ids:
        return
    rows = 0
    for start, values in vectors.chunks(node_type):
        rows += len(values)
        if not np.isfinite(values).all():
            row = start + int(np.argmin(np.isfinite(values).all(1)))
            problem = f"the vector of {node_type} number {row + 1:,} has a value that is not a number"
            raise InputError(f"{vectors.path}: {problem}; {AGAIN}.")
    if rows != len(ids):
        raise InputError(f"{vectors.path}: has {rows:,} vectors for {len(ids):,} {node_type} nodes; {AGAIN}.")
    if vectors.has_h0(node_type):
        for _, values in vectors.chunks(node_type, "h0"):
            if not np.isfinite(values).all():
                raise InputError(f"{vectors.path}: an h0 of {node_type} is not a number; {AGAIN}.")
