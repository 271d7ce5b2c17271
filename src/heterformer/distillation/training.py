"""The training of a student: regression to stored vectors, and ranking of the network's own keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import AdamW

from heterformer.arrays import Ints
from heterformer.batches.batch import Texts
from heterformer.batches.false_negatives import false_negative_masks
from heterformer.batches.visible import VisibleNetwork
from heterformer.distillation.options import DistillOptions
from heterformer.errors import InputError
from heterformer.metrics import metric_heading, ranking_metrics
from heterformer.models.contract import NodeEncoder
from heterformer.models.inference import each_text
from heterformer.models.student import Student
from heterformer.network.schema import NodeType
from heterformer.network.split.split import Split
from heterformer.network.tokens import PackedTokens
from heterformer.progress import progress_bar, say
from heterformer.ranking import in_batch_ranks
from heterformer.training.losses import loss_at_widths
from heterformer.training.schedule import rate_factor

WARM_UP = 0.05  # share of the steps over which the learning rate rises
WEIGHT_DECAY = 1e-3
SCALE_ROWS = 1024  # stored vectors that lengths are estimated from


class StoredVectors:
    """The vectors to learn, of all text-rich nodes, by text row."""

    def __init__(self, matrices: Mapping[NodeType, Any], tokens: PackedTokens) -> None:
        self._matrices, self.tokens = matrices, tokens
        offsets = sorted((offset, node_type) for node_type, offset in tokens.text_offset.items())
        self._types = [node_type for _, node_type in offsets]
        self._offsets = np.array([offset for offset, _ in offsets])

    def __call__(self, text_rows: Ints) -> Tensor:
        """(n, d): the vectors of the nodes that have these texts."""
        types = np.searchsorted(self._offsets, text_rows, side="right") - 1
        width = self._matrices[self._types[0]].shape[1]
        vectors = np.empty((len(text_rows), width), dtype=np.float32)
        for number in np.unique(types):
            chosen = types == number
            rows = text_rows[chosen] - self._offsets[number]
            vectors[chosen] = self._matrices[self._types[number]][rows]
        return torch.from_numpy(vectors)

    def of_nodes(self, node_type: NodeType, rows: Ints) -> Tensor:
        """(n, d): the vectors of nodes of one type, textless ones too."""
        return torch.from_numpy(np.asarray(self._matrices[node_type][rows], dtype=np.float32))


@dataclass
class StudentTrainer:
    """Teaches a student, step by step; keeps the weights that validate best."""

    student: Student
    stored: StoredVectors
    visible: VisibleNetwork
    split: Split
    model: NodeEncoder
    options: DistillOptions
    best: float = -1.0

    def __post_init__(self) -> None:
        schema = self.visible.network.schema
        self.relation = schema.predicted[0]
        if (end := schema.textless_end(self.relation)) is not None:
            problem = f"{self.relation.name!r}, predicted first, joins {end} nodes, which have no text"
            raise InputError(f"{self.visible.network.path}: {problem}; a student learns from pairs of texts.")
        hidden = self.visible.hidden_texts(self.stored.tokens)
        self.text_rows = np.setdiff1d(np.arange(len(self.stored.tokens)), hidden)
        targets = np.arange(schema.counts[self.relation.target])
        self.candidates = np.setdiff1d(targets, self.visible.hidden.get(self.relation.target, []))
        places = np.unique(np.linspace(0, len(self.text_rows) - 1, SCALE_ROWS).astype(np.int64))
        sample = self.text_rows[places]
        self.scale = float(self.stored(sample).square().sum(1).mean())
        if not self.student.normalize:
            self._start_at_scale(sample)
        self.optimizer = AdamW(
            self.student.plm.parameters(), lr=self.options.learning_rate, weight_decay=WEIGHT_DECAY
        )

    @torch.no_grad()
    def _start_at_scale(self, sample: Ints) -> None:
        """Scale the encoder's output to fit the stored vectors: neighbours make them longer.

        An encoder ends with a normalisation of its states, whose gain would take long to learn that.
        """
        own, stored = student_vectors(self.student, self.stored.tokens, sample), self.stored(sample)
        factor = float((own * stored).sum() / own.square().sum())
        last = [module for module in self.student.plm.modules() if isinstance(module, nn.LayerNorm)][-1]
        for parameter in (last.weight, last.bias):
            if parameter is not None and factor > 0:
                parameter.mul_(factor)

    @property
    def total_steps(self) -> int:
        steps = self.options.epochs * self.steps_per_epoch
        return min(steps, self.options.max_steps or steps)

    @property
    def steps_per_epoch(self) -> int:
        return max(1, len(self.split.train) // self.options.batch_size)

    def train(self) -> int:
        """Take all steps; leaves the student with its best weights and gives their step."""
        best_step, best_weights = 0, dict[str, Tensor]()
        with progress_bar("distilling", self.total_steps) as bar:
            for step in range(self.total_steps):
                loss = self._step(step)
                bar.advance()
                bar.describe(f"loss {loss:.3f}")
                is_last = step + 1 == self.total_steps
                if is_last or (step + 1) % self.steps_per_epoch == 0:
                    prec = self.validation_prec()
                    figure = f"validation {metric_heading('prec')} of queries read alone {prec:.4f}"
                    say(f"step {step + 1}: {figure}")
                    if prec > self.best:
                        self.best, best_step = prec, step + 1
                        weights = self.student.plm.state_dict().items()
                        best_weights = {name: value.detach().cpu().clone() for name, value in weights}
        self.student.plm.load_state_dict(best_weights)
        return best_step

    def _step(self, step: int) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.learning_rate * rate_factor("linear", step, self.total_steps, WARM_UP)
        torch.manual_seed(self.options.seed * 1_000_003 + step)
        loss = self.loss(step)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        self.optimizer.step()
        return float(loss.detach())

    def loss(self, step: int) -> Tensor:
        """The loss of a step: a function of the seed and the step."""
        options, device = self.options, self.student.plm.device
        self.student.plm.train()
        epoch, of_epoch = divmod(step, self.steps_per_epoch)
        order = np.random.default_rng([options.seed, epoch]).permutation(len(self.split.train))
        pairs = self.split.train[order[of_epoch * options.batch_size :][: options.batch_size]]
        rng = np.random.default_rng([options.seed, epoch, of_epoch])
        queries, keys = (self._text_rows(side, pairs) for side in (0, 1))
        others = rng.choice(self.text_rows, options.batch_size)
        texts, positions = np.unique(np.concatenate([queries, keys, others]), return_inverse=True)
        packed, offsets = self.stored.tokens.gather(texts)
        vectors = self.student.vectors(
            Texts(torch.from_numpy(packed).to(device), torch.from_numpy(offsets).to(device))
        )
        targets = self.stored(texts).to(device)
        regression = (vectors - targets).square().sum(1).mean() / self.scale
        negatives = np.unique(rng.choice(self.candidates, options.negatives))
        rows = np.concatenate([pairs[:, 1], negatives])
        candidates = self.stored.of_nodes(self.relation.target, rows).to(device)  # (P + N, d)
        whole = slice(0, len(pairs))
        (mask,) = false_negative_masks(self.visible, [pairs], [whole], negatives=[negatives])
        own = vectors[torch.from_numpy(positions[: len(pairs)]).to(device)]
        ranking = loss_at_widths(self.model, own, candidates, torch.from_numpy(mask).to(device))
        return regression + options.ranking_weight * ranking

    def _text_rows(self, side: int, pairs: Ints) -> Ints:
        """The text rows of the queries or keys; keys without text have none."""
        node_type = (self.relation.source, self.relation.target)[side]
        offset = self.stored.tokens.text_offset.get(node_type)
        rows: Ints = np.empty(0, dtype=np.int64) if offset is None else pairs[:, side] + offset
        return rows

    def validation_prec(self) -> float:
        """PREC of the validation pairs, queries being texts that the student reads."""
        schema = self.visible.network.schema
        shown = VisibleNetwork.for_validation(self.visible.network, self.split)
        pairs = shown.without_hidden(self.split.validation, self.relation)
        queries = student_vectors(self.student, self.stored.tokens, self._text_rows(0, pairs))
        keys = self.stored.of_nodes(self.relation.target, pairs[:, 1])
        key_rows = torch.from_numpy(np.ascontiguousarray(pairs[:, 1]))
        ranks = in_batch_ranks(queries, keys, schema.test_batch_size, self.model.scores, key_rows)
        return ranking_metrics({"in_batch": ranks.numpy()})["prec"]


def student_vectors(student: Student, tokens: PackedTokens, text_rows: Ints) -> Tensor:
    """(n, d): the student's vectors of some texts of the network."""
    student.plm.eval()
    return each_text(student.vectors, tokens, text_rows, student.plm.device)
