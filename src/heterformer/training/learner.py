"""What one step needs and does: the model, its optimisers, its batches, and Eq. 13."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from heterformer.batches.batch import PairBatch, Texts
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import TrainingBatches
from heterformer.batches.randomness import stream_key
from heterformer.batches.slices import slices
from heterformer.batches.visible import VisibleNetwork
from heterformer.device import chosen_device, chosen_precision
from heterformer.distributed import ProcessGroup
from heterformer.errors import InputError
from heterformer.models.contract import NodeEncoder
from heterformer.models.plm.backbone import text_vectors
from heterformer.models.plm.loading import load_tokenizer
from heterformer.models.plm.minilm import backbone_path
from heterformer.models.plm.packing import pack
from heterformer.models.registry import untrained_model
from heterformer.network.store import Network
from heterformer.network.tokens import open_tokens
from heterformer.training.cached_states import CachedStates
from heterformer.training.gradient_cache import pair_vectors, replay
from heterformer.training.initial_weights import new_model
from heterformer.training.losses import link_prediction_loss
from heterformer.training.optimizers import Optimizers
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Position, Run
from heterformer.training.schedule import rate_factor

DROPOUT = 3  # the purpose of dropout's random stream, beside those of batches


class Learner:
    """A model of a run with all that it learns from. What happens around the steps is the trainer's."""

    def __init__(
        self, network: Network, run: Run, options: TrainingOptions, processes: ProcessGroup | None = None
    ) -> None:
        self.network, self.run, self.options = network, run, options
        self.processes = processes or ProcessGroup()
        cpu = options.device == "cpu" or self.processes.on_cpus
        precision = chosen_precision(options.precision, chosen_device("cpu" if cpu else "auto"))
        self.accelerator = Accelerator(mixed_precision=precision, cpu=cpu)
        self.goes_on = run.started
        with self.processes.main_process_first():
            self.split = run.split(network, options.split)
            if len(self.split.train) < 2:
                found = f"{len(self.split.train)} training pair, whose key would have no others beside it"
                raise InputError(f"{network.path}: there is {found}; expected at least two pairs.")
            self.model = self._model().to(self.accelerator.device)
            self.tokenizer = self._tokenizer()
            self.tokens = open_tokens(network, self.tokenizer)
        self.optimizers = Optimizers(self.model, options)
        self.position = Position()
        self.batches = TrainingBatches(
            Batcher(VisibleNetwork.for_training(network, self.split), self.tokens),
            self.split.train,
            options.batch_size * self.processes.world_size,
            options.seed,
            false_negatives=options.false_negatives == "mask",
            fresh=options.positives == "fresh",
            share=(self.processes.rank, self.processes.world_size),
            neighbor_dropout=options.neighbor_dropout,
            neighbor_dropout_of=options.neighbor_dropout_of,
        )
        with self.processes.main_process_first():
            self.cached = self._cached_states()

    def _model(self) -> NodeEncoder:
        if self.goes_on:
            return untrained_model(self.run.path)
        return new_model(self.options, self.network)

    def _tokenizer(self) -> Any:
        name = self.options.init or self.options.model.backbone
        try:
            tokenizer = load_tokenizer(self.run.path if self.goes_on else backbone_path(name))
        except (OSError, ValueError, InputError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"the tokenizer of backbone {name!r} cannot be loaded: {reason}") from error
        known = self.model.config.backbone_config.vocab_size
        if not len(tokenizer.all_special_ids) < len(tokenizer) <= known:  # without files it has no words
            found = f"the tokenizer of backbone {name!r} has {len(tokenizer)} tokens"
            raise InputError(f"{found}, expected words, and at most the {known} that the model has.")
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
        )
        return cached if cached.shape[0] or cached.hard_negatives else None

    def _text_states(self, texts: Texts) -> Tensor:
        with self.accelerator.autocast():
            states: Tensor = self.model.text_states(texts)  # (U, S, d)
        return states

    def _text_vectors(self, texts: Texts) -> Tensor:
        with self.accelerator.autocast():
            return text_vectors(self.model.backbone, pack(texts), self.model.config.readout)  # (U, d)

    def _total_steps(self) -> int:
        most = self.options.epochs * self.batches.steps_per_epoch - self.batches.skipped
        return min(most, self.options.max_steps or most)

    def _step(self, batch: PairBatch) -> float:
        """One step of Eq. 13, of this process's pairs against all keys; gives its part of the loss."""
        self.model.train()
        parts = slices(batch, self.options.micro_batch)
        empty = torch.empty(0, self.model.width, device=self.accelerator.device)
        vectors = pair_vectors(parts, self._vectors, empty)
        mask = batch.false_negatives
        with self.accelerator.autocast():
            keys_of_all = self.processes.all_gather_with_gradients(vectors.keys)  # (W * P, d)
            candidates = keys_of_all
            if self.options.hard_negatives:
                negatives_of_all = self.processes.all_gather_with_gradients(vectors.negatives)
                candidates = torch.cat([keys_of_all, negatives_of_all])  # (W * P + N, d)
            scores = self.model.scores(vectors.queries, candidates)
            mask = None if mask is None else mask.to(scores.device)
            loss = link_prediction_loss(scores, mask, batch.pair_offset, len(keys_of_all))
        self.accelerator.backward(loss)
        replay(parts, self._vectors, vectors, self.optimizers.row_parameters)
        self.processes.all_reduce_gradients(self.optimizers.dense_parameters, self.optimizers.row_parameters)
        if self.options.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.optimizers.dense_parameters, self.options.max_grad_norm)
        self.optimizers.step(self._rate_factor())
        self.optimizers.zero_grad()
        return float(loss.detach())

    def _rate_factor(self) -> float:
        schedule, warm_up = self.options.schedule, self.options.schedule_warm_up
        return rate_factor(schedule, self.position.step, self._total_steps(), warm_up)

    def take_step(self, number: int) -> int:
        """Take the step of this number, whatever came before, to measure it; gives its pairs."""
        self.position.step = number
        batch = self.batches.of_run_step(number)
        self._step(batch)
        return batch.pairs

    def _vectors(self, batch: PairBatch) -> Tensor:
        """(2p + n, d): dropout, like the batch, is a function of the step and of the slice's place in it."""
        place = (batch.pair_offset,) if batch.pair_offset else ()
        key = stream_key(DROPOUT, self.options.seed, self.position.step, *place)
        torch.manual_seed(int(key >> np.uint64(1)))
        states = None
        if self.cached is not None:
            states, batch = self.cached.of(batch), batch.without_neighbor_texts()
        batch = replace(batch, false_negatives=None).to(self.accelerator.device)
        with self.accelerator.autocast():
            vectors: Tensor = self.model.encode_batch(batch) if states is None else self.model(batch, states)
        return vectors
