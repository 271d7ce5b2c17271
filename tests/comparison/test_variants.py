from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from heterformer.comparison.variants import VARIANTS, Choice, check_common, chosen_variants
from heterformer.errors import InputError
from heterformer.models.options import (
    BertOptions,
    EveryModelOptions,
    HeterformerOptions,
    ModelName,
    every_model,
)
from heterformer.training.options import TrainingOptions
from heterformer.training.presets import PRESETS
from heterformer.training.warm_up_options import WarmUpOptions

COMMON = TrainingOptions(model=EveryModelOptions(textless_dim=24, neighbor_pooling="cls"), batch_size=7)


def names(*choices: str, common: TrainingOptions = COMMON) -> list[str]:
    return [variant.name for variant in chosen_variants(choices, common)]


def test_the_twelve_models_are_variants_in_the_order_of_the_paper() -> None:
    assert set(names("models")) == set(get_args(ModelName))
    assert names("models")[:3] == ["mean_sage", "bert", "bert_mean_sage"]
    assert names("models")[-1] == "heterformer"
    assert names("baselines") == names("models")[:-1]


def test_the_command_line_offers_every_variant() -> None:
    groups = {"all", "models", "baselines", "ablations", "dimensions"}
    assert set(get_args(Choice)) == {*VARIANTS, *groups}


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_has_options_that_its_model_accepts(name: str) -> None:
    options = VARIANTS[name].options(COMMON, 5)
    assert type(options.model) is VARIANTS[name].model
    assert "temperature" in options.model.config_values()
    assert (options.seed, options.batch_size) == (5, 7)
    assert options.split == COMMON.split


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("no_vnt", {"virtual_tokens": "none", "network_readout": "none", "neighbor_codes": False}),
        # Without text-rich neighbours there are no codes of them either.
        ("no_tr", {"virtual_tokens": "textless", "network_readout": "textless", "neighbor_codes": False}),
        ("no_tl", {"virtual_tokens": "text_rich", "network_readout": "text_rich"}),
        ("no_readout", {"network_readout": "none", "neighbor_codes": False}),
        ("no_codes", {"neighbor_codes": False}),
        ("no_hp", {"heterogeneous_projection": False}),
        ("textless_dim_4", {"textless_dim": 4}),
        ("textless_dim_32", {"textless_dim": 32}),
        ("no_warm_up", {}),
    ],
)
def test_an_ablation_changes_just_one_thing(name: str, changes: dict[str, object]) -> None:
    common = replace(COMMON, model=every_model(COMMON.model).resolved())  # as a comparison has it
    whole, ablated = (VARIANTS[n].options(common, 0) for n in ("heterformer", name))
    assert ablated.model == replace(whole.model, **changes)  # type: ignore[arg-type]
    assert ablated.warm_up == replace(whole.warm_up, warm_up=name != "no_warm_up")


def test_common_options_reach_the_models_that_have_them() -> None:
    values = {name: VARIANTS[name].options(COMMON, 0).model.config_values() for name in VARIANTS}
    dims = {name: found.get("textless_dim") for name, found in values.items()}
    assert (dims["heterformer"], dims["bert_rgcn"], dims["textless_dim_8"]) == (24, 24, 8)
    assert dims["bert"] is None
    assert values["heterformer"]["neighbor_pooling"] == "cls"


def test_a_comparison_may_be_without_warm_up_for_all() -> None:
    cold = replace(COMMON, warm_up=WarmUpOptions(warm_up=False))
    check_common(cold)
    assert not any(variant.options(cold, 0).warm_up.warm_up for variant in VARIANTS.values())
    assert names("heterformer", "no_warm_up", common=cold) == ["heterformer"]


def test_the_paper_preset_is_for_all_variants() -> None:
    known = EveryModelOptions.option_names()
    preset = {k: v for k, v in PRESETS["paper"].items() if k in known and k != "backbone"}
    common = TrainingOptions(model=EveryModelOptions(**preset))
    for variant in VARIANTS.values():
        options = variant.options(common, 0)
        assert options.model.config_values()["normalize"] is False
        assert options.model.temperature == 1.0


def test_groups_and_names_mix_and_nothing_comes_twice() -> None:
    assert names("no_tl", "bert", "heterformer", "bert") == ["bert", "heterformer", "no_tl"]
    ablations = ["heterformer", "no_vnt", "no_tr", "no_tl", "no_readout", "no_codes", "no_hp", "no_warm_up"]
    assert names("ablations") == ablations
    assert names("all") == list(VARIANTS)


def test_the_usual_dimension_is_heterformer_itself() -> None:
    usual = TrainingOptions(model=HeterformerOptions(textless_dim=16))
    expected = ["heterformer", "textless_dim_4", "textless_dim_8", "textless_dim_32", "textless_dim_64"]
    assert names("dimensions", common=usual) == expected
    assert names("textless_dim_16", common=usual) == ["heterformer"]


def test_an_unknown_model() -> None:
    with pytest.raises(InputError, match=r"models has 'bertt', expected names of all, models, .*no_warm_up"):
        names("bertt")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (TrainingOptions(seed=3), "seed is 3, expected nothing: a comparison varies it by seeds."),
        (TrainingOptions(model=BertOptions()), "model is 'bert', expected nothing"),
        (TrainingOptions(model=HeterformerOptions(virtual_tokens="none")), "virtual_tokens is 'none'"),
    ],
)
def test_what_variants_decide_is_no_common_option(options: TrainingOptions, said: str) -> None:
    check_common(COMMON)
    with pytest.raises(InputError) as caught:
        check_common(options)
    assert str(caught.value).startswith(said)
