"""A power cut destroys no finished output: what a rename makes count is on the disk before."""

from __future__ import annotations

from pathlib import Path

import pytest

from heterformer import files as files_module
from heterformer.embedding.embed import embed_to
from heterformer.files import (
    filled,
    new_file,
    new_folder,
    remove_file,
    replace_file,
    replace_folder,
    write_text,
)
from heterformer.network.interchange.export import export_network
from tests.durability import Disk, watched_disk
from tests.learning import tiny_network
from tests.networks import Tables
from tests.training.runs import trained


def write_all(root: Path) -> None:
    """Each way to write, onto nothing and onto something."""
    for content in ("old", "new"):
        write_text(root / "text", content)
        with replace_file(root / "file") as partial:
            partial.write_text(content)
        with replace_folder(root / "folder") as partial:
            (partial / "deep").mkdir()
            (partial / "deep" / "a").write_text(content)
            (partial / "b").write_text(content)
        with new_folder(root / content / "network") as partial:
            (partial / "nodes").mkdir()
            (partial / "nodes" / "a").write_text(content)
        with new_file(root / content / "graph") as partial:
            partial.write_text(content)
        with filled(root / "folder") as partial:
            (partial / "b").write_text(content)
            (partial / "c").write_text(content)


def test_every_way_to_write_is_durable(tmp_path: Path) -> None:
    with watched_disk(tmp_path) as disk:
        write_all(tmp_path)
    disk.check("text", "file", "folder", "old/network", "new/graph", "folder/b", "folder/c")


@pytest.mark.parametrize("step", ["sync_file", "sync_folder", "sync_tree"])
def test_the_record_notices_a_sync_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(files_module, step, lambda path: None)
    with watched_disk(tmp_path) as disk:
        write_all(tmp_path)
    assert disk.wrong or disk.unsynced_folders


def test_the_record_notices_an_old_folder_that_goes_too_early(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.rename(tmp_path / ".last.partial", tmp_path / ".last.old")
    disk.remove(tmp_path / ".last.old")
    assert disk.wrong


def test_a_file_is_removed_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files_module, "sync_folder", synced.append)
    remove_file(tmp_path / "card")
    assert synced == []
    (tmp_path / "card").write_text("x")
    remove_file(tmp_path / "card")
    assert synced == [tmp_path]


def test_a_built_network_is_durable(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    with watched_disk(tables.folder) as disk:
        network = tables.build()
        export_network(network, tables.folder / "csv", "csv")
        export_network(network, tables.folder / "graph.xml", "graphml")
    disk.check(network.path.relative_to(tables.folder).as_posix(), "csv", "graph.xml")


def test_a_run_and_its_vectors_are_durable(tmp_path: Path) -> None:
    with watched_disk(tmp_path) as disk:
        run = trained(tmp_path / "run", max_steps=4, evaluate_every=2)
        embed_to(tmp_path / "vectors", run.model(), tiny_network())
        embed_to(tmp_path / "vectors", run.model(), tiny_network())
        embed_to(tmp_path / "vectors.parquet", run.model(), tiny_network())
    last = [f"run/{name}" for name in ("config.yaml", "split.parquet", "known", "checkpoints/last")]
    model = [f"run/{name}" for name in ("checkpoints/best", "config.json", "model.safetensors", "README.md")]
    disk.check(*last, *model, "run/tokenizer.json", "vectors", "vectors.parquet")
    assert disk.renamed.count("run/checkpoints/last") >= 2


def test_steps_do_not_wait_for_the_disk(tmp_path: Path) -> None:
    """Only checkpoints and outputs are synced: more steps between two of them cost no more syncs."""
    counts = []
    for steps in (2, 12):
        with watched_disk(tmp_path) as disk:
            trained(tmp_path / f"run-{steps}", max_steps=steps, evaluate_every=steps)
        counts.append(len(disk.renamed))
    assert counts[0] == counts[1]
