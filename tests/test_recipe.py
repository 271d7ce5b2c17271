"""The default recipe: options have it, older runs keep what they had, the paper is pinned."""

from __future__ import annotations

from heterformer.models.options import HeterformerOptions
from heterformer.recipe import RECIPE, earlier
from heterformer.training.flat_options import flat_options
from heterformer.training.options import EARLIER, TrainingOptions
from heterformer.training.presets import PRESETS


def test_options_have_the_values_of_the_recipe() -> None:
    defaults = flat_options(TrainingOptions())
    assert {name: defaults[name] for name in RECIPE} == {name: d.value for name, d in RECIPE.items()}


def test_every_option_of_the_recipe_says_what_older_runs_had() -> None:
    both = {**EARLIER, **HeterformerOptions.earlier}
    assert {name: both[name] for name in RECIPE} == earlier(*RECIPE)


def test_the_paper_does_not_depend_on_the_recipe() -> None:
    no_use = {"refresh_every", "readout_aggregation"}  # its states are live, and it has no network readout
    assert set(RECIPE) - set(PRESETS["paper"]) <= no_use


def test_a_run_that_is_older_than_the_recipe() -> None:
    old = TrainingOptions.from_dict({"model": {"model": "heterformer", "backbone": "x"}})
    found = flat_options(old)
    assert {name: found[name] for name in RECIPE} == {name: d.earlier for name, d in RECIPE.items()}
