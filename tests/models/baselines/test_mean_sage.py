from __future__ import annotations

from typing import Any

import pytest
import torch

from heterformer.errors import InputError
from heterformer.models.baselines.mean_sage import GAIN, MeanSageConfig
from tests.models.baselines.toy import Toy, assert_equal, backbone, mean_sage
from tests.models.random_batches import new_model, random_batch


def test_formula() -> None:
    toy = Toy.build("mean_sage")
    assert_equal(toy, mean_sage(toy))


def test_the_order_of_words_does_not_matter() -> None:
    model, batch = new_model("mean_sage", backbone()).double(), random_batch(2)
    texts = batch.texts
    backwards = torch.cat([part.flip(0) for part in texts.tokens.split(texts.lengths.tolist())])
    assert not torch.equal(backwards, texts.tokens)
    turned = type(texts)(backwards, texts.offsets)
    torch.testing.assert_close(model.text_states(turned), model.text_states(texts))


def test_has_no_plm() -> None:
    model = new_model("mean_sage", backbone(), vocabulary=20)
    assert not hasattr(model, "backbone")
    assert sum(p.numel() for p in model.parameters()) == 20 * 32 + 2 * 32 * 32 + 32
    assert model.get_input_embeddings().weight.shape == (20, 32)


def test_starts_as_a_projection_of_the_bag_of_words() -> None:
    """A text of one word has that word's vector, about sqrt(d) / 4 long."""
    model: Any = new_model("mean_sage", backbone(), aggregation_init="identity", vector_width=400)
    known = int(torch.argmax((model.words.row >= 0).int()))
    texts = type(random_batch(0).texts)(torch.tensor([known]), torch.tensor([0, 1]))
    (vector,) = model.text_states(texts)[:, 0]
    torch.testing.assert_close(vector, GAIN * model.words.embeddings.weight[model.words.row[known]])
    assert 4 < vector.norm() < 6


def test_width_is_an_option() -> None:
    model, batch = new_model("mean_sage", backbone(), vector_width=7), random_batch(0)
    assert model.encode_batch(batch).shape == (6, 7)
    assert model.width == 7


@pytest.mark.parametrize("option", ["vocabulary", "vector_width"])
def test_a_bad_size_is_named(option: str) -> None:
    with pytest.raises(InputError, match=f"{option} is 0, expected a positive whole number"):
        MeanSageConfig(**{option: 0})
