"""What ``heterformer evaluate`` is asked to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from tyro.conf import arg

from heterformer.embedding.options import Precision
from heterformer.errors import InputError
from heterformer.evaluation.classification import ClassificationOptions
from heterformer.evaluation.clustering import ClusteringOptions
from heterformer.maps.projection import MapOptions
from heterformer.network.labels import LabelOptions

Task = Literal["link_prediction", "classification", "clustering", "map"]
TASKS: tuple[Task, ...] = ("link_prediction", "classification", "clustering", "map")


@dataclass(frozen=True)
class EvaluateOptions:
    """Which tasks, on which labels, and how."""

    tasks: tuple[Task, ...] = ()
    """What to do; unless given, everything that the network's labels allow."""
    parts: tuple[Literal["validation", "test"], ...] = ("validation", "test")
    """Which pairs of the predicted relation to rank."""
    similarity: Literal["inner", "cosine"] = "inner"
    """How --vectors are compared in link prediction; a run's are compared as they were trained."""
    split: str | None = None
    """With --vectors: ask for the pairs of this split, which 'heterformer split' or a run wrote, and classify
    the nodes that it hides from training apart."""
    precision: Precision = "float32"
    """Precision of matrix products that make a run's vectors; bf16 is faster where the processor has it,
    and rounds."""
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
            raise InputError("--parts names no part, expected validation, test or both.")

    def wants(self, task: Task) -> bool:
        return not self.tasks or task in self.tasks


def as_flags(options: EvaluateOptions, every: bool = False) -> list[str]:
    """The words of a command line that ask for these options: for those that are not usual, or for all."""
    usual = _flat(asdict(EvaluateOptions()))
    words = []
    for name, value in _flat(asdict(options)).items():
        if name != "json" and value not in (None, ()) and (every or value != usual[name]):
            values = map(str, value) if isinstance(value, tuple) else [str(value)]
            words += [f"--{name.replace('_', '-')}", *values]
    return words


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every option under the name that its flag has."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found
