"""A student of the tiny run, distilled once."""

from __future__ import annotations

from functools import cache

from heterformer.distillation.core import Distillation
from heterformer.distillation.entry import distill
from heterformer.network.build.frames import temporary_folder
from tests.search.searching import tiny_run

QUICK = {"batch_size": 16, "negatives": 32, "learning_rate": 3e-3, "device": "cpu"}


@cache
def tiny_distillation() -> Distillation:
    """Of two epochs, with its ONNX file; nobody may change it."""
    return distill(tiny_run(), temporary_folder() / "student", epochs=2, onnx=True, **QUICK)
