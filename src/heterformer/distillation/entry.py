"""The folder of a student: trained, and written with its card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from heterformer.distillation.card import student_card
from heterformer.distillation.core import Distillation, distilled_student
from heterformer.distillation.onnx_export import check_onnx_is_installed, export_onnx
from heterformer.distillation.options import DistillOptions
from heterformer.evaluation.open_run import open_run
from heterformer.files import CARD, check_new, new_folder
from heterformer.options import with_keywords


def distill(
    run: Path | str, out: Path | str, options: DistillOptions | None = None, **keywords: Any
) -> Distillation:
    """Distil a run's model into a plain text encoder.

    The student has the run's text encoder and learns the vectors that the run's model gives to the nodes
    with their neighbours, from their texts alone. It serves queries, new items and machines that do not have
    the network. Vectors to learn from do not show the run's held-out pairs.

    Args:
        run: A folder that ``train`` wrote.
        out: The folder to write, in the form of sentence-transformers; it must not exist.
        options: Epochs, batch size, learning rate. Instead they can be given as keywords.
        keywords: Options by the names that they have on the command line, with underscores for dashes:
            ``epochs=1``, ``onnx=True``.

    Returns:
        The folder, and PREC, MRR and NDCG of the test pairs, queries being read by the student and by the
        run's model.

    Example:
        >>> from heterformer import Searcher, Student, distill
        >>> distill("runs/papers", "papers-student", epochs=1).test["student"]["prec"]
        >>> Student.open("papers-student").encode("news recommendation").shape
        (384,)
        >>> answer = Searcher("runs/papers", student="papers-student").search("news recommendation")
    """
    out, options = Path(out), with_keywords(options or DistillOptions(), keywords)
    check_new(out)
    if options.onnx:
        check_onnx_is_installed()
    opened = open_run(run, options.device)
    result, student = distilled_student(opened, out, options)
    with new_folder(out) as folder:  # whole or not at all
        student.save(folder, {CARD: student_card(result, student, opened, options)})
        if options.onnx:
            result = replace(result, onnx_difference=export_onnx(student, folder))
    return result
