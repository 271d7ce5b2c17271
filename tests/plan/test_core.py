from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heterformer.batches.pairs import TrainingBatches
from heterformer.distributed import ProcessGroup
from heterformer.embedding.embed import embed_to
from heterformer.embedding.options import EmbedOptions
from heterformer.errors import InputError
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.plan.core import Exchange, steps_per_epoch, touched_rows
from heterformer.states.text_states import TextStates
from heterformer.training.cached_states import REFRESH_SHARE, refresh_interval
from heterformer.training.loop import Trainer
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.warm_up_options import WarmUpOptions
from tests.learning import tiny_model, tiny_network, tiny_options, tiny_reader, tiny_tokens
from tests.networks import tokenizer
from tests.plan.planning import planned
from tests.processor import with_bf16
from tests.training.several import said, together


@pytest.mark.parametrize("batch", [2, 3, 7, 16, 64, 1000])
def test_steps_are_those_of_the_training(batch: int) -> None:
    pairs = make_split(tiny_network(), SplitOptions()).train
    for count in range(len(pairs) - 8, len(pairs) + 1):  # also with a last pair that is alone
        batches = TrainingBatches(None, pairs[:count], batch, 0)  # type: ignore[arg-type]
        assert steps_per_epoch(count, batch) == batches.steps_per_epoch


def test_processes_share_an_epoch() -> None:
    one, eight = planned(processes=(1, 8)).together
    assert (one.pairs_per_step, eight.pairs_per_step) == (16, 128)
    assert eight.steps_per_epoch == -(-one.steps_per_epoch // 8)
    assert one.exchange == Exchange(0, 0)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_disk_is_what_embedding_writes(dtype: str, tmp_path: Path) -> None:
    asked = EmbedOptions(dtype=dtype, states_dtype=dtype, h0=dtype == "float16")  # type: ignore[arg-type]
    disk = planned(embed=asked).disk
    model, tokens = tiny_model(), tiny_tokens()
    states = TextStates(tmp_path / "states", model, tokens, np.arange(200), np.dtype(dtype))
    states.fill()
    assert disk.text_states == np.load(tmp_path / "states" / "states.npy").nbytes
    vectors = embed_to(tmp_path / "vectors", model, tiny_network(), asked, tokenizer=tokenizer())
    written = [vectors.matrix(t).nbytes + vectors.signatures(t).nbytes for t in vectors.types]
    short = [found.nbytes for t in vectors.types if (found := vectors.h0(t)) is not None]
    assert disk.vectors == sum(written) + sum(short)
    assert bool(short) == asked.h0


def test_disk_of_chosen_types() -> None:
    counts, whole = tiny_network().schema.counts, planned().disk
    authors = planned(embed=EmbedOptions(types=("author",))).disk
    assert authors.text_states == 0  # no text is read
    assert authors.vectors == whole.vectors * counts["author"] // sum(counts.values())
    assert planned(embed=EmbedOptions(types=("paper",))).disk.text_states == whole.text_states
    with pytest.raises(InputError, match=r"types has 'authors', the model has vectors of 'paper'"):
        planned(embed=EmbedOptions(types=("authors",)))


def test_checkpoints(tmp_path: Path) -> None:
    options, run = tiny_options(tiny_reader()), Run(tmp_path / "run")
    run.start(tiny_network(), options)
    trainer = Trainer(tiny_network(), run, options)
    trainer.take_step(0)
    run.save_checkpoint(trainer.model, trainer.optimizers, trainer.position, trainer.early)
    run.save_best(trainer.model)
    trainer.model.save_pretrained(run.path)
    written = sum(file.stat().st_size for file in run.path.rglob("*.safetensors"))
    assert planned(options).disk.checkpoints == pytest.approx(written, rel=0.1)  # but for names and headers


def test_cached_states_are_on_the_disk_too() -> None:
    live = planned().disk
    cached = planned(tiny_options(tiny_reader(), neighbor_states="cached", second_hop=None)).disk
    assert live.cached == 0
    assert cached.cached == cached.text_states  # an epoch of the tiny network meets every text
    further = planned(tiny_options(tiny_reader(), neighbor_states="cached")).disk  # by default it has one
    texts = tiny_network().schema.counts["paper"] * tiny_model().width
    assert further.text_states - cached.text_states == 4 * texts


def _step(out: Path, network: Path, options: TrainingOptions) -> None:
    """Leave what this process gave away in one step, and which rows it touched."""
    processes, run = ProcessGroup.from_environment("cpu"), Run(out / "run")
    with processes.main_process_first():
        if processes.is_main:
            run.start(Network.open(network), options)
    trainer = Trainer(Network.open(network), run, options, processes)
    batch, before = trainer.batches.of_run_step(0), processes.sent
    trainer.take_step(0)
    dense, rows = trainer.optimizers.dense_parameters, trainer.optimizers.row_parameters
    found = {
        "sent": processes.sent - before,
        "rows": {t: len(rows) for t, rows in batch.textless.items()},
        "parameters": len(dense) + len(rows),
        "unused": sum(
            p.numel() for p in trainer.optimizers.dense_parameters if p not in trainer.optimizers.dense.state
        ),
    }
    (out / f"{os.environ['RANK']}.json").write_text(json.dumps(found))


def test_exchange_is_what_processes_give_away(tmp_path: Path) -> None:
    options = tiny_options(tiny_reader(), sparse_tokens=False)
    codes = together(tmp_path, 2, _step, tmp_path, tiny_network().path, options)
    assert codes == [0, 0], said(tmp_path, 0) + said(tmp_path, 1)
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)]
    plan = planned(options, processes=(2,))
    exchange = plan.together[0].exchange
    told_rows = touched_rows(plan.size, plan.network, options)
    most = {t: max(one["rows"][t] for one in found) for t in found[0]["rows"]}  # all send as many
    rows = sum(n * (8 + 4 * 8) for n in most.values())
    words = 8 * found[0]["parameters"] + 8  # how much everybody has
    for one in found:
        expected = exchange.total - told_rows + rows + words - 4 * one["unused"]
        assert one["sent"] == expected
    assert rows <= told_rows


def test_touched_rows_do_not_grow_with_the_tables() -> None:
    options = tiny_options(tiny_reader())
    small, large = (planned(options, scale=scale, processes=(8,)) for scale in (100, 1e6))
    assert small.together[0].exchange == large.together[0].exchange
    assert touched_rows(small.size, small.network, options) > 0
    tables = planned(tiny_options(tiny_reader(), virtual_tokens="none", sparse_tokens=False))
    assert touched_rows(tables.size, tables.network, tables.options) == 0


def test_hours_at_given_speeds() -> None:
    given = {"pairs_per_second": 10.0, "nodes_per_second": 100.0, "pairs": 72_000, "bandwidth": 1.0}
    plan = planned(counts=("paper=360000",), processes=(1, 4), **given)
    one, four = plan.together
    assert one.step_seconds == pytest.approx(16 / 10)
    assert one.epoch_hours == pytest.approx(72_000 / 10 / 3600)
    assert (one.efficiency, one.embedding_hours) == (1.0, 1.0)
    wire = 2 * 3 / 4 * four.exchange.summed + 3 * four.exchange.gathered
    assert four.step_seconds == pytest.approx(1.6 + wire / 1e9)
    assert four.epoch_hours == pytest.approx(72_000 / 64 * four.step_seconds / 3600)
    assert four.efficiency == pytest.approx(1.6 / four.step_seconds)
    assert four.embedding_hours == pytest.approx(0.25)
    assert plan.speed.source == "given"


@pytest.mark.parametrize(
    ("every", "refreshes"),
    [(None, 1), (3, 3), ("auto", 9 / refresh_interval(200, 32, REFRESH_SHARE))],  # an epoch has 9 steps
)
def test_a_refresh_takes_its_time(every: Any, refreshes: float) -> None:
    given = {"pairs_per_second": 10.0, "nodes_per_second": 100.0, "processes": (1,)}
    (live,) = planned(**given).together
    options = tiny_options(tiny_reader(), neighbor_states="cached", refresh_every=every)
    (cached,) = planned(options, **given).together
    assert cached.steps_per_epoch == 9
    assert cached.epoch_hours - live.epoch_hours == pytest.approx(refreshes * 200 / 100 / 3600)


def test_the_precision_that_suits_the_device_is_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with_bf16(monkeypatch)
    auto, bf16 = (planned(tiny_options(tiny_reader(), precision=p)) for p in ("auto", "bf16"))
    assert auto.options.precision == "bf16"
    assert auto.together[0].memory == bf16.together[0].memory


def test_what_nobody_knows_is_not_made_up() -> None:
    plan = planned(pairs_per_second=5.0)
    for one in plan.together:
        assert one.epoch_hours is not None
        assert one.embedding_hours is None
    nothing = planned()
    assert nothing.speed.source == "not known"
    for one in nothing.together:
        assert (one.step_seconds, one.efficiency, one.epoch_hours, one.embedding_hours) == (None,) * 4


def test_scores_of_all_keys_need_memory() -> None:
    small, large = (planned(processes=(n,)).together[0].memory for n in (1, 64))
    assert small.weights == large.weights
    assert large.exchanged - small.exchanged >= 16 * 16 * 63 * 4


def test_micro_batches_bound_the_activations() -> None:
    plain, small = planned(), planned(tiny_options(tiny_reader(), batch_size=4))
    micro = planned(tiny_options(tiny_reader(), batch_size=16, micro_batch=4))
    assert micro.together[0].memory.activations == small.together[0].memory.activations
    assert micro.together[0].memory.activations < plain.together[0].memory.activations
    assert micro.together[0].memory.exchanged == plain.together[0].memory.exchanged


def test_no_warm_up_no_vectors_of_all_texts() -> None:
    options = tiny_options(tiny_reader())
    cold = replace(options, warm_up=WarmUpOptions(warm_up=False))
    assert planned(options).warm_up == 200 * 16 * 4 + 16 * planned().network.textless_edges
    assert planned(cold).warm_up == 0
