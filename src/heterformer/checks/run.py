"""Check a run: every file against its digest, and what can be read without PyTorch for what it must be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from heterformer.checks.findings import Findings
from heterformer.checks.vectors import check_vectors
from heterformer.digests import DIGESTS
from heterformer.errors import InputError
from heterformer.files import CARD, readable, reading
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.search.approximate import REMEDY as INDEX_REMEDY
from heterformer.stored import COPY_RUN, read_json, read_parquet
from heterformer.training.run_folder import METRICS, SPLIT, RunFolder, logged_lines


def check_run(path: Path) -> Findings:
    """What is wrong with a run's folder."""
    findings = Findings(path, "run")
    if (path / DIGESTS).exists() or (path / CARD).exists():
        findings.compare_digests(path, COPY_RUN)
    else:
        findings.notes.append(f"{path}: its training is not complete; only its folders have digests.")
    config = findings.attempt(RunFolder(path).config)
    findings.attempt(logged_lines, path / METRICS)
    findings.attempt(_check_split, path, config or {}, findings)
    for name in ("checkpoints/last", "checkpoints/best", "known"):
        if (folder := readable(path / name)).is_dir():
            findings.compare_digests(folder, COPY_RUN)
    for weights in sorted(path.rglob("*.safetensors")):
        findings.attempt(_check_weights, weights)
    for table in sorted((path / "known").glob("*.parquet")):
        findings.attempt(read_parquet, table, COPY_RUN)
    findings.attempt(_check_texts, path / "known" / "texts.npz")
    for values in sorted([*path.glob("*.json"), *path.glob("checkpoints/*/*.json")]):
        findings.attempt(read_json, values, COPY_RUN)
    if (path / "config.json").exists():
        findings.attempt(RunFolder(path).schema)
    folders = (p for p in sorted((path / "search").rglob("*")) if p.name in ("vectors", "textless"))
    for folder in filter(Path.is_dir, folders):
        inner = check_vectors(folder)
        findings.compared += inner.compared
        findings.add(map(InputError, inner.problems))
        findings.notes += inner.notes
    for index in filter(Path.is_dir, sorted((path / "search").rglob("*.faiss"))):
        findings.compare_digests(index, INDEX_REMEDY)
    return findings


def _check_split(path: Path, config: Mapping[str, Any], findings: Findings) -> None:
    """Whether pairs are edges of the run's network, if it is where the run says."""
    if not (path / SPLIT).is_file():
        return
    try:
        network = Network.open(config.get("network", ""))
    except InputError:
        findings.notes.append(f"{path}: its network is not there, so its split was not compared with it.")
        read_parquet(path / SPLIT, COPY_RUN)
        return
    if network.fingerprint == config["fingerprint"]:
        Split.open(path / SPLIT, network)


def _check_weights(path: Path) -> None:
    with reading(path, COPY_RUN), safe_open(path, "np") as file:
        for name in file.keys():  # noqa: SIM118
            file.get_slice(name).get_shape()


def _check_texts(path: Path) -> None:
    if path.exists():
        with reading(path, COPY_RUN), np.load(path, allow_pickle=False) as arrays:
            for name in ("offsets", "tokens"):
                arrays[name]
