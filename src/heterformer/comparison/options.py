"""What ``heterformer compare`` does with each run, and how rates are tuned. One sentence per option."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tyro.conf import Suppress

from heterformer.errors import OptionError
from heterformer.evaluation.options import LABEL_TASKS, ClassificationOptions, ClusteringOptions, LabelTask
from heterformer.network.label_options import LabelOptions
from heterformer.options import MAX_SEED
from heterformer.training.options import Task, TrainingOptions, current_tasks
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.untrusted import short_repr

ComparedTask = Literal["link_prediction", "classification", "clustering"]
MOST_TRIALS = 7


@dataclass(frozen=True)
class ComparedTrainingOptions(TrainingOptions):
    """Training options of a comparison: all models learn links, and its own options say what is compared."""

    tasks: Suppress[tuple[Task, ...]] = ("link_prediction",)
    labels: Suppress[SupervisionOptions] = field(default_factory=SupervisionOptions)

    @classmethod
    def from_options(cls, options: TrainingOptions) -> ComparedTrainingOptions:
        """The same options, without flags for supervised tasks."""
        return cls(**vars(options))


@dataclass(frozen=True)
class ComparisonOptions:
    """What is compared besides link prediction, and whether learning rates are tuned."""

    tasks: tuple[ComparedTask, ...] = ("link_prediction",)
    """What to compare: link prediction, which is always done, and on labels classification and clustering."""
    tune: int = 0
    """Number of learning rates to try for each model's new parameters; the best on validation is used."""
    tune_steps: int = 100
    """Steps of each trial."""
    labels: LabelOptions = field(default_factory=LabelOptions)
    """Which labels count as classes."""
    classification: ClassificationOptions = field(default_factory=ClassificationOptions)
    """The classifier."""
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    """The clustering."""

    def __post_init__(self) -> None:
        if not 0 <= self.tune <= MOST_TRIALS or self.tune == 1:
            expected = f"expected 2 to {MOST_TRIALS} rates, or 0 for none"
            raise OptionError(self, "tune", f"is {self.tune}, {expected}.")
        if self.tune_steps < 1:
            raise OptionError(self, "tune_steps", f"is {self.tune_steps}, expected at least 1.")

    @property
    def on_labels(self) -> tuple[LabelTask, ...]:
        """The tasks that need labels."""
        return tuple(task for task in LABEL_TASKS if task in self.tasks)

    def label_values(self) -> dict[str, Any]:
        """Everything that decides the figures on labels."""
        values = asdict(self)
        return {name: values[name] for name in ("labels", *self.on_labels)}

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"tasks": list(self.tasks)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ComparisonOptions:
        groups = {"labels": LabelOptions, "classification": ClassificationOptions}
        made = {name: group(**values[name]) for name, group in groups.items()}
        made["clustering"] = ClusteringOptions(**values["clustering"])
        return cls(**{**values, "tasks": current_tasks(values["tasks"]), **made})


def check_seeds(seeds: Sequence[int]) -> None:
    """Refuse what is no list of seeds, or has one twice."""
    if not isinstance(seeds, Sequence):
        raise OptionError(None, "seeds", f"is {short_repr(seeds)}, expected a list, such as [0, 1, 2].")
    whole = all(isinstance(seed, int) and 0 <= seed <= MAX_SEED for seed in seeds or [-1])
    if not whole or len(set(seeds)) != len(seeds):
        values = ", ".join(map(str, seeds)) or "none"
        expected = f"expected different whole numbers, 0 to {MAX_SEED:,}"
        raise OptionError(None, "seeds", f"are {values}, {expected}.")
