"""The entry point: an interrupt while modules load."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from heterformer.cli.main import main

INTERRUPTED = """
import os, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == sys.argv[2]:
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Interrupting())
from heterformer.cli.main import main
main(["describe", "nowhere.net"])
"""


@pytest.mark.parametrize("module", ["tyro", "heterformer.cli.commands", "heterformer.network.store"])
@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_while_modules_load_is_one_word(signal_: signal.Signals, module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(int(signal_)), module]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_handlers_are_put_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    main(["--version"])
    assert signal.getsignal(signal.SIGINT) is before
    assert capsys.readouterr().out.startswith("heterformer ")
