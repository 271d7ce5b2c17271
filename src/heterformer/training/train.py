"""``train``: begins or resumes a run, which one process or several work on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from heterformer.device import chosen_device, chosen_training_precision, say_if_slow
from heterformer.distributed import ProcessGroup
from heterformer.errors import InputError
from heterformer.files import file_lock
from heterformer.network.store import Network
from heterformer.progress import say
from heterformer.temporary import remove_path, remove_scratch
from heterformer.training.callbacks import Callback
from heterformer.training.keywords import training_options
from heterformer.training.loop import Trainer
from heterformer.training.model_card import write_model_card
from heterformer.training.options import TrainingOptions
from heterformer.training.reading import read_as_saved
from heterformer.training.resuming import keep_earlier_defaults
from heterformer.training.run import Run


def train(
    network: Network | Path | str,
    path: Path | str,
    options: TrainingOptions | None = None,
    *,
    callback: Callback | None = None,
    **keywords: Any,
) -> Run:
    """Train a model on a network, or resume a run that was stopped.

    Textless nodes are warmed up first, then the model learns to predict links, with early stopping. Ctrl-C
    saves a checkpoint; the same call resumes. Under torchrun or ``accelerate launch`` all processes make the
    same call and train one run together.

    Args:
        network: The network, or its folder.
        path: The folder of the run, new or to be resumed.
        options: Model, split and training options. Instead they can be given as keywords.
        callback: Called with a ``TrainingProgress`` (step, epoch, loss, validation) after every step, and
            once more if the last step is validated when training ends. Training stops if it returns True;
            the run is then complete, and a later call resumes it. With several processes the main one
            calls it.
        keywords: Options by the names that they have on the command line, with underscores for dashes:
            ``model="bert"``, ``textless_dim=32``, ``max_steps=100``. Those of the split are a dictionary:
            ``split={"hold_out": 0.1}``.

    Returns:
        The run: ``run.model()`` is the best model, ``run.metrics()`` what was logged.

    Example:
        >>> from heterformer import Network, train
        >>> run = train(Network.open("papers.net"), "runs/papers", max_steps=100)
        >>> run = train("papers.net", "runs/bert", model="bert", callback=lambda now: now.step == 50)
    """
    network = network if isinstance(network, Network) else Network.open(network)
    run, options = Run(path), training_options(options, keywords)
    options = options_of_run(run, options)
    processes = ProcessGroup.from_environment(options.device)
    is_new = False
    with ExitStack() as held:
        with processes.main_process_first():
            if processes.is_main:
                held.enter_context(_training_lock(run))
                is_new = not run.path.exists()
                remove_scratch(run.path)
                with _removed_on_failure(run, is_new):
                    _begin(run, network, options, processes.world_size)
        say_if_slow(options.precision, chosen_device(options.device))
        processes.check_all_equal(options, network.fingerprint, run.exists and run.config(), run.started)
        with _removed_on_failure(run, is_new):
            trainer = Trainer(network, run, options, processes, callback)
            try:
                if (reason := trainer.train()) and processes.is_main:
                    write_model_card(run, network, trainer.model, trainer.early, reason)
                    run.write_digests()
                    trainer.say_result(reason)
            finally:
                for sink in trainer.sinks:
                    sink.close()
        processes.barrier()
    return run


def options_of_run(run: Run, options: TrainingOptions) -> TrainingOptions:
    """With what only the machine, or the run that is resumed, can decide."""
    if options.neighbor_states == "cached" and not options.model.states_can_be_cached:
        states = run.options().neighbor_states if run.started else "live"
        if states == "live":
            name = options.model.display_name
            say(f"{run.path}: {name} has no PLM, so its neighbour states are live, not cached.")
            options = replace(options, neighbor_states="live", refresh_every="auto")
    if run.started:
        saved = run.options().model
        options = replace(options, model=read_as_saved(options.model, saved))
        options, kept = keep_earlier_defaults(run.options(), options)
        options = options.resolved()
        if kept:
            say(f"{run.path}: resumes with {', '.join(kept)}, the default when it was started.")
        if options.precision == "auto":
            options = replace(options, precision=run.options().precision)
    precision = chosen_training_precision(options.precision, chosen_device(options.device))
    return replace(options, precision=precision)


def _training_lock(run: Run) -> AbstractContextManager[None]:
    """Of two trainings on one run folder the second is refused. The lock's file is beside the folder."""
    busy = f"{run.path}: another process is training it; wait until it is done or name another run folder."
    return file_lock(run.path.with_name(f"{run.path.name}.train"), busy=busy)


@contextmanager
def _removed_on_failure(run: Run, is_new: bool) -> Iterator[None]:
    """A new run that fails before its first checkpoint leaves nothing: nothing is lost."""
    try:
        yield
    except (InputError, OSError):
        if is_new and not run.started:
            remove_path(run.path)
        raise


def _begin(run: Run, network: Network, options: TrainingOptions, processes: int) -> None:
    if run.started:
        run.check(network, options, processes)
        run.write_config(network, options)  # budgets may have changed
    else:
        run.start(network, options)
