"""What one step needs and does: the model, its optimisers, its batches, and Eq. 13."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.batches.batch import Batch, PairBatch, Texts
from heterformer.batches.labelled import LabelledBatch, LabelledBatches
from heterformer.batches.pairs import TrainingBatches
from heterformer.batches.positives import log_key_frequencies
from heterformer.batches.randomness import stream_key
from heterformer.batches.slices import SlicedBatch
from heterformer.batches.visible import VisibleNetwork
from heterformer.device import chosen_device, chosen_training_precision, computing_in
from heterformer.distributed import ProcessGroup
from heterformer.errors import InputError
from heterformer.models.contract import NodeEncoder
from heterformer.models.plm.loading import load_tokenizer
from heterformer.models.plm.minilm import backbone_path
from heterformer.models.registry import untrained_model
from heterformer.network.store import Network
from heterformer.network.targets import check_attributes
from heterformer.training.cached_states import CachedStates
from heterformer.training.gradient_cache import pair_vectors, replay
from heterformer.training.initial_weights import new_model
from heterformer.training.loss_scale import LossScale
from heterformer.training.losses import loss_at_widths
from heterformer.training.optimizers import Optimizers
from heterformer.training.options import TrainingOptions
from heterformer.training.reading import read_as_suits
from heterformer.training.run import Position, Run
from heterformer.training.schedule import rate_factor
from heterformer.training.supervision import Supervision, head_config, run_targets

DROPOUT = 3  # the purpose of dropout's random stream, beside those of batches
LABELLED = 1 << 40  # the place of labelled nodes in a step, behind all of its pairs


class Learner:
    """A model of a run with all that it learns from. What happens around the steps is the trainer's."""

    def __init__(
        self, network: Network, run: Run, options: TrainingOptions, processes: ProcessGroup | None = None
    ) -> None:
        self.network, self.run, self.options = network, run, options
        self.processes = processes or ProcessGroup()
        alone = self.processes.world_size == 1
        self.device = chosen_device(options.device) if alone else self.processes.device
        self.precision = chosen_training_precision(options.precision, self.device)
        self.goes_on = run.started
        with self.processes.main_process_first():
            self.split = run.split(network, options.split)
            if "link_prediction" in options.tasks:
                self._check_pairs()
            self.options = options = self._resolved()
            self.model = self._model().to(self.device)
            if options.compile:
                self.model.compile_layers()
            if "link_prediction" in options.tasks:
                self._check_ends()
            self.tokenizer = self._tokenizer()
            self.tokens = self.model.open_tokens(network, self.tokenizer)
        visible = VisibleNetwork.for_training(network, self.split)
        self.batcher = self.model.new_batcher(visible, self.tokens)
        self.supervision = self._supervision()
        self.optimizers = Optimizers(self.model, options)
        self.position = Position()
        self.links = self._link_batches() if "link_prediction" in options.tasks else None
        self.batches = self.links or self._labelled_batches()  # whose passes are the epochs
        with self.processes.main_process_first():
            self.cached = self._cached_states()

    def _log_frequencies(self, fresh: bool) -> dict[str, NDArray[np.float32]]:
        """What is taken from the scores of each relation's keys, for relations that are corrected."""
        corrections, visible = {}, self.batcher.visible
        for name, pairs in self.split.part("train").items():
            relation = self.network.schema.relation(name)
            weight = self.options.correction_of(self.network.schema, relation)
            if weight:
                corrections[name] = weight * log_key_frequencies(visible, pairs, fresh, relation)
        return corrections

    def _link_batches(self) -> TrainingBatches:
        options = self.options
        # All pairs of a query are there if pairs were divided: none need be drawn.
        fresh = options.positives == "fresh" and options.split.divide == "queries"
        return TrainingBatches(
            self.batcher,
            self.split.part("train"),
            options.batch_size * self.processes.world_size,
            options.seed,
            false_negatives=options.false_negatives == "mask",
            fresh=fresh,
            share=(self.processes.rank, self.processes.world_size),
            neighbor_dropout=options.neighbor_dropout,
            neighbor_dropout_of=options.neighbor_dropout_of,
            log_frequencies=self._log_frequencies(fresh),
        )

    def _supervision(self) -> Supervision | None:
        """What is learnt from labels, if anything is; the model of a new run gets a head for it."""
        task, options = self.options.supervised_task, self.options
        if task is None:
            return None
        read = options.model.attributed_types(self.network.schema)
        check_attributes(self.network, task, options.labels, read)
        targets = run_targets(self.network, task, options.labels, self.split)
        if targets.node_type not in self.model.embedded_types:
            problem = f"has no vectors of {targets.node_type} nodes, whose labels are to be learnt"
            raise InputError(f"{options.model.display_name} {problem}; choose another model.")
        if not self.goes_on:
            torch.manual_seed(options.seed)
            self.model.add_head(head_config(targets, options.labels))
        size, at_once = options.batch_size, options.micro_batch
        return Supervision(
            self.model, self.batcher, targets, options.labels, size, options.seed, self.processes, at_once
        )

    def _labelled_batches(self) -> LabelledBatches:
        assert self.supervision is not None
        return self.supervision.batches

    def _of_run_step(self, step: int) -> tuple[PairBatch | None, list[LabelledBatch]]:
        """What this process reads in a step of the run: pairs, and labelled nodes in one batch or several."""
        pairs = None if self.links is None else self.links.of_run_step(step)
        return pairs, self._labelled(step)

    def _labelled(self, step: int) -> list[LabelledBatch]:
        return [] if self.supervision is None else self.supervision.batches.of_run_step(step)

    def _batches_of_run_step(self, step: int) -> list[Batch]:
        pairs, labelled = self._of_run_step(step)
        return [*labelled, *([] if pairs is None else [pairs])]

    def _resolved(self) -> TrainingOptions:
        """The options with every 'auto' decided, which the main process does and writes down for all."""
        if not self.processes.is_main:
            return replace(self.options, model=self.run.options().model).resolved()
        model = read_as_suits(self.options.model, self.network, lambda: self.split.train, self.run.path)
        resolved = replace(self.options, model=model).resolved()
        if resolved != self.options:
            self.run.write_config(self.network, resolved)
        return resolved

    def _model(self) -> NodeEncoder:
        if self.goes_on:
            model = untrained_model(self.run.path)
            model.limit_training()
            return model
        return new_model(self.options, self.network, self.split.hidden)

    def _check_pairs(self) -> None:
        """A single pair has no negatives."""
        for name, pairs in self.split.part("train").items():
            if len(pairs) < 2:
                of_relation = f" of {name!r}" * (len(self.split.pairs) > 1)
                problem = f"{len(pairs)} training pair{of_relation}, whose key would have no others beside it"
                raise InputError(f"{self.network.path}: there is {problem}; expected at least two pairs.")

    def _check_ends(self) -> None:
        """Both ends of what is predicted must have vectors."""
        for relation in self.network.schema.predicted:
            end = self.network.schema.textless_end(relation)
            if end is not None and end not in self.model.embedded_types:
                name = self.options.model.display_name
                problem = f"{name} has no vectors of {end} nodes, which have no text"
                remedy = "choose another model (see docs/recommendation.md)"
                raise InputError(f"{self.network.path}: predicts {relation.name!r}, but {problem}; {remedy}.")

    def _tokenizer(self) -> Any:
        name = self.options.init or self.options.model.backbone
        try:
            tokenizer = load_tokenizer(self.run.path if self.goes_on else backbone_path(name))
        except (OSError, ValueError, InputError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"the tokenizer of backbone {name!r} cannot be loaded: {reason}") from error
        known = self.model.config.backbone_config.vocab_size
        if not len(tokenizer.all_special_ids) < len(tokenizer) <= known:  # without files it has no words
            problem = f"the tokenizer of backbone {name!r} has {len(tokenizer)} tokens"
            raise InputError(f"{problem}, expected words, and at most the {known} that the model has.")
        return tokenizer

    def _cached_states(self) -> CachedStates | None:
        """Nothing if states are live, or if there is no use for any (S = 0)."""
        if self.options.neighbor_states == "live":
            return None
        cached = CachedStates(
            self.model,
            self._text_states,
            self.batches,
            self.run.states,
            self.options.refresh_every,
            self.processes,
            self.options.hard_negatives,
            self._text_vectors,
            self._batches_of_run_step,
        )
        return cached if cached.shape[0] or cached.hard_negatives else None

    def autocast(self) -> torch.autocast:
        """The precision of this training alone: Accelerate's would be that of the whole process."""
        return computing_in(self.precision, self.device)

    def _text_states(self, texts: Texts) -> Tensor:
        with self.autocast():
            states: Tensor = self.model.text_states(texts)  # (U, S, d)
        return states

    def _text_vectors(self, texts: Texts) -> Tensor:
        with self.autocast():
            vectors: Tensor = self.model.text_vectors(texts)  # (U, d)
        return vectors

    def _total_steps(self) -> int:
        most = self.options.epochs * self.batches.steps_per_epoch - self.batches.skipped
        return min(most, self.options.max_steps or most)

    def slice_batch(self, batch: PairBatch) -> SlicedBatch:
        """A batch as a step takes it; a thread may do this ahead."""
        return SlicedBatch.from_pairs(batch, self.options.micro_batch, neighbor_texts=self.cached is None)

    def _step(self, pairs: SlicedBatch | None, labelled: Sequence[LabelledBatch] = ()) -> float:
        """One step of all tasks, of this process's part of the batches; gives its part of the loss."""
        self.model.train()
        loss = 0.0 if pairs is None else self._learn_links(pairs)
        loss += sum(self._learn_labels(batch) for batch in labelled)
        self.processes.all_reduce_gradients(self.optimizers.dense_parameters, self.optimizers.row_parameters)
        if self._unscaled():
            if self.options.max_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(self.optimizers.dense_parameters, self.options.max_grad_norm)
            self.optimizers.step(self._rate_factor())
        self.optimizers.zero_grad()
        return loss

    @property
    def _scale(self) -> LossScale:
        return LossScale(self.position.loss_scale, self.position.loss_scale_steps)

    def _backward(self, loss: Tensor) -> None:
        """Add a loss's gradients, scaled if they are of fp16."""
        scaled = loss * self._scale.value if self.precision == "fp16" else loss
        scaled.backward()  # type: ignore[no-untyped-call]

    def _learn_labels(self, batch: LabelledBatch) -> float:
        """The gradients of the supervised loss of some labelled nodes."""
        assert self.supervision is not None
        read = batch if self.cached is None else batch.without_neighbor_texts()
        with self.autocast():
            loss = self.supervision.loss(self._vectors(read, LABELLED, batch.offset), batch)
        self._backward(loss)
        return float(loss.detach())

    def _learn_links(self, batch: SlicedBatch) -> float:
        """The gradients of Eq. 13, of this process's pairs against all keys; gives its part of the loss."""
        empty = torch.empty(0, self.model.width, device=self.device)
        vectors = pair_vectors(batch.slices, self._pair_vectors, empty)
        mask = batch.false_negatives
        with self.autocast():
            keys_of_all = self.processes.all_gather_with_gradients(vectors.keys)  # (W * P, d)
            candidates = keys_of_all
            if self.options.hard_negatives:
                negatives_of_all = self.processes.all_gather_with_gradients(vectors.negatives)
                candidates = torch.cat([keys_of_all, negatives_of_all])  # (W * P + N, d)
            mask = None if mask is None else mask.to(candidates.device)
            frequencies = batch.log_frequencies
            loss = loss_at_widths(
                self.model,
                vectors.queries,
                candidates,
                mask,
                batch.pair_offset,
                len(keys_of_all),
                batch.task,
                None if frequencies is None else frequencies.to(candidates.device),
            )
        self._backward(loss)
        replay(batch.slices, self._pair_vectors, vectors, self.optimizers.row_parameters)
        return float(loss.detach())

    def _unscaled(self) -> bool:
        """Whether the gradients can be used; those of fp16 are scaled, and overflow now and then."""
        if self.precision != "fp16":
            return True
        scale = self._scale
        finite = scale.unscale([*self.optimizers.dense_parameters, *self.optimizers.row_parameters])
        scale.update(finite)
        self.position.loss_scale, self.position.loss_scale_steps = scale.value, scale.steps
        return finite

    def _rate_factor(self) -> float:
        schedule, warm_up = self.options.schedule, self.options.schedule_warm_up
        return rate_factor(schedule, self.position.step, self._total_steps(), warm_up)

    def take_step(self, number: int) -> int:
        """Take the step of this number, whatever came before, to measure it; gives its pairs."""
        self.position.step = number
        pairs, labelled = self._of_run_step(number)
        self._step(None if pairs is None else self.slice_batch(pairs), labelled)
        return 0 if pairs is None else pairs.pairs

    def _pair_vectors(self, batch: PairBatch) -> Tensor:
        """(2p + n, d): the vectors of a slice of the step's pairs."""
        place = (batch.pair_offset,) if batch.pair_offset else ()
        return self._vectors(batch, *place)

    def _vectors(self, batch: Batch, *place: int) -> Tensor:
        """(B, d): dropout, like the batch, is a function of the step and of the batch's place in it."""
        key = stream_key(DROPOUT, self.options.seed, self.position.step, *place)
        torch.manual_seed(int(key >> np.uint64(1)))
        states = None if self.cached is None else self.cached.for_batch(batch)
        batch = batch.to(self.device)
        with self.autocast():
            vectors: Tensor
            if states is None:
                vectors = self.model.encode_batch(batch)
            else:
                vectors = self.model.encode_with(batch, states)
        return vectors
