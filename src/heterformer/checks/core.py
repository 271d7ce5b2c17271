"""Check whatever a path holds, as ``heterformer check`` does."""

from __future__ import annotations

from pathlib import Path

from heterformer.checks.findings import Findings
from heterformer.checks.network import check_network
from heterformer.checks.run import check_run
from heterformer.checks.vectors import check_vectors
from heterformer.embedding.vectors import is_parquet, is_vectors_folder
from heterformer.errors import InputError
from heterformer.files import readable
from heterformer.network.description import DESCRIPTION
from heterformer.training.run_folder import CONFIG


def check_path(path: Path | str) -> Findings:
    """Read all of a network, a run or vectors, and compare it with the digests noted when it was written.

    Args:
        path: What ``build``, ``train`` or ``embed`` wrote.

    Example::

        findings = check_path("papers.net")
        print(findings.is_sound, findings.problems)
    """
    path = readable(Path(path))
    if (path / DESCRIPTION).exists():
        return check_network(path)
    if (path / CONFIG).exists():
        return check_run(path)
    if is_vectors_folder(path) or (is_parquet(path) and path.is_file()):
        return check_vectors(path)
    problem = "no such file or folder" if not path.exists() else "found something else"
    raise InputError(f"{path}: {problem}, expected a network, a run or vectors.")
