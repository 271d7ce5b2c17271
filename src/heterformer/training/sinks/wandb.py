"""The metrics of a run in Weights & Biases; with ``WANDB_MODE=offline`` alone in ``wandb`` beside the run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from heterformer.training.flat_options import flat_options
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run


class WeightsAndBiases:
    """Logs into the project that the option names; a resumed run goes on in the same place."""

    def __init__(self, run: Run, options: TrainingOptions) -> None:
        import wandb

        number = hashlib.blake2b(str(run.path.resolve()).encode(), digest_size=6).hexdigest()
        self._run = wandb.init(
            project=options.wandb,
            name=run.path.name,
            id=number,
            resume="allow",
            dir=os.environ.get("WANDB_DIR") or str(run.path.parent),  # its links lead out of a run
            config=flat_options(options),
            settings=wandb.Settings(silent=True, console="off", save_code=False, disable_git=True),
        )

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        self._run.log(dict(numbers), step=step)

    def close(self) -> None:
        self._run.finish()
