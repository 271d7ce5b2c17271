"""``network.json``: everything about a stored network that is not an array."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heterformer.errors import InputError
from heterformer.network.attributes import AttributeKind
from heterformer.network.build.report import BuildReport
from heterformer.network.schema import NodeType, Schema
from heterformer.network.spec import NetworkSpec
from heterformer.untrusted import short_repr

FORMAT = 1
DESCRIPTION = "network.json"


def write_description(
    folder: Path,
    spec: NetworkSpec,
    schema: Schema,
    report: BuildReport,
    labels: Mapping[NodeType, str],
    attributes: Mapping[NodeType, Mapping[str, AttributeKind]],
    fingerprint: str,
) -> None:
    """Describe a network that was built in ``folder``."""
    values = {
        "format": FORMAT,
        "name": spec.name,
        "fingerprint": fingerprint,
        "schema": schema.to_dict(),
        "labels": dict(labels),
        "report": report.to_dict(),
    }
    optional = {
        "attributes": {t: dict(kinds) for t, kinds in attributes.items()},
        "edge_columns": {n: list(r.edge_columns) for n, r in spec.relations.items() if r.edge_columns},
        "text_from": {t: node.text_from for t, node in spec.nodes.items() if node.text_from},
    }
    values |= {name: value for name, value in optional.items() if value}
    (folder / DESCRIPTION).write_text(json.dumps(values, indent=1, ensure_ascii=False), encoding="utf-8")


def read_description(folder: Path) -> dict[str, Any]:
    """What ``write_description`` wrote; a folder without it is no network."""
    try:
        values = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise InputError(f"{folder}: not a network, expected a folder that 'heterformer build' wrote.")
    if values.get("format") != FORMAT:
        problem = f"network format {short_repr(values.get('format'))}, this version reads {FORMAT}"
        raise InputError(f"{folder}: {problem}; build it again.")
    return values
