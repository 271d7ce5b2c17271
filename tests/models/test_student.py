"""A student's folder as sentence-transformers reads it, and as we do."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heterformer.models.student import Student
from tests.distillation.students import tiny_distillation
from tests.learning import tiny_network

TEXTS = ["Kernel methods for graphs", "", "byzantine", "graph " * 60]


def test_sentence_transformers_reads_the_folder_and_gives_the_same_vectors() -> None:
    from sentence_transformers import SentenceTransformer

    path = tiny_distillation().path
    theirs = SentenceTransformer(str(path), device="cpu", local_files_only=True)
    ours = Student.open(path)
    np.testing.assert_allclose(theirs.encode(TEXTS), ours.encode(TEXTS), atol=1e-5)
    assert theirs.max_seq_length == ours.max_tokens == tiny_network().schema.max_tokens
    assert theirs.similarity_fn_name == "dot"


def test_a_student_of_normalized_vectors_says_so(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    ours = Student.open(tiny_distillation().path)
    mean = Student(ours.plm, ours.tokenizer, "mean", True, 12, {"weights": "x"})
    mean.save(tmp_path, {"README.md": "#"})
    theirs = SentenceTransformer(str(tmp_path), device="cpu", local_files_only=True)
    again = Student.open(tmp_path)
    assert (again.readout, again.normalize, again.max_tokens, again.about) == (
        "mean",
        True,
        12,
        {"weights": "x"},
    )
    np.testing.assert_allclose(theirs.encode(TEXTS), again.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(again.encode(TEXTS), axis=1), 1, atol=1e-5)
    assert theirs.similarity_fn_name == "cosine"


def test_one_text_and_none() -> None:
    student = Student.open(tiny_distillation().path)
    np.testing.assert_allclose(
        student.encode("byzantine"), student.encode(["graph", "byzantine"])[1], atol=1e-6
    )
    assert student.encode([]).shape == (0, 16)
