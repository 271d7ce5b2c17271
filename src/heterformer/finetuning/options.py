"""Training options of fine-tuning: the run to start from and the task are not among them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated

from tyro.conf import Suppress, arg

from heterformer.errors import InputError
from heterformer.network.target_options import SupervisedTask
from heterformer.training.options import Task, TrainingOptions
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.training.warm_up_options import WarmUpOptions


@dataclass(frozen=True)
class FinetuneLabelOptions(SupervisionOptions):
    """Options of labels without those that ``heterformer finetune`` takes under shorter names."""

    type: Suppress[str | None] = None
    fraction: Annotated[float, Suppress, arg(name="label_fraction")] = 1.0


@dataclass(frozen=True)
class FinetuneOptions(TrainingOptions):
    """Training options without those that the run to start from and the task decide."""

    warm_up: Suppress[WarmUpOptions] = field(default_factory=WarmUpOptions)
    labels: Annotated[FinetuneLabelOptions, arg(name="labels")] = field(default_factory=FinetuneLabelOptions)
    tasks: Suppress[tuple[Task, ...]] = ("link_prediction",)
    init: Suppress[str | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        usual = vars(WarmUpOptions())
        for name, value in vars(self.warm_up).items():
            if value != usual[name]:
                raise InputError(f"{name} is {value!r}, expected none: fine-tuning has no warm-up.")

    @classmethod
    def from_options(cls, options: TrainingOptions) -> FinetuneOptions:
        """The same options, without flags for what is decided."""
        return cls(**{**vars(options), "labels": FinetuneLabelOptions(**vars(options.labels))})


def finetuning_options(options: TrainingOptions, run: Path, task: SupervisedTask) -> TrainingOptions:
    """The options of a training that starts from a run and learns a task; they may not say otherwise."""
    usual = TrainingOptions()
    if options.init not in (None, str(run)):
        raise InputError(f"init is {options.init!r}, expected none: fine-tuning starts from {run}.")
    if options.tasks not in (usual.tasks, (task,)):
        raise InputError(f"tasks are {', '.join(options.tasks)}, expected none: fine-tuning learns {task}.")
    values = {option.name: getattr(options, option.name) for option in fields(TrainingOptions)}
    values["labels"] = SupervisionOptions(**vars(options.labels))
    return TrainingOptions(**values | {"init": str(run), "tasks": (task,)})
