"""``heterformer evaluate``: do all tasks, then leave a page, its figures and its values behind."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from heterformer.distributed import ProcessGroup
from heterformer.embedding.node_vectors import Vectorized, given_vectors, hidden_pairs
from heterformer.embedding.vectors import noted_precision
from heterformer.errors import InputError, OptionError
from heterformer.evaluation.core import Evaluation, evaluate_run, evaluate_vectors, with_chosen_precision
from heterformer.evaluation.notes import Notes
from heterformer.evaluation.open_run import open_run
from heterformer.evaluation.options import EvaluateOptions
from heterformer.evaluation.page import ReportCommands, Reported, about_run, about_vectors, write_report
from heterformer.files import file_lock
from heterformer.maps.core import Selection
from heterformer.maps.draw import draw_map
from heterformer.network.store import Network
from heterformer.training.figure import draw_run


def report_on_run(
    path: Path,
    options: EvaluateOptions,
    commands: ReportCommands,
    processes: ProcessGroup | None = None,
    network: Path | None = None,
    out: Path | None = None,
) -> Reported:
    """Evaluate a run, on its own network or another one.

    The page is report.md in ``out``, by default the run; of several processes the first one writes it.
    """
    out = out or path
    _check_folder(out)
    processes = processes or ProcessGroup()
    with ExitStack() as held:
        with processes.main_process_first():
            if options.split is not None:
                problem = "applies only to vectors; a run uses its own split."
                raise OptionError(options, "split", problem)
            opened = open_run(path, options.device, network)
            options = with_chosen_precision(options, opened)
            _check_map(opened.network, options)
            if processes.is_main:
                held.enter_context(_report_lock(out))
        if processes.world_size > 1:
            opened.model.to(processes.device)
        evaluation, vectors = evaluate_run(opened, options, processes)
        if not processes.is_main:
            return evaluation, {}
        out.mkdir(parents=True, exist_ok=True)
        figures = draw_run(opened.run, out / "figures") + _map(evaluation, vectors, out, options)
        about = about_run(opened, commands)
        return write_report(evaluation, about, commands, out, figures, options, options.precision)


def report_on_vectors(
    file: Path, folder: Path, out: Path, options: EvaluateOptions, commands: ReportCommands
) -> Reported:
    """Evaluate vectors from elsewhere; the page is OUT/report.md."""
    network = Network.open(folder)
    vectors = given_vectors(file, network)
    _check_folder(out)
    _check_map(network, options)
    with _report_lock(out):
        evaluation = evaluate_vectors(network, vectors, options, hidden_pairs(file))
        out.mkdir(parents=True, exist_ok=True)
        figures, about = _map(evaluation, vectors, out, options), about_vectors(file, network, vectors)
        return write_report(evaluation, about, commands, out, figures, options, noted_precision(file))


def _check_folder(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file, expected a folder for the report.")


def _report_lock(out: Path) -> AbstractContextManager[None]:
    """Of two evaluations into one folder the second waits, then keeps the results of the first."""
    waiting = f"{out}: another process is evaluating it; waiting for it."
    return file_lock(out.with_name(f"{out.name}.evaluate"), waiting=waiting)


def _check_map(network: Network, options: EvaluateOptions) -> None:
    """A mistake shows before the tasks are done."""
    if options.wants("map"):
        Selection.choose(network, network.schema.node_types, options.map)


def _map(evaluation: Evaluation, vectors: Vectorized, out: Path, options: EvaluateOptions) -> list[Path]:
    """The map of the nodes that have vectors."""
    if not options.wants("map"):
        return []
    notes, drawn = Notes(evaluation.notes), list[Path]()
    with notes.trying("No map", "map"):
        drawn = draw_map(evaluation.network, vectors, out / "figures", options.map)
    notes.insist("map", options.tasks, drawn)
    return drawn
