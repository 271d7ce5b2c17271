"""A run folder: what was asked, how far it got, and the model it ends with."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from heterformer.digests import DIGESTS, digests_text, write_digests
from heterformer.errors import InputError, OptionError
from heterformer.files import read_folder, readable, reading, remove_file, replace_folder, write_text, writing
from heterformer.models.contract import NodeEncoder
from heterformer.models.registry import untrained_model
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.options import fits, option_types
from heterformer.training.averaging import WeightAverage
from heterformer.training.early_stopping import EarlyStopping
from heterformer.training.loss_scale import LossScale
from heterformer.training.optimizers import Optimizers
from heterformer.training.options import TrainingOptions
from heterformer.training.resuming import changed_options
from heterformer.training.run_folder import CONFIG, METRICS, REPORTS, SPLIT, RunFolder, logged_lines
from heterformer.untrusted import short_repr

BATCH_SIZE = "batch_size"
AVERAGE = "average.safetensors"
TABLES = "textless.tables."  # of embeddings, in the names of weights


@dataclass
class Position:
    """How far a run has got. Batches and dropout are functions of it: no generator state is needed."""

    epoch: int = 0
    step_of_epoch: int = 0
    step: int = 0
    seconds: float = 0.0  # of steps, refreshes and evaluations
    seconds_before: float = 0.0  # the first step, of which warm-up takes most
    loss_scale: float = LossScale.value  # of fp16
    loss_scale_steps: int = 0
    pairs_per_step: int = 0  # of all processes; 0 in checkpoints that do not say: as many as now


class Run(RunFolder):
    """A run folder: options, checkpoints, metrics and the trained model.

    ``train`` returns one. ``Run(path)`` opens one that exists, complete or still training.

    Args:
        path: The folder; nothing is read until it is used.

    Example:
        >>> from heterformer import Run, embed
        >>> run = Run("runs/papers")
        >>> run.options().batch_size
        30
        >>> [line["loss"] for line in run.metrics() if "loss" in line]
        >>> vectors = embed(run.model(), run.network())
    """

    def start(self, network: Network, options: TrainingOptions) -> None:
        """Write the configuration of a new run, or of one that did not get as far as a checkpoint."""
        self.check_free()
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / SPLIT).unlink(missing_ok=True)  # the options may divide otherwise now
        self.write_config(network, options)

    def write_config(self, network: Network, options: TrainingOptions) -> None:
        values = {
            "network": str(network.path.resolve()),
            "fingerprint": network.fingerprint,
            "options": options.to_dict(),
        }
        remove_file(self.path / DIGESTS)  # until training is complete again
        write_text(self.path / CONFIG, yaml.safe_dump(values, sort_keys=False))

    def check(self, network: Network, options: TrainingOptions, processes: int = 1) -> None:
        """Refuse to go on with another network or with options that would give another result.

        The batch size may change together with the number of processes if steps keep their pairs.
        """
        self._check_network(network, self.config())
        changed = changed_options(self.options(), options)
        pairs = self.progress()[0].pairs_per_step if self.started else 0
        if BATCH_SIZE in changed and pairs == processes * options.batch_size:
            changed.remove(BATCH_SIZE)
        if changed:
            remedy = f"give the old values (they are in {self.path / CONFIG}) or another run folder"
            raise OptionError(None, changed, f"changed; {remedy}.", place=f"{self.path}: cannot resume with ")

    def save_checkpoint(
        self,
        model: NodeEncoder,
        optimizers: Optimizers,
        position: Position,
        early: EarlyStopping,
        average: WeightAverage | None = None,
    ) -> None:
        with replace_folder(self.last) as folder:
            save_file(_weights(model), folder / "model.safetensors")
            save_file(_contiguous(optimizers.tensors()), folder / "optimizer.safetensors")
            if average is not None:
                save_file(_contiguous(average.tensors()), folder / AVERAGE)
            state = {"position": asdict(position), "early_stopping": asdict(early)}
            (folder / "state.json").write_text(json.dumps(state, indent=1), encoding="utf-8")
            write_digests(folder)

    def load_checkpoint(self, model: NodeEncoder, optimizers: Optimizers) -> tuple[Position, EarlyStopping]:
        """Restore the last checkpoint."""
        with reading(self.last):
            folder = readable(self.last)  # nobody replaces it: whoever trains holds the lock
            model.load_state_dict(load_file(folder / "model.safetensors"))
            optimizers.load_tensors(load_file(folder / "optimizer.safetensors"))
        return self.progress()

    def load_average(self, average: WeightAverage) -> WeightAverage:
        """The mean of weights in the last checkpoint."""
        with reading(self.last):
            return average.restored(load_file(readable(self.last) / AVERAGE))

    def progress(self) -> tuple[Position, EarlyStopping]:
        """How far the last checkpoint is, and the best validation figure by then."""
        with reading(self.last):
            state = json.loads(read_folder(self.last, _state))
            position, early = Position(**state["position"]), EarlyStopping(**state["early_stopping"])
            for part in (position, early):
                for name, hint in option_types(type(part)).items():
                    if not fits(getattr(part, name), hint):
                        raise ValueError(f"{name} is {short_repr(getattr(part, name))}")
            return position, early

    def save_best(self, model: NodeEncoder) -> None:
        with replace_folder(self.best) as folder:
            save_file(_weights(model), folder / "model.safetensors")
            write_digests(folder)

    def load_best(self, model: NodeEncoder) -> None:
        """The weights of the best validation figure so far."""
        if (folder := readable(self.best)).is_dir():
            with reading(folder):
                model.load_state_dict(load_file(folder / "model.safetensors"))

    @property
    def weights(self) -> Path:
        """The file of the best weights so far, or of the last if training stopped before a validation."""
        if not self.started:
            self.config()  # or it is no run
            raise InputError(f"{self.path}: has no checkpoint yet; run 'heterformer train' again.")
        return readable(self._best_or_last()) / "model.safetensors"

    def _best_or_last(self) -> Path:
        return self.best if readable(self.best).is_dir() else self.last

    def model(self, *, tables: bool = True) -> NodeEncoder:
        """Load the best model so far, on the CPU, whether or not training is complete.

        Args:
            tables: Load the embeddings of textless nodes; without them their tables are empty.

        Example:
            >>> vector = Run("runs/papers").model().encode("news recommendation")
        """
        weights = self.weights
        with reading(self.path):
            model = untrained_model(self.path, tables)
        kept = {} if tables else {k: v for k, v in model.state_dict().items() if k.startswith(TABLES)}

        def read(folder: Path) -> dict[str, Tensor]:
            with reading(folder / weights.name), safe_open(folder / weights.name, "pt") as file:
                return {name: file.get_tensor(name) for name in file.keys() if name not in kept}  # noqa: SIM118

        with reading(weights):  # training may replace them meanwhile
            model.load_state_dict(read_folder(self._best_or_last(), read) | kept)
        model.name_or_path = str(self.path)  # as from_pretrained leaves it
        model.eval()
        return model

    def log(self, **values: Any) -> None:
        """One line of metrics; the last line of a step stands for it."""
        path = self.path / METRICS
        with writing(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """What was logged, oldest first; each entry has a ``step``, and a ``loss`` or a ``validation``.

        Validation before the first step is in the entry ``before_training`` of step 0.
        """
        if not self.exists:
            self.config()  # it is no run
        return logged_lines(self.path / METRICS)

    def write_digests(self) -> None:
        """Note the run's own files, once training is complete; folders in it have notes of their own."""
        names = [p.name for p in self.path.iterdir() if p.is_file() and not p.name.startswith(".")]
        names = [name for name in names if name not in (DIGESTS, *REPORTS)]
        write_text(self.path / DIGESTS, digests_text(self.path, names))

    def rewind_metrics(self, step: int) -> None:
        """Forget what came after the checkpoint and will come again: steps, and the refresh before them."""
        lines = self.metrics()
        kept = [line for line in lines if line["step"] < step + ("refresh" not in line)]
        write_text(self.path / METRICS, "".join(json.dumps(line) + "\n" for line in kept))

    def split(self, network: Network, options: SplitOptions | None = None) -> Split:
        """The run's own split: made and stored the first time, the same ever after.

        Args:
            network: The network that the run was trained on, or one that has grown from it.
            options: How to divide the pairs if that was not done yet; unless given, the run's own options.

        Example:
            >>> run.split(run.network()).test  # (pairs, 2): rows of queries and keys
        """
        path = self.path / SPLIT
        if not path.is_file():
            split = make_split(network, options or self.options().split)
            split.save(path, network)
        return Split.open(path, network)


def _state(folder: Path) -> str:
    return (folder / "state.json").read_text(encoding="utf-8")


def _weights(model: NodeEncoder) -> dict[str, Tensor]:
    return _contiguous(model.state_dict())


def _contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: tensor.detach().to("cpu", memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
