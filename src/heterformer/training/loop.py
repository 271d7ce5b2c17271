"""The training loop: warm-up, then link prediction with early stopping, resumable at any step."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heterformer.arrays import Ints
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.prefetch import Prefetcher
from heterformer.batches.slices import SlicedBatch
from heterformer.batches.transfer import Transfer
from heterformer.batches.visible import VisibleNetwork
from heterformer.distributed import ProcessGroup
from heterformer.files import CARD, filled, remove_file
from heterformer.metrics import chance_verdict, metric_heading, no_better_than_chance, watchable_metrics
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.network.stratified import VALIDATION
from heterformer.progress import Bar, progress_bar, say
from heterformer.states.pass_vectors import PassVectors
from heterformer.states.store import StateStore
from heterformer.states.vector_cache import VectorsOf
from heterformer.training.averaging import WeightAverage
from heterformer.training.callbacks import Callback, TrainingProgress
from heterformer.training.early_stopping import EarlyStopping
from heterformer.training.head_warm_up import warm_head_up
from heterformer.training.initial_weights import say_if_pairs_were_seen, take_over
from heterformer.training.learner import Learner
from heterformer.training.names import start_from_names
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.signals import interruptible
from heterformer.training.sinks.sink import Sink, numbers, open_sinks
from heterformer.training.validation import (
    chance_prec,
    in_batch_metrics,
    nodes_to_read,
    validated_pairs,
    weighted_means,
)
from heterformer.training.warm_up import warm_up


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
        self.was_complete = run.is_complete
        self.early = EarlyStopping(options.patience)
        self._before_training: dict[str, float] | None = None
        self.average = None if options.average_last is None else WeightAverage(options.average_last)
        # Hidden nodes are for the test alone: no validation pair has one at its ends or as a neighbour.
        visible = VisibleNetwork.for_validation(network, self.split)
        self.validation = self.batcher.showing(visible)
        self.validation_pairs = {
            relation: validated_pairs(visible, self.split, relation)[: options.validation_pairs]
            for relation in network.schema.predicted
            if "link_prediction" in options.tasks
        }
        self.sinks: list[Sink] = open_sinks(run, options) if self.processes.is_main else []

    def train(self) -> str:
        """Train to the end and leave the best model in the run folder; gives why it ended.

        Nothing is given if the run was complete before. The run is complete once its card is written.
        """
        self._restore_or_warm_up()
        if (reason := self._over()) and self.was_complete:
            if self.processes.is_main:
                self.run.write_digests()
            say(f"{self.run.path}: {reason} at step {self.position.step}; nothing to do.")
            return ""
        if self.processes.is_main:
            remove_file(self.run.path / CARD)
        alone = self.processes.world_size == 1
        done = self.position.step
        with (
            interruptible(alone) as interrupted,
            progress_bar("training", self._total_steps(), "steps", completed=done) as bar,
        ):
            self._begin(bar, interrupted)
            self._steps(bar, interrupted)
        if self._stops(interrupted):
            say(f"{self.run.path}: saved at step {self.position.step}; the same command resumes.")
            raise KeyboardInterrupt
        reason = self._over()
        if self.processes.is_main:
            self._save_best_model()
        return reason

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
        if self.cached is not None:
            self.cached.remove()  # of a run that was killed before it had begun, perhaps with other options
        self.position.pairs_per_step = self.batches.batch_size
        if self.processes.is_main:
            self.run.rewind_metrics(-1)
            with filled(self.run.path) as folder:
                self.model.config.save_pretrained(folder)
                self.tokenizer.save_pretrained(folder)
            known = KnownNodes.from_network(self.batches.batcher.visible, self.tokens)
            known.save(self.run.path)
        say_if_pairs_were_seen(self.run, self.network, self.options)
        visible, tokens = self.batches.batcher.visible, self.tokens
        if self.options.init is not None:
            if self.processes.is_main:
                take_over(self.model, Path(self.options.init), visible, tokens, self.run.path)
        else:
            hidden = visible.hidden_texts(tokens)
            self.model.prepare(tokens, self.tokenizer.all_special_ids, hidden)
        if self.options.warm_up.warm_up and self.model.warms_up and self.options.init is None:
            warm_up_options, seed = self.options.warm_up, self.options.seed
            if self.processes.is_main:  # whose model alone is warm afterwards
                start_from_names(self.model, visible, self.tokenizer, known)
            results = warm_up(
                self.model, visible, tokens, warm_up_options, seed, self.processes, self.autocast()
            )
            for result in results:
                self._log(warm_up=asdict(result))
        self.processes.broadcast_weights(self.model)
        if self.supervision is not None and self.options.labels.head_warm_up:
            fitted = warm_head_up(
                self.supervision,
                self.batcher,
                self.validation,
                self.run.path,
                self.options.seed,
                self.processes,
                self.autocast(),
            )
            self._log(head_warm_up=asdict(fitted))
        self.position.seconds_before = self.processes.broadcast(time.monotonic() - started)
        self._save()

    def _begin(self, bar: Bar, interrupted: list[int]) -> None:
        """Validate before the first step, unless that is done, with the states of the first refresh.

        What steps are held against uses no patience up. Only a warm head makes it a candidate for the best
        model: it predicts what the vectors are worth as they are.
        """
        if self.position.step or self._has_logged("before_training"):
            return
        started = time.monotonic()
        if not self._over() and not self._refresh(bar, interrupted):
            return
        bar.describe("before the first step")
        stored = None if self.cached is None else self.cached.store
        before = self._validation_metrics("validating before the first step", stored)
        self._log(before_training=before)
        self._before_training = before
        head_is_warm = self.supervision is not None and self.options.labels.head_warm_up
        is_best = head_is_warm and self.early.update(before[self.options.watched], 0, counts=False)
        if is_best and self.processes.is_main:
            self.run.save_best(self.model)
        self.position.seconds_before += self.processes.broadcast(time.monotonic() - started)
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
            now = f"{batches.batch_size} pairs per step instead of {before}"
            say(f"{self.run.path}: {now}, from pair {pair:,} of the epoch.")
        position.pairs_per_step = batches.batch_size
        batches.skipped = position.epoch * batches.steps_per_epoch + position.step_of_epoch - position.step

    def _steps(self, bar: Bar, interrupted: list[int]) -> None:
        prefetched: AbstractContextManager[Prefetcher[SlicedBatch] | None] = nullcontext()
        if self.links is not None:
            transfer = Transfer(self.device) if self.device.type == "cuda" else None
            prefetched = Prefetcher(self.links, self.slice_batch, transfer)
        with prefetched as ahead:
            self._take_steps(bar, interrupted, ahead)
        self._save()

    def _take_steps(self, bar: Bar, interrupted: list[int], ahead: Prefetcher[SlicedBatch] | None) -> None:
        started = saved = time.monotonic()
        before, loss = self.position.seconds, None
        while not self._over() and not self._stops(interrupted):
            if not self._refreshed(bar, interrupted):
                break
            position = self.position
            pairs = None if ahead is None else ahead.batch(position.epoch, position.step_of_epoch)
            part = self._step(pairs, self._labelled(position.step))
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
        """See to the states of this step and note their refresh in the metrics; false if interrupted."""
        if not self._refresh(bar, interrupted):
            return False
        about = {} if self.cached is None or self.cached.store is None else self.cached.store.about
        if about.get("step") == self.position.step:  # in a resumed run, its line has been forgotten
            self._log(refresh={"texts": about["texts"], "seconds": about["seconds"]})
        return True

    def _refresh(self, bar: Bar, interrupted: list[int]) -> bool:
        """See to it that the neighbours' states are there, if they are cached; false if interrupted."""
        cached, step = self.cached, self.position.step
        if cached is not None and cached.needs_refresh(step):
            if step % cached.every:
                say(f"{self.run.path}: computing the neighbours' states of step {step} anew.")
            with bar.paused(), closing(cached.refresh(step, self._total_steps())) as progress:
                for read, texts in progress:
                    bar.describe(f"refreshing states, {read:,} of {texts:,} texts")
                    if self._stops(interrupted):
                        return False
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

    def _has_logged(self, name: str) -> bool:
        lines = self.run.metrics() if self.processes.is_main else []
        return bool(self.processes.broadcast(any(name in line for line in lines)))

    def _evaluate(self, counts: bool = True) -> dict[str, float]:
        """Validate the model and, if asked for, the mean of weights; the better one may be the best so far.

        An evaluation that does not count is due to the budget's end: a resumed run knows nothing of it.
        """
        metrics = self._before_training if self.position.step == 0 else None  # the same weights
        metrics = metrics or self._validation_metrics("validating")
        watched = self.options.watched
        best = self.early.update(metrics[watched], self.position.step, counts)
        if best and self.processes.is_main:
            self.run.save_best(self.model)
        lines = {"validation": metrics}
        if self.average is not None:
            average = self.average.including(self.model)
            if average.count > 1:
                with average.in_place(self.model):
                    lines["average"] = self._validation_metrics("validating the mean of weights")
                    if self.early.update(lines["average"][watched], self.position.step, counts=False):
                        best = True
                        if self.processes.is_main:
                            self.run.save_best(self.model)
            if counts:
                self.average = average
        self._log(epoch=self.position.epoch, seconds=round(self.position.seconds, 1), **lines)
        mean = f", of the mean of weights {lines['average'][watched]:.4f}" if "average" in lines else ""
        values = ", ".join(f"{metric_heading(name)} {metrics[name]:.4f}" for name in self._shown_metrics())
        say(
            f"step {self.position.step}, epoch {self.position.epoch}: validation {values}{mean}"
            f"{' (best so far)' * best}"
        )
        return metrics

    def _shown_metrics(self) -> tuple[str, ...]:
        """The metrics of a line about a validation: the watched one, then two of each task."""
        names = (name for task in self.options.tasks for name in watchable_metrics(task)[:2])
        return tuple(dict.fromkeys((self.options.watched, *names)))

    def _validation_metrics(self, stage: str, stored: StateStore | None = None) -> dict[str, float]:
        """All figures, under the bar of the steps. ``stored`` has states that the present weights gave."""
        with progress_bar(stage, self._nodes_of_validation(), "nodes", shown=False) as bar:
            sampler = evaluation_sampler(self.options.seed)
            vectors = PassVectors(
                self.model, self.validation, sampler, self.run.path, bar.advance, stored=stored
            )
            metrics = self._link_metrics(vectors) if self.links is not None else {}
            if self.supervision is not None:
                own = self.supervision.metrics(self.validation, VALIDATION, self.autocast(), vectors)
                metrics |= own
            return metrics

    def _nodes_of_validation(self) -> int:
        """How many nodes this process reads to validate, each once."""
        labelled: dict[NodeType, Ints] = {}
        if self.supervision is not None:
            rows = self.supervision.targets.of_part(VALIDATION).rows
            labelled = {self.supervision.head.config.node_type: rows}
        size = self.network.schema.test_batch_size
        return nodes_to_read(self.validation_pairs, size, labelled, self.processes)

    def _link_metrics(self, vectors: VectorsOf) -> dict[str, float]:
        """The figures of the validation pairs; of several relations their means by shares and each one's."""
        schema = self.network.schema
        figures = {
            relation.name: in_batch_metrics(
                self.model,
                self.validation,
                pairs,
                schema.test_batch_size,
                self.options.seed,
                self.processes,
                self.autocast(),
                relation,
                None if self.links is None else self.links.log_frequencies.get(relation.name),
                vectors,
            )
            for relation, pairs in self.validation_pairs.items()
        }
        if len(figures) == 1:
            return next(iter(figures.values()))
        return weighted_means(figures, schema.shares)

    def _log(self, **values: Any) -> None:
        if not self.processes.is_main:
            return
        self.run.log(step=self.position.step, **values)
        if self.sinks:
            logged = dict(numbers(values))
            for sink in self.sinks:
                sink.log(self.position.step, logged)

    def _over(self) -> str:
        """Why there is nothing more to do, or nothing."""
        options, position = self.options, self.position
        if self.early.should_stop:
            heading = metric_heading(self.options.watched)
            return f"no better validation {heading} in {self.early.waited} evaluations"
        if position.epoch >= options.epochs:
            return f"all {options.epochs} epochs are done"
        if options.max_steps is not None and position.step >= options.max_steps:
            return f"the limit of {options.max_steps} steps is reached"
        spent = position.seconds_before + position.seconds
        if options.max_minutes is not None and spent >= 60 * options.max_minutes:
            return f"the limit of {options.max_minutes:g} minutes is reached"
        return "the callback stopped it" if self.stopped_by_callback else ""

    def _status(self, loss: float) -> str:
        heading = metric_heading(self.options.watched)
        figure = f", {heading} {self.early.best:.3f}" if self.early.best_step >= 0 else ""
        pace = self.position.seconds / self.position.step
        return f"epoch {self.position.epoch}, loss {loss:.3f}{figure}, {pace:.2f} s/step"

    def _save(self) -> None:
        if self.processes.is_main:
            self.run.save_checkpoint(self.model, self.optimizers, self.position, self.early, self.average)

    def _save_best_model(self) -> None:
        """Leave the best model, ready for ``from_pretrained``, in the run folder."""
        if self.cached is not None:
            self.cached.remove()
        self.run.load_best(self.model)
        if self.supervision is not None:
            self.supervision.calibrate(self.validation, self.autocast())
            self.run.save_best(self.model)
        with filled(self.run.path) as folder:
            self.model.save_pretrained(folder)

    def say_result(self, reason: str) -> None:
        """Say why training ended, how good the model is, and what to do next."""
        if self.options.watched == "prec":
            self._say_if_no_better_than_chance()
        heading, following = metric_heading(self.options.watched), "evaluate"
        if self.supervision is not None:
            following = "predict"
        say(
            f"{self.run.path}: {reason}; best validation {heading} {self.early.best:.4f} at step "
            f"{self.early.best_step}. Next: heterformer {following} {self.run.path}"
        )

    def _say_if_no_better_than_chance(self) -> None:
        shares, size = self.network.schema.shares, self.network.schema.test_batch_size
        every = self.validation_pairs.items()
        chance = sum(shares[relation.name] * chance_prec(pairs, size) for relation, pairs in every)
        count = sum(len(pairs) for _, pairs in every)
        if no_better_than_chance(self.early.best, chance, count):
            best = f"the best validation {metric_heading('prec')}, {self.early.best:.4f}"
            say(f"{self.run.path}: {best}, {chance_verdict(chance, count)}.")
