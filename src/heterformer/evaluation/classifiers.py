"""What fixed vectors are judged by. To fit a classifier gives a function, and that alone sees the test part.

All are fitted on the training part; the MLP, which must know when to stop, looks at the validation part too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from torch import Tensor, nn
from torch.nn import functional as F

from heterformer.arrays import AnyFloats, Bools
from heterformer.metrics import decided
from heterformer.training.early_stopping import EarlyStopping

Predictor = Callable[[AnyFloats], Bools]  # (n, d) -> (n, C)
Examples = tuple[AnyFloats, Bools]  # (n, d), and the classes that the nodes have (n, C)
ITERATIONS = 200  # of logistic regression: enough for standardised vectors


def standardised(train: AnyFloats) -> Callable[[AnyFloats], NDArray[np.float32]]:
    """Brings features to mean 0 and deviation 1 of the training part; a constant one is only shifted."""
    mean = train.mean(0, dtype=np.float64)
    deviation = train.std(0, dtype=np.float64)
    scale = np.where(deviation > 1e-6 * np.abs(mean), deviation, 1)  # below is rounding
    return lambda vectors: ((vectors - mean) / scale).astype(np.float32)


def fit_majority(train: Examples, multi: bool) -> Predictor:
    """What says the same of every node: its class is the most frequent one.

    Where nodes may have several, it says those that more than half have, if there are any.
    """
    frequency = train[1].mean(0, keepdims=True)  # (1, C)
    answer = decided(frequency - 0.5, multi)
    return lambda vectors: answer.repeat(len(vectors), 0)


def fit_logistic_regression(train: Examples, multi: bool) -> Predictor:
    """scikit-learn's, with its usual regularisation; where nodes may have several classes, one for each."""
    known, classes = train
    scaled = standardised(known)
    single = LogisticRegression(max_iter=ITERATIONS)
    model = OneVsRestClassifier(single) if multi else single
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Label .* is present in all training examples")
        model.fit(scaled(known), classes.astype(int) if multi else classes.argmax(1))

    def predict(vectors: AnyFloats) -> Bools:
        probability = model.predict_proba(scaled(vectors))
        scores = np.full((len(vectors), classes.shape[1]), -1.0)  # (n, C)
        scores[:, slice(None) if multi else model.classes_] = probability - 0.5
        return decided(scores, multi)

    return predict


@dataclass(frozen=True)
class MLP:
    """The paper's classifier: one hidden layer, Adam, early stopping.

    The paper calls it an MLP of 2 layers (Section 4.3) and of 3 layers with hidden dimension 200 (appendix):
    both are so if the first counts matrices and the second rows of units, input, hidden and output. The loss
    is cross entropy: softmax over classes or, where nodes may have several, a sigmoid for each. The weights
    kept are those of the epoch with the lowest validation loss; F1 of a small validation part stands still
    for epochs while the classifier still learns.
    """

    hidden: int
    learning_rate: float
    batch_size: int
    patience: int
    max_epochs: int

    def fit(self, train: Examples, validation: Examples, multi: bool, seed: int) -> Predictor:
        scaled = standardised(train[0])
        (vectors, targets), unseen = (
            (torch.from_numpy(scaled(part[0])), _targets(part[1], multi)) for part in (train, validation)
        )
        model = self._new_model(train[0].shape[1], train[1].shape[1], seed)
        optimizer = torch.optim.Adam(model.parameters(), self.learning_rate, fused=True)
        order = torch.Generator().manual_seed(seed)
        stopping, best = EarlyStopping(self.patience), _weights(model)
        for epoch in range(self.max_epochs):
            for batch in torch.split(torch.randperm(len(vectors), generator=order), self.batch_size):
                optimizer.zero_grad()
                _loss(model(vectors[batch]), targets[batch]).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            with torch.no_grad():
                loss = _loss(model(unseen[0]), unseen[1]).item()
            if stopping.update(-loss, epoch):
                best = _weights(model)
            if stopping.should_stop:
                break
        model.load_state_dict(best)

        def predict(vectors: AnyFloats) -> Bools:
            with torch.no_grad():
                return decided(model(torch.from_numpy(scaled(vectors))).numpy(), multi)

        return predict

    def _new_model(self, width: int, classes: int, seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):  # nobody else's random numbers depend on ours
            torch.manual_seed(seed)
            return nn.Sequential(nn.Linear(width, self.hidden), nn.ReLU(), nn.Linear(self.hidden, classes))


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: values.clone() for name, values in model.state_dict().items()}


def _targets(classes: Bools, multi: bool) -> Tensor:
    """(n, C) floats, or (n,) numbers of classes where each node has one."""
    return torch.from_numpy(classes).float() if multi else torch.from_numpy(classes.argmax(1))


def _loss(logits: Tensor, targets: Tensor) -> Tensor:
    if targets.is_floating_point():
        return F.binary_cross_entropy_with_logits(logits, targets)
    return F.cross_entropy(logits, targets)
