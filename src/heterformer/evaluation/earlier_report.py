"""An earlier report in the same folder: tasks that are not done again stay on the page if nothing changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from heterformer.evaluation.classification import ClassificationResult
from heterformer.evaluation.clustering import ClusteringResult
from heterformer.evaluation.core import Evaluation, NodeClassification, NodeClustering
from heterformer.evaluation.link_prediction import LinkPrediction
from heterformer.evaluation.options import TASKS, EvaluateOptions, Task
from heterformer.evaluation.recommendation import RecommendationResult
from heterformer.metrics import CLASSIFICATION_METRICS, MetricSummary
from heterformer.network.labels import LeftOut
from heterformer.progress import say
from heterformer.untrusted import is_inside

# The options that decide a task's figures.
DECIDING: dict[Task, tuple[str, ...]] = {
    "link_prediction": ("parts", "similarity", "split", "precision"),
    "classification": ("labels", "classification", "split", "precision"),
    "clustering": ("labels", "clustering", "precision"),
    "map": ("map", "precision"),
}


@dataclass(frozen=True)
class EarlierReport:
    """What ``report.json`` holds of an earlier evaluation."""

    path: Path
    values: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """Nothing if there is none that can be read, or only one that does not say how it was made."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            return cls(path, values) if values["evaluation"]["options"] else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def joined(
        self, evaluation: Evaluation, about: Mapping[str, Any], options: EvaluateOptions
    ) -> tuple[Evaluation, EvaluateOptions]:
        """With the earlier results of tasks that were not repeated, and the options that give all of it."""
        before = self.values["evaluation"]["options"]
        rest = [task for task in before["tasks"] or TASKS if not options.wants(task)]
        now = json.loads(json.dumps(asdict(options)))
        same = all(self.values.get(name) == value for name, value in about.items())
        irrelevant = {"precision"} if "vectors" in about else set()  # those of a file are computed already
        deciding = {task: [n for n in DECIDING[task] if n not in irrelevant] for task in rest}
        valid = [t for t in rest if same and all(now[n] == before.get(n, now[n]) for n in deciding[t])]
        kept = {task: results for task in valid if (results := self._results(task)) is not None}
        if gone := [task for task in rest if task not in valid]:
            differing = "another model or other options" if not same else "other options"
            say(f"{self.path.parent}: the report is replaced; its {_listed(gone)} had {differing}.")
        if old := [task for task in valid if task not in kept]:
            say(f"{self.path.parent}: the report is replaced; its {_listed(old)} lacked metrics.")
        if not kept:
            return evaluation, options
        say(f"{self.path.parent}: kept {_listed(kept)} from the earlier report.")
        tasks = tuple(task for task in TASKS if options.wants(task) or task in kept)
        return self._joined(evaluation, kept.values()), replace(
            options, tasks=() if tasks == TASKS else tasks
        )

    def figures(self, options: EvaluateOptions) -> list[Path]:
        """The map's files, if the map is on the page."""
        names = self.values.get("figures", []) if options.wants("map") else []
        inside = [name for name in names if is_inside(name)]  # whoever wrote the report
        return [path for name in inside if (path := self.path.parent / name).is_file()]

    def _results(self, task: Task) -> dict[str, Any] | None:
        """The fields of an evaluation that the task fills; None if the report lacks one of the metrics."""
        values = self.values
        try:
            if task == "link_prediction":
                by_vectors = values["seen_by_vectors"]
                return {
                    task: _link_predictions(values[task]),
                    "by_width": {
                        int(width): _link_predictions(one)
                        for width, one in values.get("by_width", {}).items()
                    },
                    "recommendation": [
                        RecommendationResult.from_json(one) for one in values.get("recommendation", [])
                    ],
                    "seen": tuple(values["seen_in_training"]),
                    "seen_by_vectors": None if by_vectors is None else tuple(by_vectors),
                }
            if task == "classification":
                return {task: list(map(_classified, values[task]))}
            if task == "clustering":
                return {task: list(map(_clustered, values[task]))}
        except KeyError:
            return None
        return {}  # the map is a file

    def _joined(self, evaluation: Evaluation, results: Iterable[dict[str, Any]]) -> Evaluation:
        changes = {name: value for fields in results for name, value in fields.items()}
        # With equal options a task writes the same notes again, so what is new comes after what is known.
        notes = list(dict.fromkeys([*self.values["notes"], *evaluation.notes]))
        return replace(evaluation, notes=notes, **changes)


def _link_predictions(values: Mapping[str, Any]) -> list[LinkPrediction]:
    return [LinkPrediction.from_json(part) for relation in values.values() for part in relation.values()]


def _listed(tasks: Iterable[Task]) -> str:
    return ", ".join(task.replace("_", " ") for task in tasks)


def _classified(one: dict[str, Any]) -> NodeClassification:
    result = one["result"]
    scores = {
        classifier: {m.name: MetricSummary.from_json(values[m.name]) for m in CLASSIFICATION_METRICS}
        for classifier, values in result["scores"].items()
    }
    left_out = tuple(LeftOut(**lost | {"such_as": tuple(lost["such_as"])}) for lost in result["left_out"])
    parts = tuple(map(tuple, result["parts"]))
    changes = {"scores": scores, "left_out": left_out, "parts": parts}
    return NodeClassification(one["node_type"], one["setting"], ClassificationResult(**result | changes))


def _clustered(one: dict[str, Any]) -> NodeClustering:
    return NodeClustering(one["node_type"], ClusteringResult.from_json(one["result"]))
