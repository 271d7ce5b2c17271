"""Command lines that reports show: options as the flags that ask for them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heterformer.models.options import HeterformerOptions
from heterformer.training.flat_options import flat_options
from heterformer.training.options import TrainingOptions

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from heterformer.comparison.results import Comparison
    from heterformer.evaluation.options import EvaluateOptions


@dataclass(frozen=True)
class EvaluateCommands:
    """The command lines of an evaluation's report; ``arguments`` say what was evaluated."""

    arguments: Sequence[str]

    def train(self, network: Path, run: Path, options: TrainingOptions) -> str:
        return shlex.join(["heterformer", "train", str(network), str(run), *training_flags(options)])

    def evaluate(self, options: EvaluateOptions) -> str:
        return shlex.join(["heterformer", "evaluate", *self.arguments, *option_flags(options)])

    def all_flags(self, options: EvaluateOptions) -> str:
        return shlex.join(option_flags(options, every=True))


def compare_command(comparison: Comparison) -> str:
    """The command that makes a comparison of the same models and seeds."""
    setup = comparison.setup
    seeds = sorted({seed.seed for row in comparison.rows for seed in row.seeds})
    words = ["heterformer", "compare", str(setup.network), str(setup.out)]
    words += ["--models", *(row.variant.name for row in comparison.rows), "--seeds", *map(str, seeds)]
    return shlex.join([*words, *training_flags(setup.options), *option_flags(setup.evaluation)])


def training_flags(options: TrainingOptions) -> list[str]:
    """The flags of training options, without those that suit the backbone anyway."""
    model = type(options.model)
    suited = model(backbone=options.model.backbone).resolved()
    suits = asdict(suited.with_stored_states(options.neighbor_states == "cached"))
    suits["new_learning_rate"] = replace(options, new_learning_rate="auto").new_rate
    usual = flat_options(TrainingOptions(model=model())) | {"model": HeterformerOptions.name}
    values = {n: v for n, v in flat_options(options).items() if v not in (usual[n], suits.get(n, usual[n]))}
    if options.model.backbone != usual["backbone"]:
        values["backbone"] = options.model.backbone
    return [word for name, value in values.items() for word in _words(name, value)]


def option_flags(options: DataclassInstance, every: bool = False) -> list[str]:
    """The flags of options that differ from their defaults, or of ``every`` option."""
    usual = _flat(asdict(type(options)()))
    words = []
    for name, value in _flat(asdict(options)).items():
        if name != "json" and value not in (None, ()) and (every or value != usual[name]):
            values = map(str, value) if isinstance(value, tuple) else [str(value)]
            words += [f"--{name.replace('_', '-')}", *values]
    return words


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Every option under the name that its flag has."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _words(name: str, value: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        prefix, _, last = flag.rpartition(".")
        return [f"--{flag}" if value else "--" + ".".join(filter(None, [prefix, f"no-{last}"]))]
    return [f"--{flag}", *(map(str, value) if isinstance(value, tuple) else [str(value)])]
