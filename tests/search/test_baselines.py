"""Runs of other models than Heterformer, searched in the network that they know and in one that has grown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heterformer.cli.main import main
from heterformer.embedding.embed import embed
from heterformer.models.options import ModelName
from heterformer.network.lookup import Node
from heterformer.search.searcher import Searcher
from tests.embedding.growing import first_run, grown_state
from tests.embedding.test_baselines import HETEROGENEOUS, NAMES
from tests.failing import Failed


@pytest.mark.parametrize("name", NAMES)
def test_a_grown_network_is_searched(name: ModelName) -> None:
    run, grown = first_run(name), grown_state().built()
    searcher = Searcher(run.path, network=grown.path)
    vectors = embed(run.model(), grown)
    (row,) = grown.rows("paper", ["new-1"])
    given = [Node("author", int(grown.rows("author", ["new author"])[0]))] if name in HETEROGENEOUS else []
    for query in (searcher.text("kernel methods", given), searcher.like(Node("paper", int(row)))):
        found = searcher.rank(query, "paper", 300)
        scores = dict(zip(grown.ids("paper"), vectors["paper"] @ query.vector, strict=True))
        assert {"new-2"} <= {hit.id for hit in found.hits}
        assert [h.score for h in found.hits] == pytest.approx([scores[h.id] for h in found.hits], abs=1e-4)
    if given:
        assert not np.allclose(
            searcher.text("kernel methods").vector, searcher.text("kernel methods", given).vector
        )


@pytest.mark.parametrize("name", [n for n in NAMES if n not in HETEROGENEOUS])
def test_neighbours_that_a_model_does_not_look_at_are_refused(
    name: ModelName, failed: Failed, tmp_path: Path
) -> None:
    run = first_run(name)
    author, paper = run.network().ids("author", [0])[0], run.network().ids("paper", [0])[0]
    search = ["search", str(run.path), "kernel methods"]
    said = failed(main, [*search, "--author", author])
    if name == "bert":
        assert said == f"{run.path}: its model (BERT) looks at no neighbours; give the text alone."
        assert failed(main, [*search, "--paper", paper]) == said
    else:
        assert said.endswith("does not look at neighbours of type 'author', only at those of 'paper'.")
        main([*search, "--paper", paper])
