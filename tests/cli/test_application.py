"""The command line: results on standard output, one sentence for a mistake, exit codes."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer import progress
from heterformer.cli import application
from heterformer.cli.application import LINGER
from heterformer.cli.commands import COMMANDS, DISTRIBUTED
from heterformer.cli.main import main
from heterformer.network.store import Network
from tests.networks import Tables, files


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def failed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What a command says that must fail as a mistake of the user's does: one line, no traceback."""
    with pytest.raises(SystemExit) as exit_:
        main([str(a) for a in arguments])
    captured = capsys.readouterr()
    assert exit_.value.code == 1
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.endswith(".\n")
    assert captured.err.count("\n") == 1
    return captured.err.removeprefix("error: ").rstrip("\n")


def test_build_writes_a_network_and_shows_its_report(
    tables: Tables, capsys: pytest.CaptureFixture[str]
) -> None:
    tables.write("cites.csv", "source,target\np1,p2\np1,x\n")
    main(["build", str(tables.write_spec()), str(tables.out)])
    shown = capsys.readouterr().out
    assert "dropped 1: unknown paper (p1 -> x)" in shown
    assert "Built Network(small: 4 paper)" in shown
    assert Network.open(tables.out).ids("paper") == ["p1", "p2", "p3", "p4"]


@pytest.mark.parametrize(("command", "kept"), [("describe", True), ("serve", False)])
def test_all_commands_but_the_server_keep_freed_memory(
    command: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(application, "keep_freed_memory", lambda: calls.append(command))
    with pytest.raises(SystemExit):
        main([command, str(tmp_path / "nothing")])
    assert calls == [command] * kept


def test_the_tables_may_be_in_another_folder(tables: Tables, tmp_path: Path) -> None:
    elsewhere = tmp_path / "specs"
    elsewhere.mkdir()
    spec = tables.write_spec().rename(elsewhere / "network.yaml")
    main(["build", str(spec), str(tables.out), "--data", str(tables.folder)])
    assert Network.open(tables.out).name == "small"


def test_describe_shows_the_network(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    main(["describe", str(tables.build().path)])
    shown = capsys.readouterr().out
    assert "small: nodes" in shown
    assert "paper → paper" in shown


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("words", [["describe", "NET"], ["describe", "--help"], ["--help"]])
def test_output_falls_back_where_it_cannot_be_encoded(
    tables: Tables, encoding: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    path = str(tables.build().path)
    with suppress(SystemExit):
        main([path if word == "NET" else word for word in words])
    stream.flush()
    shown = stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    assert ("->" if "NET" in words else "Show a network's counts") in shown


def test_a_long_command_has_lines_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its stages, too; a server, which waits most of the time, has none."""
    stages = []

    def command() -> None:
        """See what is under way."""
        stages.append([stage.description for stage in progress._stages])

    for name in ("describe", "serve"):
        monkeypatch.setitem(COMMANDS, name, command)
        main([name])
    assert stages == [["describe"], []]


def test_split_writes_the_pairs(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"source": f"p{i % 4 + 1}", "target": f"p{(i + 1) % 4 + 1}"} for i in range(4)]
    tables.write("cites.csv", rows)
    out = tables.folder / "split.parquet"
    shares = ["--train", "0.5", "--validation", "0.25", "--seed", "3"]
    main(["split", str(tables.build().path), str(out), *shares])
    assert "Wrote 2 train, 1 validation, 1 test pairs" in capsys.readouterr().out
    table = pl.read_parquet(out)
    assert sorted(table["part"]) == ["test", "train", "train", "validation"]
    assert sorted(table["query"]) == ["p1", "p2", "p3", "p4"]


def test_synth_writes_tables_that_can_be_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["synth", str(tmp_path / "tables"), "--papers", "300"])
    (spec,) = (tmp_path / "tables").glob("*.yaml")
    main(["build", str(spec), str(tmp_path / "network")])
    assert Network.open(tmp_path / "network").schema.counts["paper"] == 300
    assert "Next: heterformer build" in capsys.readouterr().out


def no_spec(tables: Tables) -> list[object]:
    return ["build", tables.folder / "nowhere.yaml", tables.out]


def misspelt_key(tables: Tables) -> list[object]:
    tables.paper["txet"] = "title"
    return ["build", tables.write_spec(), tables.out]


def missing_table(tables: Tables) -> list[object]:
    (tables.folder / "papers.csv").unlink()
    return ["build", tables.write_spec(), tables.out]


def bad_row(tables: Tables) -> list[object]:
    tables.write("papers.csv", "id,title\np1\n")
    return ["build", tables.write_spec(), tables.out]


def odd_markup(tables: Tables) -> list[object]:
    tables.write("papers.csv", "id,title\n[/b]:key:\\[x],A\n[/b]:key:\\[x],B\n")
    return ["build", tables.write_spec(), tables.out]


def existing_output(tables: Tables) -> list[object]:
    tables.build()
    return ["build", tables.write_spec(), tables.out]


def no_network(tables: Tables) -> list[object]:
    return ["describe", tables.folder]


def bad_share(tables: Tables) -> list[object]:
    return ["split", tables.build().path, tables.folder / "split.parquet", "--train", "2"]


def split_as_csv(tables: Tables) -> list[object]:
    return ["split", tables.build().path, tables.folder / "split.csv"]


def existing_split(tables: Tables) -> list[object]:
    out = tables.write("split.parquet", "mine")
    return ["split", tables.build().path, out, "--train", "0.4", "--validation", "0.3"]


def no_place_for_a_split(tables: Tables) -> list[object]:
    shares = ["--train", "0.34", "--validation", "0.33"]
    return ["split", tables.build().path, tables.folder / "nowhere" / "split.parquet", *shares]


MISTAKES: list[tuple[Callable[[Tables], list[object]], str]] = [
    (no_spec, "nowhere.yaml: the network specification cannot be read (No such file or directory)."),
    (misspelt_key, "network.yaml: nodes.paper: unknown key 'txet' (did you mean 'text'?), the keys are "),
    (missing_table, "papers.csv: no such file."),
    (bad_row, "papers.csv: line 2: found 1 fields, expected 2 (id, title)."),
    (
        odd_markup,
        r"papers.csv: column 'id': duplicate id '[/b]:key:\\[x]' in row 2 (first seen in row 1)",
    ),
    (existing_output, "network: exists already; remove it or choose another name."),
    (split_as_csv, "split.csv: expected a name that ends in .parquet, the format of the table."),
    (existing_split, "split.parquet: exists already; remove it or choose another name."),
    (no_network, ": not a network, expected a folder that 'heterformer build' wrote."),
    (
        bad_share,
        "--train is 2.0 and --validation 0.1, expected positive shares that leave some for the test.",
    ),
    (no_place_for_a_split, "nowhere/split.parquet: the split cannot be written (No such file or directory"),
]


@pytest.mark.parametrize(("prepare", "message"), MISTAKES, ids=[prepare.__name__ for prepare, _ in MISTAKES])
def test_a_mistake_is_one_sentence_and_exit_code_one(
    prepare: Callable[[Tables], list[object]],
    message: str,
    tables: Tables,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert message in failed(capsys, *prepare(tables))


def test_a_full_disk_is_one_sentence_too(
    tables: Tables, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "save", full)
    spec = tables.write_spec()
    before = files(tables.folder)
    said = failed(capsys, "build", spec, tables.out)
    assert said == f"{tables.out}: could not be written (No space left on device); nothing was left behind."
    assert files(tables.folder) == before


def test_odd_names_do_not_upset_the_output(tables: Tables, capsys: pytest.CaptureFixture[str]) -> None:
    tables.spec["name"] = "[/b] :key:"
    tables.out = tables.folder / "[bold]net"
    main(["build", str(tables.write_spec()), str(tables.out)])
    shown = "".join(capsys.readouterr().out.split())  # lines are broken anywhere
    assert "BuiltNetwork([/b]:key::4paper)" in shown
    assert "[bold]net" in shown


def test_an_unknown_command_is_told_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["biuld"])
    assert exit_.value.code == 1
    assert "describe" in capsys.readouterr().err


HEAVY = ("torch", "transformers", "sklearn", "matplotlib", "polars", "pyarrow", "numpy", "yaml")
LISTING = """
import sys
from heterformer.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    "words", [["--help"], ["train", "--help"], ["train", "--model", "bert_hgt", "--help"]]
)
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    command = [sys.executable, "-c", LISTING, *words]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("usage: heterformer ")
    heavy = HEAVY if words[0] != "--help" else (*HEAVY, "typeguard")  # which tyro imports to parse a command
    assert [name for name in heavy if name in shown.stderr.split()] == []


def test_help_has_the_first_sentence_of_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert exit_.value.code == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for name, command in COMMANDS.items():
        summary = (command.__doc__ or "").partition("\n\n")[0]
        assert f"• {name} {' '.join(summary.split())}" in shown


STOPPED_IN_MID_BUILD = """
import signal, sys
from heterformer.cli.main import main
from heterformer.network.adjacency import Adjacency

save = Adjacency.save
def save_then_wait(self, folder):
    save(self, folder)
    print(folder, flush=True)
    signal.pause()
Adjacency.save = save_then_wait
main(sys.argv[1:])
"""


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT])
def test_a_process_stopped_in_mid_build_leaves_nothing_behind(
    signal_: signal.Signals, tables: Tables
) -> None:
    spec = tables.write_spec()
    before = files(tables.folder)
    command = [sys.executable, "-c", STOPPED_IN_MID_BUILD, "build", str(spec), str(tables.out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        partial = Path(process.stdout.readline().strip())
        assert (partial / "neighbor.npy").is_file()
        process.send_signal(signal_)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "interrupted\n")
    assert files(tables.folder) == before


def test_a_reader_of_the_output_may_leave_early(tables: Tables) -> None:
    command = [sys.executable, "-m", "heterformer", "describe", str(tables.build().path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode in (1, 141)  # rich's own code for it, or ours


# --- One of several processes -----------------------------------------------------------------------------


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - set(DISTRIBUTED)))
def test_a_command_for_one_process_refuses_several(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "0")
    expected = f"'heterformer {command}' runs in one process, but 2 were started"
    assert failed(capsys, command, "x", "y") == f"{expected}; start it without torchrun or accelerate launch."


def test_of_several_processes_one_tells_of_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    unopened, unread = ("train", tmp_path / "none", "run"), ("train", "x", "y", "--no-such-option")
    for mistake in (unopened, unread, ("embed", "x")):
        told = []
        for rank in ("0", "1"):
            monkeypatch.setenv("LOCAL_RANK", rank)
            with pytest.raises(SystemExit) as exit_:
                main([str(word) for word in mistake])
            assert exit_.value.code
            captured = capsys.readouterr()
            told.append(captured.out + captured.err)
        assert told[0]
        assert told[1] == ""
        assert waited.pop() == LINGER  # or a launcher might end the one that tells before it does
        assert not waited


@pytest.mark.parametrize("words", [["--help"], ["search", "--help"], ["describe", "NET"]])
def test_a_reader_that_closes_the_output_is_no_error(tables: Tables, words: list[str]) -> None:
    """As in ``heterformer search --help | head -1``."""
    words = [str(tables.build().path) if word == "NET" else word for word in words]
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "heterformer", *words]
    try:
        ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert ended.stderr == ""
    assert ended.returncode in (1, 128 + signal.SIGPIPE)  # rich ends with 1


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (MemoryError("Unable to allocate 7 TiB"), "error: out of memory (Unable to allocate 7 TiB); choose"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: 6 bytes.\nmore"),
            "error: out of memory (DefaultCPUAllocator: can't allocate memory: 6 bytes); choose",
        ),
    ],
)
def test_memory_that_is_not_there_is_one_sentence(
    error: Exception, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe() -> None:
        """Fail."""
        raise error

    monkeypatch.setitem(COMMANDS, "describe", describe)
    with pytest.raises(SystemExit) as exit_:
        main(["describe"])
    assert exit_.value.code == 1
    assert capsys.readouterr().err == f"{shown} smaller values of options.\n"


def test_other_failures_of_ours_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe() -> None:
        """Fail."""
        raise RuntimeError("a mistake of the program")

    monkeypatch.setitem(COMMANDS, "describe", describe)
    with pytest.raises(RuntimeError, match="a mistake of the program"):
        main(["describe"])
