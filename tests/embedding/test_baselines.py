"""Other models than Heterformer: whole networks, networks that have grown, and what did not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer.batches.batcher import Batcher
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding import two_passes
from heterformer.embedding.embed import embed, embed_run
from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError
from heterformer.models.inference import evaluating
from heterformer.models.options import ModelName
from tests.embedding.growing import first_run, first_state, grown_state

NAMES: tuple[ModelName, ...] = ("bert", "mean_sage", "bert_mean_sage", "bert_hgt", "graph_formers_plus")
HETEROGENEOUS = ("bert_hgt", "graph_formers_plus")  # with embeddings of textless nodes


@pytest.mark.parametrize("name", NAMES)
def test_vectors_are_the_models_own(name: ModelName) -> None:
    """Both passes over the whole network give what the model gives for some nodes in one graph."""
    run = first_run(name)
    network = run.network()
    found = embed(run.model(), network)
    assert set(found) == {"paper", *(("author", "venue") if name in HETEROGENEOUS else ())}
    work = two_passes.Embedding(run.model(), VisibleNetwork.whole(network))
    batcher = Batcher(work.visible, work.tokens, dict(network.schema.neighbors))
    batch = batcher.nodes("paper", np.arange(40), StableSampler(network, 0))
    with evaluating(work.trained):
        expected = work.trained.encode_batch(batch)
    np.testing.assert_allclose(found["paper"][:40], expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_grown_network_and_what_did_not_change(
    name: ModelName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, grown = first_run(name), grown_state().built()
    embed_run(run.path, tmp_path / "old")
    computed: set[str] = set()
    whole = two_passes.sampled_vectors

    def noted(model: Any, batcher: Any, nodes: Any, *others: Any, **more: Any) -> Any:
        computed.update(grown.ids(nodes.node_type, nodes.rows))
        return whole(model, batcher, nodes, *others, **more)

    monkeypatch.setattr(two_passes, "sampled_vectors", noted)
    new = embed_run(run.path, tmp_path / "new", network=grown.path, since=tmp_path / "old")
    assert {"new-1", "new-2"} <= computed
    assert len(computed) < 10
    expected = embed(run.model(), grown)
    assert set(new.types) == set(expected)
    for node_type in new.types:
        np.testing.assert_allclose(new.matrix(node_type), expected[node_type], rtol=1e-4, atol=1e-5)
    if name in HETEROGENEOUS:
        (row,) = grown.rows("author", ["new author"])
        others = np.delete(expected["author"], row, axis=0)
        assert np.abs(others - expected["author"][row]).max(1).min() > 1e-5
        assert np.linalg.norm(expected["author"][row]) < 10 * np.linalg.norm(others, axis=1).mean()


@pytest.mark.parametrize("name", NAMES)
def test_h0_is_there_or_refused(name: ModelName, tmp_path: Path) -> None:
    run = first_run(name)
    if name in HETEROGENEOUS:
        found = embed_run(run.path, tmp_path / "out", EmbedOptions(h0=True)).h0("author")
        table, _ = run.model().textless.parameters_of("author")
        assert found is not None
        np.testing.assert_array_equal(found, table.detach().numpy())
    else:
        with pytest.raises(InputError, match=r"embeddings of nodes without text, of which this .* has none"):
            embed_run(run.path, tmp_path / "out", EmbedOptions(h0=True))
        assert list(tmp_path.iterdir()) == []


def test_a_model_of_texts_alone_knows_nothing_of_neighbours() -> None:
    """Or the tests above would prove little: one of the models reads no neighbour, the others do."""
    before = first_state()
    paper = before.cites[0][0]
    network = before.with_title(before.cites[0][1], "poems").built()
    for name in NAMES:
        then, now = (
            embed(first_run(name).model(), n, EmbedOptions(all_neighbors=99))["paper"]
            for n in (first_run(name).network(), network)
        )
        row = list(before.titles).index(paper)
        assert np.allclose(then[row], now[row], rtol=0, atol=1e-6) == (name == "bert")
