"""The command line: runs one command and reports an error once, in one sentence."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from io import TextIOWrapper
from typing import Any, NoReturn

import tyro
from rich.text import Text

from heterformer import __version__
from heterformer.allocator import keep_freed_memory
from heterformer.cli.checks import is_local_main
from heterformer.cli.commands import COMMANDS, DISTRIBUTED
from heterformer.cli.flags import (
    check_arguments,
    check_flags,
    check_name,
    check_one_query,
    check_unicode,
    check_values,
    flag_names,
    in_flags,
    with_defaults,
    with_neighbor_flags,
)
from heterformer.cli.help_texts import REGISTRY
from heterformer.cli.training_flags import comparison_defaults, finetuning_defaults, training_defaults
from heterformer.errors import (
    InputError,
    OptionError,
    ReportedElsewhereError,
    first_line,
    is_out_of_memory,
    with_short_values,
)
from heterformer.escapes import FALLBACK
from heterformer.models.options import EveryModelOptions
from heterformer.progress import messages, plain_lines, say

# Commands with training options, and the argument that has them.
TRAINING = {
    "train": "options",
    "finetune": "options",
    "compare": "options",
    "plan": "training",
    "tune": "options",
}
ENDLESS = ("serve",)  # commands that wait for others most of the time and have no end
LINGER = 60.0  # seconds that a process waits for another one to print the error


def run(arguments: Sequence[str] | None = None, linger: float = LINGER) -> None:
    """Run one command. An ``InputError`` is printed as one sentence, with exit code 1; Ctrl-C gives 130.

    Of several processes one prints it; the others end ``linger`` seconds later.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    if list(arguments) == ["--version"]:
        print(f"heterformer {__version__}")
        return
    signal.signal(signal.SIGTERM, _interrupt)  # so that a stopped build cleans up as an interrupted one does
    try:
        check_unicode(arguments)
        _check_world_size(arguments)
        _replace_unencodable()
        name = next(iter(arguments), "")
        if name not in ENDLESS:
            keep_freed_memory()
        with plain_lines(name) if name in COMMANDS and name not in ENDLESS else nullcontext():
            _run(list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough, such as 'head'
        _end_without_reader()
    except ReportedElsewhereError:
        _end_after_another(linger)
    except OptionError as error:
        _fail(in_flags(error, COMMANDS.get(next(iter(arguments), ""))), linger)
    except InputError as error:
        _fail(str(error), linger)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(with_short_values(f"{where}{error.strerror or error}."), linger)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        reason = with_short_values(first_line(error))
        _fail(f"out of memory ({reason}); choose smaller values of options.", linger)
    except SystemExit as exit_:  # help, or words that tyro does not know
        if exit_.code and not is_local_main():
            _end_after_another(linger)
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
    check_name("command", name, COMMANDS)
    if name in COMMANDS:
        _check_words(name, words[1:])
    commands: dict[str, Callable[..., Any]] = {n: _summary(command) for n, command in COMMANDS.items()}
    if name in COMMANDS:
        commands[name] = COMMANDS[name]
    if name in TRAINING:
        commands[name] = with_defaults(COMMANDS[name], **_training_arguments(name, words[1:]))
    elif name == "search":
        words = with_neighbor_flags(words)
    tyro.extras.subcommand_cli_from_dict(
        commands,
        prog="heterformer",
        description="Vectors for every node of a text-rich network.",
        args=words,
        registry=REGISTRY,
        console_outputs=is_local_main(),
    )


def _check_words(name: str, words: list[str]) -> None:
    """Refuse flags that a command does not have, a query without quotes, and arguments that are missing.

    tyro would refuse some of them too, in a box of many lines.
    """
    command, models = COMMANDS[name], [EveryModelOptions] if name in TRAINING else []
    if name == "dataset":
        from heterformer.datasets.registry import DATASETS

        check_name("dataset", builder := next(iter(words), ""), DATASETS)
        if builder not in DATASETS:
            return  # --help
        name, command, words = f"dataset {builder}", DATASETS[builder], words[1:]
    for owner in (command, *models):
        check_values(owner, words)
    if name == "search":
        check_one_query(words)  # flags may be node types
    else:
        check_flags(name, [flag for owner in (command, *models) for flag in flag_names(owner)], words)
    check_arguments(name, command, words, *models)


def _training_arguments(name: str, words: list[str]) -> dict[str, Any]:
    """The arguments of a command with training options that are not what its signature says."""
    if name == "finetune":
        options = finetuning_defaults(words)
        labels = options.labels
        return {"options": options, "type": labels.type, "label_fraction": (labels.fraction,)}
    return {TRAINING[name]: (comparison_defaults if name == "compare" else training_defaults)(words)}


@dataclass
class _Summary:
    """A command without arguments."""


def _summary(command: Callable[..., Any]) -> type:
    """A stand-in with a command's first sentence: tyro needs no more of the commands that do not run.

    It is a class because tyro takes those without typeguard, which takes a while to import.
    """
    return type("Summary", (_Summary,), {"__doc__": (command.__doc__ or "").partition("\n\n")[0]})


def _fail(sentence: str, linger: float) -> NoReturn:
    """Print the error, once: before the process group exists, it occurs in all processes."""
    if not is_local_main() and not _process_group_is_initialized():
        _end_after_another(linger)
    messages.print(Text.assemble(("error: ", "bold red"), sentence), soft_wrap=True)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # torchrun may send one while Python ends
    sys.exit(1)


def _end_without_reader() -> NoReturn:
    """End as a program that SIGPIPE stops, without a word about it when Python closes its output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)


def _end_after_another(linger: float) -> NoReturn:
    """Fail silently, but later than the process that prints why: torchrun ends all as soon as one ends."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    time.sleep(linger)
    sys.exit(1)


def _check_world_size(arguments: Sequence[str]) -> None:
    count, command = int(os.environ.get("WORLD_SIZE", "1")), next(iter(arguments), "")
    vectors = any(word == "--vectors" or word.startswith("--vectors=") for word in arguments)
    flag = " --vectors" if command == "evaluate" and vectors else ""  # nothing to divide
    if count > 1 and command in COMMANDS and (flag or command not in DISTRIBUTED):
        problem = f"'heterformer {command}{flag}' runs in one process, but {count} were started"
        raise InputError(f"{problem}; start it without torchrun or accelerate launch.")


def _process_group_is_initialized() -> bool:
    from torch.distributed import is_initialized  # takes seconds

    return is_initialized()


def _replace_unencodable() -> None:
    """Replace characters that the encoding of our output lacks, whoever prints them, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors=FALLBACK)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
