from __future__ import annotations

import polars as pl

from heterformer.prediction.table import prediction_table

BEST = {"top_classes": [["a", "b"]], "top_probabilities": [[0.75, 0.25]]}


def test_one_class() -> None:
    frame = pl.DataFrame({"id": ["p1"], "class": ["a"], "probability": [0.75], **BEST})
    sheet = prediction_table(frame)
    assert sheet.rows == (("p1", "a", "a .7500, b .2500"),)


def test_several_classes() -> None:
    frame = pl.DataFrame(
        {"id": ["p1"], "class": ["a"], "probability": [0.75], **BEST, "classes": [["a", "c"]]}
    )
    assert prediction_table(frame).rows == (("p1", "a, c", "a .7500, b .2500"),)
    assert prediction_table(frame).headings[1] == "classes"


def test_numbers() -> None:
    frame = pl.DataFrame({"id": ["p1"], "prediction": [2001.5]})
    assert prediction_table(frame).rows == (("p1", "2001.5"),)
