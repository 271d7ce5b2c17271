"""Training options as keywords: ``train(network, run, model="bert", max_steps=100)``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heterformer.errors import InputError
from heterformer.training.options import TrainingOptions
from heterformer.untrusted import short_repr


def training_options(options: TrainingOptions | None, keywords: Mapping[str, Any]) -> TrainingOptions:
    """An options object as it is, or one made of keywords; both at once are refused."""
    if options is None:
        return TrainingOptions.from_flat(keywords)
    if keywords:
        listed = ", ".join(keywords)
        raise InputError(f"found options and the keywords {listed}, expected one or the other.")
    if not isinstance(options, TrainingOptions):
        remedy = "expected TrainingOptions, or options as keywords, such as max_steps=100"
        raise InputError(f"the options are {short_repr(options)}, {remedy}.")
    return options
