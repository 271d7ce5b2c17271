"""A student's encoder as an ONNX file, checked against the student."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heterformer.errors import InputError, OptionError
from heterformer.models.student import Student

FILE = "onnx/model.onnx"
TOLERANCE = 1e-4
INPUTS = ("input_ids", "attention_mask")
CHECKED = (
    "graph neural networks",
    "A much longer title, which has more words than the other one: learning to rank, to sort and to search",
    "",
)


class _LastHiddenState(nn.Module):
    """The encoder as sentence-transformers and Text Embeddings Inference expect it in ONNX."""

    def __init__(self, plm: Any) -> None:
        super().__init__()
        self.plm = plm

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states: Tensor = self.plm(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return states


def check_onnx_is_installed() -> None:
    """Refuse before hours of work."""
    from heterformer.distillation.options import DistillOptions

    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        problem = f"needs {error.name}, which is not installed: pip install 'heterformer[onnx]'."
        raise OptionError(DistillOptions, "onnx", problem) from None


def export_onnx(student: Student, folder: Path) -> float:
    """Write ``onnx/model.onnx``; gives the largest difference of its vectors from the student's."""
    path = folder / FILE
    path.parent.mkdir()
    tokens = _tokens(student, list(CHECKED))
    texts, length = torch.export.Dim("texts"), torch.export.Dim("length", max=student.max_tokens)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter's own business
        torch.onnx.export(
            _LastHiddenState(student.plm.eval()),
            tuple(torch.from_numpy(tokens[name]) for name in INPUTS),
            path,
            input_names=list(INPUTS),
            output_names=["last_hidden_state"],
            dynamic_shapes={name: {0: texts, 1: length} for name in INPUTS},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    difference = float(np.abs(onnx_vectors(path, student, CHECKED) - student.encode(CHECKED)).max())
    if not difference <= TOLERANCE:
        problem = f"vectors of the exported model differ by {difference:.2g}, expected at most {TOLERANCE:g}"
        raise InputError(f"{path.name}: {problem}; distil without onnx.")
    return difference


def onnx_vectors(path: Path, student: Student, texts: tuple[str, ...]) -> NDArray[np.float32]:
    """(n, d): vectors of texts by the file, pooled as the student does."""
    import onnxruntime

    tokens = _tokens(student, list(texts))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (states,) = session.run(None, {name: tokens[name] for name in INPUTS})  # (n, t, d)
    mask = tokens["attention_mask"][:, :, None]
    vectors = states[:, 0] if student.readout == "cls" else (states * mask).sum(1) / mask.sum(1)
    if student.normalize:
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors, dtype=np.float32)


def _tokens(student: Student, texts: list[str]) -> dict[str, NDArray[np.int64]]:
    limit = student.max_tokens
    tokens = student.tokenizer(texts, padding=True, truncation=True, max_length=limit, return_tensors="np")
    return {name: tokens[name].astype(np.int64) for name in INPUTS}
