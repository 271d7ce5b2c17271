"""What can be compared: the paper's twelve models, and Heterformer's ablations, as changes of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from heterformer.errors import InputError
from heterformer.models.registry import DISPLAY_NAMES, MODELS, ModelName
from heterformer.training.options import ModelOptions, TrainingOptions

Group = Literal["vanilla", "homogeneous GNN", "heterogeneous GNN", "Heterformer", "ablation", "dimension"]
Choice = Literal[
    "all",
    "models",
    "baselines",
    "ablations",
    "dimensions",
    ModelName,
    "no_vnt",
    "no_tr",
    "no_tl",
    "no_hp",
    "no_warm_up",
    "textless_dim_4",
    "textless_dim_8",
    "textless_dim_16",
    "textless_dim_32",
    "textless_dim_64",
]
# In the order of the paper's tables.
_MODELS: dict[ModelName, Group] = {
    "mean_sage": "vanilla",
    "bert": "vanilla",
    "bert_mean_sage": "homogeneous GNN",
    "bert_max_sage": "homogeneous GNN",
    "bert_gat": "homogeneous GNN",
    "graph_formers": "homogeneous GNN",
    "bert_rgcn": "heterogeneous GNN",
    "bert_han": "heterogeneous GNN",
    "bert_hgt": "heterogeneous GNN",
    "bert_shgn": "heterogeneous GNN",
    "graph_formers_plus": "heterogeneous GNN",
    "heterformer": "Heterformer",
}
OWN = ("model", "virtual_tokens", "heterogeneous_projection")  # model options that variants decide


@dataclass(frozen=True)
class Variant:
    """One line of the comparison: what it changes in the options that all lines have in common."""

    name: str
    display_name: str
    group: Group
    model: Mapping[str, Any] = field(default_factory=dict)
    warm_up: bool = True

    def options(self, common: TrainingOptions, seed: int) -> TrainingOptions:
        """The variant's training; an option that its model lacks is left alone."""
        model = replace(common.model.resolved(), **self.model)
        known = (*MODELS[model.model].config_class.option_names(), "model", "backbone")
        default = ModelOptions(backbone=model.backbone).resolved()
        lacking = {f.name: getattr(default, f.name) for f in fields(model) if f.name not in known}
        warm_up = replace(common.warm_up, warm_up=self.warm_up)
        return replace(common, model=replace(model, **lacking), warm_up=warm_up, seed=seed)


def _models() -> Iterable[Variant]:
    for name, group in _MODELS.items():
        yield Variant(name, DISPLAY_NAMES[name], group, {"model": name})


def _ablations() -> Iterable[Variant]:
    """Section 4.6 and 4.7 of the paper, under its names."""
    tokens = {"no_vnt": ("No-VNT", "none"), "no_tr": ("No-TR", "textless"), "no_tl": ("No-TL", "text_rich")}
    for name, (display_name, kind) in tokens.items():
        yield Variant(name, display_name, "ablation", {"virtual_tokens": kind})
    yield Variant("no_hp", "w/o hp", "ablation", {"heterogeneous_projection": False})
    yield Variant("no_warm_up", "w/o warm-up", "ablation", warm_up=False)
    for dim in (4, 8, 16, 32, 64):
        yield Variant(f"textless_dim_{dim}", f"textless dim {dim}", "dimension", {"textless_dim": dim})


VARIANTS: dict[str, Variant] = {variant.name: variant for variant in (*_models(), *_ablations())}
_GROUPS: dict[str, list[str]] = {
    "all": list(VARIANTS),
    "models": list(_MODELS),
    "baselines": [name for name in _MODELS if name != "heterformer"],
    "ablations": [v.name for v in VARIANTS.values() if v.group in ("Heterformer", "ablation")],
    "dimensions": [v.name for v in VARIANTS.values() if v.group in ("Heterformer", "dimension")],
}


def chosen_variants(choices: Iterable[str], common: TrainingOptions) -> list[Variant]:
    """The variants that names and names of groups stand for, each once, in the order of the paper's tables.

    The dimension that Heterformer has anyway is Heterformer: nothing is trained twice.
    """
    names = {name for choice in choices for name in _GROUPS.get(choice, [choice])}
    if unknown := sorted(names - VARIANTS.keys()):
        raise InputError(f"no model {unknown[0]!r}, expected one of {', '.join((*_GROUPS, *VARIANTS))}.")
    usual = f"textless_dim_{common.model.textless_dim}"
    names = {"heterformer" if name == usual else name for name in names}
    return [variant for name, variant in VARIANTS.items() if name in names]


def check_common(options: TrainingOptions) -> None:
    """Refuse, as common options, what the variants and seeds of a comparison are to differ in."""
    default = TrainingOptions()
    found = {name: (getattr(options.model, name), getattr(default.model, name)) for name in OWN}
    found["seed"] = (options.seed, default.seed)
    found["warm_up"] = (options.warm_up.warm_up, default.warm_up.warm_up)
    for name, (value, usual) in found.items():
        if value != usual:
            instead = "--seeds" if name == "seed" else "--models"
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag} is for 'heterformer train'; a comparison's are chosen by {instead}.")
