"""What a user can choose about training. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from tyro.conf import arg

from heterformer.errors import InputError
from heterformer.models.plm.minilm import suited
from heterformer.models.registry import ModelName
from heterformer.network.split.options import SplitOptions

NESTED: tuple[ModelName, ...] = ("heterformer", "graph_formers", "graph_formers_plus")
# Of the dense parameters that a backbone lacks, found on the validation part of a citation network: the
# identity start of an aggregation inside the layers has further to go than most convolutions behind them.
NEW_RATES: dict[ModelName, float] = dict.fromkeys(NESTED, 5e-4) | {"bert_hgt": 1e-3, "bert_shgn": 1e-3}
NEW_RATE = 1e-4  # of all others
# Time and means, which may change when a run goes on; a micro-batch decides only what dropout draws.
BUDGET = ("max_steps", "max_minutes", "epochs", "checkpoint_minutes", "tensorboard", "device", "micro_batch")


# The paper's hyper-parameter table and its plain loss; what the paper leaves open is as its words suggest.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "backbone": "bert-base-uncased",
        "aggregation_init": "random",
        "neighbor_pooling": "cls",
        "readout": "cls",
        "normalize": "no",
        "temperature": 1.0,
        "batch_size": 30,
        "learning_rate": 1e-5,
        "new_learning_rate": 1e-5,
        "textless_learning_rate": 1e-5,
        "weight_decay": 1e-3,
        "adam_epsilon": 1e-8,
        "patience": 3,
        "positives": "fixed",
        "neighbor_states": "live",
        "false_negatives": "keep",
        "sparse_tokens": False,
        "validation_pairs": 1_000_000_000,
    }
}


@dataclass(frozen=True)
class ModelOptions:
    """The model, its backbone and, for Heterformer, the paper's ablations."""

    model: ModelName = field(default="heterformer", kw_only=True)
    """Heterformer or one of the paper's baselines; an option that a model lacks must be left alone."""
    backbone: str = "minilm"
    """A BERT-family encoder: 'minilm' (comes along, works offline), a folder, or a Hugging Face name."""
    virtual_tokens: Literal["both", "text_rich", "textless", "none"] = "both"
    """Virtual neighbour tokens: both kinds, one kind, or none (text only)."""
    heterogeneous_projection: bool = True
    """Separate projections per edge type and per textless type."""
    textless_dim: int = 64
    """Width of a textless node's own embedding."""
    aggregation_init: Literal["identity", "random"] = "identity"
    """Start of the neighbour aggregation: a weighted mean of neighbours, or random as the paper's."""
    neighbor_pooling: Literal["auto", "cls", "mean"] = "auto"
    """What a text gives to its neighbours in each layer: its [CLS] state (the paper) or its tokens' mean.
    'auto' is here and below what suits the backbone: mean for MiniLM, the paper's for others."""
    readout: Literal["auto", "cls", "mean"] = "auto"
    """A node's vector: the [CLS] state (the paper) or the mean over its tokens."""
    normalize: Literal["auto", "yes", "no"] = "auto"
    """Scale vectors to length 1; wants a --temperature of about 0.05."""
    temperature: float | Literal["auto"] = "auto"
    """Scores are inner products divided by this."""
    vocabulary: int = 10_000
    """Words that count, of MeanSAGE's bags of words."""
    vector_width: int | None = None
    """The length of MeanSAGE's vectors; the backbone's width unless given."""

    def resolved(self) -> ModelOptions:
        """With what suits the backbone in the place of every 'auto'."""
        auto = {name: value for name, value in suited(self.backbone).items() if getattr(self, name) == "auto"}
        return replace(self, **auto)

    def config_values(self, known: Collection[str]) -> dict[str, Any]:
        """What the model's configuration is to hold, of the options ``known`` to it."""
        values = asdict(self.resolved())
        values["normalize"] = values["normalize"] == "yes"
        for option in fields(self):
            if option.name not in (*known, "model", "backbone") and not self._is_default(option.name):
                raise InputError(f"--model {self.model} has no option --{option.name.replace('_', '-')}.")
        return {name: value for name, value in values.items() if name in known}

    def _is_default(self, name: str) -> bool:
        """Whether an option is as it is without the user's doing: presets are for all models."""
        default = self.__dataclass_fields__[name].default
        presets = (preset.get(name, default) for preset in PRESETS.values())
        return getattr(self, name) in (default, suited(self.backbone).get(name, default), *presets)


@dataclass(frozen=True)
class WarmUpOptions:
    """The warm-up of textless nodes (Eq. 10)."""

    warm_up: bool = True
    """Warm textless embeddings up on the frozen backbone's vectors before training."""
    warm_up_epochs: int = 30
    """At most so many passes over the edges of textless nodes."""
    warm_up_batch_size: int = 512
    """Edges per warm-up step; their texts are each other's negatives."""
    warm_up_learning_rate: float = 0.01
    """Learning rate of the warm-up."""
    warm_up_patience: int = 3
    """Stop after so many passes without a better validation figure."""

    def __post_init__(self) -> None:
        positive = ("epochs", "batch_size", "learning_rate", "patience")
        _check_above(self, {f"warm_up_{name}": 0 for name in positive})


@dataclass(frozen=True)
class TrainingOptions:
    """Everything that decides what a run computes."""

    model: Annotated[ModelOptions, arg(name="")] = field(default_factory=ModelOptions)
    split: Annotated[SplitOptions, arg(name="split")] = field(default_factory=SplitOptions)
    warm_up: Annotated[WarmUpOptions, arg(name="")] = field(default_factory=WarmUpOptions)
    batch_size: int = 30
    """Pairs per step and process; the other keys of all processes are a query's negatives."""
    micro_batch: int | None = None
    """Have at most so many pairs in memory at once; the gradients are the same, for a second forward pass."""
    epochs: int = 100
    """At most so many passes over the training pairs."""
    max_steps: int | None = None
    """Stop after so many steps."""
    max_minutes: float | None = None
    """Stop after so many minutes, warm-up included; the same command with more of them goes on later."""
    patience: int = 3
    """Stop after so many evaluations in a row without a better validation PREC."""
    validation_pairs: int = 5000
    """Validate on at most so many pairs."""
    evaluate_every: int | None = None
    """Validate every so many steps instead of once an epoch."""
    learning_rate: float = 2e-5
    """Learning rate of the backbone."""
    new_learning_rate: float | Literal["auto"] = "auto"
    """Learning rate of dense parameters that the backbone does not have; 'auto' is what suits the model."""
    textless_learning_rate: float = 1e-3
    """Learning rate of the textless nodes' embeddings."""
    weight_decay: float = 1e-3
    """Decoupled weight decay of dense parameters."""
    adam_epsilon: float = 1e-8
    """Epsilon of Adam."""
    max_grad_norm: float | None = None
    """Clip the gradient of the dense parameters to this norm."""
    positives: Literal["fixed", "fresh"] = "fixed"
    """A query's key: the same all the time (the paper), or drawn anew from its visible targets each epoch."""
    false_negatives: Literal["mask", "keep"] = "mask"
    """Leave a query's other known neighbours out of its negatives, or keep them as the paper does."""
    neighbor_states: Literal["live", "cached"] = "live"
    """Text-rich neighbours' states: computed with gradients in each step (the paper), or stored, faster."""
    refresh_every: int | None = None
    """Compute cached neighbour states anew every so many steps instead of once an epoch."""
    sparse_tokens: bool = True
    """Update only the token embeddings that a step uses (lazy Adam), which saves time and memory."""
    seed: int = 0
    """Seed of initialisation, batches and dropout."""
    precision: Literal["no", "bf16"] = "no"
    """Mixed precision."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    checkpoint_minutes: float = 5.0
    """Save the state of the run at least this often."""
    tensorboard: bool = False
    """Write TensorBoard logs into the run as well."""

    def __post_init__(self) -> None:
        positive = ("epochs", "max_steps", "max_minutes", "patience", "validation_pairs", "evaluate_every")
        rates = ("learning_rate", "new_learning_rate", "textless_learning_rate", "adam_epsilon")
        others = ("max_grad_norm", "refresh_every", "micro_batch")
        _check_above(self, {"batch_size": 1, **dict.fromkeys((*positive, *rates, *others), 0)})
        for name in ("seed", "weight_decay"):
            if getattr(self, name) < 0:
                raise InputError(f"--{name.replace('_', '-')} is {getattr(self, name)}, expected 0 or more.")
        if self.micro_batch is not None and self.micro_batch > self.batch_size:
            found = f"--micro-batch is {self.micro_batch}, more than --batch-size {self.batch_size}"
            raise InputError(f"{found}; it is a part of a batch.")
        if self.refresh_every is not None and self.neighbor_states == "live":
            found = f"--refresh-every is {self.refresh_every}, but --neighbor-states is live"
            raise InputError(f"{found}; only cached states are refreshed.")

    def resolved(self) -> TrainingOptions:
        """With every 'auto' decided."""
        return replace(self, model=self.model.resolved(), new_learning_rate=self.new_rate)

    @property
    def new_rate(self) -> float:
        """The learning rate of new dense parameters, 'auto' being decided."""
        if self.new_learning_rate != "auto":
            return self.new_learning_rate
        return NEW_RATES.get(self.model.model, NEW_RATE)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> TrainingOptions:
        values = dict(values)
        nested = {"model": ModelOptions, "split": SplitOptions, "warm_up": WarmUpOptions}
        for name, kind in nested.items():
            values[name] = kind(**values.get(name, {}))
        return cls(**values)


def _check_above(options: TrainingOptions | WarmUpOptions, bounds: dict[str, int]) -> None:
    for name, bound in bounds.items():
        value = getattr(options, name)
        if value not in (None, "auto") and value <= bound:
            raise InputError(f"--{name.replace('_', '-')} is {value}, expected more than {bound}.")


def as_flags(options: TrainingOptions) -> list[str]:
    """The words of a command line that ask for these options, without those that suit the backbone anyway."""
    backbone = options.model.backbone
    usual, suits = _flags(TrainingOptions()), asdict(ModelOptions(backbone=backbone).resolved())
    suits["new_learning_rate"] = replace(options, new_learning_rate="auto").new_rate
    given = {n: v for n, v in _flags(options).items() if v not in (usual[n], suits.get(n, usual[n]))}
    if backbone != usual["backbone"]:
        given["backbone"] = backbone
    return [word for name, value in given.items() for word in _words(name, value)]


def changed_options(before: TrainingOptions, now: TrainingOptions) -> list[str]:
    """The options that differ and decide the result; budget options may change when a run goes on."""
    old, new = _flags(before), _flags(now)
    return [f"--{name.replace('_', '-')}" for name in new if name not in BUDGET and old[name] != new[name]]


def _flags(options: TrainingOptions) -> dict[str, Any]:
    """Every option under the name that its flag has."""
    flat = {f.name: getattr(options, f.name) for f in fields(options)}
    model, split, warm_up = (asdict(flat.pop(part)) for part in ("model", "split", "warm_up"))
    return {**flat, **model, **warm_up, **{f"split.{name}": value for name, value in split.items()}}


def with_config(arguments: Sequence[str]) -> list[str]:
    """A command line in which ``--preset`` and ``--config`` are replaced by the flags they stand for.

    They come first, so that flags which the user gave override them.
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--preset", choices=tuple(PRESETS))
    parser.add_argument("--config", type=Path)
    if not arguments or arguments[0] not in ("train", "compare", "plan") or {"-h", "--help"} & set(arguments):
        return list(arguments)
    found, rest = parser.parse_known_args(arguments)
    values = dict(PRESETS.get(found.preset, {}))
    if found.config is not None:
        values |= _config_values(found.config)
    return [rest[0], *(word for name, value in values.items() for word in _words(name, value)), *rest[1:]]


def _config_values(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())  # PyYAML's complaints have several lines
        raise InputError(f"{path}: the configuration cannot be read ({reason}).") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected a mapping of options to values.")
    values = values.get("options", values)  # a run's own config.yaml holds them one level down
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected a mapping of options to values.")
    known = _flags(TrainingOptions())
    flat: dict[str, Any] = {}
    for name, value in values.items():
        prefix = "split." if name == "split" else ""
        nested = {prefix + k: v for k, v in value.items()} if isinstance(value, dict) else {name: value}
        flat |= {k.replace("-", "_"): v for k, v in nested.items()}
    for name, value in flat.items():
        if name not in known:
            guess = get_close_matches(name, known, n=1)
            hint = f" (did you mean {guess[0]!r}?)" if guess else ""
            raise InputError(f"{path}: no option {name!r}{hint}; 'heterformer train --help' lists them.")
        if isinstance(value, bool) and isinstance(known[name], str):
            flat[name] = "yes" if value else "no"  # which YAML reads as booleans unless quoted
    return flat


def _words(name: str, value: Any) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        prefix, _, last = flag.rpartition(".")
        return [f"--{flag}" if value else "--" + ".".join(filter(None, [prefix, f"no-{last}"]))]
    return [f"--{flag}", str(value)]
