"""What can be compared: the paper's twelve models, and Heterformer's ablations, as changes of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from heterformer.errors import OptionError
from heterformer.models.options import MODEL_OPTIONS, Group, HeterformerOptions, ModelOptions, every_model
from heterformer.training.options import TrainingOptions

RowGroup = Group | Literal["ablation", "dimension"]
# Training options that variants and seeds decide; a comparison has no common value of them.
VARIED = ("model.virtual_tokens", "model.heterogeneous_projection", "seed")


@dataclass(frozen=True)
class Variant:
    """One line of the comparison: what it changes in the options that all lines have in common."""

    name: str
    display_name: str
    group: RowGroup
    model: type[ModelOptions] = HeterformerOptions
    changes: Mapping[str, Any] = field(default_factory=dict)
    warm_up: bool = True
    """Whether textless nodes are warmed up as in all lines; without it, never."""

    def options(self, common: TrainingOptions, seed: int) -> TrainingOptions:
        """The variant's training; common options that its model lacks do not concern it."""
        model = replace(every_model(common.model).options_for(self.model), **self.changes)
        warm_up = replace(common.warm_up, warm_up=self.warm_up and common.warm_up.warm_up)
        return replace(common, model=model.resolved(), warm_up=warm_up, seed=seed)


def _models() -> Iterable[Variant]:
    """In the order of the paper's tables: Heterformer comes last."""
    for model in sorted(MODEL_OPTIONS.values(), key=lambda model: model is HeterformerOptions):
        yield Variant(model.name, model.display_name, model.group, model)


def _ablations() -> Iterable[Variant]:
    """Section 4.6 and 4.7 of the paper, under its names."""
    tokens = {"no_vnt": ("No-VNT", "none"), "no_tr": ("No-TR", "textless"), "no_tl": ("No-TL", "text_rich")}
    for name, (display_name, kind) in tokens.items():
        changes = {"virtual_tokens": kind, "network_readout": "auto"}  # the readout sees what the tokens see
        yield Variant(name, display_name, "ablation", changes=changes)
    yield Variant("no_readout", "w/o readout", "ablation", changes={"network_readout": "none"})
    yield Variant("no_codes", "w/o codes", "ablation", changes={"neighbor_codes": False})
    yield Variant("no_hp", "w/o hp", "ablation", changes={"heterogeneous_projection": False})
    yield Variant("no_warm_up", "w/o warm-up", "ablation", warm_up=False)
    for dim in (4, 8, 16, 32, 64):
        yield Variant(
            f"textless_dim_{dim}", f"textless dim {dim}", "dimension", changes={"textless_dim": dim}
        )


VARIANTS: dict[str, Variant] = {variant.name: variant for variant in (*_models(), *_ablations())}
_GROUPS: dict[str, list[str]] = {
    "all": list(VARIANTS),
    "models": [v.name for v in VARIANTS.values() if v.name in MODEL_OPTIONS],
    "baselines": [v.name for v in VARIANTS.values() if v.name in MODEL_OPTIONS and v.group != "Heterformer"],
    "ablations": [v.name for v in VARIANTS.values() if v.group in ("Heterformer", "ablation")],
    "dimensions": [v.name for v in VARIANTS.values() if v.group in ("Heterformer", "dimension")],
}
if TYPE_CHECKING:
    Choice = str
else:
    Choice = Literal[(*_GROUPS, *VARIANTS)]


def chosen_variants(choices: Iterable[str], common: TrainingOptions) -> list[Variant]:
    """The variants that names and names of groups stand for, each once, in the order of the paper's tables.

    An ablation of what Heterformer lacks anyway, or the dimension that it has, is Heterformer: nothing is
    trained twice.
    """
    names = {name for choice in choices for name in _GROUPS.get(choice, [choice])}
    if unknown := sorted(names - VARIANTS.keys()):
        problem = f"has {unknown[0]!r}, expected names of {', '.join((*_GROUPS, *VARIANTS))}."
        raise OptionError(None, "models", problem)
    whole = VARIANTS["heterformer"].options(common, seed=0)
    names = {"heterformer" if VARIANTS[name].options(common, seed=0) == whole else name for name in names}
    return [variant for name, variant in VARIANTS.items() if name in names]


def check_common(options: TrainingOptions) -> None:
    """Refuse common values of what the variants and seeds of a comparison differ in."""
    default, common = TrainingOptions(), replace(options, model=every_model(options.model))
    pairs = {p.rpartition(".")[2]: (attrgetter(p)(common), attrgetter(p)(default)) for p in VARIED}
    pairs["model"] = (options.model.name, default.model.name)
    for name, (value, usual) in pairs.items():
        if value != usual:
            instead = "seeds" if name == "seed" else "models"
            problem = f"is {value!r}, expected nothing: a comparison varies it by {{{instead}}}."
            raise OptionError(None, name, problem)
