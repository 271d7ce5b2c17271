"""The model that a run starts with: a new one on a PLM, or that of another run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError, OptionError
from heterformer.models.contract import NodeEncoder
from heterformer.models.options import ModelOptions
from heterformer.models.plm.loading import load_config
from heterformer.models.plm.minilm import trained_config
from heterformer.models.registry import MODELS, model_name
from heterformer.network.schema import NodeType, Schema, check_schema
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.progress import say
from heterformer.temporary import scratch_folder
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.unseen import adapt_to_network

HEAD = "head."  # begins the names of a head's weights


def new_model(
    options: TrainingOptions, network: Network, hidden: Mapping[NodeType, Ints] | None = None
) -> NodeEncoder:
    """A model for a network as the options ask for it; with ``init`` its weights are yet to be taken over.

    Attributes of ``hidden`` rows have no part in how attributes are read.
    """
    chosen = options.model
    if options.init is not None:
        return _model_like(Path(options.init), chosen, network)
    torch.manual_seed(options.seed)
    kind, values = MODELS[chosen.name], chosen.config_values()
    return kind.from_backbone(chosen.backbone, network, hidden=hidden, **values)


def _model_like(init: Path, options: ModelOptions, network: Network) -> NodeEncoder:
    """A model of the kind and sizes of a trained one; its types are in that one's order, as its weights."""
    if (name := model_name(init)) != options.name:
        problem = f"names a {name} in {str(init)!r}, expected a {options.name}, as {{model}} says."
        raise OptionError(None, "init", problem)
    kind = MODELS[name]
    config = load_config(kind.config_class, init)
    trained = Schema.from_dict(config.schema, str(init / "config.json"))
    try:
        check_schema(trained, network.schema)
    except InputError as error:
        raise InputError(f"{init}: cannot be trained further with {network.path}: {error}") from None
    schema = replace(
        network.schema, text_rich=trained.text_rich, textless=trained.textless, relations=trained.relations
    )
    values = options.config_values()
    values |= {"backbone": config.backbone, "schema": schema.to_dict(), "attributes": config.attributes}
    model = kind(kind.config_class(**values))
    model.say_if_texts_are_cut(str(init))
    model.limit_training()
    return model


def take_over(
    model: NodeEncoder, init: Path, visible: VisibleNetwork, tokens: PackedTokens, folder: Path
) -> None:
    """Give a new model the weights of a run.

    Textless nodes that the run knows by id keep their embeddings; others are folded in, in a temporary
    folder in ``folder``.
    """
    trained = Run(init).model().to(model.device)
    with scratch_folder(folder) as scratch:
        adapted, new = adapt_to_network(trained, visible, tokens, scratch)
    try:
        model.load_state_dict(_with_own_head(adapted.state_dict(), model, adapted))
    except RuntimeError:
        remedy = "give the options of the model that it has, or none"
        raise InputError(f"{init}: its weights do not fit the model that was asked for; {remedy}.") from None
    counts = [f"{len(nodes.nodes):,} new {node_type} nodes" for node_type, nodes in new.items()]
    folded = f"; {' and '.join(counts)} are folded in" if counts else ""
    say(f"{folder}: starts from {init}{folded}.")


def _with_own_head(weights: dict[str, Tensor], model: NodeEncoder, source: NodeEncoder) -> dict[str, Tensor]:
    """The weights of ``source`` for ``model``, whose head starts anew unless it predicts the same."""
    if model.config.head == source.config.head:
        return weights
    own = {name: value for name, value in model.state_dict().items() if name.startswith(HEAD)}
    return {name: value for name, value in weights.items() if not name.startswith(HEAD)} | own


def say_if_pairs_were_seen(run: Run, network: Network, options: TrainingOptions) -> None:
    """Tell if the model or text encoder that a run starts from may have learnt from its held-out pairs."""
    name = options.init or options.model.backbone
    source = Run(name)
    if trained_config(name) is None or not source.exists:
        return
    known = source.config()
    if known["fingerprint"] != network.fingerprint or source.options().split != options.split:
        seen = "was trained on another network or split, maybe on pairs that are held out here"
        say(f"{run.path}: {name} {seen}; figures may be too good.")
