"""``heterformer dataset``: from raw files to a network on the command line."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from heterformer.cli.main import main
from heterformer.datasets.registry import DATASETS
from heterformer.network.store import Network
from tests.datasets.authors import LAYOUT, write_parts
from tests.datasets.raw import write_array
from tests.datasets.test_authors_tsv import TEST, TRAIN, VALIDATION
from tests.datasets.test_dblp import PAPERS
from tests.networks import files


def test_it_shows_what_was_read_and_the_papers_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_array(tmp_path / "dblp.v12.json", PAPERS)
    main(["dataset", "dblp", str(tmp_path), str(tmp_path / "net"), "--last-year", "2021"])
    shown = capsys.readouterr().out
    assert "dropped 2: year not 1990 to 2021 (3; 5)" in shown
    paper = next(line for line in shown.splitlines() if "3,597,191" in line)
    assert [cell.strip() for cell in paper.strip("│").split("│")] == ["paper", "4", "3,597,191", "0.0%"]
    cites = next(line for line in shown.splitlines() if "36,787,329" in line)
    assert [cell.strip() for cell in cites.strip("│").split("│")][:2] == ["cites", "5"]
    assert shown.endswith(f"Next: heterformer train {tmp_path / 'net'} RUN --preset paper\n")
    assert Network.open(tmp_path / "net").ids("paper") == ["1", "2", "4", "6"]


def test_the_next_command_names_the_fixed_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_parts(tmp_path, TRAIN, VALIDATION, TEST)
    out = tmp_path / "net"
    layout = ["--text-neighbors", "2", "--textless", *LAYOUT]
    main(["dataset", "authors-tsv", str(tmp_path), str(out), *layout])
    following = f"heterformer train {out} RUN --preset paper --split.file {out}/split.parquet\n"
    assert capsys.readouterr().out.endswith(following)


def test_help_names_every_data_set(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["dataset", "--help"])
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert all(f"• {name} " in shown for name in DATASETS)


@pytest.mark.parametrize("name", DATASETS)
def test_each_has_help_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["dataset", name, "--help"])
    shown = capsys.readouterr().out
    assert "OUT" in shown
    assert "it must not exist" in shown


@pytest.mark.parametrize("name", ["dblp", "goodreads", "twitter", "authors-tsv"])
def test_a_missing_file_is_one_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["dataset", name, str(tmp_path), str(tmp_path / "net")])
    said = capsys.readouterr().err
    assert exit_.value.code == 1
    assert said.startswith(f"error: {tmp_path}: no ")
    assert said.endswith(f" into {tmp_path}.\n")
    assert said.count("\n") == 1
    assert files(tmp_path) == set()


def test_an_existing_output_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dblp.v12.json").write_text("not JSON at all")
    (tmp_path / "net").mkdir()
    with pytest.raises(SystemExit):
        main(["dataset", "dblp", str(tmp_path), str(tmp_path / "net")])
    assert "net: exists already; remove it or choose another name." in capsys.readouterr().err


STOPPED_WHILE_READING = """
import signal, sys
from heterformer.cli.main import main
from heterformer.datasets.raw_build import RawTables

write = RawTables.write
def write_then_wait(self, name, frame):
    write(self, name, frame)
    print(self.folder, flush=True)
    signal.pause()
RawTables.write = write_then_wait
main(sys.argv[1:])
"""


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGINT])
def test_a_process_stopped_while_reading_leaves_nothing_behind(
    signal_: signal.Signals, tmp_path: Path
) -> None:
    write_array(tmp_path / "dblp.v12.json", PAPERS)
    command = [
        sys.executable,
        "-c",
        STOPPED_WHILE_READING,
        "dataset",
        "dblp",
        str(tmp_path),
        str(tmp_path / "a/net"),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert (Path(process.stdout.readline().strip()) / "papers.parquet").is_file()
        process.send_signal(signal_)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "interrupted\n")
    assert files(tmp_path) == {"dblp.v12.json"}
