"""Options of a training run. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import arg

from heterformer.errors import InputError, OptionError
from heterformer.models.options import (
    MODEL_OPTIONS,
    EveryModelOptions,
    HeterformerOptions,
    ModelOptions,
    TextlessOptions,
)
from heterformer.models.plm.reading import PAPER
from heterformer.network.schema import Relation, Schema
from heterformer.network.split.options import SplitOptions
from heterformer.network.target_options import SupervisedTask
from heterformer.options import MAX_LARGE_SEED, check_seed, expected, option_types, read_value
from heterformer.recipe import RECIPE, Default
from heterformer.recipe import earlier as earlier_defaults
from heterformer.training.supervision_options import SupervisionOptions

Task = Literal["links", "classification", "regression"]
# The metrics of each task that are better if higher, the usual one first; with labels, theirs come first.
WATCHABLE: dict[Task, tuple[str, ...]] = {
    "classification": ("macro", "micro"),
    "regression": ("r2",),
    "links": ("prec", "mrr", "ndcg"),
}

# Options that may change when a run is resumed. A micro-batch changes only what dropout draws.
RESUMABLE = (
    "max_steps",
    "max_minutes",
    "epochs",
    "checkpoint_minutes",
    "tensorboard",
    "wandb",
    "mlflow",
    "device",
    "compile",
    "micro_batch",
)

# Options that decide nothing for models without neighbours, stored states, tables or textless nodes.
OF_NEIGHBORS = ("neighbor_dropout", "neighbor_dropout_of")
OF_STORED_STATES = ("neighbor_states", "refresh_every", "hard_negatives")
OF_TABLES = ("textless_learning_rate",)
OF_TEXTLESS_NODES = ("warm_up",)

# Values of options that a run's configuration lacks because it is older than they are.
EARLIER = earlier_defaults(
    "neighbor_dropout", "positives", "schedule", "popularity_correction", "refresh_every"
)

TEXTLESS_END_CORRECTION = 1.5  # the popularity correction where one end has no text, see docs/results.md
MAX_CORRECTION = 10.0

# The paper's hyper-parameter table and its plain loss; what the paper leaves open is as its words suggest.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "backbone": "bert-base-uncased",
        "aggregation_init": "random",
        "network_readout": "none",
        **{name: PAPER[name] for name in ("neighbor_pooling", "readout", "normalize", "temperature")},
        "batch_size": 30,
        "learning_rate": 1e-5,
        "new_learning_rate": 1e-5,
        "textless_learning_rate": 1e-5,
        "weight_decay": 1e-3,
        "adam_epsilon": 1e-8,
        "patience": 3,
        "schedule": "constant",
        "positives": "fixed",
        "neighbor_dropout": 0.0,
        "neighbor_states": "live",
        "false_negatives": "keep",
        "popularity_correction": 0.0,
        "sparse_tokens": False,
        "validation_pairs": 1_000_000_000,
    }
}


@dataclass(frozen=True)
class WarmUpOptions:
    """The warm-up of textless nodes (Eq. 10), for all models that have vectors of them."""

    warm_up: bool = True
    """Warm up textless embeddings on the frozen backbone's vectors before training."""
    warm_up_epochs: int = 30
    """Maximum number of passes over the edges of textless nodes."""
    warm_up_batch_size: int = 512
    """Edges per warm-up step; their texts are each other's negatives."""
    warm_up_learning_rate: float = 0.01
    """Learning rate of the warm-up."""
    warm_up_patience: int = 3
    """Number of passes without a better validation score after which the warm-up stops."""

    def __post_init__(self) -> None:
        positive = ("epochs", "batch_size", "learning_rate", "patience")
        _check_above(self, {f"warm_up_{name}": 0 for name in positive})


@dataclass(frozen=True)
class TrainingOptions:
    """Everything that decides the result of a run, and its budget.

    The options of the model, the split and the warm-up are groups of their own; ``train`` also takes all of
    them as keywords, which is shorter.

    Example:
        >>> from heterformer import TrainingOptions, train
        >>> options = TrainingOptions(max_steps=100, batch_size=64, neighbor_states="cached")
        >>> options = TrainingOptions.from_flat({"model": "bert_gat", "max_steps": 100})
        >>> run = train("papers.net", "runs/gat", options)
    """

    model: Annotated[ModelOptions, arg(name="")] = field(default_factory=HeterformerOptions)
    split: Annotated[SplitOptions, arg(name="split")] = field(default_factory=SplitOptions)
    warm_up: Annotated[WarmUpOptions, arg(name="")] = field(default_factory=WarmUpOptions)
    labels: Annotated[SupervisionOptions, arg(name="labels")] = field(default_factory=SupervisionOptions)
    tasks: tuple[Task, ...] = ("links",)
    """What to learn: links, classes of labelled nodes, numbers; links and one of the others at once."""
    watch: str | None = None
    """The validation metric that early stopping maximises: prec, mrr or ndcg of links, macro or micro of
    classes, r2 of numbers; unless given, prec, and with labels macro or r2."""
    init: str | None = None
    """Start from the model of this run: its weights, its options of the model, and the embeddings of textless
    nodes that it knows by id; others are folded in, and there is no warm-up."""
    batch_size: int = 30
    """Pairs per step and process; the other keys of all processes are a query's negatives."""
    micro_batch: int | None = None
    """Maximum number of pairs in memory at once: same gradients, at the cost of a second forward pass."""
    epochs: int = 100
    """Maximum number of passes over the training pairs."""
    max_steps: int | None = None
    """Maximum number of training steps; 0 leaves the model as it starts."""
    max_minutes: float | None = None
    """Maximum number of minutes, warm-up included; the same command with a larger limit resumes the run."""
    patience: int = 3
    """Number of evaluations in a row without a better watched metric after which training stops."""
    average_last: int | None = None
    """Number of latest evaluations whose weights are averaged; the average is kept if it validates better."""
    validation_pairs: int = 5000
    """Maximum number of pairs to validate on."""
    evaluate_every: int | None = None
    """Number of steps between evaluations; unless given, one evaluation per epoch."""
    learning_rate: float = 2e-5
    """Learning rate of the backbone."""
    layer_decay: float = 1.0
    """Factor of the learning rate from each layer of the backbone to the one below it."""
    new_learning_rate: float | Literal["auto"] = "auto"
    """Learning rate of dense parameters that the backbone does not have; 'auto' is what suits the model."""
    textless_learning_rate: float = 1e-3
    """Learning rate of the textless nodes' embeddings."""
    schedule: Literal["constant", "linear", "cosine"] = RECIPE["schedule"].value
    """How all learning rates go down to 0 over the budget of steps, after a linear rise."""
    schedule_warm_up: float = 0.05
    """Share of the budget over which the learning rates rise, unless the schedule is constant."""
    weight_decay: float = 1e-3
    """Decoupled weight decay of dense parameters."""
    adam_epsilon: float = 1e-8
    """Epsilon of Adam."""
    max_grad_norm: float | None = None
    """Clip the gradient of the dense parameters to this norm."""
    positives: Literal["fixed", "fresh"] = RECIPE["positives"].value
    """A query's key: drawn anew from its visible targets each epoch, or always the same (the paper)."""
    neighbor_dropout: float = RECIPE["neighbor_dropout"].value
    """Share of the nodes that a step reads without their neighbours, as a search reads a query."""
    neighbor_dropout_of: Literal["both", "queries"] = "both"
    """Whose neighbours are dropped: those of queries and keys, or of queries alone."""
    false_negatives: Literal["mask", "keep"] = "mask"
    """Mask a query's other known neighbours among its negatives, or keep them (the paper)."""
    popularity_correction: float | Literal["auto"] = RECIPE["popularity_correction"].value
    """How much of the log of a key's frequency is taken from its score in training: at 0 (the paper) vectors
    learn how much likelier than usual a link is, at 1 how likely it is; 'auto' is 1.5 for relations with a
    textless end, such as users and items, and 0 for others."""
    neighbor_states: Literal["live", "cached"] = "live"
    """Text-rich neighbours' states: computed with gradients in each step (the paper), or stored, faster."""
    refresh_every: int | Literal["auto"] | None = RECIPE["refresh_every"].value
    """Number of steps between refreshes of cached neighbour states, or none for one per epoch; 'auto' spends
    about a quarter of the steps' own time on them."""
    hard_negatives: int = 0
    """Further negatives for each query, mined at every refresh of cached states among texts that are close to
    it and no known neighbours; all queries of a step share them."""
    sparse_tokens: bool = True
    """Update only the token embeddings that a step uses (lazy Adam), which saves time and memory."""
    seed: int = 0
    """Seed of initialisation, batches and dropout."""
    precision: Literal["no", "bf16", "fp16", "auto"] = "no"
    """Mixed precision: none, bf16, fp16 with loss scaling (for GPUs), or what the device is fastest with."""
    compile: bool = False
    """Compile the layers with torch.compile: faster on GPUs after the first steps, which take a minute."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    checkpoint_minutes: float = 5.0
    """Maximum number of minutes between checkpoints."""
    tensorboard: bool = False
    """Write TensorBoard logs into the run as well."""
    wandb: str | None = None
    """Log to this project of Weights & Biases as well; WANDB_MODE=offline logs to a file beside the run."""
    mlflow: str | None = None
    """Log to this experiment of MLflow as well, at MLFLOW_TRACKING_URI or else in a file of the run."""

    def __post_init__(self) -> None:
        positive = ("epochs", "max_minutes", "patience", "validation_pairs", "evaluate_every")
        rates = ("learning_rate", "new_learning_rate", "textless_learning_rate", "adam_epsilon")
        others = ("max_grad_norm", "refresh_every", "micro_batch")
        bounds = dict.fromkeys((*positive, *rates, *others), 0)
        _check_above(self, {"batch_size": 1, "average_last": 1, "max_steps": -1, **bounds})
        if self.hard_negatives > 0 and self.neighbor_states == "live":
            problem = (
                f"is {self.hard_negatives}, but {{neighbor_states}} is live; they are mined from cached ones."
            )
            raise OptionError(self, "hard_negatives", problem)
        check_seed(self, largest=MAX_LARGE_SEED)  # runs with large seeds exist
        for name in ("weight_decay", "hard_negatives"):
            if getattr(self, name) < 0:
                raise OptionError(self, name, f"is {getattr(self, name)}, expected 0 or more.")
        correction = self.popularity_correction
        if correction != "auto" and not 0 <= correction <= MAX_CORRECTION:
            problem = f"is {correction}, expected 'auto' or a number from 0 to {MAX_CORRECTION:g}."
            raise OptionError(self, "popularity_correction", problem)
        for name in ("neighbor_dropout", "schedule_warm_up"):
            if not 0 <= getattr(self, name) < 1:
                problem = f"is {getattr(self, name)}, expected a share from 0 to less than 1."
                raise OptionError(self, name, problem)
        if not 0 < self.layer_decay <= 1:
            problem = f"is {self.layer_decay}, expected a factor above 0 and up to 1."
            raise OptionError(self, "layer_decay", problem)
        self._check_tasks()
        if self.micro_batch is not None and self.micro_batch > self.batch_size:
            problem = f"is {self.micro_batch}, expected at most {{batch_size}}, which is {self.batch_size}."
            raise OptionError(self, "micro_batch", problem)
        if isinstance(self.refresh_every, int) and self.neighbor_states == "live":
            problem = (
                f"is {self.refresh_every}, but {{neighbor_states}} is live; only cached states are refreshed."
            )
            raise OptionError(self, "refresh_every", problem)

    def _check_tasks(self) -> None:
        listed = ", ".join(self.tasks) or "empty"
        if len(self.tasks) != len(set(self.tasks)) or len(self.tasks) - ("links" in self.tasks) > 1:
            problem = f"are {listed}, expected links, one of classification and regression, or links and one."
            raise OptionError(self, "tasks", problem)
        if not self.tasks:
            raise OptionError(self, "tasks", "is empty, expected links, classification or regression.")
        if self.watch is not None and self.watch not in self.watchable:
            problem = f"is {self.watch!r}, expected one of {', '.join(self.watchable)}."
            raise OptionError(self, "watch", problem)
        if self.hard_negatives and "links" not in self.tasks:
            raise OptionError(self, "hard_negatives", "need the task 'links', which {tasks} lacks.")

    @property
    def supervised_task(self) -> SupervisedTask | None:
        """The task that learns from labels, if there is one."""
        return next((task for task in self.tasks if task != "links"), None)

    @property
    def watchable(self) -> tuple[str, ...]:
        """The metrics that early stopping can watch, the usual one first."""
        return tuple(name for task, names in WATCHABLE.items() if task in self.tasks for name in names)

    @property
    def watched(self) -> str:
        """The metric that early stopping maximises."""
        return self.watch or self.watchable[0]

    def resolved(self) -> TrainingOptions:
        """With every 'auto' decided."""
        return replace(self, model=self.model.resolved(), new_learning_rate=self.new_rate)

    def correction_of(self, schema: Schema, relation: Relation) -> float:
        """The popularity correction of one predicted relation, 'auto' being decided."""
        if self.popularity_correction != "auto":
            return self.popularity_correction
        return 0.0 if schema.textless_end(relation) is None else TEXTLESS_END_CORRECTION

    @property
    def centers_per_pair(self) -> int:
        """Nodes that a step reads for each of its pairs: query, key and mined negatives."""
        return 2 + self.hard_negatives

    @property
    def new_rate(self) -> float:
        """The learning rate of new dense parameters, 'auto' being decided."""
        if self.new_learning_rate != "auto":
            return self.new_learning_rate
        return self.model.new_learning_rate

    def to_dict(self) -> dict[str, Any]:
        """As a run's ``config.yaml`` holds them."""
        values = asdict(self)
        return values | {"model": {"model": self.model.name} | values["model"]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], model: type[ModelOptions] | None = None) -> TrainingOptions:
        """The inverse of ``to_dict``; with the options of ``model`` instead of the model's own.

        Runs of version 0.1 saved the options of all models: those of other models are left out.
        """
        values, saved = {**EARLIER, **values}, dict(values.get("model", {}))
        kind = MODEL_OPTIONS[saved.pop("model", HeterformerOptions.name)] if model is None else model
        others = set(EveryModelOptions.option_names()) - set(kind.option_names())
        saved = {name: value for name, value in saved.items() if name not in {*others, "model"}}
        values["model"] = kind(**{**kind.earlier, **saved})
        values["split"] = SplitOptions(**values.get("split", {}))
        values["warm_up"] = WarmUpOptions(**values.get("warm_up", {}))
        values["labels"] = SupervisionOptions(**values.get("labels", {}))
        values["tasks"] = tuple(values.get("tasks", ("links",)))
        return cls(**values)

    @classmethod
    def from_flat(cls, values: Mapping[str, Any], model: type[ModelOptions] | None = None) -> TrainingOptions:
        """Options by name, whichever group they are of: ``max_steps``, ``textless_dim``, ``split.seed``.

        Args:
            values: The options that are not to have their default. ``model`` is a model's name. Groups may
                also be given as a whole: ``split={"seed": 1}``.
            model: Take the options of this class instead of those of the model that ``values`` name.

        Example:
            >>> TrainingOptions.from_flat({"model": "bert_hgt", "textless_dim": 32, "max_steps": 100})
        """
        flat = flattened(values)
        flat = options_of_init(flat) | flat
        name = str(flat.pop("model", HeterformerOptions.name))
        if name not in MODEL_OPTIONS:
            problem = f"is {name!r}, expected one of {', '.join(MODEL_OPTIONS)}."
            raise OptionError(cls, "model", problem)
        kind = model or MODEL_OPTIONS[name]
        groups: dict[str, dict[str, Any]] = {group: {} for group in ("", "model", *GROUPS)}
        places = _places(kind)
        for key, value in flat.items():
            if key not in places:
                raise _unknown(key, kind, places)
            group, owner, field_name, hint = places[key]
            try:
                groups[group][field_name] = read_value(value, hint)
            except ValueError:
                problem = f"is {value!r}, expected {expected(hint)}."
                raise OptionError(owner, field_name, problem) from None
        parts = {"model": kind, **GROUPS}
        return cls(**{group: part(**groups[group]) for group, part in parts.items()}, **groups[""])


GROUPS = {"split": SplitOptions, "warm_up": WarmUpOptions, "labels": SupervisionOptions}
"""The groups of options beside those of the model."""


def _prefix(group: str) -> str:
    """What begins the flat names of a group's options."""
    return f"{group}." if group in ("split", "labels") else ""


_Place = tuple[str, type, str, Any]  # group, class, field, type


def _places(model: type[ModelOptions]) -> dict[str, _Place]:
    """Where each flat name belongs."""
    places: dict[str, _Place] = {}
    own = {name: hint for name, hint in option_types(TrainingOptions).items() if not is_dataclass(hint)}
    places |= {name: ("", TrainingOptions, name, hint) for name, hint in own.items()}
    for group, kind in {"model": model, **GROUPS}.items():
        prefix = _prefix(group)
        places |= {prefix + n: (group, kind, n, hint) for n, hint in option_types(kind).items()}
    return places


def option_hints(options: TrainingOptions) -> dict[str, Any]:
    """The type of every option by its flat name, as ``from_flat`` takes them."""
    return {name: place[3] for name, place in _places(type(options.model)).items()}


def flattened(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options by flat name, whether they are given one by one or in groups."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, ModelOptions):
            flat |= {"model": value.name} | asdict(value)
            continue
        group = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        if not isinstance(group, Mapping):
            flat[name.replace("-", "_")] = value
            continue
        prefix = _prefix(name)
        flat |= {prefix + n.replace("-", "_"): v for n, v in group.items()}
    return flat


def options_of_init(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the model of the run that ``init`` names, unless another model is asked for."""
    if not (init := flat.get("init")):
        return {}
    import yaml  # which help does without

    path = Path(str(init)) / "config.yaml"
    try:
        saved = dict(yaml.safe_load(path.read_text(encoding="utf-8"))["options"]["model"])
        kind = MODEL_OPTIONS[saved.pop("model", HeterformerOptions.name)]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        problem = f"is {str(init)!r}, expected the folder of a run that 'heterformer train' wrote."
        raise OptionError(TrainingOptions, "init", problem) from None
    if flat.get("model", kind.name) != kind.name:
        return {}
    own = {name: value for name, value in saved.items() if name in kind.option_names()}
    return {"model": kind.name, **kind.earlier, **own}


def _unknown(name: str, model: type[ModelOptions], places: Mapping[str, _Place]) -> InputError:
    if name in EveryModelOptions.option_names():
        return lacking(model, name)
    guess = get_close_matches(name, ["model", *places], n=1)
    hint = f" (did you mean {guess[0]!r}?)" if guess else ""
    return InputError(f"no option {name!r}{hint}.")


def unused_options(model: type[ModelOptions]) -> tuple[str, ...]:
    """The fields of ``TrainingOptions`` that decide nothing for a model."""
    reads_neighbors = model.family != "text-only"
    stores_states = reads_neighbors and model.states_can_be_cached
    return (
        *(() if reads_neighbors else OF_NEIGHBORS),
        *(() if stores_states else OF_STORED_STATES),
        *(() if model.has_embedding_table else OF_TABLES),
        *(() if issubclass(model, TextlessOptions) else OF_TEXTLESS_NODES),
    )


def lacking(model: type[ModelOptions], option: str) -> OptionError:
    """The error of an option that other models have."""
    return OptionError(None, "model", f"{model.name} has no option {{{option}}}.")


def _check_above(options: TrainingOptions | WarmUpOptions, bounds: dict[str, int]) -> None:
    for name, bound in bounds.items():
        value = getattr(options, name)
        if value not in (None, "auto") and value <= bound:
            least = "0 or more" if bound < 0 else f"more than {bound}"
            raise OptionError(options, name, f"is {value}, expected {least}.")


def changed_options(before: TrainingOptions, now: TrainingOptions) -> list[str]:
    """The names of options that differ and decide the result. Others may change when a run is resumed."""
    old, new = flat_options(before), flat_options(now)
    if old["neighbor_states"] == new["neighbor_states"] == "live":
        del new["refresh_every"]  # nothing is refreshed
    return [name for name in new if name not in RESUMABLE and old.get(name, new[name]) != new[name]]


def keep_earlier_defaults(
    saved: TrainingOptions, current: TrainingOptions, recipe: Mapping[str, Default] = RECIPE
) -> tuple[TrainingOptions, list[str]]:
    """The current options for a saved run, with its own values of options whose default has changed since.

    The same command must resume a run although a default is another one now. Also gives the names of the
    options that are kept.
    """
    before, now, kept = flat_options(saved), flat_options(current), []
    values: dict[str, Any] = {}
    for name, default in recipe.items():
        differ = name in before and name in now and before[name] != now[name]
        if differ and (before[name], now[name]) == (default.earlier, default.value):
            values[name] = before[name]
            kept.append(f"{name} {before[name]}")
    of_model = {name: value for name, value in values.items() if name in current.model.option_names()}
    own = {name: value for name, value in values.items() if name not in of_model}
    return replace(current, model=replace(current.model, **of_model), **own), kept


def flat_options(options: TrainingOptions) -> dict[str, Any]:
    """Every option by its flat name, as ``from_flat`` takes them."""
    own = {f.name: getattr(options, f.name) for f in fields(options)}
    groups = {group: asdict(own.pop(group)) for group in ("model", *GROUPS)}
    prefixed = {_prefix(g) + name: value for g, values in groups.items() for name, value in values.items()}
    return {**own, "model": options.model.name, **prefixed}
