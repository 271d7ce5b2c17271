"""``heterformer check``: every file of a network, a run and vectors, damaged in every way, is found."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from heterformer import InputError, Network
from heterformer.checks.core import check_path
from heterformer.checks.findings import Findings
from heterformer.cli.main import main
from heterformer.digests import DIGESTS
from heterformer.embedding.embed import embed_to
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.vectors import Vectors
from heterformer.models.known_nodes import KnownNodes
from heterformer.models.registry import load_model
from heterformer.search.approximate import ApproximateIndex, Sample, build_index, has_faiss
from heterformer.training.run import Run
from tests.damage import DAMAGES, damaged_file, plain_files
from tests.failing import Failed
from tests.learning import tiny_network
from tests.search.searching import tiny_run

KINDS = ("network", "run", "vectors", "table.parquet")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A network with its tokens, a run with its vectors, and vectors in both forms; tests put back all."""
    folder = tmp_path_factory.mktemp("sound")
    made = shutil.ignore_patterns("search", "figures", "map", "report.*")  # of it by tests of other modules
    run = Run(shutil.copytree(tiny_run(), folder / "run", ignore=made))
    shutil.copytree(tiny_network().path, folder / "network")
    network = Network.open(folder / "network")
    run.write_config(network, run.options())
    run.write_digests()
    for out in (folder / "vectors", folder / "table.parquet", folder / "run" / "search" / "vectors"):
        out.parent.mkdir(exist_ok=True)
        embed_to(out, run.model(), network, EmbedOptions(h0=True))
    if has_faiss():
        matrix = Vectors.open(folder / "vectors").matrix("author")
        sample = Sample(matrix[:10].astype(np.float32), np.arange(10))
        build_index(folder / "run" / "search" / "index" / "author.0.faiss", matrix, sample)
    return {kind: folder / kind for kind in KINDS}


def use_network(path: Path) -> None:
    network = Network.open(path)
    for node_type in network.schema.node_types:
        network.ids(node_type)
        network.names(node_type, [0, 5])
        network.name_series(node_type)
        for neighbor in network.schema.neighbor_types_of(node_type):
            adjacency = network.adjacency(node_type, neighbor)
            network.ids(neighbor, adjacency.neighbor[:5])


def use_vectors(path: Path) -> None:
    vectors = Vectors.open(path)
    for node_type in vectors.types:
        vectors.ids(node_type)
        vectors.matrix(node_type).sum()
        vectors.signatures(node_type)
        vectors.has_h0(node_type)


def use_run(path: Path, name: str) -> None:
    """What reads the file ``name``."""
    run, folder = Run(path), name.partition("/")[0]
    if folder == "checkpoints":
        run.progress()
        run.model(tables=False)
    elif folder == "known":
        KnownNodes.open(path)
    elif name.startswith("search/index"):
        matrix = Vectors.open(path / "search" / "vectors").matrix("author")
        ApproximateIndex.open(path / "search" / "index" / "author.0.faiss", matrix).search(matrix[:1], 10)
    elif folder == "search":
        use_vectors(path / "search" / "vectors")
    elif name in ("config.yaml", "metrics.jsonl", "split.parquet"):
        run.config(), run.metrics(), run.split(run.network())
    else:
        run.schema()
        load_model(path).tokenizer("some words")


def use(kind: str, root: Path, name: str) -> None:
    if kind == "run":
        use_run(root, name)
    else:
        (use_network if kind == "network" else use_vectors)(root)


def complaint(kind: str, root: Path, name: str) -> str | None:
    """The sentence with which reading is refused, if it is."""
    try:
        use(kind, root, name)
    except InputError as error:
        return str(error)
    return None


def checked(root: Path) -> Findings | str:
    """What a check finds, or the sentence with which it is refused."""
    try:
        return check_path(root)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_sound(kind: str, sound: dict[str, Path]) -> None:
    findings = check_path(sound[kind])
    assert (findings.problems, findings.notes) == ([], [])
    files = plain_files(sound[kind]) if sound[kind].is_dir() else ["table.parquet"]
    assert findings.compared == sum(not name.endswith(DIGESTS) for name in files)
    for name in ("checkpoints/last", "known", "search", "config.yaml", "config.json"):
        use(kind, sound[kind], name)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_damaged_file_is_found(kind: str, damage: str, sound: dict[str, Path]) -> None:
    root = sound[kind]
    names = plain_files(root) if root.is_dir() else [""]
    for name in names:
        path = root / name if name else root
        if damage in ("swapped", "gone") and not name:
            continue  # there is nothing beside one file
        for seed in range(3 if damage == "flipped" else 1):
            with damaged_file(path, damage, seed):
                findings = checked(root)
                if isinstance(findings, str):  # nothing says any more what the folder was
                    assert name in ("network.json", "config.yaml", "vectors.json", "")
                    assert str(root) in findings
                    continue
                if damage == "gone" and path.name == DIGESTS:
                    assert f"{path.parent}: has no {DIGESTS}" in findings.notes[0]
                    continue
                assert not findings.is_sound, (name, damage, seed)
                assert any(str(path) in problem for problem in findings.problems), findings.problems


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_reading_a_damaged_file_gives_a_sentence_or_a_result(
    kind: str, damage: str, sound: dict[str, Path]
) -> None:
    """Never any other exception; a file that is cut off or empty is named."""
    root = sound[kind]
    for name in plain_files(root) if root.is_dir() else [""]:
        path = root / name if name else root
        if not name and damage in ("swapped", "gone"):
            continue
        for seed in range(2 if damage == "flipped" else 1):
            with damaged_file(path, damage, seed):
                sentence = complaint(kind, root, name)
                assert sentence is None or str(root) in sentence, sentence
                assert sentence is None or "\n" not in sentence


FUZZ = """
import random, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from tests.damage import damaged_file, plain_files
from heterformer.checks.core import check_path
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError
from heterformer.network.store import Network
assert "torch" not in sys.modules
root, draw = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
def use():
    if root.name == "network":
        network = Network.open(root)
        for node_type in network.schema.node_types:
            network.ids(node_type), network.names(node_type, [3]), network.name_series(node_type)
            for neighbor in network.schema.neighbor_types_of(node_type):
                network.ids(neighbor, network.adjacency(node_type, neighbor).neighbor)
    else:
        vectors = Vectors.open(root)
        for node_type in vectors.types:
            vectors.ids(node_type), vectors.matrix(node_type).sum(), vectors.signatures(node_type)
names = [n for n in plain_files(root) if n.endswith(("arrow", "npy"))] if root.is_dir() else [""]
silent = 0
for turn in range(int(sys.argv[3])):
    name = draw.choice(names)
    with damaged_file(root / name if name else root, draw.choice(["flipped"] * 4 + ["halved"]), turn):
        try:
            use()
        except InputError:
            pass
        try:
            silent += check_path(root).is_sound
        except InputError:
            pass
print("silent", silent)
"""


@pytest.mark.parametrize("kind", ["network", "vectors", "table.parquet"])
def test_no_damage_ends_in_a_signal(kind: str, sound: dict[str, Path], tmp_path: Path) -> None:
    """In a process of its own, without PyTorch: a signal would end it, a traceback fail it."""
    copy = tmp_path / kind
    shutil.copytree(sound[kind], copy) if sound[kind].is_dir() else shutil.copy(sound[kind], copy)
    tests = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", FUZZ.format(tests=tests), str(copy), "0", "60"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "silent 0\n"), done.stderr


# --- The command -----------------------------------------------------------------------------------------


def test_the_command_says_what_is_sound(sound: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", str(sound["table.parquet"])])
    summary = "sound (vectors); 1 file is as it was written, byte for byte."
    assert capsys.readouterr().out == f"{sound['table.parquet']}: {summary}\n"


def test_a_table_whose_seal_is_gone_is_found(sound: dict[str, Path]) -> None:
    path = sound["table.parquet"]
    data = path.read_bytes()
    path.write_bytes(data.replace(b"heterformer-seal", b"heterformer-sell"))
    (problem,) = check_path(path).problems
    path.write_bytes(data)
    assert problem == f"{path}: its digests are gone; embed the network again."


def test_the_command_names_what_is_damaged(
    sound: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = sound["network"] / "adjacency" / "paper--paper" / "neighbor.npy"
    with damaged_file(path, "flipped"), pytest.raises(SystemExit) as exit_:
        main(["check", str(sound["network"])])
    captured = capsys.readouterr()
    assert exit_.value.code == 1
    assert f"{path}: its contents have changed since it was written; build the network again." in captured.out
    assert captured.err.startswith(f"error: {sound['network']}: ")


def test_what_is_none_of_them(tmp_path: Path, failed: Failed) -> None:
    expected = "expected a network, a run or vectors."
    nowhere, other = tmp_path / "x", tmp_path / "y"
    other.write_text("y")
    assert failed(main, ["check", str(nowhere)]) == f"{nowhere}: no such file or folder, {expected}"
    assert failed(main, ["check", str(other)]) == f"{other}: found something else, {expected}"


def test_a_network_of_an_earlier_version_is_compared_by_its_fingerprint(
    sound: dict[str, Path], tmp_path: Path
) -> None:
    network = shutil.copytree(sound["network"], tmp_path / "network")
    (network / DIGESTS).unlink()
    assert check_path(network).is_sound
    with damaged_file(network / "nodes" / "paper.arrow", "flipped", 3):
        assert any("has changed since it was built" in p for p in check_path(network).problems)


def test_a_run_that_is_not_complete_is_checked_as_far_as_it_goes(
    sound: dict[str, Path], tmp_path: Path
) -> None:
    run = shutil.copytree(sound["run"], tmp_path / "run")
    (run / "README.md").unlink()
    (run / DIGESTS).unlink()
    findings = check_path(run)
    assert findings.is_sound
    assert findings.notes == [f"{run}: its training is not complete; only its folders have digests."]
    with damaged_file(run / "checkpoints" / "last" / "optimizer.safetensors", "flipped"):
        assert not check_path(run).is_sound


def test_a_digest_that_leads_out_is_refused(sound: dict[str, Path], tmp_path: Path) -> None:
    network = shutil.copytree(sound["network"], tmp_path / "network")
    values = json.loads((network / DIGESTS).read_text())
    values["files"]["../run/config.yaml"] = [1, "0" * 32]
    (network / DIGESTS).write_text(json.dumps(values))
    assert f"{network / DIGESTS}: is damaged; build the network again." in check_path(network).problems
