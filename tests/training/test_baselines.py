"""All twelve models in the one training loop, and what they learn from a network with a planted truth.

The margins asserted are about half of the smallest that several seeds gave (of network and PLM);
``python -m tests.training.test_baselines SEED ...`` measures them again.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
import yaml
from safetensors.torch import load_file

from heterformer.datasets.synthetic import SyntheticOptions, write_synthetic
from heterformer.errors import InputError
from heterformer.evaluation.open_run import OpenRun, open_run
from heterformer.models.options import MODEL_OPTIONS
from heterformer.models.registry import MODELS, load_model
from heterformer.network.build import build_network
from heterformer.network.spec import NetworkSpec
from heterformer.network.store import Network
from heterformer.training.loop import Trainer
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.train import train
from heterformer.training.validation import in_batch_metrics
from heterformer.training.warm_up_options import WarmUpOptions
from tests.learning import sharp_reader, synthetic_network, tiny_network, tiny_options, tiny_reader
from tests.training.test_learning import shuffled_network, with_neighbors_of

HETEROGENEOUS = {"heterformer", "bert_rgcn", "bert_han", "bert_hgt", "bert_shgn", "graph_formers_plus"}

# --- The loop --------------------------------------------------------------------------------------------


def trained(path: Path, model: str, **changes: Any) -> Run:
    changes = {"max_steps": 4, "evaluate_every": 2, **changes}
    return train(tiny_network(), path, tiny_options(tiny_reader(), model=model, **changes))


@pytest.mark.parametrize("name", MODELS)
def test_trains_resumes_and_opens(name: str, tmp_path: Path) -> None:
    whole, parts = trained(tmp_path / "whole", name), trained(tmp_path / "parts", name, max_steps=2)
    assert (
        load_file(parts.last / "model.safetensors").keys()
        == load_file(whole.last / "model.safetensors").keys()
    )
    trained(tmp_path / "parts", name)
    one, other = (load_file(run.last / "model.safetensors") for run in (whole, parts))
    assert all(torch.equal(one[key], other[key]) for key in one)
    opened = open_run(whole.path)
    assert type(opened.model) is type(load_model(whole.path)) is MODELS[name]
    card = (whole.path / "README.md").read_text()
    assert f'# {MODEL_OPTIONS[name].display_name} for the network "synthetic"' in card
    assert f"| model | {name} |" in card


@pytest.mark.parametrize("name", MODELS)
def test_models_that_look_at_textless_nodes_warm_up(name: str, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", name, max_steps=1)
    warmed = {line["warm_up"]["node_type"] for line in run.metrics() if "warm_up" in line}
    assert warmed == ({"author", "venue"} if name in HETEROGENEOUS else set())


def test_a_warm_up_can_be_left_out(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "bert_hgt", max_steps=1, warm_up=WarmUpOptions(warm_up=False))
    assert not any("warm_up" in line for line in run.metrics())
    warm = trained(tmp_path / "warm", "bert_hgt", max_steps=1)
    tables = [load_file(r.last / "model.safetensors")["textless.tables.0.weight"] for r in (run, warm)]
    assert (tables[0] != tables[1]).any(1).float().mean() > 0.9  # far more rows than a step touches


@pytest.mark.parametrize("name", MODELS)
def test_trains_on_stored_neighbour_states(name: str, tmp_path: Path) -> None:
    """Which is another training for all but BERT, which has no use for them, and MeanSAGE."""
    live, stored = (
        load_file(
            trained(tmp_path / states, name, max_steps=2, neighbor_states=states).last / "model.safetensors"
        )
        for states in ("live", "cached")
    )
    assert all(torch.equal(live[key], stored[key]) for key in live) is (name in ("bert", "mean_sage"))
    assert all(value.isfinite().all() for value in stored.values())


def test_a_model_without_a_plm_trains_live_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for steps in (1, 2):  # also if it is resumed
        run = trained(tmp_path / "run", "mean_sage", max_steps=steps, neighbor_states="cached")
        assert "MeanSAGE has no PLM, so its neighbour states are live" in capsys.readouterr().err
        assert run.options().neighbor_states == "live"
        assert not any("refresh" in line for line in run.metrics())


def test_an_old_run_on_cached_states_keeps_them(tmp_path: Path) -> None:
    network, folder = tiny_network(), tmp_path / "run"
    asked = tiny_options(tiny_reader(), model="mean_sage", max_steps=2, neighbor_states="cached")
    run = Run(folder)
    run.start(network, asked.resolved())
    Trainer(network, run, replace(asked.resolved(), max_steps=1)).train()
    train(network, folder, asked)
    assert run.options().neighbor_states == "cached"


def test_a_bag_of_words_is_fitted_once_and_kept(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "mean_sage")
    model: Any = load_model(run.path)
    words = int((model.words.row >= 0).sum())
    assert 100 < words == int((model.words.idf > 0).sum())
    first = load_file(run.last / "model.safetensors")
    assert torch.equal(first["words.idf"], model.words.idf)
    assert not (model.words.row[:4] >= 0).any(), "special tokens are no words"


def test_a_model_without_a_plm_ignores_options_of_backbones(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "mean_sage", max_steps=1, layer_decay=0.5, compile=True)
    assert run.is_complete


def test_an_old_run_with_options_of_a_plm_that_it_lacks(tmp_path: Path) -> None:
    """MeanSAGE had the options of all models that read texts by a backbone once."""
    old = {"readout": "mean", "long_texts": "cut", "window_tokens": None, "lora": None, "freeze": "none"}
    runs = [trained(tmp_path / name, "mean_sage", max_steps=1) for name in ("run", "old")]
    saved = yaml.safe_load((runs[1].path / "config.yaml").read_text())
    saved["options"]["model"] |= old
    (runs[1].path / "config.yaml").write_text(yaml.safe_dump(saved))
    for path in (runs[1].path / "config.json", runs[1].last / "config.json"):
        if path.exists():
            path.write_text(json.dumps(json.loads(path.read_text()) | old))
    new, old_vectors = (load_model(run.path).encode(["w1 w2", "w3"]) for run in runs)
    assert np.array_equal(new, old_vectors)
    for run in runs:
        assert trained(run.path, "mean_sage", max_steps=2).metrics()[-1]["step"] == 2
    weights = [load_file(run.path / "model.safetensors") for run in runs]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_an_option_of_another_model_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        TrainingOptions.from_flat({"model": "bert", "virtual_tokens": "none"})
    assert str(caught.value) == "model bert has no option virtual_tokens."


# --- What they learn -------------------------------------------------------------------------------------

PAPERS = 2000
STEPS = {"bert": 60, "graph_formers": 60, "graph_formers_plus": 60}  # nested tokens are read later than means
FEWER = 25
SHUFFLED = ("mean_sage", "bert_mean_sage", "bert_rgcn", "graph_formers")  # those trained on shuffled edges
GRAPH_AWARE = tuple(name for name in MODELS if name not in ("heterformer", "bert"))


@dataclass(frozen=True)
class World:
    """A network with a planted truth, the same with its edges shuffled, and one whose titles are orders."""

    folder: Path
    network: Network
    shuffled: Network
    reader: str

    @classmethod
    def made(cls, folder: Path, seed: int = 0) -> World:
        network = synthetic_network(folder / "true", PAPERS, seed=seed)
        shuffled = shuffled_network(folder / "true" / "tables", folder / "shuffled", seed)
        return cls(folder, network, shuffled, sharp_reader(folder / "reader", seed))

    def trained(self, name: str, network: Network, label: str = "true") -> OpenRun:
        readout = {} if name == "mean_sage" else {"readout": "mean"}
        options = TrainingOptions(
            MODEL_OPTIONS[name](self.reader, normalize="yes", temperature=0.1, **readout),
            warm_up=WarmUpOptions(warm_up=False),
            neighbor_dropout=0.0,
            neighbor_states="live",
            batch_size=64,
            learning_rate=2e-3,
            new_learning_rate=2e-3,
            textless_learning_rate=1e-2,
            max_steps=STEPS.get(name, FEWER),
            evaluate_every=FEWER,
            device="cpu",
        )
        return open_run(train(network, self.folder / f"{label}-{name}", options).path)

    @cache  # noqa: B019 - lives as long as the module's fixture
    def run(self, name: str) -> OpenRun:
        return self.trained(name, self.network)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.made(tmp_path_factory.mktemp("world"))


def precision(run: OpenRun) -> float:
    """PREC of the test pairs in batches of 100; guessing gives .01."""
    return in_batch_metrics(run.model, run.batcher, run.split.test, 100, seed=0)["prec"]


@pytest.mark.parametrize("name", GRAPH_AWARE)
def test_neighbours_are_worth_something_unless_drawn_by_lot(world: World, name: str) -> None:
    text_only, run = precision(world.run("bert")), world.run(name)
    found, by_lot = precision(run), precision(with_neighbors_of(run, world.shuffled))
    assert found > text_only + 0.08
    assert by_lot < found - 0.1
    if name != "mean_sage":  # whose text alone is a bag of words; it is trained on shuffled edges below
        assert by_lot < text_only + 0.03


@pytest.mark.parametrize("name", SHUFFLED)
def test_on_shuffled_edges_there_is_nothing_to_learn(world: World, name: str) -> None:
    assert precision(world.trained(name, world.shuffled, "shuffled")) < 0.05


def test_reading_beats_counting_where_the_order_of_words_matters(world: World) -> None:
    """Titles of the same five words: which sub-topic it is only their order tells."""
    network = ordered_network(world.folder / "ordered", PAPERS)
    reading, counting = (
        precision(world.trained(name, network, "ordered")) for name in ("bert_mean_sage", "mean_sage")
    )
    assert reading > counting + 0.1
    assert counting < 0.05


def measure(seed: int, folder: Path) -> None:
    world = World.made(folder, seed)
    for name in MODELS:
        run = world.run(name)
        by_lot = precision(with_neighbors_of(run, world.shuffled))
        print(seed, name, round(precision(run), 3), "by lot", round(by_lot, 3), flush=True)
    for name in SHUFFLED:
        print(seed, name, "shuffled", round(precision(world.trained(name, world.shuffled, "shuffled")), 3))
    network = ordered_network(folder / "ordered", PAPERS)
    for name in ("bert_mean_sage", "mean_sage"):
        print(seed, name, "ordered", round(precision(world.trained(name, network, "ordered")), 3))


def ordered_network(folder: Path, papers: int) -> Network:
    spec = write_synthetic(folder / "tables", SyntheticOptions(papers=papers))
    table = folder / "tables" / "papers.parquet"
    frame = pl.read_parquet(table)
    orders = list(itertools.permutations(("graph", "image", "gene", "voltage", "query")))
    subtopics = frame["subtopic"].unique().sort().to_list()
    chosen = np.random.default_rng(0).permutation(len(orders))[: len(subtopics)]
    titles = {subtopic: " ".join(orders[i]) for subtopic, i in zip(subtopics, chosen, strict=True)}
    frame.with_columns(title=pl.col("subtopic").replace_strict(titles)).write_parquet(table)
    return build_network(NetworkSpec.load(spec), folder / "network", data=spec.parent)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for word in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as temporary:
            measure(int(word), Path(temporary))
