"""Training on several relations and on ends without text: resumed, sliced and refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from heterformer.batches.slices import slices
from heterformer.errors import InputError
from heterformer.training.loop import Trainer
from heterformer.training.run import Run
from heterformer.training.train import train
from heterformer.training.validation import in_batch_metrics
from tests.learning import count_texts
from tests.shop import shop, shop_options, shop_run
from tests.training.runs import assert_same_run, tensors

BOTH = "{bought: 2, made_by: 1}"


@pytest.mark.parametrize("states", ["live", "cached"])
def test_a_run_on_several_relations_is_resumed_to_the_same_bits(tmp_path: Path, states: str) -> None:
    options = {"neighbor_states": states, "textless_neighbors": 3, "evaluate_every": 4}
    options |= {"refresh_every": 3, "hard_negatives": 1} if states == "cached" else {}
    whole = shop_run(tmp_path / "whole", shop(BOTH), max_steps=6, **options)
    shop_run(tmp_path / "part", shop(BOTH), max_steps=3, **options)
    part = shop_run(tmp_path / "part", shop(BOTH), max_steps=6, **options)
    last = ("checkpoints/last/model.safetensors", "checkpoints/last/optimizer.safetensors")
    assert_same_weights(whole, part, last)
    (line,) = [m["validation"] for m in whole.metrics() if "validation" in m and m["step"] == 4]
    mean = 2 / 3 * line["bought.prec"] + 1 / 3 * line["made_by.prec"]
    assert line["prec"] == pytest.approx(mean)


def assert_same_weights(run: Run, other: Run, files: tuple[str, ...]) -> None:
    one, two = tensors(run, *files), tensors(other, *files)
    assert one.keys() == two.keys()
    assert [name for name in one if not torch.equal(one[name], two[name])] == []


def test_one_relation_in_a_list_trains_as_its_name_does(tmp_path: Path) -> None:
    runs = [
        shop_run(tmp_path / str(number), shop(predict), max_steps=3)
        for number, predict in enumerate(["bought", "[bought]"])
    ]
    assert_same_run(*runs)


def test_relations_are_met_by_their_shares(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path, "{bought: 3, made_by: 1}")
    epochs = 20
    steps = epochs * trainer.batches.steps_per_epoch
    tasks = [trainer.batches.pairs_of_run_step(step)[0] for step in range(steps)]
    share = tasks.count("bought") / len(tasks)
    assert abs(share - 0.75) < 4 * np.sqrt(0.75 * 0.25 / len(tasks))


def test_slices_give_the_vectors_of_the_whole(tmp_path: Path) -> None:
    trainer = new_trainer(tmp_path, BOTH, textless_neighbors=3, batch_size=16)
    trainer.model.eval()
    seen = set()
    for step in range(8):
        batch = trainer.batches.of_run_step(step)
        seen.add(batch.textless_queries)
        with torch.no_grad():
            whole = batch.by_role(trainer._vectors(batch))
            parts = [part.by_role(trainer._vectors(part)) for part in slices(batch, 5)]
        for role, together in enumerate(whole):
            pieces = torch.cat([part[role] for part in parts])
            torch.testing.assert_close(pieces, together, rtol=1e-4, atol=1e-5)
    assert seen == {True, False}


def test_a_validation_reads_no_text_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = new_trainer(tmp_path, BOTH, textless_neighbors=3, second_hop=3, network_readout="both")
    counts = count_texts(monkeypatch)
    together = trainer._validation_metrics("validating")
    read = sum(counts)
    assert 0 < read <= len(trainer.tokens)
    for relation, pairs in trainer.validation_pairs.items():
        size, frequencies = trainer.network.schema.test_batch_size, trainer.links.log_frequencies
        alone = in_batch_metrics(
            trainer.model,
            trainer.validation,
            pairs,
            size,
            trainer.options.seed,
            relation=relation,
            log_frequencies=frequencies.get(relation.name),
        )
        assert together[f"{relation.name}.prec"] == pytest.approx(alone["prec"])
    assert sum(counts) - read > read  # by itself each relation reads some of them again


def test_a_relation_weighs_the_numbers_of_a_vector_starting_at_ones(tmp_path: Path) -> None:
    model = new_trainer(tmp_path / "both", BOTH).model
    assert set(model.relation_scales) == {"bought", "made_by"}
    queries, keys = torch.randn(3, model.width), torch.randn(4, model.width)
    plain = queries @ keys.T / model.config.temperature
    with torch.no_grad():
        assert torch.equal(model.scores(queries, keys, "bought"), plain)
        scale = model.relation_scale("bought")
        assert scale is not None
        scale[0] = 2.0
        expected = plain + queries[:, :1] @ keys[:, :1].T / model.config.temperature
        torch.testing.assert_close(model.scores(queries, keys, "bought"), expected)
        assert torch.equal(model.scores(queries, keys, "made_by"), plain)
    assert not new_trainer(tmp_path / "one", "bought").model.relation_scales
    assert not new_trainer(tmp_path / "none", BOTH, relation_scales=False).model.relation_scales


def new_trainer(folder: Path, predict: str, **changes: object) -> Trainer:
    run, options = Run(folder / "run"), shop_options(max_steps=3, **changes).resolved()
    run.start(shop(predict), options)
    return Trainer(shop(predict), run, options)


def test_a_model_without_vectors_of_an_end_is_refused(tmp_path: Path) -> None:
    options = shop_options(max_steps=3)
    bert = type(options).from_flat({"model": "bert", "backbone": options.model.backbone, "device": "cpu"})
    with pytest.raises(
        InputError, match="predicts 'bought', but BERT has no vectors of user nodes"
    ) as caught:
        train(shop(), tmp_path / "run", bert)
    assert str(caught.value).endswith("no text; choose another model (see docs/recommendation.md).")
    assert not (tmp_path / "run").exists()
