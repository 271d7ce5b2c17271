"""How a run reads its backbone: what 'auto' stands for, found out once and kept with the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from heterformer.arrays import Ints
from heterformer.errors import InputError
from heterformer.models.options import ModelOptions
from heterformer.models.plm.backbone import load_backbone, max_tokens
from heterformer.models.plm.inspection import Inspection, inspect_backbone
from heterformer.models.plm.loading import hub_json, is_hub_name, load_tokenizer
from heterformer.models.plm.minilm import backbone_path, check_backbone
from heterformer.models.plm.reading import PAPER, declared_options, sentence_transformers_options
from heterformer.network.schema import NodeType
from heterformer.network.split.pairs import Pairs
from heterformer.network.store import Network
from heterformer.progress import say

PAIRS = 256  # that are looked at: a second or two of a small backbone
TOKENS = 64  # of each text


def read_as_saved(model: ModelOptions, saved: ModelOptions) -> ModelOptions:
    """The options with those that a run or comparison has decided already in the place of 'auto'."""
    known = saved.option_names()
    return replace(model, **{name: getattr(saved, name) for name in model.open_names() if name in known})


def read_as_suits(
    model: ModelOptions, network: Network, pairs: Callable[[], Pairs], place: object
) -> ModelOptions:
    """The options with what suits the backbone in the place of 'auto', and a message that says so.

    ``pairs`` gives the training pairs of the first predicted relation. They are looked at only if the
    backbone's files leave something open: no validation or test pair has a say.
    """
    names = model.open_names()
    if not names:
        return model
    declared = declared_options(model.backbone) or _hub_options(model.backbone)
    from_files = {name: declared[name] for name in names if name in declared}
    left = [name for name in names if name not in declared and not name.endswith("prompt")]
    inspection = look_at_texts(model.backbone, network, pairs()) if left else None
    seen = inspection.options() if inspection is not None else {}
    values = {name: {**PAPER, **seen, **from_files}[name] for name in names}
    reasons = []
    if from_files:
        reasons.append(f"its files say {_listed(from_files)}")
    if inspection is not None:
        known = {name: seen[name] for name in left if name in seen}
        reasons.append(f"a look at the texts says {_listed(known)} ({inspection})")
    elif left and (end := _textless_end(network)) is not None:
        relation, taken = network.schema.predicted[0].name, _listed({name: PAPER[name] for name in left})
        reasons.append(f"{end} nodes of {relation!r} have no text to look at, so {taken} as in the paper")
    if reasons:
        say(f"{place}: backbone {model.backbone!r}: {'; '.join(reasons)}.")
    return replace(model, **values)


def _textless_end(network: Network) -> NodeType | None:
    return network.schema.textless_end(network.schema.predicted[0])


def _hub_options(backbone: str) -> dict[str, Any]:
    if not is_hub_name(backbone_path(backbone)):
        return {}
    check_backbone(backbone)
    return sentence_transformers_options(lambda file: hub_json(backbone, file))


def look_at_texts(backbone: str, network: Network, pairs: Pairs) -> Inspection | None:
    """What an untrained backbone makes of training pairs; nothing if few or textless nodes cannot tell."""
    chosen = pairs[np.random.default_rng(0).permutation(len(pairs))]
    for side in (0, 1):  # no node twice: a key of two queries would be wrong for one of them
        chosen = chosen[np.sort(np.unique(chosen[:, side], return_index=True)[1])]
    chosen = chosen[:PAIRS]
    if len(chosen) < 2 or _textless_end(network) is not None:
        return None
    path, relation = backbone_path(backbone), network.schema.predicted[0]
    try:
        tokenizer, plm = load_tokenizer(path), load_backbone(path)
    except (OSError, ValueError, InputError):
        return None  # what is wrong with it is said when the model is made
    if not len(tokenizer.all_special_ids) < len(tokenizer) <= plm.config.vocab_size:
        return None
    limit = min(TOKENS, network.schema.max_tokens, max_tokens(plm))

    def tokens(node_type: NodeType, rows: Ints) -> list[list[int]]:
        encoded = tokenizer(network.texts(node_type, rows), truncation=True, max_length=limit)
        return list(encoded["input_ids"])

    queries, keys = tokens(relation.source, chosen[:, 0]), tokens(relation.target, chosen[:, 1])
    return inspect_backbone(plm, queries, keys)


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {value!r}" if value == "" else f"{name} {value}" for name, value in values.items()
    )
