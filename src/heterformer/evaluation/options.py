"""What ``heterformer evaluate`` is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal, get_args

from tyro.conf import arg

from heterformer.errors import OptionError
from heterformer.maps.options import MapOptions
from heterformer.network.label_options import LabelOptions
from heterformer.options import check_above, check_at_least, check_seed
from heterformer.precision import Precision

LabelTask = Literal["classification", "clustering"]
LABEL_TASKS: tuple[LabelTask, ...] = get_args(LabelTask)
Task = Literal["link_prediction", "classification", "clustering", "map"]
TASKS: tuple[Task, ...] = get_args(Task)
MAX_HIDDEN = 100_000  # units, far beyond any use


@dataclass(frozen=True)
class ClassificationOptions:
    """The classifier of the paper, and how often it is trained."""

    hidden: int = 200
    """Width of the MLP's hidden layer."""
    repeats: int = 5
    """Number of times the nodes are divided 7:1:2 and the classifier is trained; figures are means."""
    learning_rate: float | None = None
    """Learning rate of the MLP; unless given, the paper's .001 for text-rich and .01 for textless nodes."""
    batch_size: int = 128
    """Nodes per step of the MLP."""
    patience: int = 10
    """Number of epochs without a lower validation loss after which training stops."""
    max_epochs: int = 200
    """Maximum number of epochs of the MLP."""
    max_nodes: int | None = None
    """Number of nodes of a type to classify, drawn at random; all of them unless given."""
    seed: int = 0
    """Seed of the parts, of the MLP's start and of the nodes that are drawn."""

    def __post_init__(self) -> None:
        check_seed(self)
        check_above(self, {option.name: 0 for option in fields(self) if option.name != "seed"})
        if self.hidden > MAX_HIDDEN:
            raise OptionError(self, "hidden", f"is {self.hidden}, expected at most {MAX_HIDDEN:,}.")

    def learning_rate_of(self, textless: bool) -> float:
        """What was asked for, or else the paper's for this kind of node."""
        return self.learning_rate or (0.01 if textless else 0.001)


@dataclass(frozen=True)
class ClusteringOptions:
    """How k-means is run, and on which nodes."""

    runs: int = 10
    """Number of k-means runs, each from another start; figures are means."""
    sample: int | None = None
    """Number of nodes of a type to cluster, drawn at random; the paper takes 20,000 of DBLP's."""
    top_classes: int | None = None
    """Number of most frequent classes to keep; the paper keeps 10 of DBLP's."""
    seed: int = 0
    """Seed of the sample and of the starts."""

    def __post_init__(self) -> None:
        check_seed(self)
        check_at_least(self, {"runs": 1, "sample": 2, "top_classes": 2})


@dataclass(frozen=True)
class EvaluateOptions:
    """Which tasks, on which labels, and how."""

    tasks: tuple[Task, ...] = ()
    """What to do; unless given, everything that the network's labels allow."""
    parts: tuple[Literal["validation", "test"], ...] = ("validation", "test")
    """Which pairs of the predicted relation to rank."""
    similarity: Literal["inner", "cosine"] = "inner"
    """How vectors from a file are compared in link prediction; a run's are compared as they were trained."""
    split: str | None = None
    """For vectors from a file: the split whose pairs to rank, which 'heterformer split' or a run wrote; nodes
    that it hides from training are classified separately."""
    precision: Precision = "auto"
    """Precision of matrix products that make a run's vectors; bf16 rounds, and 'auto' is bf16 where the
    processor has instructions for it."""
    labels: LabelOptions = field(default_factory=LabelOptions)
    """Which labels count as classes."""
    classification: ClassificationOptions = field(default_factory=ClassificationOptions)
    """The classifier."""
    clustering: ClusteringOptions = field(default_factory=ClusteringOptions)
    """The clustering."""
    map: MapOptions = field(default_factory=MapOptions)
    """The map."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    json: Annotated[bool, arg(help="Print JSON instead of tables.")] = False

    def __post_init__(self) -> None:
        if not self.parts:
            raise OptionError(self, "parts", "is empty, expected validation, test or both.")

    def wants(self, task: Task) -> bool:
        return not self.tasks or task in self.tasks
