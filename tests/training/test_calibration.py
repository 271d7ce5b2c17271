from __future__ import annotations

import numpy as np
import pytest
import torch

from heterformer.training.calibration import best_temperature, calibration_error


def overconfident(factor: float, count: int = 4000) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits ``factor`` times as large as those that the classes were drawn by."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(count, 3)) * 1.5
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    codes = (shares.cumsum(1) > rng.random((count, 1))).argmax(1)
    return torch.from_numpy(factor * logits), torch.from_numpy(np.eye(3, dtype=bool)[codes])


@pytest.mark.parametrize("factor", [0.5, 1.0, 4.0])
def test_the_temperature_undoes_confidence(factor: float) -> None:
    logits, truth = overconfident(factor)
    temperature = best_temperature(logits, truth, "single")
    assert temperature == pytest.approx(factor, rel=0.1)
    before, after = (
        calibration_error((logits / t).softmax(-1).numpy(), truth.numpy(), "single") for t in (1, temperature)
    )
    assert after < 0.02
    assert before >= after - 0.002


def test_several_classes() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3000, 4))
    truth = torch.from_numpy(rng.random((3000, 4)) < 1 / (1 + np.exp(-logits)))
    assert best_temperature(torch.from_numpy(3 * logits), truth, "multi") == pytest.approx(3, rel=0.1)


def test_the_error_by_hand() -> None:
    certain = np.array([[0.9, 0.1]] * 10)
    truth = np.array([[True, False]] * 6 + [[False, True]] * 4)
    assert calibration_error(certain, truth, "single") == pytest.approx(0.3)  # 90 % sure, 60 % right
    assert calibration_error(truth.astype(float), truth, "single") == 0
    half = np.full((10, 2), 0.5)
    assert calibration_error(half, truth, "multi") == pytest.approx(0.0)  # of 20 decisions, 10 are true
