"""What can be refused at once: paths, types, ids and names, before a library of tensors is imported.

Each function is called by the command of its name. The features check the same again when they run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

from heterformer.cli.flags import search_flags, similar
from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError, OptionError, ReportedElsewhereError
from heterformer.explanation.options import ExplainOptions
from heterformer.files import check_new
from heterformer.maps.options import MapOptions
from heterformer.plan.options import PlanOptions
from heterformer.prediction.options import PredictOptions
from heterformer.recommendation.options import RecommendOptions
from heterformer.search.options import SearchOptions
from heterformer.training.options import TrainingOptions

if TYPE_CHECKING:
    from heterformer.network.store import Network

P = ParamSpec("P")


def is_local_main() -> bool:
    """Whether this is the main process of this machine (local rank 0)."""
    return int(os.environ.get("WORLD_SIZE", "1")) == 1 or os.environ.get("LOCAL_RANK", "0") == "0"


def _reported_once(check: Callable[P, None]) -> Callable[P, None]:
    """A check that all processes of a machine make, and whose error the main one reports."""

    @wraps(check)
    def checked(*arguments: P.args, **options: P.kwargs) -> None:
        try:
            check(*arguments, **options)
        except InputError as error:
            if not is_local_main():
                raise ReportedElsewhereError from error
            raise

    return checked


@_reported_once
def check_train(network: Path, run: Path, options: TrainingOptions) -> None:
    """The network, the run folder, and what the model starts from."""
    from heterformer.models.registry import model_name
    from heterformer.network.split.split import SplitTable
    from heterformer.network.store import Network
    from heterformer.training.run_folder import RunFolder

    opened = Network.open(network)
    folder = RunFolder(run)
    if folder.exists:
        folder.config()
    else:
        folder.check_free()
    if options.init is not None:
        model_name(options.init)
    if not folder.started:  # a run that is resumed has all it needs
        _check_backbone(options)
    _check_task(opened, options)
    if options.split.file is not None:
        if not Path(options.split.file).is_file():
            raise InputError(f"{options.split.file}: no such file, expected a table of pairs.")
        SplitTable.open(options.split.file)


@_reported_once
def check_finetune(run: Path, out: Path, options: TrainingOptions, *, is_curve: bool) -> None:
    """The run, the place of the output, and the type or column to predict."""
    from heterformer.training.run_folder import RunFolder

    if not is_curve:  # whose folder holds runs
        RunFolder(out).check_free()
    _check_task(_network(run, None), options)


def check_tune(network: Path, options: TrainingOptions) -> None:
    """The network, the backbone, and the type or column to predict."""
    from heterformer.network.store import Network

    _check_task(Network.open(network), options)
    _check_backbone(options)


def check_run(run: Path, network: Path | None = None) -> None:
    """A run that has a network, or another network of the same types."""
    _network(run, network)


def check_network(network: Path) -> None:
    """A network that can be opened."""
    from heterformer.network.store import Network

    Network.open(network)


@_reported_once
def check_evaluate(path: Path, vectors: Path | None, network: Path | None) -> None:
    """The run, or the network and the vectors."""
    if vectors is None:
        _network(path, network)
        return
    check_network(path)
    _check_vectors(vectors, typed=False)


@_reported_once
def check_embed(
    run: Path,
    out: Path,
    options: EmbedOptions,
    network: Path | None,
    since: Path | None,
    *,
    overwrite: bool,
    processes: int = 1,
) -> None:
    """The run, the place of the output, and the types."""
    from heterformer.embedding.place import check_not_written, check_place

    opened = _network(run, network)
    check_place(out, processes)
    if not overwrite:
        check_not_written(out)
    for node_type in options.types:
        if node_type not in opened.schema.node_types:
            known = ", ".join(map(repr, opened.schema.node_types))
            raise OptionError(options, "types", f"has {node_type!r}, expected some of {known}.")
    if since is not None:
        _check_vectors(since)


def check_search(run: Path, query: str, options: SearchOptions) -> None:
    """The run, the network, and every node and type that the query names."""
    from heterformer.models.student_folder import check_student
    from heterformer.network.lookup import node_type_or_none
    from heterformer.search.resolve import resolve_query

    several = options.queries is not None or options.interactive
    if several and (query or options.like):
        problem = "has queries of its own; leave out the query text and {like}."
        raise OptionError(options, "queries" if options.queries else "interactive", problem)
    network = _network(run, options.network)
    for value in options.neighbors:
        name = value.partition("=")[0]
        if node_type_or_none(network.schema, name) is None and (hint := similar(name, search_flags())):
            types = ", ".join(map(repr, network.schema.node_types))
            problem = f"'heterformer search' has no option --{name}{hint}"
            raise InputError(f"{problem}, and {name!r} is no node type; the types are {types}.")
    resolve_query(
        network,
        query or "-" * several,
        neighbors=options.neighbors,
        like=options.like,
        like_type=options.like_type,
        types=options.types,
        where=options.where,
    )
    if options.vectors is not None:
        _check_vectors(options.vectors)
    if options.student is not None:
        check_student(options.student)


def check_explain(run: Path, node: str, options: ExplainOptions, network: Path | None) -> None:
    """The runs and the node."""
    from heterformer.network.lookup import find_node, node_type_named

    if options.figure is not None:
        check_new(options.figure)
    if options.against is not None:
        _network(options.against, network)
    opened = _network(run, network)
    for name, named_type, field in (
        (node, options.node_type, "node_type"),
        (options.pair, options.pair_type, "pair_type"),
    ):
        types: Sequence[str] = opened.schema.node_types
        if named_type:
            types = (node_type_named(opened.schema, named_type, ExplainOptions, field),)
        if name:
            find_node(opened, name, types, ExplainOptions, field)


def check_recommend(run: Path, users: Sequence[str], options: RecommendOptions) -> None:
    """The run, and the users, items, type and filter that are named."""
    from heterformer.recommendation.resolve import check_request, resolve_request

    check_request(users, options.likes, options.where)
    network = _network(run, options.network)
    resolve_request(network, users, options.likes, options.type, options.where)


def check_predict(
    run: Path, nodes: Sequence[str], network: Path | None, out: Path | None, options: PredictOptions
) -> None:
    """The run and whether it predicts labels, the nodes, and the place of the output."""
    from heterformer.files import reading
    from heterformer.network.store import Network
    from heterformer.prediction.options import no_head

    if out is not None:
        options.check_out(out)
    opened = _network(run, None) if network is None else Network.open(network)
    if not (config := run / "config.json").is_file():
        return  # not complete: the model may have a head
    with reading(config):
        head = json.loads(config.read_text(encoding="utf-8")).get("head")
        node_type = None if head is None else head["node_type"]
    if node_type is None:
        raise no_head(run)
    if nodes and node_type in opened.schema.counts:
        opened.rows(node_type, list(nodes))


def check_distill(run: Path, out: Path) -> None:
    """The run, and an output that is new."""
    check_new(out)
    _network(run, None)


def check_compare(
    network: Path, out: Path, seeds: Sequence[int], options: TrainingOptions, *, table_only: bool
) -> None:
    """The network, the place of the output unless it is to be there, the seeds, and the backbone."""
    from heterformer.comparison.folder import check_free, is_comparison
    from heterformer.comparison.options import check_seeds

    check_network(network)
    if not table_only:
        check_free(out)
    if not is_comparison(out):  # one that is resumed has all it needs
        _check_backbone(options)
    check_seeds(seeds)


def check_plan(network: Path, options: PlanOptions, training: TrainingOptions) -> None:
    """The network, the types whose numbers are given, and the backbone."""
    from heterformer.network.store import Network

    options.counts_for(Network.open(network).schema.counts)
    _check_backbone(training)


def check_push(path: Path, repository: str) -> None:
    """A run or a student, and a name that a repository may have."""
    from heterformer.models.student_folder import is_student
    from heterformer.publishing.options import check_repository
    from heterformer.training.run_folder import RunFolder

    check_repository(repository)

    if not is_student(path):
        RunFolder(path).config()


def check_plot(path: Path) -> None:
    """A comparison or a run."""
    from heterformer.comparison.folder import is_comparison
    from heterformer.training.run_folder import RunFolder

    if not is_comparison(path):
        RunFolder(path).config()


def check_map(
    run: Path, options: MapOptions, vectors: Path | None, network: Path | None, out: Path | None
) -> None:
    """The run, the place of the output, and the types and classes to show."""
    from heterformer.maps.core import Selection

    if out is not None and out.is_file():
        raise InputError(f"{out}: is a file, expected the folder to write the map into.")
    opened = _network(run, network)
    Selection.choose(opened, opened.schema.node_types, options)
    if vectors is not None:
        _check_vectors(vectors, typed=False)


def _network(run: Path, network: Path | None) -> Network:
    from heterformer.training.run_folder import RunFolder

    return RunFolder(run).open_network(network)


def _check_backbone(options: TrainingOptions) -> None:
    """A folder with a model, or a name that is one of ours or could be a hub's."""
    from heterformer.models.plm.minilm import check_backbone

    check_backbone(options.model.backbone)


def _check_task(network: Network, options: TrainingOptions) -> None:
    """The type or the column that labels are of, if any are learnt from."""
    from heterformer.network.targets import target_type

    if (task := options.supervised_task) is not None:
        target_type(network, task, options.labels)


def _check_vectors(path: Path, typed: bool = True) -> None:
    """Vectors in a folder or a table, as far as headers tell; a table of anybody's need not tell types."""
    from heterformer.embedding.vector_files import opened_folder, table_schema
    from heterformer.files import readable

    place = readable(path)
    if not place.exists():
        raise InputError(f"{path}: no such file or folder, expected vectors of 'heterformer embed'.")
    if place.is_dir():
        opened_folder(place)
    else:
        table_schema(place, typed)
