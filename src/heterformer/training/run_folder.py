"""A run folder as far as it is read without a library of tensors: options, network, types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from heterformer.arrays import Ints
from heterformer.errors import InputError
from heterformer.files import CARD, readable, reading
from heterformer.network.ids import known_rows
from heterformer.network.schema import NodeType, Schema, check_schema
from heterformer.network.store import Network
from heterformer.temporary import is_leftover
from heterformer.training.options import TrainingOptions
from heterformer.untrusted import check_fingerprint, check_no_links_out, checked_path, short_repr

CONFIG, METRICS, SPLIT = "config.yaml", "metrics.jsonl", "split.parquet"
REPORTS = ("report.md", "report.json")  # which 'heterformer evaluate' writes


class RunFolder:
    """What a run was asked for. ``Run``, which takes seconds to import, adds checkpoints and the model."""

    def __init__(self, path: Path | str) -> None:
        self.path = checked_path(path, "the run")
        self.last = self.path / "checkpoints" / "last"  # where it is written; ``readable`` says where it is
        self.best = self.path / "checkpoints" / "best"
        self.states = self.path / "states"  # of neighbours, if they are cached, while training lasts

    @property
    def exists(self) -> bool:
        return (self.path / CONFIG).is_file()

    @property
    def started(self) -> bool:
        """Whether there is a checkpoint to go on from."""
        return readable(self.last).is_dir()

    @property
    def is_complete(self) -> bool:
        """Whether the model is there; its card is written last, and removed when training resumes."""
        return (self.path / CARD).is_file()

    def config(self) -> dict[str, Any]:
        """The resolved configuration; a folder without one is no run, nor one whose links lead elsewhere."""
        check_no_links_out(self.path)  # every command writes into it
        if not self.exists:
            raise InputError(f"{self.path}: not a run, expected a folder that 'heterformer train' wrote.")
        with reading(self.path / CONFIG):
            values = yaml.safe_load((self.path / CONFIG).read_text(encoding="utf-8"))
            TrainingOptions.from_dict(values["options"])
            check_fingerprint(values["fingerprint"], self.path / CONFIG)
            if not isinstance(values["network"], str) or "\0" in values["network"]:
                raise ValueError(f"its network is {short_repr(values['network'])}, expected a path")
            return {name: values[name] for name in ("network", "fingerprint", "options")}

    def check_free(self) -> None:
        """Refuse a place that a new run cannot take, because something else is there."""
        check_no_links_out(self.path)
        if self.exists:
            return
        if self.path.is_file():
            raise InputError(f"{self.path}: is a file, expected the folder of a run.")
        if self.path.is_dir() and not all(map(is_leftover, self.path.iterdir())):
            raise InputError(f"{self.path}: exists and is not a run; choose another name.")

    def options(self) -> TrainingOptions:
        """The options that the run was trained with, every 'auto' resolved."""
        return TrainingOptions.from_dict(self.config()["options"])

    def network(self) -> Network:
        """Open the network that the run was trained on; it is an error if its contents have changed."""
        config = self.config()
        try:
            network = Network.open(config["network"])
        except InputError as error:
            moved = f"if it was moved, 'heterformer train NEW_PLACE {self.path}' tells the run where to"
            raise InputError(f"{self.path}: its network cannot be opened ({error}); {moved}.") from None
        self._check_network(network, config)
        return network

    def open_network(self, path: Path | str | None) -> Network:
        """The run's own network or, if ``path`` is given, another one of the same types.

        Args:
            path: The other network's folder, or None.
        """
        if path is None:
            return self.network()
        self.config()  # refuses a folder that is no run
        network = Network.open(path)
        check_schema(self.schema(), network.schema)
        return network

    @property
    def has_own_network(self) -> bool:
        """Whether the network that it was trained on can still be opened."""
        try:
            self.network()
        except InputError:
            return False
        return True

    def new_rows(self, network: Network) -> dict[NodeType, Ints]:
        """By type, the rows of nodes that the run's own network lacks; none if that is gone or the same.

        Args:
            network: A network of the same types.
        """
        if network.fingerprint == self.config()["fingerprint"] or not self.has_own_network:
            return {}
        own = self.network()
        rows = {
            t: np.flatnonzero(known_rows(network.id_series(t), own.id_series(t)) < 0)
            for t in network.schema.node_types
        }
        return {node_type: new for node_type, new in rows.items() if len(new)}

    def schema(self) -> Schema:
        """The types that the run's model was made for."""
        with reading(self.path):
            config = json.loads((self.path / "config.json").read_text(encoding="utf-8"))
            return Schema.from_dict(config["schema"], str(self.path / "config.json"))

    def _check_network(self, network: Network, config: dict[str, Any]) -> None:
        if network.fingerprint != config["fingerprint"]:
            problem = f"{network.path} is not the network it was trained on (its contents differ)"
            raise InputError(f"{self.path}: {problem}; start another run folder.")


def logged_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a log; a kill may have cut the last one."""
    values: list[dict[str, Any]] = []
    if not path.exists():
        return values
    with reading(path, "remove what follows its last valid line"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for number, line in enumerate(lines, 1):
            if line.endswith("\n"):
                values.append(json.loads(line))
                if not isinstance(values[-1], dict) or not isinstance(values[-1].get("step"), int):
                    raise ValueError(f"line {number} is no entry of a log")
    return values
