"""What a look at texts decides, held against vectors that Transformers gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from heterformer.models.plm.backbone import load_backbone
from heterformer.models.plm.inspection import PAPERS, WAYS, Inspection, Way, inspect_backbone
from tests.models.random_batches import VOCABULARY, save_backbone


@pytest.fixture(scope="module")
def plm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load_backbone(save_backbone(tmp_path_factory.mktemp("plm")))


def texts(seed: int, count: int = 70) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(2, VOCABULARY, rng.integers(1, 12)).tolist() for _ in range(count)]


def test_pairs_are_ranked_by_the_plms_vectors(plm: Any) -> None:
    """Keys are their queries with one more token, so that some are ranked right and some are not."""
    queries = texts(0)
    keys = [[*text, 5] for text in queries]
    found = inspect_backbone(plm, queries, keys)
    with torch.no_grad():
        outputs = [
            [plm(input_ids=torch.tensor([t]), output_hidden_states=True) for t in each]
            for each in (queries, keys)
        ]
    for readout, normalize in WAYS:
        ends = [
            torch.stack(
                [
                    o.last_hidden_state[0, 0] if readout == "cls" else o.last_hidden_state[0].mean(0)
                    for o in each
                ]
            )
            for each in outputs
        ]
        if normalize == "yes":
            ends = [F.normalize(each, dim=-1) for each in ends]
        right = (ends[0] @ ends[1].T).argmax(1) == torch.arange(len(queries))
        assert np.array_equal(found.right[readout, normalize], right.numpy()), (readout, normalize)
        assert 0 < right.sum() < len(queries)
    inner = [torch.stack([o.hidden_states[layer][0, 0] for o in outputs[0]]) for layer in (1, 2)]
    cosines = [F.cosine_similarity(states[:, None], states[None], dim=-1) for states in inner]
    n = len(queries)
    largest = max(float((c.sum() - n) / (n * (n - 1))) for c in cosines)
    assert found.cls_similarity == pytest.approx(largest, abs=1e-5)


def test_ties_count_against_a_way(plm: Any) -> None:
    same = [[3, 4, 5]] * 10
    assert not any(right.any() for right in inspect_backbone(plm, same, same).right.values())


def inspection(similarity: float = 0.5, **right: int) -> Inspection:
    """So many of 200 pairs are right; those of the paper's way come first in every other one."""

    def first(count: int) -> NDArray[np.bool_]:
        return np.arange(200) < count

    ways: dict[Way, NDArray[np.bool_]] = {way: first(right.get("".join(way), 0)) for way in WAYS}
    return Inspection(ways, similarity)


def test_the_papers_way_stays_unless_another_is_better_beyond_chance() -> None:
    papers = {"readout": "cls", "normalize": "no", "temperature": 1.0, "neighbor_pooling": "cls"}
    assert PAPERS == ("cls", "no")
    assert inspection(clsno=50).options() == papers
    assert inspection(clsno=50, meanno=54).options() == papers, "4 more of 4 that differ are chance"
    assert inspection(clsno=50, meanno=55).options()["readout"] == "mean"
    best = {"readout": "mean", "normalize": "yes", "temperature": 0.05, "neighbor_pooling": "mean"}
    assert inspection(clsno=50, meanno=60, meanyes=70).options() == best
    assert inspection(clsno=50, clsyes=70).options() == papers | {"normalize": "yes", "temperature": 0.05}


def test_cls_states_that_are_alike_are_no_news_to_neighbours() -> None:
    assert inspection(0.94, clsno=50).options()["neighbor_pooling"] == "cls"
    assert inspection(0.96, clsno=50).options()["neighbor_pooling"] == "mean"
    assert inspection(0.96, clsno=50).options()["readout"] == "cls"


def test_it_says_what_it_saw() -> None:
    said = str(inspection(0.973, clsno=50, meanyes=100))
    assert said == (
        "untrained PREC of 200 training pairs by [CLS] 0.250, [CLS] normalised 0.000, mean 0.000, "
        "mean normalised 0.500; cosine of inner [CLS] states 0.97"
    )


def test_a_plm_of_one_layer(tmp_path: Path) -> None:
    one = load_backbone(save_backbone(tmp_path, layers=1))
    assert inspect_backbone(one, texts(0, 5), texts(1, 5)).cls_similarity == 0.0
