from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heterformer.training.losses import link_prediction_loss, loss_at_widths
from tests.learning import tiny_model
from tests.networks import few

SCORES = torch.tensor([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0], [2.0, 2.0, 2.0]])


def written_out(scores: torch.Tensor, left_out: torch.Tensor | None = None) -> float:
    """Eq. 13 term by term."""
    total = 0.0
    for i, row in enumerate(scores.double().tolist()):
        negatives = [u for u in range(len(row)) if u != i and (left_out is None or not left_out[i, u])]
        denominator = math.exp(row[i]) + sum(math.exp(row[u]) for u in negatives)
        total -= math.log(math.exp(row[i]) / denominator)
    return total / len(scores)


def test_is_equation_13() -> None:
    by_hand = (
        math.log(1 + math.exp(1.0) + math.exp(-0.5))  # the differences of the other scores to the own
        + math.log(1 + math.exp(1.0) + math.exp(4.0))
        + math.log(3)
    ) / 3
    assert link_prediction_loss(SCORES).item() == pytest.approx(by_hand, abs=1e-6)


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
def test_parts_of_the_queries_add_up(cut: int) -> None:
    mask = torch.tensor([[False, True, False], [False, False, True], [False, False, False]])
    parts = [(SCORES[:cut], mask[:cut], 0), (SCORES[cut:], mask[cut:], cut)]
    found = sum(link_prediction_loss(scores, masked, first, 3).item() for scores, masked, first in parts)
    assert found == pytest.approx(link_prediction_loss(SCORES, mask).item(), abs=1e-6)


def test_masked_keys_are_no_negatives() -> None:
    mask = torch.tensor([[False, True, False], [False, False, True], [False, False, False]])
    by_hand = (math.log(1 + math.exp(-0.5)) + math.log(1 + math.exp(1.0)) + math.log(3)) / 3
    assert link_prediction_loss(SCORES, mask).item() == pytest.approx(by_hand, abs=1e-6)


def test_masked_keys_get_no_gradient() -> None:
    scores = SCORES.clone().requires_grad_()
    mask = torch.tensor([[False, True, False], [False, False, False], [False, False, False]])
    link_prediction_loss(scores, mask).backward()
    assert scores.grad is not None
    assert scores.grad[0, 1] == 0
    assert (scores.grad[~mask] != 0).all()
    assert scores.grad.sum(1).abs().max() < 1e-6  # a softmax's rows sum to nothing


def test_a_query_without_negatives_has_nothing_to_learn() -> None:
    everything_else = ~torch.eye(3, dtype=torch.bool)
    assert link_prediction_loss(SCORES, everything_else).item() == 0


def test_nothing_masked_is_the_plain_form() -> None:
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    assert torch.equal(link_prediction_loss(SCORES, nothing), link_prediction_loss(SCORES))


def test_half_precision_scores_are_summed_in_full() -> None:
    scores = torch.full((400, 400), 1.0, dtype=torch.bfloat16)
    loss = link_prediction_loss(scores)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(math.log(400), abs=1e-5)


@few
@given(st.integers(1, 7), st.integers(0, 2**32))
def test_equals_the_sum_written_out(pairs: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = 5 * torch.randn(pairs, pairs, generator=generator)
    mask = torch.rand(pairs, pairs, generator=generator) < 0.4
    mask.fill_diagonal_(False)
    assert link_prediction_loss(scores, mask).item() == pytest.approx(written_out(scores, mask), rel=1e-5)
    assert link_prediction_loss(scores).item() == pytest.approx(written_out(scores), rel=1e-5)


def test_the_loss_is_the_mean_over_widths_of_cut_vectors() -> None:
    model = tiny_model(widths=(8, 4), normalize=True, temperature=0.5)
    rng = torch.Generator().manual_seed(0)
    queries, keys = (torch.randn(5, 16, generator=rng) for _ in range(2))
    expected = 0.0
    for width in (16, 8, 4):
        cut = [v if width == 16 else torch.nn.functional.normalize(v[:, :width]) for v in (queries, keys)]
        expected += link_prediction_loss(cut[0] @ cut[1].T / 0.5).item() / 3
    assert loss_at_widths(model, queries, keys).item() == pytest.approx(expected, abs=1e-6)


def test_without_widths_it_is_the_plain_loss() -> None:
    model, rng = tiny_model(), torch.Generator().manual_seed(0)
    queries, keys = (torch.randn(5, 16, generator=rng) for _ in range(2))
    assert loss_at_widths(model, queries, keys) == link_prediction_loss(model.scores(queries, keys))


def test_frequencies_are_taken_from_the_scores() -> None:
    torch.manual_seed(0)
    model = tiny_model()
    queries, keys = torch.randn(3, model.width), torch.randn(4, model.width)
    frequencies = torch.tensor([0.5, 0.2, 0.2, 0.1]).log()
    found = loss_at_widths(model, queries, keys, log_frequencies=frequencies)
    expected = link_prediction_loss(model.scores(queries, keys) - frequencies)
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)
    assert found.item() != pytest.approx(loss_at_widths(model, queries, keys).item(), abs=1e-3)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_with_the_correction_scores_become_how_likely_a_link_is(weight: float) -> None:
    """One query type, keys that are drawn 8, 4, 2 and 1 times in 15: without it all of them score alike."""
    counts = torch.tensor([8.0, 4.0, 2.0, 1.0])
    frequencies = (counts / counts.sum()).log()
    learnt = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.Adam([learnt], lr=0.05)
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        keys = torch.multinomial(counts, 64, replacement=True, generator=generator)
        scores = (learnt - weight * frequencies)[keys].expand(64, 64)
        optimizer.zero_grad()
        link_prediction_loss(scores).backward()
        optimizer.step()
    spread = (learnt - learnt.mean()).detach()
    torch.testing.assert_close(spread, weight * (frequencies - frequencies.mean()), atol=0.05, rtol=0)
