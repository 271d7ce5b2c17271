"""Networks from frames in memory, as a notebook has them."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heterformer.errors import InputError
from heterformer.network.build import build_network
from heterformer.network.schema import NodeType
from heterformer.network.spec import NetworkSpec
from heterformer.network.store import Network
from heterformer.network.tables import FrameTable

IN_MEMORY = "<frame>"  # stands for the file name that a frame replaces


def build_from_frames(
    spec: Mapping[str, Any],
    nodes: Mapping[NodeType, Any],
    relations: Mapping[str, Any],
    out: Path | str | None,
) -> Network:
    """Build a network whose tables are (all or in part) frames."""
    values = {
        **spec,
        "nodes": _with_frames(spec.get("nodes"), nodes, "node type"),
        "relations": _with_frames(spec.get("relations"), relations, "relation"),
    }
    return build_network(
        NetworkSpec.parse(values),
        temporary_folder() / "network" if out is None else out,
        node_tables={t: FrameTable(frame, f"the {t} frame") for t, frame in nodes.items()},
        relation_tables={r: FrameTable(frame, f"the {r} frame") for r, frame in relations.items()},
    )


def temporary_folder() -> Path:
    """A folder that lives as long as the interpreter."""
    folder = tempfile.mkdtemp(prefix="heterformer-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _with_frames(given: Any, frames: Mapping[str, Any], what: str) -> dict[str, Any]:
    section: dict[str, Any] = dict(given or {})
    for name in frames:
        if name not in section:
            raise InputError(
                f"a frame is given for the {what} {name!r}, which the specification does not have."
            )
        section[name] = {"file": IN_MEMORY, **(section[name] or {})}
    return section
