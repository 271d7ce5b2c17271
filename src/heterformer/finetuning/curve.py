"""How many labels are needed: fine-tuning against text alone and against fixed vectors, on the same parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from heterformer.arrays import AnyFloats
from heterformer.embedding.embed import embed
from heterformer.errors import InputError, OptionError
from heterformer.evaluation.classifiers import MLP
from heterformer.evaluation.options import ClassificationOptions
from heterformer.files import reading, write_text
from heterformer.finetuning.core import RESULT, FinetuneResult, finetune, held_out_result
from heterformer.finetuning.options import finetuning_options
from heterformer.metrics import classification_metrics
from heterformer.models.options import BertOptions
from heterformer.network.split.draw import make_split
from heterformer.network.stratified import PARTS, TRAIN
from heterformer.network.targets import Targets, target_type
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.supervision import run_targets
from heterformer.training.train import train

Method = Literal["fine-tuned", "text only, fine-tuned", "fixed vectors"]
CURVE = "curve.json"


@dataclass(frozen=True)
class CurvePoint:
    """What one method reaches with one share of the labels."""

    method: Method
    fraction: float
    labels: int
    """Labelled nodes of the training part that it learnt from."""
    metrics: dict[str, float]
    """Of the test part."""


@dataclass(frozen=True)
class LearningCurve:
    """All methods with all shares of the labels."""

    start: str
    node_type: str
    points: tuple[CurvePoint, ...]

    def save(self, folder: Path) -> None:
        write_text(folder / CURVE, json.dumps(asdict(self), indent=1))

    @classmethod
    def open(cls, folder: Path) -> LearningCurve:
        with reading(folder / CURVE):
            values = json.loads((folder / CURVE).read_text(encoding="utf-8"))
            points = tuple(CurvePoint(**point) for point in values["points"])
            return cls(**values | {"points": points})

    def of_method(self, method: Method) -> list[CurvePoint]:
        return sorted((p for p in self.points if p.method == method), key=lambda point: point.fraction)


def learning_curve(
    run: Run | Path | str, out: Path | str, fractions: Sequence[float], options: TrainingOptions
) -> LearningCurve:
    """Learn from some of the labels, then from more of them, by three methods.

    Fine-tuned are the run's model, and its text encoder alone; the third method is the paper's MLP on the
    run's vectors as they are. All have the same training, validation and test nodes. An interrupted call is
    resumed by the same call.

    Args:
        run: The run to start from.
        out: The folder of the fine-tuned runs and of the curve.
        fractions: Shares of the training part's labels.
        options: Training options, those of labels included.
    """
    start, out = run if isinstance(run, Run) else Run(run), Path(out)
    if not fractions or len(set(fractions)) != len(fractions):
        listed = ", ".join(f"{f:g}" for f in fractions) or "none"
        raise OptionError(None, "label_fraction", f"is {listed}, expected different shares.")
    if "regression" in options.tasks:
        raise InputError("a learning curve is of classes, expected the task classification.")
    options, network = finetuning_options(options, start.path, "classification"), start.network()
    split = make_split(network, options.split)
    node_type = target_type(network, "classification", options.labels)
    vectors = embed(start.model(), network, types=[node_type])[node_type]
    points: list[CurvePoint] = []
    for fraction in sorted(fractions):
        chosen = replace(options, labels=replace(options.labels, type=node_type, fraction=fraction))
        targets = run_targets(network, "classification", chosen.labels, split)
        folder, labels = out / f"fraction-{fraction:g}", int((targets.part == TRAIN).sum())
        results: dict[Method, dict[str, float]] = {"fixed vectors": _fixed(vectors, targets, chosen.seed)}
        results["fine-tuned"] = dict(_finetuned(start, folder / "model", chosen).metrics["test"])
        if node_type in network.schema.text_rich:
            result = _text_only(start, folder / "text-only", chosen)
            results["text only, fine-tuned"] = dict(result.metrics["test"])
        points += [CurvePoint(method, fraction, labels, values) for method, values in results.items()]
    curve = LearningCurve(str(start.path), node_type, tuple(points))
    curve.save(out)
    return curve


def _finetuned(start: Run, out: Path, options: TrainingOptions) -> FinetuneResult:
    if Run(out).is_complete and (out / RESULT).is_file():
        return FinetuneResult.open(out)
    return finetune(start, out, "classification", options)


def _text_only(start: Run, out: Path, options: TrainingOptions) -> FinetuneResult:
    """The run's text encoder alone, with a head of its own."""
    if Run(out).is_complete and (out / RESULT).is_file():
        return FinetuneResult.open(out)
    model = BertOptions(backbone=str(start.path))
    train(start.network(), out, replace(options, model=model, init=None))
    result = held_out_result(Run(out), str(start.path))
    result.save(out)
    return result


def _fixed(vectors: AnyFloats, targets: Targets, seed: int) -> dict[str, float]:
    """The paper's classifier on vectors that stay as they are."""
    usual = ClassificationOptions()
    rate = usual.learning_rate_of(textless=False)
    mlp = MLP(usual.hidden, rate, usual.batch_size, usual.patience, usual.max_epochs)
    parts = [targets.of_part(part) for part in PARTS]
    train_part, validation, test = ((vectors[part.rows], part.truth) for part in parts)
    predictor = mlp.fit(train_part, validation, targets.kind == "multi", seed)
    return classification_metrics(test[1], predictor(test[0]))
