"""Training options as keywords: ``train(network, run, model="bert", max_steps=100)``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from heterformer.errors import InputError
from heterformer.network.split.options import SplitOptions
from heterformer.training.options import ModelOptions, TrainingOptions, WarmUpOptions


def training_options(options: TrainingOptions | None, keywords: Mapping[str, Any]) -> TrainingOptions:
    """An options object as it is, or one made of keywords; both at once are refused."""
    if options is None:
        return _from_keywords(keywords)
    if keywords:
        listed = ", ".join(keywords)
        raise InputError(f"found options and the keywords {listed}, expected one or the other.")
    return options


def _from_keywords(keywords: Mapping[str, Any]) -> TrainingOptions:
    groups: dict[str, dict[str, Any]] = {"model": {}, "split": {}, "warm_up": {}, "": {}}
    parts = {"model": ModelOptions, "warm_up": WarmUpOptions, "": TrainingOptions}
    places = {f.name: group for group, kind in reversed(parts.items()) for f in fields(kind)}
    for name, value in keywords.items():
        if name == "split":
            groups["split"] = value
        elif name in places:
            groups[places[name]][name] = value
        else:
            guess = get_close_matches(name, [*places, "split"], n=1)
            hint = f" (did you mean {guess[0]!r}?)" if guess else ""
            raise InputError(f"no option {name!r}{hint}.")
    return TrainingOptions(
        model=ModelOptions(**groups["model"]),
        split=SplitOptions(**groups["split"]),
        warm_up=WarmUpOptions(**groups["warm_up"]),
        **groups[""],
    )
