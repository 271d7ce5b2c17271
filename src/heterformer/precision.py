"""Names of the precisions that matrix products are computed in; ``device`` decides what 'auto' means."""

from __future__ import annotations

from typing import Any, Literal

ComputedPrecision = Literal["float32", "bf16"]
"""What vectors were computed in."""
Precision = Literal["float32", "bf16", "auto"]
"""Of vectors: 'auto' is bf16 where the processor has instructions for it."""
TrainingPrecision = Literal["float32", "bf16", "fp16", "auto"]
"""Of training, which can also scale its loss."""
EARLIER_PRECISIONS = {"no": "float32", False: "float32"}  # as saved runs have it; YAML reads no as false


def current_precision(name: Any) -> Any:
    """A precision by its present name; what is none is left to whoever checks it."""
    known = isinstance(name, (str, bool)) and name in EARLIER_PRECISIONS
    return EARLIER_PRECISIONS[name] if known else name


def precision_of_vectors(training: TrainingPrecision) -> ComputedPrecision:
    """In which precision a run is evaluated by whoever trained it: its own, or float32 for fp16."""
    return "bf16" if training == "bf16" else "float32"
