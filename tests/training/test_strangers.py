"""A run that somebody else made, and a run that two processes want at once."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from heterformer.cli.command_lines import EvaluateCommands
from heterformer.distillation.entry import distill
from heterformer.embedding.embed import embed_run
from heterformer.errors import InputError
from heterformer.evaluation.options import EvaluateOptions
from heterformer.evaluation.report import report_on_run
from heterformer.explanation.core import explain
from heterformer.files import file_lock, new_folder, replace_folder
from heterformer.finetuning.core import finetune
from heterformer.network.interchange.export import export_network
from heterformer.network.store import Network
from heterformer.prediction.core import predict
from heterformer.recommendation.core import Recommender
from heterformer.search.searcher import Searcher
from heterformer.serve.options import ServeOptions
from heterformer.serve.service import Service
from heterformer.temporary import SCRATCH
from heterformer.training import run as run_module
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.learning import tiny_network
from tests.networks import files
from tests.search.searching import tiny_run
from tests.training.runs import options, trained

LINKS = (
    "checkpoints/last",
    "search",
    "figures",
    "known",
    "metrics.jsonl",
    "report.md",
    "tensorboard",
    "states",
)
EVALUATION = EvaluateOptions(tasks=("link_prediction",))
READERS: dict[str, Callable[[Path], Any]] = {
    "train": lambda path: train(tiny_network(), path, Run(path).options()),
    "embed": lambda path: embed_run(path, path.parent / "vectors"),
    "evaluate": lambda path: report_on_run(path, EVALUATION, EvaluateCommands([])),
    "search": lambda path: Searcher(path).search("kernel"),
    "explain": lambda path: explain(path, "p7"),
    "predict": predict,
    "recommend": lambda path: Recommender(path).searcher.search("kernel"),
    "serve": lambda path: Service([path], ServeOptions()),
    "finetune": lambda path: finetune(path, path.parent / "tuned"),
    "distill": lambda path: distill(path, path.parent / "student"),
    "train --init": lambda path: train(tiny_network(), path.parent / "later", options(init=str(path))),
    "train --backbone": lambda path: train(
        tiny_network(), path.parent / "later", options(backbone=str(path))
    ),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return shutil.copytree(tiny_run(), tmp_path / "run")


def change(path: Path, **entries: Any) -> None:
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(values | entries))


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json", "processor_config.json"])
@pytest.mark.parametrize("reader", READERS)
def test_a_run_that_names_code_is_refused_by_every_command(run: Path, reader: str, file: str) -> None:
    change(run / file, auto_map={"AutoConfig": "evil.Evil", "AutoTokenizer": ["evil.Evil", "evil.Evil"]})
    (run / "evil.py").write_text(f"open({str(run / 'ran')!r}, 'w')")
    with pytest.raises(InputError, match=rf"{file}: 'auto_map' is"):
        READERS[reader](run)
    assert not (run / "ran").exists()


@pytest.mark.parametrize("reader", READERS)
def test_a_run_with_a_link_that_leads_out_is_refused_by_every_command(run: Path, reader: str) -> None:
    (run / "elsewhere").symlink_to(run.parent)
    before = files(run.parent)
    with pytest.raises(InputError, match="elsewhere: is a symbolic link to"):
        READERS[reader](run)
    assert files(run.parent) == before


@pytest.mark.parametrize("name", LINKS)
def test_no_link_that_leads_out_is_written_through(run: Path, name: str) -> None:
    place, elsewhere = run / name, run.parent / "thesis"
    elsewhere.mkdir()
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(elsewhere)
    with pytest.raises(InputError, match="is a symbolic link to"):
        Run(run).config()
    with pytest.raises(InputError, match="is a symbolic link to"):
        Run(run).start(tiny_network(), options())


@pytest.mark.parametrize("value", ["../../thesis", "/tmp/thesis", "vectors", 7, None])
def test_the_fingerprint_of_a_run_is_no_path(run: Path, value: Any) -> None:
    config = yaml.safe_load((run / "config.yaml").read_text())
    (run / "config.yaml").write_text(yaml.safe_dump(config | {"fingerprint": value}))
    with pytest.raises(InputError, match=r"config.yaml: the fingerprint is"):
        Run(run).config()


def test_the_types_of_a_run_are_no_paths(run: Path) -> None:
    schema = json.loads((run / "config.json").read_text())["schema"]
    change(run / "config.json", schema=schema | {"textless": ["../../thesis"]})
    for reader in (lambda: Run(run).schema(), lambda: Run(run).model()):
        with pytest.raises(InputError, match=r"node types: the name '../../thesis' is not allowed"):
            reader()


def test_a_network_to_search_is_known_by_no_path(run: Path, tmp_path: Path) -> None:
    network = shutil.copytree(tiny_network().path, tmp_path / "network")
    change(network / "network.json", fingerprint="../../../thesis")
    with pytest.raises(InputError, match=r"network.json: the fingerprint is '../../../thesis'"):
        Searcher(run, network=network)


# --- Two at once -----------------------------------------------------------------------------------------


def test_a_second_training_on_a_run_is_refused(tmp_path: Path) -> None:
    told: list[str] = []

    def again(now: Any) -> bool:
        if now.step == 1:
            with pytest.raises(InputError) as caught:
                trained(tmp_path / "run")
            told.append(str(caught.value))
        return False

    train(tiny_network(), tmp_path / "run", options(max_steps=2), callback=again)
    remedy = "wait until it is done or name another run folder"
    assert told == [f"{tmp_path / 'run'}: another process is training it; {remedy}."]
    assert {path.name for path in tmp_path.iterdir()} == {"run"}  # the lock went with the training
    trained(tmp_path / "run", max_steps=3)


def test_a_second_evaluation_of_a_run_waits(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done: list[bool] = []

    def evaluate() -> None:
        report_on_run(run, EVALUATION, EvaluateCommands([]))
        done.append((run / "first").exists())

    thread = threading.Thread(target=evaluate)
    with file_lock(run.with_name("run.evaluate")):
        thread.start()
        told = ""
        while "another process is evaluating it; waiting for it." not in told and thread.is_alive():
            told += capsys.readouterr().err
        (run / "first").write_text("done")
    thread.join()
    assert done == [True]
    assert (run / "report.md").is_file()


def test_a_model_is_read_while_training_replaces_its_checkpoints(run: Path) -> None:
    opened, done = Run(run), threading.Event()
    weights = opened.weights.read_bytes()

    def save() -> None:
        for _ in range(40):
            with replace_folder(opened.best) as folder:
                (folder / "model.safetensors").write_bytes(weights)
        done.set()

    writer = threading.Thread(target=save)
    writer.start()
    while not done.is_set():
        opened.model()
    writer.join()


@pytest.mark.parametrize(
    ("read", "checkpoint", "opener"),
    [
        (Run.model, "best", "safe_open"),
        (Run.progress, "last", "_state"),
    ],
)
def test_a_checkpoint_that_is_renamed_while_it_is_read_is_read_again(
    run: Path,
    read: Callable[[Run], Any],
    checkpoint: str,
    opener: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The writer's first rename comes just before the file is opened."""
    opened, folder = getattr(run_module, opener), run / "checkpoints" / checkpoint
    calls: list[Path] = []

    def renamed(path: Path, *rest: Any) -> Any:
        calls.append(path)
        if len(calls) == 1:
            folder.rename(folder.with_name(f".{checkpoint}.old"))
        return opened(path, *rest)

    monkeypatch.setattr(run_module, opener, renamed)
    read(Run(run))
    assert len(calls) == 2


def test_what_a_kill_left_in_a_run_goes_when_training_goes_on(tmp_path: Path) -> None:
    trained(tmp_path / "run", max_steps=2)
    left = [
        tmp_path / "run" / f"{SCRATCH}abcdefgh",
        tmp_path / "run" / "checkpoints" / ".last.abcdefgh.partial",
    ]
    for folder in left:
        folder.mkdir()
        (folder / "states.bin").write_text("large")
    trained(tmp_path / "run", max_steps=4)
    assert [folder for folder in left if folder.exists()] == []


def test_an_export_is_refused_while_another_writes_it(tmp_path: Path) -> None:
    network, out = Network.open(tiny_network().path), tmp_path / "out"
    told = "out: another process is writing it"
    with new_folder(out), pytest.raises(InputError, match=told):
        export_network(network, out, "csv")
