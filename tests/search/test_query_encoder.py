"""The vector of a query is the vector that a node with its text and its neighbours would have."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from heterformer.batches.batcher import Batcher
from heterformer.batches.sampling import SeededSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.errors import InputError
from heterformer.models.inference import center_vectors
from heterformer.models.student import Student
from heterformer.network.lookup import Node
from heterformer.network.schema import NodeType
from heterformer.search.query_encoder import QueryEncoder
from heterformer.search.searcher import Searcher
from heterformer.training.run import Run
from tests.distillation.students import tiny_distillation
from tests.learning import tiny_network, tiny_tokens
from tests.search.searching import tiny_run


@cache
def encoder() -> QueryEncoder:
    return Searcher(tiny_run()).encoder


def vector_of(row: int, fan_out: dict[NodeType, int]) -> NDArray[np.float32]:
    """A paper's own vector, with so many neighbours of each type."""
    batcher = Batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens(), fan_out)
    model, sampler = Run(tiny_run()).model(), SeededSampler(np.uint64(0))
    return center_vectors(model, batcher, "paper", np.array([row]), sampler)[0].numpy()


def around(row: int) -> list[Node]:
    """All neighbours of a paper."""
    nodes = []
    for node_type in tiny_network().schema.node_types:
        adjacency = tiny_network().adjacency("paper", node_type)
        rows = adjacency.neighbor[adjacency.indptr[row] : adjacency.indptr[row + 1]]
        nodes += [Node(node_type, int(r)) for r in rows]
    return nodes


def uncited() -> int:
    """A paper that cites others and is cited by none, so that its flags say all of its edges."""
    source, target = tiny_network().edges("cites")
    return int(np.setdiff1d(source, target)[-1])


def test_a_nodes_text_with_its_neighbours_has_the_nodes_vector() -> None:
    row, everything = uncited(), dict.fromkeys(tiny_network().schema.node_types, 1000)
    (text,), neighbors = tiny_network().texts("paper", [row]), around(row)
    assert {n.node_type for n in neighbors} == {"paper", "author", "venue"}
    found = encoder().encode(text, neighbors)
    np.testing.assert_allclose(found, vector_of(row, everything), atol=1e-5)
    for left_out in ("paper", "author", "venue"):
        kept = [n for n in neighbors if n.node_type != left_out]
        assert np.abs(encoder().encode(text, kept) - found).max() > 1e-4
        np.testing.assert_allclose(
            encoder().encode(text, kept), vector_of(row, everything | {left_out: 0}), atol=1e-5
        )


def test_queries_at_once_do_not_disturb_each_other() -> None:
    texts = tiny_network().texts("paper", range(12))
    neighbors = [around(row) for row in range(12)]
    expected = [encoder().encode(text, near) for text, near in zip(texts, neighbors, strict=True)]
    before = {n: v.clone() for n, v in encoder().encoder.model.state_dict().items()}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(encoder().encode, texts * 3, neighbors * 3))
    assert all(np.array_equal(a, b) for a, b in zip(found, expected * 3, strict=True))
    after = encoder().encoder.model.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_a_text_alone_has_the_vector_of_a_node_without_neighbours() -> None:
    for row in (0, 7, 42):
        (text,) = tiny_network().texts("paper", [row])
        np.testing.assert_allclose(encoder().encode(f"  {text}\n"), vector_of(row, {}), atol=1e-5)


def test_a_long_text_is_cut_where_texts_of_the_network_are() -> None:
    words = " ".join(tiny_network().texts("paper", range(8))).split()
    room = tiny_network().schema.max_tokens - 2
    assert len(words) > room
    long, cut, shorter = (encoder().encode(" ".join(w)) for w in (words, words[:room], words[: room - 1]))
    assert np.array_equal(long, cut)
    assert not np.array_equal(long, shorter)


def test_a_student_reads_the_query_in_the_place_of_the_model() -> None:
    path = tiny_distillation().path
    searcher = Searcher(tiny_run(), student=path)
    vector = searcher.encode("kernel methods")
    np.testing.assert_array_equal(vector, Student.open(path).encode("kernel methods"))
    assert np.abs(vector - encoder().encode("kernel methods")).max() > 1e-3
    assert searcher.search("kernel methods", top=3).rankings[0].hits
    with pytest.raises(InputError, match="reads texts alone"):
        searcher.text("kernel methods", [Node("author", 0)])


def test_a_student_of_another_model_is_refused(tmp_path: Path) -> None:
    shutil.copytree(tiny_distillation().path, tmp_path / "other")
    (tmp_path / "other" / "heterformer.json").write_text('{"weights": "another"}')
    with pytest.raises(InputError, match="was distilled from another model"):
        Searcher(tiny_run(), student=tmp_path / "other").encode("kernel methods")
