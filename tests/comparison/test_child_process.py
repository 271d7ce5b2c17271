from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from heterformer.comparison.child_process import run_in_child
from heterformer.comparison.job import Job, RunResult
from heterformer.comparison.variants import VARIANTS
from tests.learning import tiny_network, tiny_options, tiny_reader


@pytest.fixture
def job(tmp_path: Path) -> Job:
    common = tiny_options(tiny_reader(), max_steps=2).resolved()
    return Job(tmp_path, tiny_network().path, VARIANTS["bert"], 0, common)


def run_script(job: Job, script: str) -> None:
    run_in_child(job, (sys.executable, "-c", script))


def test_a_run_in_a_process_of_its_own(job: Job) -> None:
    run_in_child(job)
    assert job.is_ranked()
    assert RunResult.open(job.path).cost.memory > 50
    assert not job.failure.exists()


def test_a_mistake_is_noted_as_one_sentence(job: Job, capfd: pytest.CaptureFixture[str]) -> None:
    nowhere = replace(job, network=job.out / "nowhere")
    run_in_child(nowhere)
    assert nowhere.failure.read_text() == (
        f"{job.out / 'nowhere'}: not a network, expected a folder that 'heterformer build' wrote."
    )
    assert "Traceback" not in capfd.readouterr().err


def test_a_full_disk_is_noted_as_one_sentence(job: Job, capfd: pytest.CaptureFixture[str]) -> None:
    """No file may be larger than some kilobytes, which is too little for a checkpoint."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))"
    run_script(job, f"{limit}\nfrom heterformer.comparison.job import main\nmain()")
    assert re.fullmatch(rf"{re.escape(str(job.path))}\S*: No space left on device", job.failure.read_text())
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "its process was ended by SIGKILL (out of memory?)",
        ),
        ("raise SystemExit(3)", "its process ended with exit code 3"),
    ],
)
def test_a_crash_is_noted(job: Job, script: str, said: str) -> None:
    run_script(job, script)
    assert job.failure.read_text() == said


PATIENT = """
import os, pathlib, signal, sys, time
folder = pathlib.Path({folder!r})
signal.signal(signal.SIGINT, lambda *_: (folder / "interrupted").touch())
def stop(*_):
    time.sleep(0.2)  # as a step would
    (folder / "saved").touch()
    sys.exit(130)
signal.signal(signal.SIGTERM, stop)
(folder / "ready").write_text(str(os.getpgrp() == os.getpid()))
time.sleep(20)
"""


def test_an_interruption_waits_for_the_run_to_save(job: Job) -> None:
    """Ctrl-C reaches the child through us alone, once, so that it can end its step."""

    def press_control_c() -> None:
        while not (job.out / "ready").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press_control_c, daemon=True)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        run_script(job, PATIENT.format(folder=str(job.out)))
    presser.join()
    assert (job.out / "ready").read_text() == "True"  # a terminal's Ctrl-C goes to groups, and not to its own
    assert (job.out / "saved").exists()
    assert not (job.out / "interrupted").exists()
    assert not job.failure.exists()


def test_a_child_can_tell_when_its_parent_is_gone(job: Job) -> None:
    """It reads until we end: here the job is all there is to read, and standard input stays open."""
    script = (
        "import json, select, sys, pathlib\n"
        "job = json.loads(sys.stdin.readline())\n"
        "still_open = not select.select([sys.stdin], [], [], 0.3)[0]\n"
        f"pathlib.Path({str(job.out)!r}, 'found').write_text(f\"{{job['variant']}} {{still_open}}\")\n"
    )
    run_script(job, script)
    assert (job.out / "found").read_text() == "bert True"
