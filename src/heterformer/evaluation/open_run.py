"""A run opened for evaluation."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import EvaluatedPart, VisibleNetwork
from heterformer.device import Device, chosen_device
from heterformer.errors import InputError
from heterformer.models.contract import NodeEncoder
from heterformer.network.schema import Relation
from heterformer.network.split.other_network import on_other_network
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.training.run import Run
from heterformer.training.run_folder import SPLIT
from heterformer.training.unseen import adapt_to_network


@dataclass(frozen=True)
class OpenRun:
    """A run's best model with its network, its split, and batches that show no held-out pair."""

    run: Run
    network: Network
    split: Split
    model: NodeEncoder
    batcher: Batcher
    notes: list[str] = field(default_factory=list)
    """What another network than the run's own has lost or gained."""

    @property
    def is_other_network(self) -> bool:
        """Whether it is not the network that the run was trained on."""
        return bool(self.network.fingerprint != self.run.config()["fingerprint"])

    @property
    def seed(self) -> int:
        return self.run.options().seed

    def link_weight(self, relation: Relation) -> float:
        """As ``TrainingOptions.link_weight_of``; 0 for other relations, whose scores are not trained."""
        schema = self.network.schema
        return self.run.options().link_weight_of(schema, relation) if relation in schema.predicted else 0.0

    def for_part(self, part: EvaluatedPart) -> OpenRun:
        """The same as of the beginning of a part, which matters after a split by time.

        A validation pair must not be ranked by vectors that show what is later.
        """
        if self.split.times is None:
            return self
        visible = VisibleNetwork.for_evaluation(self.network, self.split, part=part)
        if visible.as_of == self.batcher.visible.as_of:
            return self
        model, batcher = _showing(self.run, visible, self.model.device)
        return replace(self, model=model, batcher=batcher)


def open_run(path: Path | str, device: Device = "auto", network: Path | str | None = None) -> OpenRun:
    """Open a run folder, finished or not: the best model so far.

    With ``network``, the run's split is asked for in that network, which may have grown since training.
    """
    run = Run(path)
    opened = run.open_network(network)
    split, notes = _split(run, opened)
    visible = VisibleNetwork.for_evaluation(opened, split)
    model, batcher = _showing(run, visible, chosen_device(device))
    return OpenRun(run, opened, split, model, batcher, notes)


def _showing(run: Run, visible: VisibleNetwork, device: torch.device) -> tuple[NodeEncoder, Batcher]:
    """The best model, with embeddings of nodes that training has not seen, and batches of what is visible."""
    model = run.model().to(device)
    tokens = model.open_tokens(visible.network)
    with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
        model, _ = adapt_to_network(model, visible, tokens, Path(folder))
    return model, model.new_batcher(visible, tokens)


def _split(run: Run, network: Network) -> tuple[Split, list[str]]:
    """The run's split in its own network or another one, and what differs there."""
    if network.fingerprint == run.config()["fingerprint"]:
        return run.split(network), []
    if not (run.path / SPLIT).is_file():
        raise InputError(f"{run.path}: has no {SPLIT} yet; run 'heterformer train' again.")
    new, notes = run.new_rows(network), list[str]()
    for node_type, rows in new.items():
        notes.append(f"{len(rows):,} {node_type} nodes are new since training.")
    split, gone = on_other_network(run.path / SPLIT, network, new, run.options().seed)
    if not run.has_own_network:
        notes.append("The run's own network cannot be opened, so no node is known to be new.")
    return split, notes + gone
