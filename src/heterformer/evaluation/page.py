"""An evaluation as one page that can be handed to a colleague, as JSON, and on screen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from heterformer.embedding.node_vectors import Vectorized
from heterformer.escapes import markdown_text
from heterformer.evaluation.core import Evaluation
from heterformer.evaluation.earlier_report import EarlierReport
from heterformer.evaluation.link_prediction import LinkPrediction
from heterformer.evaluation.open_run import OpenRun
from heterformer.evaluation.options import EvaluateOptions
from heterformer.evaluation.tables import (
    HIDE_SPLIT,
    SEEN_BY_VECTORS,
    classification_table,
    clustering_table,
    recommendation_table,
    relations_table,
    widths_table,
)
from heterformer.files import write_text
from heterformer.network.store import Network
from heterformer.precision import Precision
from heterformer.tables import Sheet
from heterformer.training.options import TrainingOptions

Reported = tuple[Evaluation, dict[str, Any]]
PAGE, VALUES = "report.md", "report.json"
FIGURES = {"map.png": "Map", "training.png": "Training"}  # file to heading, in the page's order


class ReportCommands(Protocol):
    """The command lines on a page. The caller spells flags."""

    def train(self, network: Path, run: Path, options: TrainingOptions) -> str: ...

    def evaluate(self, options: EvaluateOptions) -> str: ...

    def all_flags(self, options: EvaluateOptions) -> str: ...


def sheets(evaluation: Evaluation) -> list[Sheet]:
    """What the terminal shows."""
    on, tables = f"on {evaluation.network.name}", []
    if evaluation.link_prediction:
        tables.append(
            relations_table(
                evaluation.link_prediction,
                evaluation.seen,
                f"link prediction {on}",
                evaluation.seen_by_vectors or (),
            )
        )
    if evaluation.by_width:
        tables.append(widths_table(evaluation.by_width, f"link prediction by width {on}"))
    if evaluation.recommendation:
        tables.append(recommendation_table(evaluation.recommendation, f"recommendation {on}"))
    if evaluation.classification:
        tables.append(classification_table(evaluation.classification, f"node classification {on}"))
    if evaluation.clustering:
        tables.append(clustering_table(evaluation.clustering, f"node clustering {on}"))
    return tables


def as_json(evaluation: Evaluation, about: Mapping[str, Any]) -> dict[str, Any]:
    """Every figure, each repeat's included."""
    return {
        **about,
        "network": evaluation.network.name,
        "link_prediction": link_prediction_json(evaluation.link_prediction),
        "by_width": {width: link_prediction_json(results) for width, results in evaluation.by_width.items()},
        "recommendation": [one.to_json() for one in evaluation.recommendation],
        "seen_in_training": list(evaluation.seen),
        "seen_by_vectors": None if evaluation.seen_by_vectors is None else list(evaluation.seen_by_vectors),
        "classification": [asdict(one) for one in evaluation.classification],
        "clustering": [
            {"node_type": one.node_type, "result": one.result.to_json()} for one in evaluation.clustering
        ],
        "notes": evaluation.notes,
    }


def link_prediction_json(results: Sequence[LinkPrediction]) -> dict[str, Any]:
    """Link prediction by relation and part."""
    values: dict[str, Any] = {}
    for result in results:
        values.setdefault(result.relation, {})[result.part] = result.to_json()
    return values


def about_run(opened: OpenRun, commands: ReportCommands) -> dict[str, Any]:
    """What the page says of a run before any figure."""
    options, (position, early) = opened.run.options(), opened.run.progress()
    config = opened.run.config()
    return {
        "title": f"{options.model.display_name} on {opened.network.name}",
        "backbone": options.model.backbone,
        "steps": position.step,
        "best_step": early.best_step,
        "seed": options.seed,
        "command": commands.train(Path(config["network"]), opened.run.path, options),
        **({"fingerprint": opened.network.fingerprint} if opened.is_other_network else {}),
    }


def about_vectors(path: Path, network: Network, vectors: Vectorized) -> dict[str, Any]:
    """The same of vectors from elsewhere, with a digest of them."""
    digest = hashlib.blake2b(network.fingerprint.encode(), digest_size=16)
    for node_type, one in vectors.items():
        digest.update(node_type.encode())
        digest.update(np.ascontiguousarray(one.rows).data)
        digest.update(np.ascontiguousarray(one.matrix).data)
    return {
        "title": f"{path.name} on {network.name}",
        "vectors": str(path),
        "digest": digest.hexdigest(),
    }


def how_evaluated(
    commands: ReportCommands, options: EvaluateOptions, precision: Precision | None
) -> dict[str, Any]:
    """The command that gives the same figures, and all options, those that are as usual included."""
    return {
        "precision": precision,
        "command": commands.evaluate(options),
        "all_flags": commands.all_flags(options),
        "options": asdict(replace(options, json=False)),
    }


def write_report(
    evaluation: Evaluation,
    about: Mapping[str, Any],
    commands: ReportCommands,
    out: Path,
    drawn: Sequence[Path],
    options: EvaluateOptions,
    precision: Precision | None,
) -> Reported:
    """``report.md`` and ``report.json`` in the folder ``out``; what is there of other tasks may stay.

    ``precision`` is what the vectors were computed in, if that is known.
    """
    figures = list(drawn)
    if earlier := EarlierReport.open(out / VALUES):
        evaluation, options = earlier.joined(evaluation, about, options)
        figures += [path for path in earlier.figures(options) if path not in figures]
    names = [path.relative_to(out).as_posix() for path in figures]
    about = {**about, "evaluation": how_evaluated(commands, options, precision), "figures": names}
    write_text(out / VALUES, json.dumps(as_json(evaluation, about), indent=1, ensure_ascii=False))
    write_text(out / PAGE, as_markdown(evaluation, about))
    return evaluation, about


def as_markdown(evaluation: Evaluation, about: Mapping[str, Any]) -> str:
    """The page."""
    schema = evaluation.network.schema
    counts = ", ".join(
        f"{schema.counts[t]:,} {t} nodes{' with text' if t in schema.text_rich else ''}"
        for t in schema.node_types
    )
    parts = [
        f"# {markdown_text(about['title'])}",
        f"The network: {counts}; predicted: {', '.join(schema.shares)}.",
    ]
    if "command" in about:
        trained = (
            f"Backbone {about['backbone']}, {about['steps']:,} steps, the best after {about['best_step']:,}"
        )
        parts += [f"{trained}, seed {about['seed']}:", f"```\n{about['command']}\n```"]
    else:
        parts.append(f"Vectors from `{about['vectors']}`. {_what_vectors_saw(evaluation)}".rstrip())
    for sheet in sheets(evaluation):
        heading = sheet.title.removesuffix(f" on {evaluation.network.name}").capitalize()
        parts += [f"## {heading}", sheet.markdown() + "."]
    drawn = {Path(name).name: name for name in about["figures"]}
    for name, heading in FIGURES.items():
        if name in drawn:
            parts += [f"## {heading}", f"![{heading}]({drawn[name]})"]
        if name == "map.png" and "map.html" in drawn:
            parts.append(f"[The same to explore, with names and search]({drawn['map.html']}).")
    how = about["evaluation"]
    computed = [f"Vectors were computed in {how['precision']}."] if how["precision"] else []
    parts += ["## How it was evaluated", *computed, f"```\n{how['command']}\n```"]
    parts.append(f"With every option, seeds included:\n\n```\n{_wrapped(how['all_flags'])}\n```")
    if evaluation.notes:
        parts += ["## Notes", "\n".join(f"- {markdown_text(note)}" for note in evaluation.notes)]
    return "\n\n".join(parts) + "\n"


def _what_vectors_saw(evaluation: Evaluation) -> str:
    """A warning, unless link prediction is fair or not there."""
    if not evaluation.link_prediction or evaluation.seen_by_vectors == ():
        return ""
    if evaluation.seen_by_vectors is None:
        return "It is not known which pairs were seen when they were made: link prediction may flatter them."
    return f"{SEEN_BY_VECTORS.capitalize()}: {', '.join(evaluation.seen_by_vectors)}. {HIDE_SPLIT}."


def _wrapped(flags: str) -> str:
    """A flag a line."""
    return flags.replace(" --", "\n--")
