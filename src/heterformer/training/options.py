"""Options of a training run. Each option has one sentence, which is also its help text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Annotated, Any, Literal

from tyro.conf import arg

from heterformer.errors import OptionError
from heterformer.models.options import MODEL_OPTIONS, EveryModelOptions, HeterformerOptions, ModelOptions
from heterformer.network.schema import Relation, Schema
from heterformer.network.split.options import SplitOptions
from heterformer.network.target_options import SupervisedTask
from heterformer.options import MAX_LARGE_SEED, check_above, check_at_least, check_seed, with_alternatives
from heterformer.precision import TrainingPrecision, current_precision
from heterformer.recipe import RECIPE
from heterformer.recipe import earlier as earlier_defaults
from heterformer.training.flat_options import from_flat
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.training.warm_up_options import WarmUpOptions

Task = Literal["link_prediction", "classification", "regression"]
EARLIER_TASKS = {"links": "link_prediction"}  # as some saved runs have it

# Values of options that a run's configuration lacks because it is older than they are.
EARLIER = earlier_defaults(
    "gate_learning_rate",
    "neighbor_dropout",
    "positives",
    "schedule",
    "popularity_correction",
    "neighbor_states",
    "refresh_every",
)

TEXTLESS_END_CORRECTION = 1.5  # the popularity correction where one end has no text, see docs/results.md
MAX_CORRECTION = 10.0


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
    tasks: tuple[Task, ...] = ("link_prediction",)
    """What to learn: link prediction, classes of labelled nodes, numbers; or links and one of the others."""
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
    gate_learning_rate: float | None = RECIPE["gate_learning_rate"].value
    """Learning rate of gates, the single numbers that say how much neighbours count, or none for that of
    other new parameters."""
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
    neighbor_states: Literal["live", "cached"] = RECIPE["neighbor_states"].value
    """Text-rich neighbours' states: stored, which is several times faster, or computed with gradients in each
    step (the paper)."""
    refresh_every: int | Literal["auto"] | None = RECIPE["refresh_every"].value
    """Number of steps between refreshes of cached neighbour states, or none for one per epoch; 'auto' spends
    a fortieth of the steps' own time on them, with hard negatives a quarter."""
    hard_negatives: int = 0
    """Further negatives for each query, mined at every refresh of cached states among texts that are close to
    it and no known neighbours; all queries of a step share them."""
    sparse_tokens: bool = True
    """Update only the token embeddings that a step uses (lazy Adam), which saves time and memory."""
    seed: int = 0
    """Seed of initialisation, batches and dropout."""
    precision: TrainingPrecision = "float32"
    """Precision of matrix products: float32, bf16, fp16 with loss scaling (for GPUs), or what the device is
    fastest with."""
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
        new_rates = ("new_learning_rate", "gate_learning_rate", "textless_learning_rate")
        rates = ("learning_rate", *new_rates, "adam_epsilon")
        others = ("max_grad_norm", "refresh_every", "micro_batch")
        bounds = dict.fromkeys((*positive, *rates, *others), 0)
        check_above(self, {"batch_size": 1, "average_last": 1, **bounds})
        check_at_least(self, {"max_steps": 0})
        for name in rates:
            if getattr(self, name) == inf:
                raise OptionError(self, name, "is infinite, expected a finite number.")
        if self.hard_negatives > 0 and self.neighbor_states == "live":
            problem = (
                f"is {self.hard_negatives}, but {{neighbor_states}} is live; they are mined from cached ones."
            )
            raise OptionError(self, "hard_negatives", problem)
        check_seed(self, largest=MAX_LARGE_SEED)  # runs with large seeds exist
        for name in ("weight_decay", "hard_negatives"):
            if not 0 <= getattr(self, name) < inf:
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
        if len(self.tasks) != len(set(self.tasks)) or len(self.tasks) - ("link_prediction" in self.tasks) > 1:
            expected = "expected link_prediction, classification or regression, or the first with another"
            raise OptionError(self, "tasks", f"are {listed}, {expected}.")
        if not self.tasks:
            raise OptionError(
                self, "tasks", "is empty, expected link_prediction, classification or regression."
            )
        if self.watch is not None and self.watch not in self.watchable:
            expectation = with_alternatives(self, "watch", f"one of {', '.join(self.watchable)}")
            problem = f"is {self.watch!r}, expected {expectation}."
            raise OptionError(self, "watch", problem)
        if self.hard_negatives and "link_prediction" not in self.tasks:
            raise OptionError(self, "hard_negatives", "need the task link_prediction, which {tasks} lacks.")

    @property
    def supervised_task(self) -> SupervisedTask | None:
        """The task that learns from labels, if there is one."""
        return next((task for task in self.tasks if task != "link_prediction"), None)

    @property
    def watchable(self) -> tuple[str, ...]:
        """The metrics that early stopping can watch, the usual one first; with labels, theirs come first."""
        from heterformer.metrics import watchable_metrics  # with NumPy, which help texts do without

        tasks = sorted(self.tasks, key=lambda task: task == "link_prediction")
        return tuple(name for task in tasks for name in watchable_metrics(task))

    @property
    def watched(self) -> str:
        """The metric that early stopping maximises."""
        return self.watch or self.watchable[0]

    def resolved(self) -> TrainingOptions:
        """With every 'auto' decided."""
        model = self.model.resolved().with_stored_states(self.neighbor_states == "cached")
        return replace(self, model=model, new_learning_rate=self.new_rate)

    def correction_of(self, schema: Schema, relation: Relation) -> float:
        """The popularity correction of one predicted relation, 'auto' being decided.

        Args:
            schema: The network's schema.
            relation: The predicted relation.
        """
        if self.popularity_correction != "auto":
            return self.popularity_correction
        return 0.0 if schema.textless_end(relation) is None else TEXTLESS_END_CORRECTION

    def link_weight_of(self, schema: Schema, relation: Relation) -> float:
        """How much of the log of a node's links a predicted relation's scores lack, to say how likely one is.

        Args:
            schema: The network's schema.
            relation: The predicted relation.
        """
        return max(0.0, 1 - self.correction_of(schema, relation))

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

        Args:
            values: What ``to_dict`` gave, or the ``options`` of a run's ``config.yaml``.
            model: Take the options of this class instead of those of the model that ``values`` name.
        """
        values, saved = {**EARLIER, **values}, dict(values.get("model", {}))
        kind = MODEL_OPTIONS[saved.pop("model", HeterformerOptions.name)] if model is None else model
        others = set(EveryModelOptions.option_names()) - set(kind.option_names())
        saved = {name: value for name, value in saved.items() if name not in {*others, "model"}}
        values["model"] = kind(**{**kind.earlier, **saved})
        values["split"] = SplitOptions(**values.get("split", {}))
        values["warm_up"] = WarmUpOptions(**values.get("warm_up", {}))
        values["labels"] = SupervisionOptions(**values.get("labels", {}))
        values["tasks"] = current_tasks(values.get("tasks", ("link_prediction",)))
        values["precision"] = current_precision(values.get("precision", "float32"))
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
        if isinstance(tasks := values.get("tasks"), (list, tuple)):
            values = {**values, "tasks": current_tasks(tasks)}
        if "precision" in values:
            values = {**values, "precision": current_precision(values["precision"])}
        return from_flat(cls, values, model)


def current_tasks(names: Iterable[str]) -> tuple[Any, ...]:
    """The tasks of a saved configuration, which may have an earlier name of one."""
    return tuple(EARLIER_TASKS.get(name, name) for name in names)
