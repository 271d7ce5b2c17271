"""Commands on networks: build, describe, check, divide, export, generate."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg, subcommand

from heterformer.cli.commands.arguments import (
    NetworkFolder,
    OutFile,
    OutFolder,
    SpecFile,
)
from heterformer.cli.output import print_line
from heterformer.errors import InputError
from heterformer.network.interchange.formats import Format
from heterformer.network.split.options import SplitOptions
from heterformer.progress import console

if TYPE_CHECKING:
    from heterformer.datasets.raw_build import DatasetBuild


def build(spec: SpecFile, out: OutFolder, data: Path | None = None) -> None:
    """Build a network from the tables that a YAML specification names.

    Args:
        spec: The YAML specification of nodes, texts, labels and relations, or a folder of a saved HeteroData.
        out: The network folder to write; it must not exist.
        data: The folder of the tables; by default, that of the specification.
    """
    from heterformer.network.build import build_network
    from heterformer.network.build.report_table import build_report
    from heterformer.network.interchange.hetero_data_files import is_hetero_data, open_network
    from heterformer.network.spec import NetworkSpec

    if is_hetero_data(spec):
        network = open_network(spec, out)
    else:
        network = build_network(NetworkSpec.load(spec), out, data=data or spec.parent)
    console.print(build_report(network.report))
    print_line(f"Built {network!r} in {out}. Next: heterformer describe {out}")


def describe(network: NetworkFolder) -> None:
    """Show a network's counts, degrees, text lengths and labels, and warn about likely problems.

    Args:
        network: A folder that 'heterformer build' wrote.
    """
    from heterformer.network.describe import describe as describe_network
    from heterformer.network.describe_table import description
    from heterformer.network.store import Network

    console.print(description(describe_network(Network.open(network))))


def check(path: Annotated[Path, Positional, arg(metavar="PATH")]) -> None:
    """Check that a network, a run or vectors are as they were written, byte for byte.

    Other commands refuse damaged files that they cannot read; a changed letter of a text is found here alone.

    Args:
        path: What 'heterformer build', 'train' or 'embed' wrote.
    """
    from heterformer.checks.core import check_path
    from heterformer.checks.table import check_summary

    findings = check_path(path)
    for sentence in (*findings.problems, *findings.notes):
        print_line(sentence)
    if not findings.is_sound:
        raise InputError(check_summary(findings))
    print_line(check_summary(findings))


def split(network: NetworkFolder, out: OutFile, options: Annotated[SplitOptions, arg(name="")]) -> None:
    """Divide the query nodes into train, validation and test pairs and write them as a Parquet table.

    Args:
        network: A folder that 'heterformer build' wrote.
        out: The Parquet file to write: part, query id, key id.
        options: Sizes of the parts.
    """
    from heterformer.files import check_new
    from heterformer.network.split.draw import make_split
    from heterformer.network.split.split import PARTS
    from heterformer.network.store import Network

    check_new(out)
    if out.suffix.lower() != ".parquet":
        raise InputError(f"{out}: expected a name that ends in .parquet, the format of the table.")
    opened = Network.open(network)
    divided = make_split(opened, options)
    divided.save(out, opened)
    counts = ", ".join(f"{len(getattr(divided, part)):,} {part}" for part in PARTS)
    print_line(f"Wrote {counts} pairs to {out}.")


def export(network: NetworkFolder, out: OutFolder, to: Format, safe: bool = False) -> None:
    """Export a network for other tools.

    csv: a folder of tables and the network.yaml from which 'heterformer build' builds the same network.

    graphml: a file that Gephi and networkx open.

    networkx: a JSON file that networkx.node_link_graph reads.

    hetero-data: a PyTorch Geometric HeteroData as safetensors and JSON, in a folder that 'heterformer build'
    opens.

    Args:
        network: A folder that 'heterformer build' wrote.
        out: The file or folder to write; it must not exist.
        to: The format.
        safe: Put an apostrophe before values of CSV tables that a spreadsheet would take for formulas.
    """
    from heterformer.network.interchange.export import export_network
    from heterformer.network.store import Network

    export_network(Network.open(network), out, to, safe)
    print_line(f"Wrote {out}.")


def _synthetic_options() -> Any:
    from heterformer.datasets.synthetic import SyntheticOptions

    return SyntheticOptions


def synth(
    out: OutFolder, options: Annotated[Any, arg(name="", constructor_factory=_synthetic_options)]
) -> None:
    """Generate a synthetic academic network with known topics: its tables and their specification.

    Args:
        out: The folder to write; it must not exist.
        options: Size and structure of the network.
    """
    from heterformer.datasets.synthetic import write_synthetic

    spec = write_synthetic(out, options)
    print_line(f"Wrote {spec}. Next: heterformer build {spec} {out}.net")


def _printing(build: Callable[..., DatasetBuild]) -> Callable[..., None]:
    """A builder of the registry as a command that prints its report."""

    @wraps(build)
    def run(*arguments: Any, **options: Any) -> None:
        from heterformer.datasets.table import dataset_report

        built = build(*arguments, **options)
        network, out = built.network, built.network.path
        console.print(dataset_report(built))
        pairs = f" --split.file {built.split}" if built.split else ""
        paper = " --preset paper" if built.published or built.split else ""  # its data: its experiment
        print_line(f"Built {network!r} in {out}.")
        print_line(f"Next: heterformer train {out} RUN{paper}{pairs}")

    return run


def _datasets() -> Any:
    """A command per data set, with the arguments and the help of the function that builds it."""
    from heterformer.datasets.registry import DATASETS

    commands = (
        Annotated[Any, subcommand(name=n, constructor=_printing(build))] for n, build in DATASETS.items()
    )
    return reduce(or_, commands)


def dataset(build: Annotated[Any, arg(name="", constructor_factory=_datasets)]) -> None:
    """Build the network of a public dataset: one of the paper's three, Debian's packages, or WordNet.

    The published files are read as they are, as a stream, whatever their size.

    Example: heterformer dataset dblp downloads/ dblp.net

    Example: heterformer dataset debian debian.net

    Example: heterformer dataset wordnet wordnet.net

    Args:
        build: The dataset.
    """
