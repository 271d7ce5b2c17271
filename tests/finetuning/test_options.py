from __future__ import annotations

from pathlib import Path

import pytest

from heterformer.errors import InputError
from heterformer.finetuning.options import FinetuneOptions, finetuning_options
from heterformer.training.options import TrainingOptions
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.training.warm_up_options import WarmUpOptions

RUN = Path("runs/papers")


def test_the_run_and_the_task_are_added() -> None:
    asked = TrainingOptions(seed=3, labels=SupervisionOptions(type="paper"))
    wanted = TrainingOptions(
        seed=3, labels=SupervisionOptions(type="paper"), init=str(RUN), tasks=("regression",)
    )
    assert finetuning_options(asked, RUN, "regression") == wanted
    assert finetuning_options(FinetuneOptions.from_options(asked), RUN, "regression") == wanted
    assert finetuning_options(wanted, RUN, "regression") == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            TrainingOptions(init="runs/a"),
            "init is 'runs/a', expected none: fine-tuning starts from runs/papers.",
        ),
        (
            TrainingOptions(tasks=("regression",)),
            "tasks are regression, expected none: fine-tuning learns classification.",
        ),
    ],
)
def test_options_that_say_otherwise(options: TrainingOptions, said: str) -> None:
    with pytest.raises(InputError) as caught:
        finetuning_options(options, RUN, "classification")
    assert str(caught.value) == said


def test_a_warm_up() -> None:
    with pytest.raises(InputError, match="warm_up_epochs is 2, expected none: fine-tuning has no warm-up"):
        FinetuneOptions.from_options(TrainingOptions(warm_up=WarmUpOptions(warm_up_epochs=2)))
