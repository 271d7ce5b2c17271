"""Fine-tune a run on labels, and measure how well it predicts those of the test part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heterformer.errors import InputError
from heterformer.files import reading, write_text
from heterformer.finetuning.options import finetuning_options
from heterformer.network.split.split import PARTS as PART_NAMES
from heterformer.network.stratified import PARTS, TEST, VALIDATION
from heterformer.network.target_options import SupervisedTask
from heterformer.network.targets import Targets
from heterformer.precision import precision_of_vectors
from heterformer.prediction.core import Predictor
from heterformer.prediction.options import PredictOptions
from heterformer.training.calibration import calibration_error
from heterformer.training.flat_options import split_of_run
from heterformer.training.keywords import training_options
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.supervision import run_targets, target_metrics
from heterformer.training.train import train

RESULT = "finetune.json"


@dataclass(frozen=True)
class FinetuneResult:
    """What a fine-tuned run predicts of nodes whose labels it did not learn from."""

    run: str
    start: str
    """The run that it started from."""
    task: str
    node_type: str
    classes: tuple[str, ...]
    fraction: float
    nodes: Mapping[str, int]
    """Labelled nodes of each part."""
    metrics: Mapping[str, Mapping[str, float]]
    """By part, ``validation`` and ``test``, then by metric."""
    temperature: float | None = None
    """By which logits are divided, chosen on the validation part; numbers have none."""
    calibration_error: Mapping[str, float] | None = None
    """Of the test part's probabilities, ``before`` and ``after`` the temperature."""

    def save(self, folder: Path) -> None:
        write_text(folder / RESULT, json.dumps(asdict(self), indent=1))

    @classmethod
    def open(cls, folder: Path) -> FinetuneResult:
        with reading(folder / RESULT):
            values = json.loads((folder / RESULT).read_text(encoding="utf-8"))
            return cls(**{**values, "classes": tuple(values["classes"])})


def finetune(
    run: Run | Path | str,
    out: Path | str,
    task: SupervisedTask = "classification",
    options: TrainingOptions | None = None,
    **keywords: Any,
) -> FinetuneResult:
    """Fine-tune a trained model on the labels of a node type.

    The whole model learns together with a head on its vectors, with early stopping on the validation part.
    Pairs and nodes that the run's split holds out stay held out, unless ``split`` says otherwise.
    An interrupted call is resumed by the same call. ``predict`` then gives the classes of any node.

    Args:
        run: The run to start from.
        out: The folder of the fine-tuned run, new or to be resumed.
        task: ``"classification"`` of nodes with one or several classes, or ``"regression"`` of a number.
        options: Training options. Instead they can be given as keywords, by the names that they have on
            the command line.
        keywords: ``labels={"type": "author", "fraction": 0.1}``, ``freeze="backbone"``, ``epochs=5``, ...

    Returns:
        Metrics of the validation and the test part, and how well probabilities are calibrated.

    Example:
        >>> from heterformer import finetune, predict
        >>> result = finetune("runs/papers", "runs/subjects", labels={"type": "paper"})
        >>> result.metrics["test"]["macro"]
        >>> predict("runs/subjects", ["p01"])
    """
    start, done = run if isinstance(run, Run) else Run(run), Run(out)
    if options is None:
        decided = {"init": str(start.path), "tasks": (task,)}
        options = training_options(None, {**split_of_run(start.path), **decided, **keywords})
    elif keywords:
        options = training_options(options, keywords)
    options = finetuning_options(options, start.path, task)
    network = start.network()
    train(network, done.path, options)
    result = held_out_result(done, str(start.path))
    result.save(done.path)
    return result


def held_out_result(run: Run, start: str) -> FinetuneResult:
    """How well a run predicts the labels of its held-out parts."""
    options = run.options()
    task = options.supervised_task
    if task is None:
        raise InputError(f"{run.path}: was trained on links alone, expected a run with a supervised task.")
    network = run.network()
    targets = run_targets(network, task, options.labels, run.split(network))
    precision = precision_of_vectors(options.precision)
    predictor = Predictor(run, network, PredictOptions(precision=precision, device=options.device))
    head, outputs = predictor.head, {}
    for part in (VALIDATION, TEST):
        outputs[part] = predictor.outputs(targets.of_part(part).rows)
    metrics: dict[str, Mapping[str, float]] = {
        PART_NAMES[part]: target_metrics(head, outputs[part], targets.of_part(part)) for part in outputs
    }
    temperature = error = None
    if targets.kind != "number":
        temperature = float(head.temperature)
        error = _errors(targets.of_part(TEST), outputs[TEST], temperature)
    return FinetuneResult(
        str(run.path),
        start,
        task,
        targets.node_type,
        targets.classes,
        options.labels.fraction,
        {PART_NAMES[part]: int((targets.part == part).sum()) for part in PARTS},
        metrics,
        temperature,
        error,
    )


def _errors(test: Targets, logits: torch.Tensor, temperature: float) -> dict[str, float]:
    """The calibration error of the test part's probabilities, before and after the temperature."""
    result = {}
    for name, divisor in (("before", 1.0), ("after", temperature)):
        scaled = logits / divisor
        shares = scaled.softmax(-1) if test.kind == "single" else scaled.sigmoid()
        result[name] = calibration_error(np.asarray(shares), test.truth, test.kind)
    return result
