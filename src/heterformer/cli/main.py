"""The command line: runs one command and reports an error once, in one sentence."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import tyro
from rich.text import Text

from heterformer import __version__
from heterformer.cli.commands import COMMANDS, DISTRIBUTED
from heterformer.cli.flags import in_flags, with_defaults, with_neighbor_flags
from heterformer.cli.training_flags import training_defaults
from heterformer.errors import InputError, OptionError, ReportedElsewhereError
from heterformer.progress import messages, say

TRAINING = {"train": "options", "compare": "options", "plan": "training"}  # arguments with training options
LINGER = 60.0  # seconds that a process waits for another one to print the error


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command. An ``InputError`` is printed as one sentence, with exit code 1; Ctrl-C gives 130."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:
        print(f"heterformer {__version__}")
        return
    signal.signal(signal.SIGTERM, _interrupt)  # so that a stopped build cleans up as an interrupted one does
    try:
        _check_world_size(arguments)
        _run(list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough, such as 'head'
        _end_without_reader()
    except ReportedElsewhereError:
        _end_after_another()
    except OptionError as error:
        _fail(in_flags(error, COMMANDS.get(next(iter(arguments), ""))))
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}.")
    except SystemExit as exit_:  # help, or words that tyro does not know
        if exit_.code and not _is_local_main():
            _end_after_another()
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _end_without_reader()
        raise
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)


def _run(words: list[str]) -> None:
    """Parse a command's words, then call its function."""
    name = next(iter(words), "")
    commands: dict[str, Callable[..., Any]] = {n: _summary(command) for n, command in COMMANDS.items()}
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
        console_outputs=_is_local_main(),
    )


@dataclass
class _Summary:
    """A command without arguments."""


def _summary(command: Callable[..., Any]) -> type:
    """A stand-in with a command's first sentence: tyro needs no more of the commands that do not run.

    It is a class because tyro takes those without typeguard, which takes a while to import.
    """
    return type("Summary", (_Summary,), {"__doc__": (command.__doc__ or "").partition("\n\n")[0]})


def _fail(sentence: str) -> NoReturn:
    """Print the error, once: before the process group exists, it occurs in all processes."""
    if not _is_local_main() and not _process_group_is_initialized():
        _end_after_another()
    messages.print(Text.assemble(("error: ", "bold red"), sentence), soft_wrap=True)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # torchrun may send one while Python ends
    sys.exit(1)


def _end_without_reader() -> NoReturn:
    """End as a program that SIGPIPE stops, without a word about it when Python closes its output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)


def _end_after_another() -> NoReturn:
    """Fail silently, but later than the process that prints why: torchrun ends all as soon as one ends."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    time.sleep(LINGER)
    sys.exit(1)


def _check_world_size(arguments: Sequence[str]) -> None:
    count, command = int(os.environ.get("WORLD_SIZE", "1")), next(iter(arguments), "")
    vectors = any(word == "--vectors" or word.startswith("--vectors=") for word in arguments)
    flag = " --vectors" if command == "evaluate" and vectors else ""  # nothing to divide
    if count > 1 and command in COMMANDS and (flag or command not in DISTRIBUTED):
        problem = f"'heterformer {command}{flag}' runs in one process, but {count} were started"
        raise InputError(f"{problem}; start it without torchrun or accelerate launch.")


def _is_local_main() -> bool:
    """Whether this is the main process of this machine (local rank 0)."""
    return int(os.environ.get("WORLD_SIZE", "1")) == 1 or os.environ.get("LOCAL_RANK", "0") == "0"


def _process_group_is_initialized() -> bool:
    from torch.distributed import is_initialized  # takes seconds

    return is_initialized()


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
