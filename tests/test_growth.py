"""Ten times the nodes take at most twelve times the work: counted in calls, bytes, rows and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor
from transformers import AutoTokenizer

from heterformer.arrays import Ints
from heterformer.batches.batch import Batch
from heterformer.batches.batcher import Batcher
from heterformer.batches.pairs import TrainingBatches, evaluation_sampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.datasets.synthetic import SyntheticOptions, write_synthetic
from heterformer.embedding.embed import embed_to
from heterformer.embedding.node_vectors import NodeVectors, given_vectors
from heterformer.evaluation.classification import classify
from heterformer.evaluation.clustering import cluster
from heterformer.evaluation.link_prediction import predicted_pairs
from heterformer.evaluation.options import ClassificationOptions, ClusteringOptions
from heterformer.evaluation.pair_ranking import RankingSizes, rank_pairs
from heterformer.maps import landmarks
from heterformer.maps.core import map_of
from heterformer.maps.landmarks import lay_out
from heterformer.maps.layout import sampled_regions
from heterformer.maps.options import MapOptions
from heterformer.maps.page import map_page
from heterformer.models import Heterformer
from heterformer.network.build import build_network
from heterformer.network.build.frames import temporary_folder
from heterformer.network.describe import describe
from heterformer.network.interchange.export import export_network
from heterformer.network.interchange.formats import Format
from heterformer.network.interchange.rows import edge_rows
from heterformer.network.labels import Labels
from heterformer.network.schema import NodeType, Relation
from heterformer.network.spec import NetworkSpec
from heterformer.network.split.draw import make_split
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens, open_tokens
from heterformer.search.index import ExactIndex
from heterformer.states.pass_vectors import PassVectors
from heterformer.training.cached_states import CachedStates
from heterformer.training.warm_up import warm_up
from heterformer.training.warm_up_options import WarmUpOptions
from tests.growth import growth, work_of
from tests.learning import count_texts, tiny_reader

SMALL, LARGE = 200, 2000  # papers
MOST = 12  # times the work for ten times the nodes
SECOND_HOP = 4


@cache
def tables(papers: int) -> Path:
    return write_synthetic(temporary_folder() / "tables", SyntheticOptions(papers=papers))


def build(papers: int, out: Path) -> Network:
    return build_network(NetworkSpec.load(tables(papers)), out, data=tables(papers).parent)


@cache
def network(papers: int) -> Network:
    return build(papers, temporary_folder() / "network")


@cache
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(tiny_reader())


@cache
def tokens(papers: int) -> PackedTokens:
    return open_tokens(network(papers), tokenizer())


@cache
def split(papers: int) -> Split:
    return make_split(network(papers))


def new_model(papers: int) -> Heterformer:
    torch.manual_seed(0)
    options = {"textless_dim": 8, "network_readout": "both", "second_hop": SECOND_HOP, "neighbor_codes": True}
    return Heterformer.from_backbone(tiny_reader(), network(papers), **options)


def batches(papers: int, batch_size: int = 2) -> TrainingBatches:
    visible = VisibleNetwork.for_training(network(papers), split(papers))
    batcher = Batcher(visible, tokens(papers), second_hop=SECOND_HOP)
    return TrainingBatches(batcher, split(papers).train, batch_size, seed=0, steps_at_once=1)


def most_texts(nodes: int) -> int:
    """The neighbours of that many nodes with text, and theirs, if no two are the same."""
    neighbors = network(SMALL).schema.neighbors["paper"]
    return nodes * neighbors * (1 + SECOND_HOP)


def random_vectors(papers: int, width: int = 8) -> dict[NodeType, np.ndarray]:
    rng, counts = np.random.default_rng(0), network(papers).schema.counts
    return {t: rng.normal(size=(n, width)).astype(np.float32) for t, n in counts.items()}


# --- The measure itself -----------------------------------------------------------------------------------


def test_a_loop_over_pairs_of_nodes_is_seen() -> None:
    def task(size: int) -> Callable[[], object]:
        return lambda: [max(i, j) for i in range(size) for j in range(size)]

    assert growth(task, 30, 300).calls > 50


def test_a_matrix_of_all_pairs_of_nodes_is_seen() -> None:
    assert growth(lambda size: lambda: np.ones((size, size)), 300, 3000).memory > 50


def test_a_tensor_of_all_pairs_of_nodes_is_seen() -> None:
    assert (
        growth(lambda size: lambda: torch.arange(size)[:, None] + torch.arange(size), 300, 3000).tensors > 50
    )


def test_a_loop_over_pairs_of_nodes_in_a_thread_is_seen() -> None:
    def task(size: int) -> Callable[[], object]:
        def run() -> None:
            thread = Thread(target=lambda: [max(i, j) for i in range(size) for j in range(size)])
            thread.start()
            thread.join()

        return run

    assert growth(task, 30, 300).calls > 50


def test_files_that_are_read_whole_for_every_node_are_seen(tmp_path: Path) -> None:
    def task(size: int) -> Callable[[], object]:
        (tmp_path / f"{size}").write_bytes(bytes(100 * size))
        return lambda: [(tmp_path / f"{size}").read_bytes() for _ in range(size)]

    assert growth(task, 30, 300).transferred > 50


# --- Networks ---------------------------------------------------------------------------------------------


def test_build(tmp_path: Path) -> None:
    folders = (tmp_path / f"{number}" for number in range(9))

    def task(papers: int) -> Callable[[], object]:
        tables(papers)
        return partial(build, papers, next(folders))

    assert growth(task, SMALL, LARGE).most <= MOST


def test_describe() -> None:
    assert growth(lambda papers: partial(describe, network(papers)), SMALL, LARGE).most <= MOST


def test_split() -> None:
    assert growth(lambda papers: partial(make_split, network(papers)), SMALL, LARGE).most <= MOST


@pytest.mark.parametrize("to", ["csv", "graphml", "networkx", "hetero-data"])
def test_export(to: Format, tmp_path: Path) -> None:
    outs = (tmp_path / f"{number}" for number in range(9))

    def task(papers: int) -> Callable[[], object]:
        return partial(export_network, network(papers), next(outs), to)

    assert growth(task, SMALL, LARGE).most <= MOST


def test_edges_of_an_export_are_in_memory_some_at_a_time() -> None:
    """Beside their numbers, of at most thirty bytes each, no more of a large network than of a small one."""

    def rows(papers: int) -> None:
        relation = network(papers).schema.relation("cites")
        for _ in edge_rows(network(papers), relation, block_size=200):
            pass

    rows(SMALL)
    small, large = (work_of(partial(rows, papers)).memory for papers in (SMALL, LARGE))
    edges = [len(network(papers).edges("cites")[0]) for papers in (SMALL, LARGE)]
    assert large - small <= 30 * (edges[1] - edges[0])


# --- Training ---------------------------------------------------------------------------------------------


def test_warm_up() -> None:
    def task(papers: int) -> Callable[[], object]:
        model, visible = new_model(papers), VisibleNetwork.for_training(network(papers), split(papers))
        options = WarmUpOptions(warm_up_epochs=1)
        return lambda: warm_up(model, visible, tokens(papers), options, seed=0)

    assert growth(task, SMALL, LARGE).most <= MOST


def test_a_batch_costs_the_same_in_a_network_of_any_size() -> None:
    def task(papers: int) -> Callable[[], object]:
        made = batches(papers, batch_size=16)
        made.batch(0, 0)  # the order of the epoch's pairs is drawn once
        return lambda: [made.batch(0, step) for step in (1, 2, 3)]

    assert growth(task, SMALL, LARGE).most <= 2


def test_a_refresh_reads_the_texts_that_its_steps_meet(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model, steps = new_model(LARGE), 3
    cached = CachedStates(model, model.text_states, batches(LARGE), tmp_path / "states", every=steps)
    counts = count_texts(monkeypatch)
    cached.read = model.text_states
    list(cached.refresh(0, steps))
    assert 0 < sum(counts) <= most_texts(2 * 2 * steps) < LARGE / 2


def test_validation_reads_the_texts_that_its_nodes_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    model, nodes = new_model(LARGE), 12
    batcher = model.new_batcher(VisibleNetwork.whole(network(LARGE)), tokens(LARGE))
    counts = count_texts(monkeypatch)
    PassVectors(model, batcher, evaluation_sampler(0))("paper", np.arange(nodes))
    assert 0 < sum(counts) <= most_texts(nodes) < LARGE / 2


# --- Vectors ----------------------------------------------------------------------------------------------


@contextmanager
def counted_centers() -> Iterator[list[int]]:
    """A list that grows by the number of centres whenever Heterformer reads some."""
    counts, forward = list[int](), Heterformer.forward

    def counted(model: Heterformer, batch: Batch, states: Tensor) -> Tensor:
        counts.append(len(batch.centers))
        return forward(model, batch, states)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Heterformer, "forward", counted)
        yield counts


def test_embedding_reads_every_text_and_every_node_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = new_model(SMALL)
    texts = count_texts(monkeypatch)
    with counted_centers() as centers:
        embed_to(tmp_path / "vectors", model, network(SMALL), tokenizer=tokenizer(), part=64)
    assert sum(texts) <= SMALL
    assert sum(centers) == SMALL


def test_embedding(tmp_path: Path) -> None:
    outs = (tmp_path / f"{number}" for number in range(9))

    def task(papers: int) -> Callable[[], object]:
        tokens(papers)  # made once for a network
        model, of_papers = new_model(papers), network(papers)
        return partial(embed_to, next(outs), model, of_papers, tokenizer=tokenizer(), part=64)

    grown = growth(task, SMALL, LARGE)
    assert grown.calls <= MOST
    assert grown.tensors <= MOST
    assert grown.transferred <= MOST
    assert grown.memory <= 4  # some numbers for each node, and never its states


def test_vectors_of_a_file_are_in_memory_once(tmp_path: Path) -> None:
    """They are looked at in parts, and put into the network's order only if they are in another."""
    matrix, path = np.ones((LARGE, 500), dtype=np.float32), tmp_path / "vectors.parquet"
    frame = pl.DataFrame({"id": network(LARGE).ids("paper"), "vector": matrix})
    frame.write_parquet(path)
    assert len(given_vectors(path, network(LARGE))["paper"].rows) == LARGE
    assert work_of(partial(given_vectors, path, network(LARGE))).memory < matrix.nbytes


def test_ranking_compares_some_queries_with_each_candidate_once() -> None:
    full_queries = 30
    found = {papers: ranked(papers, full_queries) for papers in (SMALL, LARGE)}
    for papers, (scores, read) in found.items():
        pairs = len(split(papers).test)
        in_batch = pairs * network(papers).schema.test_batch_size
        own = 2 * full_queries * 256  # a query's own score is one of the diagonal of a block
        assert full_queries * papers <= scores <= full_queries * papers + in_batch + own
        assert read == papers + 2 * pairs
    assert found[LARGE][0] <= MOST * found[SMALL][0]


def ranked(papers: int, full_queries: int) -> tuple[int, int]:
    """How many scores are computed and how many vectors read in ranking the test pairs."""
    visible = VisibleNetwork.for_evaluation(network(papers), split(papers))
    vectors, scores, read = random_vectors(papers), list[int](), list[int]()

    def vectors_of(node_type: NodeType, rows: Ints) -> Tensor:
        read.append(len(rows))
        return torch.from_numpy(vectors[node_type][rows])

    def scorer(relation: Relation) -> Callable[[Tensor, Tensor], Tensor]:
        def score(queries: Tensor, keys: Tensor) -> Tensor:
            scores.append(len(queries) * len(keys))
            return queries @ keys.T

        return score

    pair_sets = predicted_pairs(network(papers), {"test": split(papers).part("test")})
    sizes = RankingSizes(candidates=64, queries=32, pairs=100, full_queries=full_queries)
    rank_pairs(pair_sets, vectors_of, visible, scorer, sizes=sizes)
    return sum(scores), sum(read)


def test_links_are_counted_once() -> None:
    def task(papers: int) -> Callable[[], object]:
        visible = VisibleNetwork.for_evaluation(network(papers), split(papers))
        return lambda: visible.log_links("paper", network(papers).schema.relation("cites"))

    assert growth(task, SMALL, LARGE).most <= MOST


def test_a_search_compares_the_query_with_each_node_once() -> None:
    def task(papers: int) -> Callable[[], object]:
        index = ExactIndex(random_vectors(papers)["paper"], block=64)
        return partial(index.search, np.ones((1, 8), dtype=np.float32), k=5)

    assert growth(task, SMALL, LARGE).most <= MOST


def test_classes_and_clusters_hold_some_numbers_for_each_node() -> None:
    """How many passes over them are made is for the nodes to decide, and is bounded."""

    def task(papers: int) -> Callable[[], object]:
        vectors, codes = random_vectors(papers)["paper"], np.arange(papers) % 3
        matrix = np.eye(3, dtype=bool)[codes]
        labels = Labels.from_matrix(np.arange(papers), ("a", "b", "c"), matrix, False, "paper")

        def work() -> None:
            options = ClassificationOptions(repeats=1)
            classify(vectors.__getitem__, labels, options, learning_rate=0.01)
            cluster(vectors.__getitem__, labels, ClusteringOptions(runs=1))

        return work

    assert growth(task, SMALL, LARGE).memory <= MOST


# --- Maps -------------------------------------------------------------------------------------------------


def test_a_layout_of_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out = list[int]()

    def project(vectors: np.ndarray, *_: object) -> np.ndarray:
        laid_out.append(len(vectors))
        return vectors[:, :2].copy()

    monkeypatch.setattr(landmarks, "project", project)
    monkeypatch.setattr(landmarks, "NODES_AT_ONCE", 64)  # of a network of any size many parts

    def task(papers: int) -> Callable[[], object]:
        vectors = random_vectors(papers)
        return lambda: lay_out(vectors, ("paper",), MapOptions(), count=100)

    assert growth(task, SMALL, LARGE).most <= MOST
    assert laid_out == [100] * 3


def test_the_page_and_the_names_of_regions_are_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a page has the same size for any network, and reads no more texts than it shows."""
    texts, options = list[int](), MapOptions(max_nodes=100)
    read = Network.texts

    def counted(self: Network, node_type: NodeType, rows: Ints) -> list[str]:
        texts.append(len(rows))
        return read(self, node_type, rows)

    monkeypatch.setattr(Network, "texts", counted)
    sizes = []
    for papers in (SMALL, LARGE):
        vectors = {"paper": NodeVectors.from_matrix(random_vectors(papers)["paper"])}
        sizes.append(len(map_page(map_of(network(papers), vectors, options))))
        places = {"paper": random_vectors(papers)["paper"][:, :2]}
        sampled_regions(network(papers), places, seed=0, sampled=50)
    assert texts == [100, 50, 100, 50]
    assert sizes[1] <= 1.2 * sizes[0]
