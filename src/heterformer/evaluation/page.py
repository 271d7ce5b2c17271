"""An evaluation as one page that can be handed to a colleague, as JSON, and on screen."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from heterformer.embedding.node_vectors import Vectorized
from heterformer.escapes import markdown_text
from heterformer.evaluation.core import Evaluation
from heterformer.evaluation.earlier_report import EarlierReport
from heterformer.evaluation.link_prediction import LinkPrediction
from heterformer.evaluation.open_run import OpenRun
from heterformer.evaluation.options import EvaluateOptions, as_flags
from heterformer.evaluation.tables import (
    HIDE_SPLIT,
    SEEN_BY_VECTORS,
    classification_table,
    clustering_table,
    relations_table,
)
from heterformer.files import write_text
from heterformer.network.store import Network
from heterformer.tables import Sheet
from heterformer.training.options import as_flags as training_flags

Reported = tuple[Evaluation, dict[str, Any]]
PAGE, VALUES = "report.md", "report.json"
FIGURES = {"map.png": "Map", "training.png": "Training"}  # file to heading, in the page's order


def sheets(found: Evaluation) -> list[Sheet]:
    """What the terminal shows."""
    on, tables = f"on {found.network.name}", []
    if found.link_prediction:
        tables.append(
            relations_table(
                found.link_prediction, found.seen, f"link prediction {on}", found.seen_by_vectors or ()
            )
        )
    if found.classification:
        tables.append(classification_table(found.classification, f"node classification {on}"))
    if found.clustering:
        tables.append(clustering_table(found.clustering, f"node clustering {on}"))
    return tables


def as_json(found: Evaluation, about: Mapping[str, Any]) -> dict[str, Any]:
    """Every figure, each repeat's included."""
    return {
        **about,
        "network": found.network.name,
        "link_prediction": link_prediction_json(found.link_prediction),
        "seen_in_training": list(found.seen),
        "seen_by_vectors": None if found.seen_by_vectors is None else list(found.seen_by_vectors),
        "classification": [asdict(one) for one in found.classification],
        "clustering": [
            {"node_type": one.node_type, "result": one.result.to_json()} for one in found.clustering
        ],
        "notes": found.notes,
    }


def link_prediction_json(results: Sequence[LinkPrediction]) -> dict[str, Any]:
    """Link prediction by relation and part."""
    values: dict[str, Any] = {}
    for result in results:
        values.setdefault(result.relation, {})[result.part] = result.to_json()
    return values


def about_run(opened: OpenRun) -> dict[str, Any]:
    """What the page says of a run before any figure."""
    options, (position, early) = opened.run.options(), opened.run.progress()
    folders = [str(opened.network.path), str(opened.run.path)]
    command = ["heterformer", "train", *folders, *training_flags(options)]
    return {
        "title": f"{options.model.display_name} on {opened.network.name}",
        "backbone": options.model.backbone,
        "steps": position.step,
        "best_step": early.best_step,
        "seed": options.seed,
        "command": shlex.join(command),
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


def how_evaluated(of: Sequence[str], options: EvaluateOptions) -> dict[str, Any]:
    """The command that gives the same figures, and all options, those that are as usual included."""
    return {
        "command": shlex.join(["heterformer", "evaluate", *of, *as_flags(options)]),
        "all_flags": shlex.join(as_flags(options, every=True)),
        "options": asdict(replace(options, json=False)),
    }


def write_report(
    found: Evaluation,
    about: Mapping[str, Any],
    of: Sequence[str],
    out: Path,
    drawn: Sequence[Path],
    options: EvaluateOptions,
) -> Reported:
    """``report.md`` and ``report.json`` in the folder ``out``; what is there of other tasks may stay.

    ``of`` are the words of the command that say what was evaluated.
    """
    figures = list(drawn)
    if earlier := EarlierReport.open(out / VALUES):
        found, options = earlier.joined(found, about, options)
        figures += [path for path in earlier.figures(options) if path not in figures]
    names = [path.relative_to(out).as_posix() for path in figures]
    about = {**about, "evaluation": how_evaluated(of, options), "figures": names}
    write_text(out / VALUES, json.dumps(as_json(found, about), indent=1, ensure_ascii=False))
    write_text(out / PAGE, as_markdown(found, about))
    return found, about


def as_markdown(found: Evaluation, about: Mapping[str, Any]) -> str:
    """The page."""
    schema = found.network.schema
    counts = ", ".join(
        f"{schema.counts[t]:,} {t} nodes{' with text' if t in schema.text_rich else ''}"
        for t in schema.node_types
    )
    parts = [
        f"# {markdown_text(about['title'])}",
        f"The network: {counts}; predicted relation: {schema.predict}.",
    ]
    if "command" in about:
        trained = (
            f"Backbone {about['backbone']}, {about['steps']:,} steps, the best after {about['best_step']:,}"
        )
        parts += [f"{trained}, seed {about['seed']}:", f"```\n{about['command']}\n```"]
    else:
        parts.append(f"Vectors from `{about['vectors']}`. {_what_vectors_saw(found)}".rstrip())
    for sheet in sheets(found):
        heading = sheet.title.removesuffix(f" on {found.network.name}").capitalize()
        parts += [f"## {heading}", sheet.markdown() + "."]
    drawn = {Path(name).name: name for name in about["figures"]}
    for name, heading in FIGURES.items():
        if name in drawn:
            parts += [f"## {heading}", f"![{heading}]({drawn[name]})"]
        if name == "map.png" and "map.html" in drawn:
            parts.append(f"[The same to explore, with names and search]({drawn['map.html']}).")
    how = about["evaluation"]
    parts += ["## How it was evaluated", f"```\n{how['command']}\n```"]
    parts.append(f"With every option, seeds included:\n\n```\n{_wrapped(how['all_flags'])}\n```")
    if found.notes:
        parts += ["## Notes", "\n".join(f"- {markdown_text(note)}" for note in found.notes)]
    return "\n\n".join(parts) + "\n"


def _what_vectors_saw(found: Evaluation) -> str:
    """A warning, unless link prediction is fair or not there."""
    if not found.link_prediction or found.seen_by_vectors == ():
        return ""
    if found.seen_by_vectors is None:
        return "Nobody knows which pairs were seen when they were made: link prediction may flatter them."
    return f"{SEEN_BY_VECTORS.capitalize()}: {', '.join(found.seen_by_vectors)}. {HIDE_SPLIT}."


def _wrapped(flags: str) -> str:
    """A flag a line."""
    return flags.replace(" --", "\n--")
