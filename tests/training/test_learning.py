"""What the model learns from a network whose truth is planted (``heterformer.datasets.synthetic``).

The margins asserted are about half of the smallest that several seeds gave (of training, network and PLM);
``python -m tests.training.test_learning SEED ...`` measures them again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.datasets.synthetic_ceiling import planted_ceiling
from heterformer.evaluation.core import evaluate_run
from heterformer.evaluation.open_run import OpenRun, open_run
from heterformer.evaluation.options import ClassificationOptions, EvaluateOptions
from heterformer.models.options import HeterformerOptions
from heterformer.network.build import build_network
from heterformer.network.spec import NetworkSpec
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.training.options import TrainingOptions
from heterformer.training.train import train
from heterformer.training.warm_up_options import WarmUpOptions
from tests.evaluation.held_out_pairs import link_prediction_of
from tests.learning import sharp_reader, synthetic_network

PAPERS, STEPS = 2500, 100
# Of a PLM that knows nothing, [CLS] says nothing of a text unless gradients through neighbours teach it to.
CACHED = {"neighbor_states": "cached", "refresh_every": 25, "neighbor_pooling": "mean"}
RELATIONS = {"cites": "target", "written_by": "author", "published_in": "venue"}


@dataclass(frozen=True)
class World:
    """A network with a planted truth, the same with its edges shuffled, and a PLM that knows nothing yet."""

    folder: Path
    network: Network
    shuffled: Network
    reader: str
    seed: int

    @classmethod
    def made(cls, folder: Path, seed: int = 0) -> World:
        network = synthetic_network(folder / "true", PAPERS, seed=seed)
        shuffled = shuffled_network(folder / "true" / "tables", folder / "shuffled", seed)
        return cls(folder, network, shuffled, sharp_reader(folder / "reader", seed), seed)

    @property
    def ceiling(self) -> dict[str, float]:
        """The best PREC that the planted truth allows: .50 with the network, .23 from titles alone."""
        return planted_ceiling(self.folder / "true" / "tables", self.network.schema.test_batch_size)

    def trained(
        self, name: str, network: Network, steps: int, tokens: str, warm_up: bool = True, **more: Any
    ) -> OpenRun:
        model = {"virtual_tokens": tokens, "neighbor_pooling": more.pop("neighbor_pooling", "cls")}
        options = TrainingOptions(
            HeterformerOptions(self.reader, readout="mean", normalize="yes", temperature=0.1, **model),
            warm_up=WarmUpOptions(warm_up=warm_up, warm_up_batch_size=128),
            batch_size=64,
            learning_rate=2e-3,
            new_learning_rate=2e-3,
            textless_learning_rate=1e-2,
            max_steps=steps,
            evaluate_every=25,
            patience=100,
            seed=self.seed,
            device="cpu",
            **{"neighbor_states": "live", **more},
        )
        return open_run(train(network, self.folder / name, options).path)


def shuffled_network(tables: Path, folder: Path, seed: int) -> Network:
    """The same nodes and texts, as many edges; who is at the other end of an edge is drawn by lot."""
    shutil.copytree(tables, folder / "tables")
    for number, (relation, column) in enumerate(RELATIONS.items()):
        path = folder / "tables" / f"{relation}.parquet"
        frame = pl.read_parquet(path)
        lot = np.random.default_rng([seed, number]).permutation(len(frame))
        frame.with_columns(frame[column].gather(lot)).write_parquet(path)
    spec = folder / "tables" / "network.yaml"
    return build_network(NetworkSpec.load(spec), folder / "network", data=spec.parent)


def precision(run: OpenRun) -> float:
    """Test PREC in batches of 100; guessing gives .01."""
    (result,) = link_prediction_of(run, ("test",))
    return result.metrics["prec"]


def with_neighbors_of(run: OpenRun, network: Network) -> OpenRun:
    """The same model and pairs, neighbourhoods drawn from another network."""
    visible = VisibleNetwork.for_evaluation(network, run.split)
    return replace(run, batcher=Batcher(visible, run.batcher.tokens))


def author_accuracy(run: OpenRun) -> float:
    """How often an author's nearest others tell the field, out of ten; guessing gives .1."""
    labels = [label for (label,) in run.network.labels("author").to_list()]
    with torch.no_grad():
        vectors = run.model.textless_vectors("author", torch.arange(len(labels)))
    return float(cross_val_score(KNeighborsClassifier(10), vectors.numpy(), labels).mean())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.made(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def heterformer(world: World) -> OpenRun:
    return world.trained("heterformer", world.network, STEPS, "both")


@pytest.fixture(scope="module")
def text_only(world: World) -> OpenRun:
    return world.trained("text-only", world.network, STEPS, "none")


def test_heterformer_beats_text_only_by_far(heterformer: OpenRun, text_only: OpenRun) -> None:
    assert precision(heterformer) > precision(text_only) + 0.1


def test_text_rich_neighbours_teach_without_a_gradient_too(world: World, text_only: OpenRun) -> None:
    cached = world.trained("cached", world.network, STEPS, "text_rich", **CACHED)
    assert precision(cached) > precision(text_only) + 0.07


def test_text_only_is_no_straw_man(text_only: OpenRun, world: World) -> None:
    assert precision(text_only) > 0.3 * world.ceiling["text"]


def test_nobody_beats_the_planted_truth(heterformer: OpenRun, text_only: OpenRun, world: World) -> None:
    pairs = len(text_only.split.test)
    for run, ceiling in ((heterformer, world.ceiling["network"]), (text_only, world.ceiling["text"])):
        noise = (ceiling * (1 - ceiling) / pairs) ** 0.5
        assert precision(run) < ceiling + 3 * noise


def test_neighbours_drawn_by_lot_are_worth_nothing(
    heterformer: OpenRun, text_only: OpenRun, world: World
) -> None:
    by_lot = precision(with_neighbors_of(heterformer, world.shuffled))
    assert by_lot < precision(text_only)
    assert by_lot < precision(heterformer) - 0.15


def test_on_shuffled_edges_heterformer_has_no_advantage(world: World) -> None:
    heterformer, text_only = (
        precision(world.trained(f"shuffled-{tokens}", world.shuffled, STEPS // 2, tokens))
        for tokens in ("both", "none")
    )
    assert max(heterformer, text_only) < 0.05
    assert heterformer < text_only + 0.04


def test_warm_up_tells_authors_apart_from_the_first_steps_on(world: World) -> None:
    warm, cold = (
        author_accuracy(world.trained(f"warm-{warm_up}", world.network, 5, "both", warm_up))
        for warm_up in (True, False)
    )
    assert cold < 0.2
    assert warm > cold + 0.2


def told_fields(run: OpenRun) -> dict[tuple[str, str], tuple[float, float]]:
    """Micro F1 of the MLP and of the majority class, by type and setting; ten fields are equally large."""
    options = EvaluateOptions(tasks=("classification",), classification=ClassificationOptions(repeats=2))
    found, _ = evaluate_run(run, options)
    return {
        (one.node_type, one.setting): (
            one.result.scores["mlp"]["micro"].mean,
            one.result.scores["majority"]["micro"].mean,
        )
        for one in found.classification
    }


@pytest.fixture(scope="module")
def told(heterformer: OpenRun) -> dict[tuple[str, str], tuple[float, float]]:
    return told_fields(heterformer)


def test_fields_of_authors_are_told_by_their_vectors(
    world: World, told: dict[tuple[str, str], tuple[float, float]]
) -> None:
    warm, majority = told["author", "transductive"]
    cold, _ = told_fields(world.trained("cold", world.network, STEPS, "both", warm_up=False))[
        "author", "transductive"
    ]
    assert warm > majority + 0.3
    assert warm > cold + 0.1


def test_fields_of_unseen_papers_are_told_almost_as_well(
    world: World, told: dict[tuple[str, str], tuple[float, float]]
) -> None:
    hiding = world.trained("hiding", world.network, STEPS, "both", split=SplitOptions(hold_out=0.25))
    found = told_fields(hiding)
    assert found["paper", "inductive"][0] > found["paper", "transductive"][0] - 0.15
    assert found["paper", "inductive"][0] > found["paper", "inductive"][1] + 0.3


def measure(seed: int, folder: Path) -> None:
    world = World.made(folder, seed)
    runs = {tokens: world.trained(tokens, world.network, STEPS, tokens) for tokens in ("both", "none")}
    runs["cached"] = world.trained("cached", world.network, STEPS, "text_rich", **CACHED)
    found = {tokens: precision(run) for tokens, run in runs.items()}
    found["by lot"] = precision(with_neighbors_of(runs["both"], world.shuffled))
    for tokens in ("both", "none"):
        run = world.trained(f"shuffled-{tokens}", world.shuffled, STEPS // 2, tokens)
        found[f"shuffled {tokens}"] = precision(run)
    for warm in (True, False):
        run = world.trained(f"warm-{warm}", world.network, 5, "both", warm)
        found["warm" if warm else "cold"] = author_accuracy(run)
    print(seed, world.ceiling, {name: round(figure, 3) for name, figure in found.items()}, flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for word in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            measure(int(word), Path(temporary))
