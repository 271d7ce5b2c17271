"""The metrics of a run as TensorBoard curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heterformer.errors import OptionError


class TensorBoard:
    """Writes the numbers of each metrics line, nested ones under their path."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            problem = "needs its package: pip install 'heterformer[tensorboard]'."
            raise OptionError(None, "tensorboard", problem) from None
        self._writer = SummaryWriter(str(folder))

    def log(self, step: int, values: dict[str, Any], prefix: str = "") -> None:
        for name, value in values.items():
            if isinstance(value, dict):
                self.log(step, value, f"{prefix}{name}/")
            elif isinstance(value, (int, float)):
                self._writer.add_scalar(prefix + name, value, step)
        self._writer.flush()
