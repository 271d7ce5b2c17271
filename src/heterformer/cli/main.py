"""The command line: runs one command and reports an error once, in one sentence."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tyro
from rich.text import Text

from heterformer import __version__
from heterformer.cli.commands import COMMANDS, TOGETHER
from heterformer.cli.flags import in_flags, with_defaults, with_neighbor_flags
from heterformer.cli.training_flags import training_defaults
from heterformer.errors import InputError, OptionError, ReportedElsewhereError
from heterformer.progress import messages, say

TRAINING = {"train": "options", "compare": "options", "plan": "training"}  # arguments with training options
LINGER = 60.0  # seconds that a process waits for another of them to tell what is wrong


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command. A mistake of the user's is one sentence and exit code 1; Ctrl-C is 130."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:
        print(f"heterformer {__version__}")
        return
    signal.signal(signal.SIGTERM, _interrupt)  # so that a stopped build cleans up as an interrupted one does
    try:
        _check_alone(arguments)
        _run(list(arguments))
    except ReportedElsewhereError:
        _end_after_another()
    except OptionError as error:
        _fail(in_flags(error, COMMANDS.get(next(iter(arguments), ""))))
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}.")
    except SystemExit as exit_:  # words that tyro does not know
        if exit_.code and not _first_here():
            _end_after_another()
        raise
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)


def _run(words: list[str]) -> None:
    """Parse a command's words, then call its function."""
    name = next(iter(words), "")
    commands = {other: _summary(function) for other, function in COMMANDS.items()}
    if name in COMMANDS:
        commands[name] = COMMANDS[name]
    if name in TRAINING:
        defaults = training_defaults(words[1:], every_model=name == "compare")
        commands[name] = with_defaults(COMMANDS[name], **{TRAINING[name]: defaults})
    elif name == "search":
        words = with_neighbor_flags(words)
    tyro.extras.subcommand_cli_from_dict(
        commands,
        prog="heterformer",
        description="Vectors for every node of a text-rich network.",
        args=words,
        console_outputs=_first_here(),
    )


def _summary(command: Callable[..., Any]) -> Callable[[], None]:
    """A command's first sentence: of all commands but the one to run, tyro needs to know no more."""

    def summary() -> None: ...

    summary.__doc__ = (command.__doc__ or "").partition("\n\n")[0]
    return summary


def _fail(sentence: str) -> NoReturn:
    """Tell the user. What is wrong before processes know each other is wrong for all of a machine."""
    if not _first_here() and not _process_group_is_initialized():
        _end_after_another()
    messages.print(Text.assemble(("error: ", "bold red"), sentence), soft_wrap=True)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # torchrun may send one while Python ends
    sys.exit(1)


def _end_after_another() -> NoReturn:
    """Fail without a word, but not before the one that tells why: torchrun ends all as soon as one ends."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    time.sleep(LINGER)
    sys.exit(1)


def _check_alone(arguments: Sequence[str]) -> None:
    count, command = int(os.environ.get("WORLD_SIZE", "1")), next(iter(arguments), "")
    vectors = any(word == "--vectors" or word.startswith("--vectors=") for word in arguments)
    given = " --vectors" if command == "evaluate" and vectors else ""  # nothing to divide
    if count > 1 and command in COMMANDS and (given or command not in TOGETHER):
        started = f"'heterformer {command}{given}' works in one process, but {count} were started"
        raise InputError(f"{started}; leave torchrun or accelerate launch away.")


def _first_here() -> bool:
    """Whether this is the main process of this machine (local rank 0)."""
    return int(os.environ.get("WORLD_SIZE", "1")) == 1 or os.environ.get("LOCAL_RANK", "0") == "0"


def _process_group_is_initialized() -> bool:
    from torch.distributed import is_initialized  # takes seconds

    return is_initialized()


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
