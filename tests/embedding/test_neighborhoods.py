"""Neighbourhoods are sampled once per node, whatever an embedding needs them for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

from heterformer import embed
from heterformer.batches.batcher import Batcher
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding.embed import embed_run
from heterformer.embedding.neighborhoods import SampledParts
from tests.batches.decoding import same
from tests.embedding.growing import first_run, grown_state
from tests.learning import tiny_model, tiny_network, tiny_reader, tiny_tokens


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str, int]]:
    """How often each node was sampled: (its type, its neighbours' type, its row)."""
    counts: Counter[tuple[str, str, int]] = Counter()
    whole = StableSampler.sample

    def counted(
        self: Any, visible: Any, center_type: str, neighbor_type: str, centers: Any, *others: Any
    ) -> Any:
        counts.update((center_type, neighbor_type, row) for row in centers.tolist())
        return whole(self, visible, center_type, neighbor_type, centers, *others)

    monkeypatch.setattr(StableSampler, "sample", counted)
    return counts


@pytest.mark.parametrize("name", ["out.parquet", "out"])
def test_each_node_is_sampled_once(name: str, tmp_path: Path, sampled: Counter[tuple[str, str, int]]) -> None:
    run, grown = first_run("heterformer"), grown_state().built()
    papers = run.network().schema.counts["paper"]
    embed_run(run.path, tmp_path / name)
    assert {key[:2] for key in sampled} == {("paper", t) for t in ("paper", "author", "venue")}
    assert Counter(key[1] for key in sampled) == dict.fromkeys(("paper", "author", "venue"), papers)
    assert set(sampled.values()) == {1}
    sampled.clear()
    embed_run(run.path, tmp_path / "new", network=grown.path, since=tmp_path / name)
    assert len(sampled) == 3 * grown.schema.counts["paper"]
    assert set(sampled.values()) == {1}


def test_a_part_comes_back_from_the_disk_as_it_was_sampled(
    tmp_path: Path, sampled: Counter[tuple[str, str, int]]
) -> None:
    batcher = Batcher(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    sampler = StableSampler(tiny_network(), 3)
    expected = batcher.sample("paper", np.arange(40, 90), sampler)
    sampled.clear()
    for _ in range(2):
        nodes = SampledParts(tmp_path, batcher, sampler).part("paper", 40, 90)
        assert nodes.rows.tolist() == list(range(40, 90))
        assert same(batcher.batch_of(nodes), batcher.batch_of(expected))
    assert set(sampled.values()) == {1}
    some = np.array([7, 0, 49, 7])
    alone = batcher.nodes("paper", some + 40, sampler)
    assert same(batcher.batch_of(nodes.select(some)), alone)
    assert nodes.select(some[:0]).edges[0].neighbor.size == 0


def test_textless_nodes_are_sampled_once(tmp_path: Path, sampled: Counter[tuple[str, str, int]]) -> None:
    """For the texts that they need, and for their vectors."""
    model = tiny_model(network_readout="both", textless_neighbors=3, second_hop=2)
    tokenizer, out = AutoTokenizer.from_pretrained(tiny_reader()), tmp_path / "out"
    embed(model, tiny_network(), types=["author", "venue"], tokenizer=tokenizer, out=out)
    counts = tiny_network().schema.counts
    for node_type in ("author", "venue"):
        rows = [key[2] for key in sampled if key[:2] == (node_type, "paper")]
        assert sorted(rows) == list(range(counts[node_type]))
    assert set(sampled.values()) == {1}
