"""The synthetic shop as the tests have it: its network, a backbone that reads its words, and runs on it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from heterformer.datasets.synthetic_shop import WORDS, ShopOptions, write_shop
from heterformer.network.build import build_network
from heterformer.network.build.frames import temporary_folder
from heterformer.network.spec import NetworkSpec
from heterformer.network.store import Network
from heterformer.training.options import TrainingOptions
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.learning import sharp_reader
from tests.networks import SPECIAL


def built_shop(folder: Path, predict: Any = "bought", **more: Any) -> Network:
    """A shop in ``folder``; ``predict`` as in a specification."""
    spec = write_shop(folder / "tables", ShopOptions(**more))
    text = spec.read_text(encoding="utf-8").replace("predict: bought", f"predict: {predict}")
    spec.write_text(text, encoding="utf-8")
    return build_network(NetworkSpec.load(spec), folder / "network", data=spec.parent)


@cache
def shop(predict: str = "bought") -> Network:
    """A small shop, made once."""
    return built_shop(temporary_folder(), predict, items=160, users=60, purchases=8)


@cache
def timed_shop(since: tuple[tuple[str, str, int], ...] = ()) -> Network:
    """The same with a time of each purchase; who made an item has none. ``since`` are further purchases."""
    folder = temporary_folder()
    spec = write_shop(folder / "tables", ShopOptions(items=160, users=60, purchases=8))
    table = pl.read_csv(spec.parent / "bought.csv")
    times = np.random.default_rng(0).integers(1, 30, len(table))
    table = table.with_columns(time=pl.Series(times))
    table = pl.concat([table, pl.DataFrame(since, schema=table.schema, orient="row")])
    table.write_csv(spec.parent / "bought.csv")
    text = spec.read_text(encoding="utf-8").replace(
        "columns: [user, item]", "columns: [user, item], time: time"
    )
    spec.write_text(text, encoding="utf-8")
    return build_network(NetworkSpec.load(spec), folder / "network", data=spec.parent)


@cache
def shop_reader(seed: int = 0) -> str:
    """A backbone that knows the shop's words and nothing of them."""
    return sharp_reader(temporary_folder() / "reader", seed, (*SPECIAL, *WORDS))


def shop_options(**changes: Any) -> TrainingOptions:
    """Options for a short training; by name, whichever group they are of."""
    usual = {
        "backbone": shop_reader(),
        "neighbor_states": "live",
        "readout": "mean",
        "normalize": "yes",
        "temperature": 0.1,
        "neighbor_pooling": "mean",
        "batch_size": 64,
        "learning_rate": 2e-3,
        "new_learning_rate": 2e-3,
        "textless_learning_rate": 1e-2,
        "warm_up_batch_size": 128,
        "warm_up_epochs": 3,
        "patience": 1000,
        "device": "cpu",
        "split.divide": "pairs",
    }
    return TrainingOptions.from_flat(usual | changes)


@cache
def trained_shop(predict: str = "bought") -> Path:
    """A run on the small shop, made once; it has learnt a little."""
    path = temporary_folder() / "run"
    shop_run(path, shop(predict), max_steps=12, textless_neighbors=5)
    return path


def shop_run(path: Path, network: Network, **changes: Any) -> Run:
    return train(network, path, shop_options(**changes))
