"""What attributes add to a vector."""

from __future__ import annotations

import torch

from heterformer.models.attributes import AttributeEncoder
from heterformer.network.encoding import fitted_encodings
from tests.network.test_encoding import network


def test_the_encoder_adds_up_what_is_known() -> None:
    encoding = fitted_encodings(network(), ("author",))["author"]
    encoder = AttributeEncoder(encoding, 5)
    encoder.initialize()
    read = encoding.read(network(), "author")
    inputs = torch.from_numpy(read.numbers), torch.from_numpy(read.categories)
    assert not encoder(*inputs).any()  # it starts at zero
    torch.nn.init.normal_(encoder.numbers)
    torch.nn.init.normal_(encoder.categories)
    expected = inputs[0] @ encoder.numbers.T + encoder.categories[inputs[1][:, 0]]
    torch.testing.assert_close(encoder(*inputs), expected)
