from __future__ import annotations

import pytest
import torch

from tests.models.baselines.toy import backbone
from tests.models.random_batches import new_model, random_batch


@pytest.mark.parametrize("readout", ["cls", "mean"])
def test_is_heterformer_without_virtual_tokens(readout: str) -> None:
    batch = random_batch(1)
    heterformer = new_model("heterformer", backbone(), virtual_tokens="none", readout=readout)
    assert torch.equal(
        new_model("bert", backbone(), readout=readout).encode_batch(batch), heterformer.encode_batch(batch)
    )
