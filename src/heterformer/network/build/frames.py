"""Networks from frames in memory, such as those of a notebook."""

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

IN_MEMORY = "<frame>"  # in place of a file name


def build_from_frames(
    spec: Mapping[str, Any],
    nodes: Mapping[NodeType, Any],
    relations: Mapping[str, Any],
    out: Path | str | None,
) -> Network:
    """See ``Network.from_frames``."""
    for what, value in (("the specification", spec), ("nodes", nodes), ("relations", relations)):
        if not isinstance(value, Mapping):
            kind = "the keys of a specification" if value is spec else "frames by name"
            raise InputError(f"{what}: found {type(value).__name__}, expected a dict of {kind}.")
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
    """A folder that is removed when the interpreter exits."""
    folder = tempfile.mkdtemp(prefix="heterformer-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _with_frames(section: Any, frames: Mapping[str, Any], what: str) -> dict[str, Any]:
    """A section of the specification in which every frame counts as a file."""
    frame_section: dict[str, Any] = dict(section or {})
    for name in frames:
        if name not in frame_section:
            known = ", ".join(map(repr, frame_section)) or "none"
            raise InputError(f"found a frame for the unknown {what} {name!r}, the specification has {known}.")
        frame_section[name] = {"file": IN_MEMORY, **(frame_section[name] or {})}
    return frame_section
