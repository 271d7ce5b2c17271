"""What the command line can do: each command is a plain function; options are documented where they live."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg, subcommand

from heterformer.cli.output import print_json, print_line
from heterformer.comparison.variants import Choice
from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError
from heterformer.evaluation.options import EvaluateOptions
from heterformer.explanation.options import ExplainOptions
from heterformer.maps.options import MapOptions
from heterformer.models.options import HeterformerOptions, ModelName
from heterformer.network.interchange.formats import Format
from heterformer.network.split.options import SplitOptions
from heterformer.plan.options import PlanOptions
from heterformer.progress import console
from heterformer.search.options import SearchOptions
from heterformer.training.options import TrainingOptions

if TYPE_CHECKING:
    from heterformer.datasets.raw_build import DatasetBuild

# Commands import what they need when they run: to show help takes no library of tables or tensors.
SpecFile = Annotated[Path, Positional, arg(metavar="SPEC")]
NetworkFolder = Annotated[Path, Positional, arg(metavar="NET")]
OutFolder = Annotated[Path, Positional, arg(metavar="OUT")]
RunFolder = Annotated[Path, Positional, arg(metavar="RUN")]
OutFile = Annotated[Path, Positional, arg(metavar="OUT")]
QueryText = Annotated[str, Positional, arg(metavar="QUERY")]
NodeId = Annotated[str, Positional, arg(metavar="ID")]


def build(spec: SpecFile, out: OutFolder, data: Path | None = None) -> None:
    """Turn the tables that a YAML specification names into a network folder.

    Args:
        spec: The YAML specification: nodes, texts, labels, relations. Or a folder that holds a HeteroData.
        out: The network folder to write; it must not exist.
        data: The folder with the tables, if not the specification's own.
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
    """Show a network's counts, degrees, text lengths and labels, and warn of what will hurt.

    Args:
        network: A folder that 'heterformer build' wrote.
    """
    from heterformer.network.describe import describe as describe_network
    from heterformer.network.describe_table import description
    from heterformer.network.store import Network

    console.print(description(describe_network(Network.open(network))))


def export(network: NetworkFolder, out: OutFolder, to: Format, safe: bool = False) -> None:
    """Write a network for other tools.

    csv: a folder of tables and the network.yaml from which 'heterformer build' makes the same contents again.

    graphml: a file that Gephi and networkx open.

    networkx: a JSON file for networkx.node_link_graph.

    hetero-data: a PyTorch Geometric HeteroData as safetensors and JSON, in a folder that 'heterformer build'
    and heterformer.network.interchange.hetero_data_files.load_hetero_data read.

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
    """Write the tables of a synthetic academic network with a planted truth, and their specification.

    Args:
        out: The folder to write; it must not exist.
        options: What to plant.
    """
    from heterformer.datasets.synthetic import write_synthetic

    spec = write_synthetic(out, options)
    print_line(f"Wrote {spec}. Next: heterformer build {spec} {out}.net")


def _shown(build: Callable[..., DatasetBuild]) -> Callable[..., None]:
    """A builder of the registry as a command: it builds, then tells what came of it."""

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
        Annotated[Any, subcommand(name=n, constructor=_shown(build))] for n, build in DATASETS.items()
    )
    return reduce(or_, commands)


def dataset(build: Annotated[Any, arg(name="", constructor_factory=_datasets)]) -> None:
    """Build a network of data that we know: the paper's three, as the paper has them, or Debian's packages.

    It reads the files as they are published, however large, a little at a time.

    Example: heterformer dataset dblp downloads/ dblp.net

    Example: heterformer dataset debian debian.net

    Args:
        build: Which data.
    """


def split(network: NetworkFolder, out: OutFile, options: Annotated[SplitOptions, arg(name="")]) -> None:
    """Divide the query nodes into train, validation and test pairs and write them as a Parquet table.

    Args:
        network: A folder that 'heterformer build' wrote.
        out: The Parquet file to write: part, query id, key id.
        options: How to divide.
    """
    from heterformer.files import check_new
    from heterformer.network.split.draw import make_split
    from heterformer.network.split.split import PARTS
    from heterformer.network.store import Network

    check_new(out)
    opened = Network.open(network)
    divided = make_split(opened, options)
    divided.save(out, opened)
    counts = ", ".join(f"{len(getattr(divided, part)):,} {part}" for part in PARTS)
    print_line(f"Wrote {counts} pairs to {out}.")


def train(
    network: NetworkFolder,
    run: RunFolder,
    *,
    options: Annotated[TrainingOptions, arg(name="")],
    model: ModelName = HeterformerOptions.name,
    config: Path | None = None,
    preset: Literal["paper"] | None = None,
) -> None:
    """Train a model on a network, or go on with a run that was stopped: the same command does both.

    Args:
        network: A folder that 'heterformer build' wrote.
        run: The run folder: configuration, checkpoints, metrics and, at the end, the model.
        options: What decides the result, and the budget.
        model: Heterformer or one of the paper's baselines; '--model NAME --help' lists the options of each.
        config: A YAML file of options (or another run's config.yaml); flags override it.
        preset: 'paper' is the paper's hyper-parameter table; flags and --config override it.
    """
    from heterformer.network.store import Network

    _quiet_transformers()
    from heterformer.distributed import destroy_process_group
    from heterformer.training.loop import train as train_run

    train_run(Network.open(network), run, options)
    destroy_process_group()


def evaluate(
    path: Annotated[Path, Positional, arg(metavar="RUN")],
    options: Annotated[EvaluateOptions, arg(name="")],
    vectors: Path | None = None,
    out: Path | None = None,
) -> None:
    """What vectors are worth: link prediction, classification, clustering and a map, as far as labels allow.

    Writes report.md, report.json and figures into the run. Vectors of any other method, a Parquet table of
    id, type and vector, are evaluated on a network in the same way:

        heterformer evaluate NET --vectors FILE

    Args:
        path: A folder that 'heterformer train' wrote; with --vectors, one that 'heterformer build' wrote.
        options: What to do.
        vectors: Evaluate these vectors instead of a run.
        out: With --vectors, the folder for the report; FILE.report unless given.
    """
    _quiet_transformers()
    from heterformer.distributed import ProcessGroup, destroy_process_group
    from heterformer.evaluation.page import PAGE, as_json, sheets
    from heterformer.evaluation.report import report_on_run, report_on_vectors

    if vectors is None:
        if out is not None:
            raise InputError("--out goes with --vectors; a run's report is written into the run.")
        place = path
        processes = ProcessGroup.from_environment(options.device)
        found, about = report_on_run(path, options, processes)
        destroy_process_group()
        if not processes.is_main:
            return
    else:
        place = out or vectors.with_name(f"{vectors.name}.report")
        found, about = report_on_vectors(vectors, path, place, options)
    if options.json:
        print_json(as_json(found, about))
        return
    for sheet in sheets(found):
        console.print(sheet.table())
    for note in found.notes:
        print_line(note)
    print_line(f"Wrote {place / PAGE}.")


def embed(
    run: RunFolder,
    out: OutFile,
    options: Annotated[EmbedOptions, arg(name="")],
    network: Path | None = None,
    since: Path | None = None,
    hide_split: bool = False,
    device: Literal["auto", "cpu"] = "auto",
) -> None:
    """Write a vector for every node, keyed by your own ids. After an interruption the same command goes on.

    Several processes (torchrun --nproc-per-node N -m heterformer embed RUN OUT.parquet) divide the nodes and
    write a folder of Parquet tables, one each.

    Args:
        run: A folder that 'heterformer train' wrote.
        out: NAME.parquet for a table (id, type, vector), or a folder's name, without an ending, for NumPy
            arrays with lists of ids.
        options: Which vectors to make.
        network: Another network of the same types, with nodes that training did not see.
        since: An earlier output: only nodes whose text or sampled neighbours changed are computed again.
        hide_split: Hide the run's held-out pairs from the vectors, so that link prediction with them is fair.
        device: Where to compute: a GPU if there is one, or the CPU.
    """
    _quiet_transformers()
    from heterformer.distributed import ProcessGroup, destroy_process_group
    from heterformer.embedding.embed import embed_run

    processes = ProcessGroup.from_environment(device)
    vectors = embed_run(
        run,
        out,
        options,
        network=network,
        since=since,
        device=device,
        processes=processes,
        hide_split=hide_split,
    )
    destroy_process_group()
    if processes.is_main:
        print_line(f"Wrote vectors of {', '.join(vectors.types)} nodes to {out}.")


def search(run: RunFolder, options: Annotated[SearchOptions, arg(name="")], query: QueryText = "") -> None:
    """Rank nodes by a query text or by another node, and show which of their neighbours speak for them.

    The query may come with neighbours of its own, of any node type of the network:

        heterformer search RUN "personalised news" --author "Jane Doe" --venue ACL

    The first search makes vectors of all nodes and keeps them in RUN/search, those of a --network that has
    grown since training too: its new nodes are found and can be asked with like all others.

    Args:
        run: A folder that 'heterformer train' wrote.
        options: What to search with, and for what.
        query: The query text; --like searches with a node instead.
    """
    _quiet_transformers()
    from heterformer.search.searcher import search_run
    from heterformer.search.table import as_json, search_tables

    answer = search_run(run, query, options)
    if options.json:
        print_json(as_json(answer))
    else:
        console.print(search_tables(answer))


def explain(run: RunFolder, node: NodeId, options: Annotated[ExplainOptions, arg(name="")]) -> None:
    """Show what a node's vector is made of: attention on its text and neighbours, and each one's share.

    It takes a run of Heterformer. The figure is the paper's attention map; with a second run it shows both:

        heterformer explain RUN P05-3014 --against RUN_WITHOUT_WARM_UP

    A node without text attends to nothing; of such a node the neighbours with the closest vectors are shown.

    Args:
        run: A folder that 'heterformer train' wrote.
        node: The node's id or name.
        options: What to explain, against what, and how it is shown.
    """
    from heterformer.files import check_new

    _quiet_transformers()
    from heterformer.explanation.core import TextExplanation, explain_runs
    from heterformer.explanation.figure import draw_attention, figure_path
    from heterformer.explanation.table import as_json, explanation_tables

    if options.figure is not None:
        check_new(options.figure)
    found = explain_runs(run, node, options)
    if not options.json:
        console.print(*(explanation_tables(one, options.top) for one in found), sep="\n")
    drawn = None
    if attention := [one for one in found if isinstance(one, TextExplanation)]:
        drawn = options.figure or figure_path(run, found[0].node.id, options.against)
        draw_attention(attention, drawn, options.top)
    if options.json:
        print_json(as_json(found, drawn))
    elif drawn is not None:
        print_line(str(drawn))


def compare(
    network: NetworkFolder,
    out: OutFolder,
    *,
    options: Annotated[TrainingOptions, arg(name="")],
    models: tuple[Choice, ...] = ("models",),
    seeds: tuple[int, ...] = (0,),
    table_only: bool = False,
    config: Path | None = None,
    preset: Literal["paper"] | None = None,
) -> None:
    """Train several models alike on one network and tell which is best: the paper's tables for your data.

    Each model and seed has its run folder OUT/runs/MODEL/seed-N and a process of its own, one after the
    other. All have one split and one budget: give --max-steps, --max-minutes or --epochs. The same command
    goes on after an interruption; more models, more seeds or a larger budget can be asked for later.
    The tables are in OUT/compare.md and OUT/compare.json, the figures in OUT/figures.

    Groups of models are 'models' (the paper's twelve), 'baselines' (all but Heterformer), 'ablations' and
    'dimensions' (Heterformer and what it is without its parts or with smaller textless embeddings) and 'all'.

    Example: heterformer compare papers.net cmp --models heterformer bert --seeds 0 1 2 --max-steps 300

    Args:
        network: A folder that 'heterformer build' wrote.
        out: The folder of the comparison.
        options: What all models have in common; an option that a model lacks does not concern it.
        models: What to compare: names of models, of ablations or of groups.
        seeds: Train each model once with each of these; the split stays the same (--split.seed).
        table_only: Train nothing, make tables and figures of all runs that are finished by now.
        config: A YAML file of options (or a config.yaml or compare.yaml); flags override it.
        preset: 'paper' is the paper's hyper-parameter table; flags and --config override it.
    """
    from heterformer.network.store import Network

    _quiet_transformers()
    from heterformer.comparison.core import compare as compare_models
    from heterformer.comparison.core import finished_comparison
    from heterformer.comparison.figures import draw_comparison
    from heterformer.comparison.table import as_table, write_comparison

    if table_only:
        found = finished_comparison(out, network)
    else:
        opened = Network.open(network)
        found = compare_models(
            opened, out, models, seeds, options, observe=lambda state: write_comparison(state, out)
        )
    write_comparison(found, out)
    draw_comparison(found, out / "figures")
    console.print(as_table(found))
    if found.failed:
        named = ", ".join(f"{row.variant.name} seed {seed.seed}" for row, seed in found.failed)
        raise InputError(f"{out}: failed: {named}; see {out / 'compare.md'}; the same command tries again.")


def plot(path: Annotated[Path, Positional, arg(metavar="PATH")]) -> None:
    """Draw the figures of a comparison or of a single run into PATH/figures, as PNG files.

    A comparison gives the models side by side, learning curves, the effect of warm-up, ablation bars and the
    curve of the textless dimension, as far as it has the runs; a run gives its loss and validation curve.

    Args:
        path: A folder that 'heterformer compare' or 'heterformer train' wrote.
    """
    from heterformer.comparison.core import finished_comparison, is_comparison
    from heterformer.comparison.figures import draw_comparison
    from heterformer.training.figure import draw_run
    from heterformer.training.run import Run

    out = path / "figures"
    drawn = (
        draw_comparison(finished_comparison(path), out) if is_comparison(path) else draw_run(Run(path), out)
    )
    if not drawn:
        raise InputError(f"{path}: nothing to draw yet; figures need finished runs or evaluations.")
    for file in drawn:
        print_line(str(file))


def map_nodes(
    run: RunFolder,
    options: Annotated[MapOptions, arg(name="")],
    vectors: Path | None = None,
    out: Path | None = None,
) -> None:
    """Draw a map of a run's nodes by their vectors: map.png in RUN/figures, and map.html to explore it.

    Colours tell labels or, without labels, node types. The page opens in any browser, also offline: point at
    nodes, search them by name or id, zoom, and hide classes.

    Args:
        run: A folder that 'heterformer train' wrote.
        options: Which nodes to show, and how to lay them out.
        vectors: Take these vectors instead of the run's own: of 'heterformer embed' or any other method.
        out: The folder to write; unless given, RUN/figures or, with --vectors, FILE.figures.
    """
    _quiet_transformers()
    from heterformer.maps.draw import draw_run_map

    for file in draw_run_map(run, options, vectors, out):
        print_line(str(file))


def plan(
    network: NetworkFolder,
    *,
    training: Annotated[TrainingOptions, arg(name="")],
    options: Annotated[PlanOptions, arg(name="")],
    embed: EmbedOptions,
    model: ModelName = HeterformerOptions.name,
    config: Path | None = None,
    preset: Literal["paper"] | None = None,
) -> None:
    """Tell what training and embedding a network will need: memory, disk, steps, bytes exchanged, hours.

    It takes the options of 'heterformer train', and those of 'heterformer embed' after --embed. A network
    that does not exist yet is planned for by one of its shape:

        heterformer plan NET --batch-size 256 --counts paper=1e8 author=5e7 --pairs-per-second 2000

    Args:
        network: A folder that 'heterformer build' wrote.
        training: How it will be trained.
        options: For how many processes, for how large a network, and how fast one process is.
        embed: How it will be embedded.
        model: Heterformer or one of the paper's baselines; '--model NAME --help' lists the options of each.
        config: A YAML file of options (or a run's config.yaml); flags override it.
        preset: 'paper' is the paper's hyper-parameter table; flags and --config override it.
    """
    from heterformer.network.store import Network

    _quiet_transformers()
    from heterformer.plan.core import make_plan
    from heterformer.plan.table import as_json, plan_tables

    found = make_plan(Network.open(network), training, embed, options)
    if options.json:
        print_json(as_json(found))
    else:
        console.print(plan_tables(found))


def _quiet_transformers() -> None:
    """Our own bars and sentences are enough. Imported here because it takes seconds."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


COMMANDS: dict[str, Callable[..., Any]] = {
    "build": build,
    "describe": describe,
    "plan": plan,
    "train": train,
    "evaluate": evaluate,
    "embed": embed,
    "search": search,
    "explain": explain,
    "compare": compare,
    "plot": plot,
    "map": map_nodes,
    "split": split,
    "export": export,
    "synth": synth,
    "dataset": dataset,
}
TOGETHER = ("train", "embed", "evaluate")  # what several processes can work on
