"""What stands below the tables of classification and clustering."""

from __future__ import annotations

import pytest

from heterformer.evaluation.classification import CLASSIFIERS, ClassificationResult, Scores
from heterformer.evaluation.clustering import ClusteringResult
from heterformer.evaluation.core import Classified, Clustered
from heterformer.evaluation.label_tables import classification_table, clustering_table
from heterformer.metrics import Repeated


@pytest.mark.parametrize(
    ("count", "divisions", "starts"),
    [
        (1, "1 division 7:1:2, of fixed vectors", "1 start; nodes"),
        (
            2,
            "2 divisions 7:1:2, of fixed vectors, ± standard deviation",
            "2 starts, ± standard deviation; nodes",
        ),
    ],
)
def test_one_repeat_has_no_deviation(count: int, divisions: str, starts: str) -> None:
    figure = Repeated.of([0.5] * count)
    scores = dict.fromkeys(CLASSIFIERS, Scores(figure, figure))
    classes, parts = {"a": 10, "b": 10}, ((14, 2, 4),) * count
    told = ClassificationResult(20, classes, (), False, 1.0, parts, 0.001, scores)
    table = classification_table([Classified("paper", "transductive", told)], "classification")
    assert table.note.endswith(divisions)
    clusters = ClusteringResult(20, classes, figure, figure)
    assert starts in clustering_table([Clustered("paper", clusters)], "clustering").note
