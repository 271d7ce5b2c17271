"""The command line: each command is a plain function; options are dataclasses documented where they live."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import Positional, arg

from heterformer.datasets.synthetic import SyntheticOptions, write_synthetic
from heterformer.errors import InputError
from heterformer.network.build import build_network
from heterformer.network.describe import describe as describe_network
from heterformer.network.spec import NetworkSpec
from heterformer.network.split import PARTS, SplitOptions, make_split
from heterformer.network.store import Network
from heterformer.progress import console, messages
from heterformer.report import network_tables

SpecFile = Annotated[Path, Positional, arg(metavar="SPEC")]
NetworkFolder = Annotated[Path, Positional, arg(metavar="NET")]
OutFolder = Annotated[Path, Positional, arg(metavar="OUT")]
OutFile = Annotated[Path, Positional, arg(metavar="OUT")]


def build(spec: SpecFile, out: OutFolder, data: Path | None = None) -> None:
    """Turn the tables that a YAML specification names into a network folder.

    Args:
        spec: The YAML specification: nodes, texts, labels, relations.
        out: The network folder to write; it must not exist.
        data: The folder with the tables, if not the specification's own.
    """
    network = build_network(NetworkSpec.load(spec), out, data=data or spec.parent)
    console.print(network_tables.build_report(network.report))
    console.print(f"Built {network!r} in {out}. Next: heterformer describe {out}", highlight=False)


def describe(network: NetworkFolder) -> None:
    """Show a network's counts, degrees, text lengths and labels, and warn of what will hurt.

    Args:
        network: A folder that 'heterformer build' wrote.
    """
    console.print(network_tables.description(describe_network(Network.open(network))))


def synth(out: OutFolder, options: Annotated[SyntheticOptions, arg(name="")]) -> None:
    """Write the tables of a synthetic academic network with a planted truth, and their specification.

    Args:
        out: The folder to write; it must not exist.
        options: What to plant.
    """
    spec = write_synthetic(out, options)
    console.print(f"Wrote {spec}. Next: heterformer build {spec} {out}.net", highlight=False)


def split(network: NetworkFolder, out: OutFile, options: Annotated[SplitOptions, arg(name="")]) -> None:
    """Divide the query nodes into train, validation and test pairs and write them as a Parquet table.

    Args:
        network: A folder that 'heterformer build' wrote.
        out: The Parquet file to write: part, query id, key id.
        options: How to divide.
    """
    opened = Network.open(network)
    divided = make_split(opened, options)
    divided.save(out, opened)
    counts = ", ".join(f"{len(getattr(divided, part)):,} {part}" for part in PARTS)
    console.print(f"Wrote {counts} pairs to {out}.", highlight=False)


COMMANDS: dict[str, Callable[..., Any]] = {
    "build": build,
    "describe": describe,
    "split": split,
    "synth": synth,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command. A mistake of the user's is one sentence and exit code 1; Ctrl-C is 130."""
    signal.signal(signal.SIGTERM, _interrupt)  # so that a stopped build cleans up as an interrupted one does
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="heterformer",
            description="Vectors for every node of a text-rich network.",
            args=arguments,
        )
    except InputError as error:
        messages.print(f"[bold red]error:[/] {_escaped(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        messages.print("interrupted", highlight=False)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has left, as 'head' does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


if __name__ == "__main__":
    main()
