"""Names of precisions, those of earlier versions included."""

from __future__ import annotations

from heterformer.precision import current_precision, precision_of_vectors


def test_earlier_names_are_read_and_others_left_alone() -> None:
    assert current_precision("no") == current_precision(False) == "float32"  # YAML reads no as false
    for name in ("float32", "bf16", "fp16", "auto", "half", True, 16, ["no"]):
        assert current_precision(name) is name


def test_a_run_is_evaluated_in_its_own_precision_but_never_in_fp16() -> None:
    assert precision_of_vectors("bf16") == "bf16"
    assert precision_of_vectors("fp16") == precision_of_vectors("float32") == "float32"
