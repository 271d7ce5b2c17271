"""How learning rates change over a run: a function of the step, so that a resumed run needs no state."""

from __future__ import annotations

import math
from typing import Literal

Schedule = Literal["constant", "linear", "cosine"]


def rate_factor(schedule: Schedule, step: int, total_steps: int, warm_up: float) -> float:
    """What every learning rate is multiplied by in a step, counted from 0.

    Over the share ``warm_up`` of all steps it rises linearly, then it falls to 0, in a line or half
    a cosine. A constant schedule is 1 throughout.
    """
    if schedule == "constant":
        return 1.0
    rising = max(1, round(warm_up * total_steps))
    if step < rising:
        return (step + 1) / rising
    progress = min(1.0, (step - rising) / max(1, total_steps - rising))
    return 1 - progress if schedule == "linear" else (1 + math.cos(math.pi * progress)) / 2
