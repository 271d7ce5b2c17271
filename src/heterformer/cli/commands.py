"""The commands: each is a plain function; its options are documented in their own classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg, subcommand

from heterformer.cli.output import print_json, print_line
from heterformer.comparison.options import ComparisonOptions
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
from heterformer.serve.options import ServeOptions
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


def export(network: NetworkFolder, out: OutFolder, to: Format, safe: bool = False) -> None:
    """Export a network for other tools.

    csv: a folder of tables and the network.yaml from which 'heterformer build' builds the same network.

    graphml: a file that Gephi and networkx open.

    networkx: a JSON file that networkx.node_link_graph reads.

    hetero-data: a PyTorch Geometric HeteroData as safetensors and JSON, in a folder that 'heterformer build'
    and heterformer.network.interchange.hetero_data_files.load_hetero_data open.

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


def _shown(build: Callable[..., DatasetBuild]) -> Callable[..., None]:
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
        Annotated[Any, subcommand(name=n, constructor=_shown(build))] for n, build in DATASETS.items()
    )
    return reduce(or_, commands)


def dataset(build: Annotated[Any, arg(name="", constructor_factory=_datasets)]) -> None:
    """Build the network of a public dataset: one of the paper's three, or Debian's packages.

    The published files are read as they are, as a stream, whatever their size.

    Example: heterformer dataset dblp downloads/ dblp.net

    Example: heterformer dataset debian debian.net

    Args:
        build: The dataset.
    """


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
    """Train a model on a network, or resume a run: the same command does both.

    Args:
        network: A folder that 'heterformer build' wrote.
        run: The run folder to write: configuration, checkpoints, metrics and the model.
        options: Options of the model, the split and the training.
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
    """Evaluate vectors by link prediction, classification and clustering, and draw a map of them.

    Writes report.md, report.json and figures into the run. Vectors of any other method, in a Parquet table
    with the columns id, type and vector, are evaluated in the same way:

        heterformer evaluate NET --vectors FILE

    Args:
        path: A folder that 'heterformer train' wrote; with --vectors, one that 'heterformer build' wrote.
        options: Which tasks, on which labels.
        vectors: Evaluate these vectors instead of a run's.
        out: With --vectors, the folder of the report; by default, FILE.report.
    """
    _quiet_transformers()
    from heterformer.distributed import ProcessGroup, destroy_process_group
    from heterformer.evaluation.page import PAGE, as_json, sheets
    from heterformer.evaluation.report import report_on_run, report_on_vectors

    if vectors is None:
        if out is not None:
            raise InputError("--out needs --vectors; the report of a run is written into the run.")
        place = path
        processes = ProcessGroup.from_environment(options.device)
        report, about = report_on_run(path, options, processes)
        destroy_process_group()
        if not processes.is_main:
            return
    else:
        place = out or vectors.with_name(f"{vectors.name}.report")
        report, about = report_on_vectors(vectors, path, place, options)
    if options.json:
        print_json(as_json(report, about))
        return
    for sheet in sheets(report):
        console.print(sheet.table())
    for note in report.notes:
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
    """Compute a vector for every node. After an interruption the same command resumes.

    Several processes (torchrun --nproc-per-node N -m heterformer embed RUN OUT.parquet) share the nodes and
    write a folder of Parquet tables, one each.

    Args:
        run: A folder that 'heterformer train' wrote.
        out: NAME.parquet for a Parquet table (id, type, vector), or a name without a suffix for a folder of
            NumPy arrays and lists of ids.
        options: Which vectors to compute.
        network: Embed another network of the same types, with nodes that training did not see.
        since: An earlier output: recompute only nodes whose text or sampled neighbours have changed.
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
    """Search nodes by a query text or a node, and show the neighbours that support each result.

    A query text may have neighbours of its own, of any node type of the network:

        heterformer search RUN "personalised news" --author "Jane Doe" --venue ACL

    The first search computes the vectors of all nodes and stores them in RUN/search; so does the first search
    of another --network, such as one with nodes that training did not see.

    Args:
        run: A folder that 'heterformer train' wrote.
        options: The query's neighbours, the types to rank, and how to search.
        query: The query text; to search with a node, use --like instead.
    """
    _quiet_transformers()
    from heterformer.search.searcher import search_run
    from heterformer.search.table import as_json, search_tables

    answer = search_run(run, query, options)
    if options.json:
        print_json(as_json(answer))
    else:
        console.print(search_tables(answer))


def serve(
    runs: Annotated[tuple[Path, ...], Positional, arg(metavar="RUN")],
    options: Annotated[ServeOptions, arg(name="")],
) -> None:
    """Answer requests over HTTP: vectors of texts, search, nodes, explanations.

    It needs 'pip install heterformer[serve]'. OpenAI's form of requests and that of Text Embeddings Inference
    are understood; /docs lists all. SIGHUP takes runs that were made anew; SIGTERM ends the server after the
    requests under way.

    Args:
        runs: Folders that 'heterformer train' wrote; each is asked for by its name.
        options: Where to serve, for whom, and how much at once.
    """
    if not runs:
        raise InputError("there is nothing to serve: give a folder that 'heterformer train' wrote.")
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        needed = f"serving needs {error.name}, which is not installed"
        raise InputError(f"{needed}: pip install 'heterformer[serve]'.") from None
    _quiet_transformers()
    from heterformer.serve.server import serve_runs

    serve_runs(
        runs, options, lambda address: print_line(f"Serving at {address}; {address}/docs lists what it does.")
    )


def explain(run: RunFolder, node: NodeId, options: Annotated[ExplainOptions, arg(name="")]) -> None:
    """Explain a node's vector: attention on its text and neighbours, and each neighbour's share.

    Attention needs a run of Heterformer. The figure is the paper's attention map, of one run or of two:

        heterformer explain RUN P05-3014 --against RUN_WITHOUT_WARM_UP

    A node without text has no attention; it is explained by the neighbours with the closest vectors.

    Args:
        run: A folder that 'heterformer train' wrote.
        node: The node's id or name.
        options: The node's type, a run to compare with, and the output.
    """
    from heterformer.files import check_new

    _quiet_transformers()
    from heterformer.explanation.core import TextExplanation, explain_runs
    from heterformer.explanation.figure import draw_attention, figure_path
    from heterformer.explanation.table import as_json, explanation_tables

    if options.figure is not None:
        check_new(options.figure)
    explanations = explain_runs(run, node, options)
    if not options.json:
        console.print(*(explanation_tables(e, options.top) for e in explanations), sep="\n")
    figure = None
    if with_attention := [e for e in explanations if isinstance(e, TextExplanation)]:
        figure = options.figure or figure_path(run, explanations[0].node.id, options.against)
        draw_attention(with_attention, figure, options.top)
    if options.json:
        print_json(as_json(explanations, figure))
    elif figure is not None:
        print_line(str(figure))


def compare(
    network: NetworkFolder,
    out: OutFolder,
    *,
    options: Annotated[TrainingOptions, arg(name="")],
    evaluation: Annotated[ComparisonOptions, arg(name="")],
    models: tuple[Choice, ...] = ("models",),
    seeds: tuple[int, ...] = (0,),
    table_only: bool = False,
    config: Path | None = None,
    preset: Literal["paper"] | None = None,
) -> None:
    """Compare models on one network with the same split and budget: the paper's tables for your data.

    Models are trained one after the other, each seed into OUT/runs/MODEL/seed-N. Set the budget with
    --max-steps, --max-minutes or --epochs. After an interruption the same command resumes; later calls can
    add models and seeds or raise the budget. Tables are written to OUT/compare.md and OUT/compare.json,
    figures to OUT/figures.

    Groups of models are 'models' (the paper's twelve), 'baselines' (all but Heterformer), 'ablations'
    (Heterformer without one of its parts), 'dimensions' (smaller textless embeddings) and 'all'.

    Example: heterformer compare papers.net cmp --models heterformer bert --seeds 0 1 2 --max-steps 300

    Args:
        network: A folder that 'heterformer build' wrote.
        out: The folder of the comparison.
        options: Options of all models; a model ignores those that it does not have.
        evaluation: What is compared besides link prediction, and whether learning rates are tuned.
        models: The models to compare: names of models, ablations or groups.
        seeds: Train each model once with each seed; the split stays the same (--split.seed).
        table_only: Train nothing; write tables and figures of the runs that are complete.
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
        comparison = finished_comparison(out, network)
    else:
        opened = Network.open(network)
        comparison = compare_models(
            opened,
            out,
            models,
            seeds,
            options,
            observe=lambda state: write_comparison(state, out),
            evaluation=evaluation,
        )
    write_comparison(comparison, out)
    draw_comparison(comparison, out / "figures")
    console.print(as_table(comparison))
    if comparison.failed:
        failed = ", ".join(f"{row.variant.name} seed {seed.seed}" for row, seed in comparison.failed)
        raise InputError(f"{out}: failed: {failed}; see {out / 'compare.md'}; the same command tries again.")


def plot(path: Annotated[Path, Positional, arg(metavar="PATH")]) -> None:
    """Draw the figures of a comparison or of a run, as PNG files in PATH/figures.

    For a comparison: models side by side, learning curves, the effect of the warm-up, ablations and textless
    dimensions, as far as it has the runs. For a run: its loss and validation curves.

    Args:
        path: A folder that 'heterformer compare' or 'heterformer train' wrote.
    """
    from heterformer.comparison.core import finished_comparison, is_comparison
    from heterformer.comparison.figures import draw_comparison
    from heterformer.training.figure import draw_run
    from heterformer.training.run import Run

    out = path / "figures"
    figures = (
        draw_comparison(finished_comparison(path), out) if is_comparison(path) else draw_run(Run(path), out)
    )
    if not figures:
        raise InputError(f"{path}: nothing to draw yet; figures need complete runs or evaluations.")
    for file in figures:
        print_line(str(file))


def map_nodes(
    run: RunFolder,
    options: Annotated[MapOptions, arg(name="")],
    vectors: Path | None = None,
    out: Path | None = None,
) -> None:
    """Draw a map of a run's nodes by t-SNE of their vectors: RUN/figures/map.png and map.html.

    Colours show labels or, without labels, node types. The page opens in any browser, also offline: point at
    nodes, search by name or id, zoom, and hide classes.

    Args:
        run: A folder that 'heterformer train' wrote.
        options: Which nodes to show, and how to lay them out.
        vectors: Use these vectors, of 'heterformer embed' or any other method, instead of the run's own.
        out: The folder to write into; by default, RUN/figures or, with --vectors, FILE.figures.
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
    """Estimate the memory, disk space, traffic and time that training and embedding a network need.

    Takes the options of 'heterformer train' and, with the prefix --embed, those of 'heterformer embed'. To
    plan for a larger network, give its numbers of nodes:

        heterformer plan NET --batch-size 256 --counts paper=1e8 author=5e7 --pairs-per-second 2000

    Args:
        network: A folder that 'heterformer build' wrote.
        training: Options of the training.
        options: Numbers of processes, size of the network, and speed of a process.
        embed: Options of the embedding.
        model: Heterformer or one of the paper's baselines; '--model NAME --help' lists the options of each.
        config: A YAML file of options (or a run's config.yaml); flags override it.
        preset: 'paper' is the paper's hyper-parameter table; flags and --config override it.
    """
    from heterformer.network.store import Network

    _quiet_transformers()
    from heterformer.plan.core import make_plan
    from heterformer.plan.table import as_json, plan_tables

    estimate = make_plan(Network.open(network), training, embed, options)
    if options.json:
        print_json(as_json(estimate))
    else:
        console.print(plan_tables(estimate))


def _quiet_transformers() -> None:
    """Silence Transformers: our own progress bars are enough. Imported here because it takes seconds."""
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
    "serve": serve,
    "compare": compare,
    "plot": plot,
    "map": map_nodes,
    "split": split,
    "export": export,
    "synth": synth,
    "dataset": dataset,
}
DISTRIBUTED = ("train", "embed", "evaluate")  # run in several processes, too
