"""The exported encoder."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from heterformer.distillation import onnx_export
from heterformer.distillation.onnx_export import FILE, check_onnx_is_installed, export_onnx, onnx_vectors
from heterformer.errors import InputError
from heterformer.models.student import Student
from tests.distillation.students import tiny_distillation

TEXTS = ("byzantine kernel", "graph", "a poem of many words " * 4)


def test_the_file_gives_the_same_vectors_for_any_number_and_length_of_texts() -> None:
    result = tiny_distillation()
    student = Student.open(result.path)
    for texts in (TEXTS, TEXTS[:1]):
        theirs = onnx_vectors(result.path / FILE, student, texts)
        np.testing.assert_allclose(theirs, student.encode(texts), atol=1e-4)
    assert result.onnx_difference is not None
    assert result.onnx_difference < 1e-4


def test_a_file_that_differs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    student = Student.open(tiny_distillation().path)
    monkeypatch.setattr(
        onnx_export, "onnx_vectors", lambda path, student, texts: student.encode(texts) + 0.01
    )
    with pytest.raises(InputError, match=r"differ by 0\.01"):
        export_onnx(student, tmp_path)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r"onnx needs onnxruntime, .* pip install 'heterformer\[onnx\]'"):
        check_onnx_is_installed()
