"""Textless nodes that no network has, against the same nodes in a network that has grown."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from heterformer.embedding.embed import embed
from heterformer.embedding.newcomers import NewcomerEncoder
from heterformer.errors import InputError
from heterformer.network.build.frames import temporary_folder
from heterformer.network.store import Network
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.embedding.growing import first_run, first_state, warmed_up
from tests.learning import tiny_options, tiny_reader
from tests.training.test_attributes import valued_network

NEW = {"one": [3], "two": [0, 7, 30]}  # new authors, and the papers they have written


@pytest.fixture(scope="module")
def run() -> Run:
    return warmed_up(first_state().built(), temporary_folder())


def with_new_authors() -> Network:
    state = first_state()
    papers = list(state.titles)
    edges = tuple((papers[row], author) for author, rows in NEW.items() for row in rows)
    return replace(state, written_by=(*state.written_by, *edges)).built()


def newcomers(run: Run, **more: int) -> NewcomerEncoder:
    return NewcomerEncoder(run.model(), run.network(), **more)


def encoded(encoder: NewcomerEncoder, *nodes: list[int]) -> NDArray[np.float32]:
    (edge_type,) = encoder.model.schema.edge_types_of("author", "paper")
    return encoder.encode("author", [{edge_type: rows} for rows in nodes])


def test_a_newcomer_is_what_it_would_be_in_a_grown_network(run: Run) -> None:
    network, encoder = with_new_authors(), newcomers(run, max_texts=10_000)
    before = {name: tensor.clone() for name, tensor in encoder.model.state_dict().items()}
    found = encoded(encoder, *NEW.values())
    expected = embed(run.model(), network)["author"][network.rows("author", list(NEW))]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert not np.allclose(found[0], found[1], atol=1e-2)
    assert all(torch.equal(before[name], tensor) for name, tensor in encoder.model.state_dict().items())


def test_a_newcomer_does_not_depend_on_others_or_on_the_order(run: Run) -> None:
    encoder = newcomers(run)
    together = encoded(encoder, *NEW.values())
    alone = np.concatenate([encoded(encoder, rows[::-1]) for rows in NEW.values()])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_no_more_texts_are_read_to_learn_a_length_than_allowed(run: Run) -> None:
    """So that the first request of a server is answered in time, whatever the network."""
    few, none = newcomers(run, max_texts=20), newcomers(run, max_texts=0)
    encoded(few, [1])
    encoded(none, [1])
    assert none._factor("author") == 1
    assert few._factor("author") >= 1


def test_attributes_that_nobody_knows_are_read_as_missing() -> None:
    """As those of an author in the network of whom nothing is known."""
    options = tiny_options(tiny_reader(), max_steps=6, textless_attributes=True)
    run = train(valued_network(), temporary_folder() / "run", options)
    network = valued_network({"new": None})
    expected = embed(run.model(), network)["author"][network.rows("author", ["new"])]
    np.testing.assert_allclose(newcomers(run).encode("author", [{}]), expected, rtol=1e-4, atol=1e-5)


def test_a_model_without_vectors_of_textless_nodes_says_so() -> None:
    run = first_run("mean_sage")
    encoder = newcomers(run)
    with pytest.raises(InputError, match=r"the model \(MeanSAGE\) has no vectors of 'author' nodes"):
        encoded(encoder, [1])


def test_a_model_that_does_not_say_what_it_knows() -> None:
    path = shutil.copytree(first_run("heterformer").path, temporary_folder() / "run")
    encoder = newcomers(Run(path))
    shutil.rmtree(path / "known")
    with pytest.raises(InputError, match="does not say which nodes training saw"):
        encoded(encoder, [1])
