"""The options of a training run on the command line: those of one model, a preset, a configuration file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from tyro.conf import Suppress
from tyro.constructors import PrimitiveConstructorSpec, PrimitiveTypeInfo

from heterformer.cli.flags import earlier_names, value_of
from heterformer.cli.help_texts import REGISTRY
from heterformer.comparison.options import ComparedTrainingOptions
from heterformer.comparison.variants import VARIED
from heterformer.errors import InputError, OptionError
from heterformer.finetuning.options import FinetuneOptions
from heterformer.models.options import (
    MODEL_OPTIONS,
    BackboneOptions,
    EveryModelOptions,
    HeterformerOptions,
    ModelOptions,
    TextlessOptions,
)
from heterformer.training.flat_options import flat_options, flattened, lacking, options_of_init, split_of_run
from heterformer.training.options import TrainingOptions
from heterformer.training.presets import PRESETS
from heterformer.training.warm_up_options import WarmUpOptions

Options = TypeVar("Options")

# Options that decide nothing for models without backbone, neighbours, stored states, tables, textless nodes.
OF_BACKBONES = ("learning_rate", "layer_decay", "sparse_tokens", "compile")
OF_NEIGHBORS = ("neighbor_dropout", "neighbor_dropout_of")
OF_STORED_STATES = ("neighbor_states", "refresh_every", "hard_negatives")
OF_TABLES = ("textless_learning_rate",)
OF_TEXTLESS_NODES = ("warm_up",)


def training_defaults(
    words: Sequence[str],
    every_model: bool = False,
    decided: Collection[str] = (),
    usual: Mapping[str, Any] | None = None,
) -> TrainingOptions:
    """What a command line's flags override: the options of its --model, --preset, --init and --config.

    A configuration overrides the model of --init, which overrides a preset. With
    ``every_model`` the options are those of all models at once. Options that the command has ``decided``
    are not taken from a run's own file. ``usual`` are options that differ from the program's defaults.
    """
    if _is_help(words):  # it shows the defaults of the program
        model = _model(value_of(words, "model"), every_model)
        return _shown(TrainingOptions(model=model()), unused_options(model))
    path = value_of(words, "config")
    config = _config(Path(path)) if path is not None else {}
    is_saved = isinstance(config.get("model"), Mapping)
    flat = flattened(config)
    start = {"init": value_of(words, "init") or flat.get("init"), "model": value_of(words, "model")}
    flat = options_of_init({name: value for name, value in start.items() if value}) | flat
    saved_name = str(flat.pop("model", HeterformerOptions.name))
    if saved_name not in MODEL_OPTIONS:
        problem = f"is {saved_name!r}, expected one of {', '.join(MODEL_OPTIONS)}."
        raise OptionError(None, "model", problem, place=f"{path}: ")
    model = _model(value_of(words, "model") or saved_name, every_model)
    _check_flags(words, model)
    known = flat_options(TrainingOptions(model=model()))
    preset = PRESETS.get(value_of(words, "preset") or "", {})
    values = dict(usual or {}) | {name: value for name, value in preset.items() if name in known}
    # A run's own file has all options of its model, wanted or not; in any other file each is wanted.
    others = {*EveryModelOptions.option_names(), *decided} - (set(known) - {*decided}) if is_saved else set()
    values |= {name: value for name, value in flat.items() if name not in others}
    try:
        return TrainingOptions.from_flat(values | {"model": model.name}, model)
    except OptionError as error:
        raise (InputError(f"{path}: {error}") if config else error) from None
    except InputError as error:
        raise InputError(f"{path}: {error} 'heterformer train --help' lists all options.") from None


def comparison_defaults(words: Sequence[str]) -> ComparedTrainingOptions:
    """What the flags of a comparison override; help leaves out what its variants and seeds decide."""
    options = ComparedTrainingOptions.from_options(training_defaults(words, every_model=True))
    return _shown(options, VARIED) if _is_help(words) else options


def finetuning_defaults(words: Sequence[str]) -> FinetuneOptions:
    """What the flags of fine-tuning override; the model's options and its split are those of the run.

    The run is the first word that is one: flags may come before it. Otherwise it is the first word.
    """
    from heterformer.training.run_folder import RunFolder  # which no other command needs so early

    first = [word for word in words[:1] if not word.startswith("-")]
    runs = [word for word in words if (Path(word) / "config.yaml").is_file()]
    run = next(iter([*runs, *first]), None)
    if _is_help(words):
        model = _model_of_run(run)
        unused = {name for kind in MODEL_OPTIONS.values() for name in unused_options(kind)}
        hidden = unused if model is None else unused_options(type(model))
        return _shown(FinetuneOptions(model=ModelOptions() if model is None else model), hidden)
    start, split = list[str](), dict[str, Any]()
    if run is not None:
        RunFolder(run).config()  # or it is not a run
        start, split = [f"--init={run}"], split_of_run(run)
    decided = ("init", "tasks", *vars(WarmUpOptions()))
    return FinetuneOptions.from_options(training_defaults([*words, *start], decided=decided, usual=split))


def _model_of_run(run: str | None) -> ModelOptions | None:
    """The options of a run's model, if there is such a run."""
    try:
        return TrainingOptions.from_flat({"init": run}).model if run is not None else None
    except InputError:
        return None


@REGISTRY.primitive_rule
def _renamed(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[str] | None:
    """A choice that may have the name that it had earlier; help shows the names of today."""
    names: tuple[str, ...] = get_args(info.type) if get_origin(info.type) is Literal else ()
    earlier = earlier_names(info.type)
    if not earlier:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="{" + ",".join(names) + "}",
        instance_from_str=lambda words: earlier.get(words[0], words[0]),
        is_instance=lambda value: value in names,
        str_from_instance=lambda name: [name],
        choices=(*names, *earlier),
    )


def unused_options(model: type[ModelOptions]) -> tuple[str, ...]:
    """The fields of ``TrainingOptions`` that decide nothing for a model."""
    reads_neighbors = model.family != "text-only"
    stores_states = reads_neighbors and model.states_can_be_cached
    return (
        *(() if issubclass(model, BackboneOptions) else OF_BACKBONES),
        *(() if reads_neighbors else OF_NEIGHBORS),
        *(() if stores_states else OF_STORED_STATES),
        *(() if model.has_embedding_table else OF_TABLES),
        *(() if issubclass(model, TextlessOptions) else OF_TEXTLESS_NODES),
    )


def _shown(options: Options, hidden: Collection[str]) -> Options:
    """The options without the fields that help leaves out; ``group.field`` is one of a group's."""
    values = dict(vars(options))
    own = [name for name in hidden if "." not in name]
    for group in {name.partition(".")[0] for name in hidden} - {*own}:
        inner = [name.removeprefix(f"{group}.") for name in hidden if name.startswith(f"{group}.")]
        values[group] = _shown(values[group], inner)
    fields: list[tuple[str, Any, Any]] = [
        (name, Suppress[type(values[name])], field(default=values[name]))  # type: ignore[misc]
        for name in own
    ]
    kind = make_dataclass(type(options).__name__, fields, bases=(type(options),), frozen=True)
    return cast(Options, kind(**values))


def _is_help(words: Sequence[str]) -> bool:
    return bool({"-h", "--help"} & set(words))


def _model(name: str | None, every_model: bool) -> type[ModelOptions]:
    """The options of the model with that name; tyro refuses a name that is none."""
    return EveryModelOptions if every_model else MODEL_OPTIONS.get(str(name), HeterformerOptions)


def _check_flags(words: Sequence[str], model: type[ModelOptions]) -> None:
    """Refuse flags of other models, which tyro would not know."""
    for word in words:
        name = word.partition("=")[0].removeprefix("--").replace("-", "_")
        options = {name, name.removeprefix("no_")} & set(EveryModelOptions.option_names())
        if word.startswith("--") and (others := options - set(model.option_names())):
            raise lacking(model, others.pop())


def _config(path: Path) -> dict[str, Any]:
    """The options in a YAML file, which may be the ``config.yaml`` of a run."""
    import yaml  # takes a while

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())  # PyYAML's messages have several lines
        raise InputError(f"{path}: the configuration cannot be read ({reason}).") from None
    if isinstance(values, dict):
        values = values.get("options", values)
    if not isinstance(values, dict):
        raise InputError(f"{path}: expected a mapping of options to values.")
    return {str(name): value for name, value in values.items()}
