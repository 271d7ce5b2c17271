"""When to stop: pure bookkeeping that knows nothing of models or files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class EarlyStopping:
    """Stops after ``patience`` evaluations in a row without a new best figure (higher is better)."""

    patience: int
    best: float = float("-inf")
    best_step: int = -1
    waited: int = 0

    def update(self, figure: float, step: int, counts: bool = True) -> bool:
        """Take in a figure; true if it is the best so far. Unless it ``counts`` it uses no patience up."""
        if figure > self.best:
            self.best, self.best_step, self.waited = figure, step, 0
            return True
        self.waited += counts
        return False

    @property
    def should_stop(self) -> bool:
        return self.waited >= self.patience
