"""The synthetic shop: what is planted is there, and nothing else tells it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from heterformer.datasets.synthetic_shop import DEPARTMENTS, STYLES, ShopOptions, write_shop
from heterformer.errors import OptionError
from tests.shop import built_shop


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_shop(tmp_path_factory.mktemp("shop") / "tables").parent


def test_users_buy_in_their_departments_and_style(folder: Path) -> None:
    items = pl.read_csv(folder / "items.csv").with_columns(
        style=pl.col("brand").str.strip_prefix("brand-").cast(pl.Int64) % STYLES
    )
    bought = pl.read_csv(folder / "bought.csv").join(items, left_on="item", right_on="id")
    assert not bought.select("user", "item").is_duplicated().any()
    for column, most in (("department", 2), ("style", 1)):
        counts = bought.group_by("user", column).len().sort("len", descending=True)
        top = counts.group_by("user", maintain_order=True).agg(pl.col("len").head(most).sum())["len"]
        assert top.mean() > 0.85 * ShopOptions().purchases


def test_a_text_tells_the_department_and_not_the_style(folder: Path) -> None:
    items = pl.read_csv(folder / "items.csv")
    for text, department in items.select("text", "department").iter_rows():
        own = set(DEPARTMENTS[department].split())
        others = {w for d, words in DEPARTMENTS.items() if d != department for w in words.split()}
        assert len(own & set(text.split())) == 3
        assert not others & set(text.split())
    assert items["brand"].n_unique() > STYLES


def test_the_same_seed_gives_the_same_shop(tmp_path: Path, folder: Path) -> None:
    again, other = write_shop(tmp_path / "again"), write_shop(tmp_path / "other", ShopOptions(seed=1))
    texts = [(spec.parent / "bought.csv").read_text() for spec in (again, other)]
    assert texts[0] == (folder / "bought.csv").read_text() != texts[1]


def test_it_builds(tmp_path: Path) -> None:
    network = built_shop(tmp_path, "{bought: 2, made_by: 1}", items=64, users=10, purchases=3)
    assert network.schema.counts | {"brand": 0} == {"item": 64, "user": 10, "brand": 0}
    assert network.schema.shares == {"bought": 2 / 3, "made_by": 1 / 3}
    assert len(np.unique(network.edges("bought")[0])) == 10


def test_a_size_out_of_bounds_is_refused() -> None:
    with pytest.raises(OptionError, match="items is 5, expected 64 to 1,000,000"):
        ShopOptions(items=5)
