"""What new nodes' texts make of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from heterformer.batches.visible import VisibleNetwork
from heterformer.evaluation.open_run import open_run
from heterformer.models.inference import plm_vectors
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens
from heterformer.training import folding
from heterformer.training.folding import FoldedIn, fold_in, folded_rows, length_factor
from heterformer.training.run import Run
from heterformer.training.unseen import texts_next_to
from heterformer.training.warm_up import text_edges
from tests.embedding.growing import first_state, warmed_up


@pytest.fixture(scope="module")
def network() -> Network:
    return first_state().built()


@pytest.fixture(scope="module")
def run(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return warmed_up(network, tmp_path_factory.mktemp("run"))


def folded(run: Run, texts: list[int], network: Network, tokens: PackedTokens) -> torch.Tensor:
    known = KnownNodes.open(run.path)
    assert known is not None
    new = FoldedIn(np.array([0]), np.zeros(len(texts), dtype=np.int64), np.array(texts, dtype=np.int64))
    return fold_in(run.model(), "author", new, tokens, known)


def test_folding_in_says_what_the_texts_say(run: Run, network: Network) -> None:
    """A node next to a text scores higher with it than a node next to other texts does."""
    model, tokens = run.model(), open_run(run.path).batcher.tokens
    _, projection = model.textless.parameters_of("author")
    texts = plm_vectors(model, tokens, np.arange(40))
    nodes = torch.cat([folded(run, [i], network, tokens) for i in range(40)]) @ projection.T
    scores = (nodes @ texts.T).detach()
    own = scores.diagonal()
    others = (scores.sum(0) - own) / 39
    assert (own > others).float().mean() > 0.85


def test_a_node_without_texts_is_the_mean_of_those_known(run: Run, network: Network) -> None:
    model, tokens = run.model(), open_run(run.path).batcher.tokens
    table, _ = model.textless.parameters_of("author")
    found = folded(run, [], network, tokens)
    torch.testing.assert_close(found[0], table.detach().mean(0), rtol=1e-3, atol=1e-3)


def test_a_node_does_not_depend_on_others_that_are_folded_in(run: Run, network: Network) -> None:
    tokens = open_run(run.path).batcher.tokens
    known = KnownNodes.open(run.path)
    assert known is not None
    both = FoldedIn(np.array([0, 1]), np.array([0, 0, 1]), np.array([3, 8, 90]))
    together = fold_in(run.model(), "author", both, tokens, known)
    torch.testing.assert_close(together[:1], folded(run, [3, 8], network, tokens), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(together[1:], folded(run, [90], network, tokens), rtol=1e-3, atol=1e-3)


def test_an_own_text_is_no_negative(run: Run, network: Network) -> None:
    """All texts of the tiny network are among those kept: a node's own one must not count against it."""
    tokens = open_run(run.path).batcher.tokens
    known = KnownNodes.open(run.path)
    assert known is not None
    assert len(known.texts.offsets) == len(tokens.offsets)
    model = run.model()
    _, projection = model.textless.parameters_of("author")
    texts = plm_vectors(model, tokens, np.arange(200))
    scores = (folded(run, [7], network, tokens) @ projection.T @ texts.T).detach()[0]
    assert int((scores > scores[7]).sum()) < 60


def test_a_folded_in_node_lies_as_far_out_as_known_ones(run: Run, network: Network, tmp_path: Path) -> None:
    """Known nodes folded in as if they were new come closer to what training learnt if stretched."""
    model, tokens, known = run.model(), open_run(run.path).batcher.tokens, KnownNodes.open(run.path)
    assert known is not None
    edges = text_edges(VisibleNetwork.whole(network), tokens, "author")
    every = texts_next_to(edges, np.unique(edges.rows))
    table, _ = model.textless.parameters_of("author")
    learned = table.detach()[torch.from_numpy(every.nodes)]
    plain = fold_in(model, "author", every, tokens, known)
    factor = float(length_factor(model, "author", every, learned, tokens, known))
    far = every._replace(factor=factor)
    rows = folded_rows(model, "author", far, tokens, known, tmp_path)
    stretched = torch.from_numpy(rows.read(slice(None)))
    assert factor > 1
    assert (stretched - learned).norm() < (plain - learned).norm()


def test_folding_in_goes_part_by_part(
    run: Run, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of it at a time gives what all at once gives, and what is done is not done again."""
    model, tokens, known = run.model(), open_run(run.path).batcher.tokens, KnownNodes.open(run.path)
    assert known is not None
    every = texts_next_to(text_edges(VisibleNetwork.whole(network), tokens, "author"), np.arange(50))
    expected = fold_in(model, "author", every, tokens, known)
    fitted, calls = folding._fitted, 0

    def stopped(*arguments: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return fitted(*arguments)

    monkeypatch.setattr(folding, "_fitted", stopped)
    with pytest.raises(KeyboardInterrupt):
        folded_rows(model, "author", every, tokens, known, tmp_path, part=16)
    found = folded_rows(model, "author", every, tokens, known, tmp_path, part=16).read(slice(None))
    assert calls == 3 + 2  # of four parts, two were done before
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-3)
    monkeypatch.setattr(folding, "Folding", None)
    folded_rows(model, "author", every, tokens, known, tmp_path, part=16)  # everything is there


def test_some_of_the_nodes_are_made_of_the_same() -> None:
    every = FoldedIn(np.array([4, 6, 9]), np.array([0, 0, 1, 2, 2]), np.array([7, 1, 1, 7, 3]), 1.5)
    some = every.some(np.array([True, False, True]))
    assert some.nodes.tolist() == [4, 9]
    assert some.place.tolist() == [0, 0, 1, 1]
    assert some.texts.tolist() == [7, 1, 7, 3]
    hashes = np.random.default_rng(0).integers(1 << 63, size=10, dtype=np.uint64)
    assert some.signatures(hashes).tolist() == every.signatures(hashes)[[0, 2]].tolist()
    assert len(set(every.signatures(hashes).tolist())) == 3
