"""Commands that compute or measure vectors: embed, evaluate, predict, map, explain."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from heterformer.cli.command_lines import EvaluateCommands
from heterformer.cli.commands.arguments import (
    NodeId,
    OutFile,
    RunFolder,
)
from heterformer.cli.output import print_json, print_line
from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError
from heterformer.evaluation.options import EvaluateOptions
from heterformer.explanation.options import ExplainOptions
from heterformer.maps.options import MapOptions
from heterformer.prediction.options import PredictOptions
from heterformer.progress import console, say
from heterformer.progress import quiet_transformers as _quiet_transformers


def embed(
    run: RunFolder,
    out: OutFile,
    options: Annotated[EmbedOptions, arg(name="")],
    network: Path | None = None,
    since: Path | None = None,
    hide_split: bool = False,
    overwrite: bool = False,
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
        overwrite: Replace vectors that an earlier call wrote there.
        device: Where to compute: a GPU if there is one, or the CPU.
    """
    from heterformer.cli.checks import check_embed

    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    check_embed(run, out, options, network, since, overwrite=overwrite, processes=world_size)
    _quiet_transformers()
    from heterformer.distributed import ProcessGroup, destroy_process_group
    from heterformer.embedding.embed import embed_run, or_anew

    processes = ProcessGroup.from_environment(device)
    kept = None if since is not None or hide_split else _kept_vectors(run, network, options)
    embed_since = partial(
        embed_run,
        run,
        out,
        options,
        network=network,
        device=device,
        processes=processes,
        hide_split=hide_split,
    )
    vectors = embed_since(since=since) if kept is None else or_anew(embed_since, kept)
    destroy_process_group()
    if processes.is_main:
        print_line(f"Wrote vectors of {', '.join(vectors.types)} nodes to {out}.")


def _kept_vectors(run: Path, network: Path | None, options: EmbedOptions) -> Path | None:
    """What a search or an evaluation has computed already."""
    from heterformer.network.store import Network
    from heterformer.search.store import kept_vectors
    from heterformer.training.run import Run

    opened = Run(run)
    return kept_vectors(opened, opened.network() if network is None else Network.open(network), options)


def evaluate(
    path: Annotated[Path, Positional, arg(metavar="RUN")],
    options: Annotated[EvaluateOptions, arg(name="")],
    vectors: Path | None = None,
    network: Path | None = None,
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
        network: Evaluate the run on this network, which may have grown since training: new nodes are reported
            apart, and pairs that are gone are left out.
        out: With --vectors or --network, the folder of the report; by default, FILE.report or
            RUN/NETWORK.report.
    """
    from heterformer.cli.checks import check_evaluate

    if vectors is not None and network is not None:
        raise InputError("--network goes with a run; with --vectors the network comes first.")
    if vectors is None and network is None and out is not None:
        raise InputError("--out needs --vectors or --network; the report of a run is written into the run.")
    check_evaluate(path, vectors, network)
    _quiet_transformers()
    from heterformer.distributed import ProcessGroup, destroy_process_group
    from heterformer.evaluation.page import PAGE, as_json, sheets
    from heterformer.evaluation.report import report_on_run, report_on_vectors

    if vectors is None:
        place, arguments = path, [str(path)]
        if network is not None:
            place = out or path / f"{network.resolve().name}.report"
            arguments += ["--network", str(network), "--out", str(place)]
        processes = ProcessGroup.from_environment(options.device)
        commands = EvaluateCommands(arguments)
        report, about = report_on_run(path, options, commands, processes, network, place)
        destroy_process_group()
        if not processes.is_main:
            return
    else:
        place = out or vectors.with_name(f"{vectors.name}.report")
        commands = EvaluateCommands([str(path), "--vectors", str(vectors), "--out", str(place)])
        report, about = report_on_vectors(vectors, path, place, options, commands)
    if options.json:
        print_json(as_json(report, about))
        return
    for sheet in sheets(report):
        console.print(sheet.table())
    for note in report.notes:
        print_line(note)
    print_line(f"Wrote {place / PAGE}.")


def predict(
    run: RunFolder,
    nodes: Annotated[tuple[str, ...], Positional, arg(metavar="ID")] = (),
    *,
    options: Annotated[PredictOptions, arg(name="")],
    network: Path | None = None,
    out: Path | None = None,
) -> None:
    """Predict the classes or numbers of nodes with a run that has learnt from labels.

    Example: heterformer predict RUN --network grown.net --out predictions.parquet

    Args:
        run: A folder that 'heterformer finetune' wrote.
        nodes: Ids of nodes; by default, all nodes of the type that the run predicts for.
        options: How many classes to list, and how to compute.
        network: Predict for another network of the same types, with nodes that training did not see.
        out: Write the predictions to this Parquet file.
    """
    if not nodes and out is None:
        raise InputError("there is nothing to show: give ids of nodes, or --out FILE for all of them.")
    from heterformer.cli.checks import check_predict

    check_predict(run, nodes, network, out, options)
    _quiet_transformers()
    from heterformer.prediction.core import predict as predict_nodes
    from heterformer.prediction.table import prediction_table

    frame = predict_nodes(run, nodes or None, network=network, out=out, options=options)
    if nodes:
        console.print(prediction_table(frame).table())
    if out is not None:
        print_line(f"Wrote predictions for {len(frame):,} nodes to {out}.")


def explain(run: RunFolder, node: NodeId, options: Annotated[ExplainOptions, arg(name="")]) -> None:
    """Explain a node's vector, or the score of two nodes: what changes without each neighbour and word.

    A run of Heterformer also shows its attention, and each neighbour's share in it. That figure is the
    paper's attention map, of one run or of two:

        heterformer explain RUN P05-3014 --pair P02-1040
        heterformer explain RUN P05-3014 --against RUN_WITHOUT_WARM_UP

    A node without text has neither; it is explained by the neighbours with the closest vectors.

    Args:
        run: A folder that 'heterformer train' wrote.
        node: The node's id or name.
        options: The node's type, a node or a run to compare with, and the output.
    """
    from heterformer.cli.checks import check_explain

    check_explain(run, node, options, options.network)
    _quiet_transformers()
    from heterformer.explanation.core import Explainer, TextExplanation, explain_runs
    from heterformer.explanation.effects import effects_of
    from heterformer.explanation.effects_figure import draw_leave_one_out, leave_one_out_path
    from heterformer.explanation.effects_table import leave_one_out_tables
    from heterformer.explanation.figure import draw_attention, figure_path
    from heterformer.explanation.table import as_json, explanation_tables

    explainer = Explainer(run, network=options.network)
    place = explainer.find(node, options.node_type)
    if place.row in explainer.run.new_rows(explainer.network).get(place.node_type, ()):
        news = f"{place.node_type} {node!r} is not in the network that {run} was trained on"
        say(f"{news}; its vector is made of its text and neighbours alone.")
    explanations = () if options.pair else explain_runs(explainer, node, options)
    effects = effects_of(explainer, node, options)
    if not options.json:
        tables = [] if effects is None else [leave_one_out_tables(effects, options.top)]
        console.print(*tables, *(explanation_tables(e, options.top) for e in explanations), sep="\n")
    figure = effects_figure = None
    with_attention = [e for e in explanations if isinstance(e, TextExplanation)]
    if effects is not None and not (with_attention and options.figure):
        effects_figure = options.figure or leave_one_out_path(run, effects)
        draw_leave_one_out(effects, effects_figure, options.top)
    if with_attention:
        figure = options.figure or figure_path(run, explanations[0].node.id, options.against)
        draw_attention(with_attention, figure, options.top)
    if options.json:
        print_json(as_json(explanations, figure, effects, effects_figure))
    else:
        for path in (effects_figure, figure):
            if path is not None:
                print_line(str(path))


def map_nodes(
    run: RunFolder,
    options: Annotated[MapOptions, arg(name="")],
    vectors: Path | None = None,
    network: Path | None = None,
    out: Path | None = None,
    landmarks: int = 10_000,
    atlas: Path | None = None,
) -> None:
    """Draw a map of a run's nodes by t-SNE of their vectors: RUN/map/map.png and map.html.

    Colours show labels or, without labels, node types. The page opens in any browser, also offline: point at
    nodes, search by name or id, zoom, and hide classes. All nodes, of millions too, are laid out for the
    explorer of 'heterformer serve' and kept in the run.

    Args:
        run: A folder that 'heterformer train' wrote.
        options: Which nodes to show, and how to lay them out.
        vectors: Use these vectors, of 'heterformer embed' or any other method, instead of the run's own.
        network: Map another network of the same types, with nodes that training did not see.
        out: The folder to write into; by default, RUN/map, with --network RUN/NETWORK.map, with --vectors
            FILE.map.
        landmarks: In the layout of all nodes, how many t-SNE places; the others are placed beside them.
        atlas: Write all nodes with x, y, names, labels and neighbours into this Parquet file, which Apple's
            embedding-atlas opens.
    """
    from heterformer.cli.checks import check_map

    if landmarks < 1:
        raise InputError(f"--landmarks is {landmarks}, expected at least 1.")
    if atlas is not None and vectors is not None:
        raise InputError("--atlas is a table of the run's own vectors; leave out --vectors.")
    check_map(run, options, vectors, network, out)
    _quiet_transformers()
    from heterformer.maps.draw import draw_run_map

    for file in draw_run_map(run, options, vectors, out, landmarks, atlas, network):
        print_line(str(file))
