from __future__ import annotations

from typing import Any

import pytest

from heterformer.errors import InputError
from heterformer.models import HeterformerConfig


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "virtual_tokens",
            "all",
            "virtual_tokens is 'all', expected one of both, text_rich, textless, none.",
        ),
        ("aggregation_init", "zero", "aggregation_init is 'zero', expected one of identity, random."),
        ("readout", "max", "readout is 'max', expected one of cls, mean."),
        ("normalize", "yes", "normalize is 'yes', expected true or false."),
        ("heterogeneous_projection", 1, "heterogeneous_projection is 1, expected true or false."),
        ("share_aggregation_layers", None, "share_aggregation_layers is None, expected true or false."),
        ("share_aggregation_kinds", "no", "share_aggregation_kinds is 'no', expected true or false."),
        ("textless_dim", 0, "textless_dim is 0, expected a positive whole number."),
        ("textless_dim", 6.5, "textless_dim is 6.5, expected a positive whole number."),
        ("temperature", 0, "temperature is 0, expected a positive number."),
        ("temperature", True, "temperature is True, expected a positive number."),
        ("aggregation_heads", 5, "aggregation_heads is 5, expected a divisor of the backbone's width 768."),
        ("aggregation_heads", -1, "aggregation_heads is -1, expected a positive whole number or None."),
    ],
)
def test_a_bad_option_is_named(option: str, value: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        HeterformerConfig(**{option: value})
    assert str(error.value) == message


def test_option_names_are_what_a_user_can_choose() -> None:
    names = HeterformerConfig.option_names()
    common = ("normalize", "temperature", "query_prompt", "document_prompt", "widths", "relation_scales")
    of_backbone = ("readout", "long_texts", "window_tokens", "lora", "lora_targets", "freeze")
    assert names[:6] == common
    assert set(of_backbone) < set(names)
    assert "virtual_tokens" in names
    assert not {"backbone", "schema", "dtype"} & set(names)


def test_config_round_trip() -> None:
    config = HeterformerConfig(
        backbone={"model_type": "electra", "hidden_size": 24, "num_attention_heads": 2}
    )
    again = HeterformerConfig.from_dict(config.to_dict())
    assert again.to_dict() == config.to_dict()
    assert again.backbone_config.model_type == "electra"
    assert again.backbone_config.hidden_size == 24
