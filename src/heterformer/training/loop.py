"""The training loop: warm-up, then link prediction with early stopping, resumable at any step."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.device import chosen_device, chosen_precision, say_if_slow
from heterformer.distributed import ProcessGroup
from heterformer.errors import InputError
from heterformer.files import file_lock, filled, remove_file
from heterformer.metrics import no_better_than_chance
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.store import Network
from heterformer.progress import Bar, progress_bar, say
from heterformer.temporary import remove_path, remove_scratch
from heterformer.training.averaging import WeightAverage
from heterformer.training.callbacks import Callback, TrainingProgress
from heterformer.training.early_stopping import EarlyStopping
from heterformer.training.initial_weights import say_if_pairs_were_seen, take_over
from heterformer.training.keywords import training_options
from heterformer.training.learner import Learner
from heterformer.training.model_card import write_model_card
from heterformer.training.options import TrainingOptions, keep_earlier_defaults
from heterformer.training.run import CARD, Run
from heterformer.training.signals import interruptible
from heterformer.training.tensorboard import TensorBoard
from heterformer.training.validation import chance_prec, in_batch_metrics
from heterformer.training.warm_up import warm_up


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
    run, options = Run(path), training_options(options, keywords).resolved()
    options = options_of_run(run, options)
    processes = ProcessGroup.from_environment(options.device)
    is_new = False
    with ExitStack() as held:
        with processes.main_process_first():
            if processes.is_main:
                held.enter_context(_training_lock(run))
                is_new = not run.path.exists()
                remove_scratch(run.path)
                _begin(run, network, options, processes.world_size)
        say_if_slow(options.precision, chosen_device(options.device))
        processes.check_all_equal(options, network.fingerprint, run.exists and run.config(), run.started)
        try:
            trainer = Trainer(network, run, options, processes, callback)
        except InputError:
            if is_new:
                remove_path(run.path)  # a refused run leaves nothing
            raise
        trainer.train()
        processes.barrier()
    return run


def options_of_run(run: Run, options: TrainingOptions) -> TrainingOptions:
    """With what only the machine, or the run that is resumed, can decide."""
    if run.started:
        options, kept = keep_earlier_defaults(run.options(), options)
        if kept:
            say(f"{run.path}: goes on with {', '.join(kept)}, the default when it was started.")
        if options.precision == "auto":
            options = replace(options, precision=run.options().precision)
    if options.neighbor_states == "cached" and not options.model.states_can_be_cached:
        states = run.options().neighbor_states if run.started else "live"
        if states == "live":
            name = options.model.display_name
            say(f"{run.path}: {name} has no PLM, so its neighbour states are live, not cached.")
            options = replace(options, neighbor_states="live", refresh_every="auto")
    precision = chosen_precision(options.precision, chosen_device(options.device))
    return replace(options, precision=precision)


def _training_lock(run: Run) -> AbstractContextManager[None]:
    """Of two trainings on one run folder the second is refused. The lock's file is beside the folder."""
    busy = f"{run.path}: another process is training it; wait until it is done or name another run folder."
    return file_lock(run.path.with_name(f"{run.path.name}.train"), busy=busy)


def _begin(run: Run, network: Network, options: TrainingOptions, processes: int) -> None:
    if run.started:
        run.check(network, options, processes)
        run.write_config(network, options)  # budgets may have changed
    else:
        run.start(network, options)


class Trainer(Learner):
    """One process that works on a run, alone or with others; of several the first one writes."""

    def __init__(
        self,
        network: Network,
        run: Run,
        options: TrainingOptions,
        processes: ProcessGroup | None = None,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(network, run, options, processes)
        self.callback, self.stopped_by_callback = callback, False
        self.was_finished = run.finished
        self.early = EarlyStopping(options.patience)
        self.average = None if options.average_last is None else WeightAverage(options.average_last)
        self.tensorboard = None
        if options.tensorboard and self.processes.is_main:
            self.tensorboard = TensorBoard(run.path / "tensorboard")
        # Hidden nodes are for the test alone: no validation pair has one at its ends or as a neighbour.
        self.validation = Batcher(VisibleNetwork.for_training(network, self.split), self.tokens)
        self.validation_pairs = self.split.without_hidden(self.split.validation, network.schema.predicted)
        if not len(self.validation_pairs):
            found = "every validation pair has a hidden node at one end"
            raise InputError(
                f"{network.path}: {found}; hold out fewer nodes or take a larger validation part."
            )

    def train(self) -> None:
        self._restore_or_warm_up()
        if (reason := self._over()) and self.was_finished:
            say(f"{self.run.path}: {reason} at step {self.position.step}; nothing to do.")
            return
        if self.processes.is_main:
            remove_file(self.run.path / CARD)
        alone = self.processes.world_size == 1
        with interruptible(alone) as interrupted, progress_bar("training", self._total_steps()) as bar:
            bar.advance(self.position.step)
            self._steps(bar, interrupted)
        if self._stops(interrupted):
            say(f"{self.run.path}: saved at step {self.position.step}; the same command goes on.")
            raise KeyboardInterrupt
        if self.processes.is_main:
            self._finish()

    def _restore_or_warm_up(self) -> None:
        if self.goes_on:
            with self.processes.main_process_first():
                self.position, self.early = self.run.load_checkpoint(self.model, self.optimizers)
                if self.average is not None:
                    self.average = self.run.load_average(self.average)
            self.early.patience = self.options.patience
            self._find_place()
            self.processes.barrier()
            if self.processes.is_main:
                self.run.rewind_metrics(self.position.step)
            return
        started = time.monotonic()
        self.position.pairs_per_step = self.batches.batch_size
        if self.processes.is_main:
            self.run.rewind_metrics(-1)
            with filled(self.run.path) as folder:
                self.model.config.save_pretrained(folder)
                self.tokenizer.save_pretrained(folder)
            KnownNodes.of(self.batches.batcher.visible, self.tokens).save(self.run.path)
        say_if_pairs_were_seen(self.run, self.network, self.options)
        visible, tokens = self.batches.batcher.visible, self.tokens
        if self.options.init is not None:
            if self.processes.is_main:
                take_over(self.model, Path(self.options.init), visible, tokens, self.run.path)
        else:
            hidden = visible.hidden_texts(tokens)
            self.model.prepare(tokens, self.tokenizer.all_special_ids, hidden)
        if self.options.warm_up.warm_up and self.model.warms_up and self.options.init is None:
            asked, seed = self.options.warm_up, self.options.seed
            for result in warm_up(self.model, visible, tokens, asked, seed, self.processes):
                self._log(warm_up=asdict(result))
        self.processes.broadcast_weights(self.model)
        self.position.seconds_before = self.processes.broadcast(time.monotonic() - started)
        self._save()

    def _find_place(self) -> None:
        """Where to go on if a step has now another number of pairs: no pair of the epoch is left out."""
        position, batches = self.position, self.batches
        before = position.pairs_per_step or batches.batch_size
        if before != batches.batch_size:
            seen = position.step_of_epoch * before
            position.step_of_epoch = seen // batches.batch_size
            if position.step_of_epoch >= batches.steps_per_epoch:
                position.epoch, position.step_of_epoch = position.epoch + 1, 0
            pair = position.step_of_epoch * batches.batch_size
            now = f"have {batches.batch_size} from pair {pair:,} of the epoch on"
            say(f"{self.run.path}: steps had {before} pairs and {now}.")
        position.pairs_per_step = batches.batch_size
        batches.skipped = position.epoch * batches.steps_per_epoch + position.step_of_epoch - position.step

    def _steps(self, bar: Bar, interrupted: list[int]) -> None:
        started = saved = time.monotonic()
        before, loss = self.position.seconds, None
        while not self._over() and not self._stops(interrupted):
            if not self._refreshed(bar, interrupted):
                break
            part = self._step(self.batches.batch(self.position.epoch, self.position.step_of_epoch))
            self._advance()
            seconds = before + time.monotonic() - started if self.processes.is_main else 0.0
            self.position.seconds, loss = self.processes.all_reduce(seconds, part)  # one clock for all
            self._log(epoch=self.position.epoch, loss=loss)
            bar.advance()
            bar.describe(self._status(loss))
            validation = self._evaluate() if self._evaluation_due() else None
            self._report(loss, validation)
            save_due = time.monotonic() - saved > 60 * self.options.checkpoint_minutes
            if self.cached is not None and self.cached.needs_refresh(self.position.step):
                save_due = True  # so that a run which is killed afterwards finds these weights
            if (self._evaluation_due() or save_due) and not self._over():
                self._save()
                saved = time.monotonic()
        if not self._stops(interrupted) and not self._evaluated():
            self._report(loss, self._evaluate(counts=False))  # the budget ended here, not the patience
        self._save()

    def _report(self, loss: float | None, validation: dict[str, float] | None) -> None:
        """Tell the callback, which may stop training."""
        if self.callback is None:
            return
        stop, position = False, self.position
        if self.processes.is_main:
            is_best = validation is not None and self.early.best_step == position.step
            stop = bool(
                self.callback(
                    TrainingProgress(
                        position.step, position.epoch, loss, position.seconds, validation, is_best
                    )
                )
            )
        self.stopped_by_callback |= self.processes.any(stop)

    def _stops(self, interrupted: list[int]) -> bool:
        return self.processes.any(bool(interrupted))

    def _refreshed(self, bar: Bar, interrupted: list[int]) -> bool:
        """See to it that the neighbours' states are there, if they are cached; false if interrupted."""
        cached, step = self.cached, self.position.step
        if cached is None:
            return True
        if cached.needs_refresh(step):
            if step % cached.every:
                say(f"{self.run.path}: no stored states serve step {step}; they are made of its weights.")
            with closing(cached.refresh(step, self._total_steps())) as progress:
                for read, texts in progress:
                    bar.describe(f"refreshing states, {read:,} of {texts:,} texts")
                    if self._stops(interrupted):
                        return False
        about = cached.store.about if cached.store is not None else {}
        if about["step"] == step:  # in a run that goes on, its line has been forgotten
            self._log(refresh={"texts": about["texts"], "seconds": about["seconds"]})
        return True

    def _advance(self) -> None:
        self.position.step += 1
        self.position.step_of_epoch += 1
        if self.position.step_of_epoch == self.batches.steps_per_epoch:
            self.position.epoch += 1
            self.position.step_of_epoch = 0

    def _evaluation_due(self) -> bool:
        every = self.options.evaluate_every
        return self.position.step_of_epoch == 0 if every is None else self.position.step % every == 0

    def _evaluated(self) -> bool:
        """Whether the last thing that happened was the evaluation of this very step."""
        last = self.run.metrics()[-1:] if self.processes.is_main else []
        return bool(self.processes.broadcast(any("validation" in line for line in last)))

    def _evaluate(self, counts: bool = True) -> dict[str, float]:
        """Validate the model and, if asked for, the mean of weights; the better one may be the best so far.

        An evaluation that does not count is due to the budget's end: a run that goes on knows nothing of it.
        """
        metrics = self._validation_metrics()
        best = self.early.update(metrics["prec"], self.position.step, counts)
        if best and self.processes.is_main:
            self.run.save_best(self.model)
        lines = {"validation": metrics}
        if self.average is not None:
            average = self.average.including(self.model)
            if average.count > 1:
                with average.in_place(self.model):
                    lines["average"] = self._validation_metrics()
                    if self.early.update(lines["average"]["prec"], self.position.step, counts=False):
                        best = True
                        if self.processes.is_main:
                            self.run.save_best(self.model)
            if counts:
                self.average = average
        self._log(epoch=self.position.epoch, seconds=round(self.position.seconds, 1), **lines)
        mean = f", of the mean of weights {lines['average']['prec']:.4f}" if "average" in lines else ""
        say(
            f"step {self.position.step}, epoch {self.position.epoch}: validation PREC {metrics['prec']:.4f}, "
            f"MRR {metrics['mrr']:.4f}{mean}{' (best so far)' * best}"
        )
        return metrics

    def _validation_metrics(self) -> dict[str, float]:
        return in_batch_metrics(
            self.model,
            self.validation,
            self.validation_pairs[: self.options.validation_pairs],
            self.network.schema.test_batch_size,
            self.options.seed,
            self.processes,
            self.accelerator.autocast(),
        )

    def _log(self, **values: Any) -> None:
        if not self.processes.is_main:
            return
        self.run.log(step=self.position.step, **values)
        if self.tensorboard is not None:
            self.tensorboard.log(self.position.step, values)

    def _over(self) -> str:
        """Why there is nothing more to do, or nothing."""
        options, position = self.options, self.position
        if self.early.should_stop:
            return f"no better validation PREC in {self.early.waited} evaluations"
        if position.epoch >= options.epochs:
            return f"all {options.epochs} epochs are done"
        if options.max_steps is not None and position.step >= options.max_steps:
            return f"the limit of {options.max_steps} steps is reached"
        spent = position.seconds_before + position.seconds
        if options.max_minutes is not None and spent >= 60 * options.max_minutes:
            return f"the limit of {options.max_minutes:g} minutes is reached"
        return "the callback stopped it" if self.stopped_by_callback else ""

    def _status(self, loss: float) -> str:
        figure = f", PREC {self.early.best:.3f}" if self.early.best >= 0 else ""
        pace = self.position.seconds / self.position.step
        return f"epoch {self.position.epoch}, loss {loss:.3f}{figure}, {pace:.2f} s/step"

    def _save(self) -> None:
        if self.processes.is_main:
            self.run.save_checkpoint(self.model, self.optimizers, self.position, self.early, self.average)

    def _finish(self) -> None:
        """Leave the best model, ready for ``from_pretrained``, in the run folder."""
        reason = self._over()
        if self.cached is not None:
            self.cached.remove()
        self.run.load_best(self.model)
        with filled(self.run.path) as folder:
            self.model.save_pretrained(folder)
        write_model_card(self.run, self.network, self.model, self.early, reason)
        pairs = self.validation_pairs[: self.options.validation_pairs]
        chance = chance_prec(pairs, self.network.schema.test_batch_size)
        if no_better_than_chance(self.early.best, chance, len(pairs)):
            problem = f"no better than chance ({chance:.4f}); the model has learnt nothing yet"
            say(f"{self.run.path}: the best validation PREC is {problem}.")
        say(
            f"{self.run.path}: {reason}; best validation PREC {self.early.best:.4f} at step "
            f"{self.early.best_step}. Next: heterformer evaluate {self.run.path}"
        )
