"""Training options by flat names, whatever their group: ``max_steps``, ``textless_dim``, ``split.seed``.

That is how keywords, flags and configuration files name them. What a group is, and where a name belongs, is
said here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heterformer.errors import InputError, OptionError
from heterformer.models.options import MODEL_OPTIONS, EveryModelOptions, HeterformerOptions, ModelOptions
from heterformer.network.split.options import SplitOptions
from heterformer.options import expected, option_types, read_value, unknown_option
from heterformer.training.supervision_options import SupervisionOptions
from heterformer.training.warm_up_options import WarmUpOptions

if TYPE_CHECKING:
    from heterformer.training.options import TrainingOptions

GROUPS = {"split": SplitOptions, "warm_up": WarmUpOptions, "labels": SupervisionOptions}
"""The groups of options beside those of the model."""


_Place = tuple[str, type, str, Any]  # group, class, field, type


def from_flat(
    kind: type[TrainingOptions], values: Mapping[str, Any], model: type[ModelOptions] | None
) -> TrainingOptions:
    """Options of a class from flat names; with the options of ``model`` instead of the model's own."""
    flat = flattened(values)
    flat = options_of_init(flat) | flat
    name = str(flat.pop("model", HeterformerOptions.name))
    if name not in MODEL_OPTIONS:
        problem = f"is {name!r}, expected one of {', '.join(MODEL_OPTIONS)}."
        raise OptionError(kind, "model", problem)
    model = model or MODEL_OPTIONS[name]
    groups: dict[str, dict[str, Any]] = {group: {} for group in ("", "model", *GROUPS)}
    places = _places(kind, model)
    for key, value in flat.items():
        if key not in places:
            raise _unknown(key, model, places)
        group, owner, field_name, hint = places[key]
        try:
            groups[group][field_name] = read_value(value, hint)
        except ValueError:
            problem = f"is {value!r}, expected {expected(hint)}."
            raise OptionError(owner, field_name, problem) from None
    parts = {"model": model, **GROUPS}
    return kind(**{group: part(**groups[group]) for group, part in parts.items()}, **groups[""])


def flat_options(options: TrainingOptions) -> dict[str, Any]:
    """Every option by its flat name, as ``from_flat`` takes them."""
    own = {f.name: getattr(options, f.name) for f in fields(options)}
    groups = {group: asdict(own.pop(group)) for group in ("model", *GROUPS)}
    prefixed = {_prefix(g) + name: value for g, values in groups.items() for name, value in values.items()}
    return {**own, "model": options.model.name, **prefixed}


def option_hints(options: TrainingOptions) -> dict[str, Any]:
    """The type of every option by its flat name, as ``from_flat`` takes them."""
    return {name: place[3] for name, place in _places(type(options), type(options.model)).items()}


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
        raise OptionError(None, "init", problem) from None
    if flat.get("model", kind.name) != kind.name:
        return {}
    own = {name: value for name, value in saved.items() if name in kind.option_names()}
    return {"model": kind.name, **kind.earlier, **own}


def split_of_run(run: Path | str) -> dict[str, Any]:
    """The options of a run's split by their flat names; none if it is no run."""
    import yaml

    try:
        saved = yaml.safe_load((Path(run) / "config.yaml").read_text(encoding="utf-8"))["options"]["split"]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return {}
    return {f"{_prefix('split')}{name}": value for name, value in saved.items()}


def lacking(model: type[ModelOptions], option: str) -> OptionError:
    """The error of an option that other models have."""
    return OptionError(None, "model", f"{model.name} has no option {{{option}}}.")


def _prefix(group: str) -> str:
    """What begins the flat names of a group's options."""
    return f"{group}." if group in ("split", "labels") else ""


def _places(kind: type[TrainingOptions], model: type[ModelOptions]) -> dict[str, _Place]:
    """Where each flat name belongs."""
    places: dict[str, _Place] = {}
    own = {name: hint for name, hint in option_types(kind).items() if not is_dataclass(hint)}
    places |= {name: ("", kind, name, hint) for name, hint in own.items()}
    for group, part in {"model": model, **GROUPS}.items():
        prefix = _prefix(group)
        places |= {prefix + n: (group, part, n, hint) for n, hint in option_types(part).items()}
    return places


def _unknown(name: str, model: type[ModelOptions], places: Mapping[str, _Place]) -> InputError:
    if name in EveryModelOptions.option_names():
        return lacking(model, name)
    return unknown_option(name, ["model", *places])
