"""Files of a network that are truncated, emptied or swapped: one sentence that names the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from heterformer import InputError, Network

SPEC = {
    "nodes": {"paper": {"text": "title"}, "venue": None},
    "relations": {
        "cites": {"from": "paper", "to": "paper", "columns": ["a", "b"]},
        "in": {"from": "paper", "to": "venue", "column": "venue"},
    },
}
PAPERS = {"id": ["p1", "p2", "p3"], "title": ["A", "B", "C"], "venue": ["x", "y", "x"]}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("networks") / "sound.net"
    cites = {"a": ["p1", "p2"], "b": ["p2", "p3"]}
    return Network.from_frames(SPEC, {"paper": PAPERS}, {"cites": cites}, out=out).path


def use(path: Path) -> None:
    """Read all that a network holds."""
    network = Network.open(path)
    for node_type in network.schema.node_types:
        network.ids(node_type)
        network.names(node_type)
        for neighbor in network.schema.neighbor_types_of(node_type):
            network.adjacency(node_type, neighbor)


FILES = (
    *("network.json", "nodes/paper.arrow", "nodes/venue.arrow"),
    *(f"adjacency/paper--venue/{name}.npy" for name in ("indptr", "neighbor", "edge_type")),
)


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", ["emptied", "halved", "without its end", "swapped", "gone"])
def test_a_damaged_file_is_named(file: str, damage: str, sound: Path, tmp_path: Path) -> None:
    shutil.copytree(sound, tmp_path / "net")
    path = tmp_path / "net" / file
    data = path.read_bytes()
    others = {"nodes/paper.arrow": "nodes/venue.arrow", "nodes/venue.arrow": "nodes/paper.arrow"}
    swapped = tmp_path / "net" / others.get(file, "adjacency/venue--paper/indptr.npy")
    changed = {
        "emptied": b"",
        "halved": data[: len(data) // 2],
        "without its end": data[:-1],
        "swapped": swapped.read_bytes(),
    }
    path.unlink()
    if damage != "gone":
        path.write_bytes(changed[damage])
    with pytest.raises(InputError) as caught:
        use(tmp_path / "net")
    named = tmp_path / "net" if file == "network.json" else path if path.suffix == ".arrow" else path.parent
    assert str(caught.value).startswith(f"{named}")
    assert "damaged" in str(caught.value) or "not a network" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [("indptr", 1, 900), ("indptr", 1, -1), ("neighbor", 0, 900), ("neighbor", 0, -1)],
)
def test_numbers_that_lead_elsewhere_are_refused(
    name: str, place: int, value: int, sound: Path, tmp_path: Path
) -> None:
    """Their file is as long as before: nothing but the numbers tells."""
    shutil.copytree(sound, tmp_path / "net")
    path = tmp_path / "net" / "adjacency" / "paper--venue" / f"{name}.npy"
    numbers = np.load(path)
    numbers[place] = value
    np.save(path, numbers)
    with pytest.raises(InputError, match=rf"{name}\.npy: .*damaged.*number"):
        use(tmp_path / "net")


def test_a_sound_network_is_read(sound: Path) -> None:
    use(sound)
