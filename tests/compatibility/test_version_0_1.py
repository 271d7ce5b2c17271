"""A network and runs that version 0.1 wrote: they open, resume to the same numbers, give the same vectors.

``version_0_1/`` holds a network of 200 papers, two runs of six steps, the metrics of the same runs taken to
twelve steps by that version, and the vectors of both.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer import Network, embed, load_model
from heterformer.training.run import Run
from heterformer.training.train import train

WRITTEN = Path(__file__).parent / "version_0_1"
RUNS = ("heterformer", "bert_hgt")
CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # another processor rounds otherwise


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WRITTEN, tmp_path / "written"))


def assert_same_vectors(run: Path, network: Network, name: str) -> None:
    with np.load(WRITTEN / "vectors.npz") as stored:
        expected = {k.removeprefix(f"{name}."): v for k, v in stored.items() if k.startswith(f"{name}.")}
    found = embed(load_model(run), network)
    assert found.keys() == expected.keys()
    for node_type, vectors in expected.items():
        np.testing.assert_allclose(found[node_type], vectors, **CLOSE)


@pytest.mark.parametrize("name", RUNS)
def test_vectors_are_the_same(name: str, copied: Path) -> None:
    assert_same_vectors(copied / "runs" / name, Network.open(copied / "network"), f"{name}.6")


@pytest.mark.parametrize("name", RUNS)
def test_a_run_resumes_to_the_same_numbers(name: str, copied: Path) -> None:
    """But for MRR and NDCG of later validations, in which each different key of a batch now counts once."""
    network, run = Network.open(copied / "network"), Run(copied / "runs" / name)
    train(network, run.path, replace(run.options(), max_steps=12))
    expected = json.loads((WRITTEN / "metrics.json").read_text())[name]
    found = [without_seconds(line) for line in run.metrics() if "refresh" not in line]
    assert [line.keys() for line in found] == [line.keys() for line in expected]
    for line, before in zip(found, expected, strict=True):
        assert flat(line) == pytest.approx(flat(before), rel=1e-3, abs=1e-5)
    assert_same_vectors(run.path, network, f"{name}.12")


def without_seconds(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "seconds"}


def flat(values: dict[str, Any]) -> dict[str, Any]:
    """Nested figures under their path; words and gaps are left out."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": v for inner, v in flat(value).items()}
        elif isinstance(value, (int, float)):
            found[name] = value
    return found
