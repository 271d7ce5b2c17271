"""A run of a comparison in a process of its own: its memory is its own, and its crash takes nothing along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import heterformer
from heterformer.comparison.job import Job

# Seconds after which a wait begins anew: another thread may take the signal of a Ctrl-C, which the waiting
# one then sees only when it wakes up.
PATIENCE = 0.5
COMMAND = (sys.executable, "-m", "heterformer.comparison.job")


def run_in_child(job: Job, command: Sequence[str] = COMMAND) -> None:
    """Carry out a job and wait for it; the job notes a failure of its own.

    The child is in a process group of its own, so that Ctrl-C reaches it once, through us: it then ends its
    step and saves. It reads from us until we end, however we end.
    """
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, text=True, process_group=0, env=_environment()
    ) as child:
        assert child.stdin is not None
        child.stdin.write(job.to_json() + "\n")
        child.stdin.flush()
        interrupted = False
        while child.returncode is None:
            try:
                child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                continue
            except KeyboardInterrupt:
                interrupted = True
                child.send_signal(signal.SIGTERM)
    if interrupted or child.returncode == 130:
        raise KeyboardInterrupt
    if child.returncode and not job.failure.is_file():
        job.note_failure(_ending(child.returncode))


def _environment() -> dict[str, str]:
    """Ours, with the folder that this package was imported from first."""
    own = str(Path(heterformer.__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [own, os.environ.get("PYTHONPATH")]))}


def _ending(code: int) -> str:
    if code < 0:
        hint = " (out of memory?)" if code == -signal.SIGKILL else ""
        return f"its process was ended by {signal.Signals(-code).name}{hint}"
    return f"its process ended with exit code {code}"
