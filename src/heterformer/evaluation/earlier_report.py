"""An earlier report in the same folder: tasks that are not done again stay on the page if nothing changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from heterformer.evaluation.classification import ClassificationResult, Scores
from heterformer.evaluation.clustering import ClusteringResult
from heterformer.evaluation.core import Classified, Clustered, Evaluation
from heterformer.evaluation.link_prediction import FullRanking, LinkPrediction
from heterformer.evaluation.options import TASKS, EvaluateOptions, Task
from heterformer.metrics import Repeated
from heterformer.network.left_out import LeftOut
from heterformer.progress import say
from heterformer.ranking import RankingMetrics
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
        self, found: Evaluation, about: Mapping[str, Any], options: EvaluateOptions
    ) -> tuple[Evaluation, EvaluateOptions]:
        """With the earlier results of tasks that were not done again, and the options that give all of it."""
        before = self.values["evaluation"]["options"]
        rest = [task for task in before["tasks"] or TASKS if not options.wants(task)]
        now = json.loads(json.dumps(asdict(options)))
        same = all(self.values.get(name) == value for name, value in about.items())
        kept = [t for t in rest if same and all(now[n] == before.get(n, now[n]) for n in DECIDING[t])]
        if gone := [task for task in rest if task not in kept]:
            told = "another model or other options" if not same else "other options"
            say(f"{self.path.parent}: the report is replaced; its {_listed(gone)} had {told}.")
        if not kept:
            return found, options
        say(f"{self.path.parent}: {_listed(kept)} of the earlier report stay.")
        tasks = tuple(task for task in TASKS if options.wants(task) or task in kept)
        return self._with(found, kept), replace(options, tasks=() if tasks == TASKS else tasks)

    def figures(self, options: EvaluateOptions) -> list[Path]:
        """The map's files, if the map is on the page."""
        names = self.values.get("figures", []) if options.wants("map") else []
        inside = [name for name in names if is_inside(name)]  # whoever wrote the report
        return [path for name in inside if (path := self.path.parent / name).is_file()]

    def _with(self, found: Evaluation, kept: list[Task]) -> Evaluation:
        values, changes = self.values, dict[str, Any]()
        if "link_prediction" in kept:
            parts = [one for relation in values["link_prediction"].values() for one in relation.values()]
            changes = {"link_prediction": list(map(_links, parts)), "seen": tuple(values["seen_in_training"])}
        if "classification" in kept:
            changes["classification"] = list(map(_classified, values["classification"]))
        if "clustering" in kept:
            changes["clustering"] = list(map(_clustered, values["clustering"]))
        # With equal options a task says the same again, so what is new comes after what is known.
        return replace(found, notes=list(dict.fromkeys([*values["notes"], *found.notes])), **changes)


def _listed(tasks: list[Task]) -> str:
    return ", ".join(task.replace("_", " ") for task in tasks)


def _links(one: dict[str, Any]) -> LinkPrediction:
    hits = {int(k): value for k, value in one["full"]["hits"].items()}
    full = FullRanking(**one["full"] | {"hits": hits})
    return LinkPrediction(**one | {"in_batch": RankingMetrics(**one["in_batch"]), "full": full})


def _classified(one: dict[str, Any]) -> Classified:
    result = one["result"]
    scores = {n: Scores(*(_repeated(s[f]) for f in ("micro", "macro"))) for n, s in result["scores"].items()}
    left_out = tuple(LeftOut(**lost | {"such_as": tuple(lost["such_as"])}) for lost in result["left_out"])
    parts = tuple(map(tuple, result["parts"]))
    told = ClassificationResult(**result | {"scores": scores, "left_out": left_out, "parts": parts})
    return Classified(one["node_type"], one["setting"], told)


def _clustered(one: dict[str, Any]) -> Clustered:
    figures = {name: _repeated(one["result"][name]) for name in ("nmi", "ari")}
    return Clustered(one["node_type"], ClusteringResult(**one["result"] | figures))


def _repeated(values: dict[str, Any]) -> Repeated:
    return Repeated(tuple(values["values"]), values["mean"], values["deviation"])
