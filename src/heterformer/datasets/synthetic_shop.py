"""A shop with planted tastes: users, items with texts, purchases and brands.

What is planted, and so what a model can find at best:

- An item is of one of 8 departments, which its text tells, and of one of 4 styles, which its text does not
  tell. A brand makes items of all departments in one style.
- A user buys in two departments and in one style: 90 % of the purchases are of these, the others are of any
  item. Among the items of a department and style some are bought more often than others.

So popularity knows little of a user, the text of what a user has bought tells the departments and not the
style, and purchases and brands tell both. An item that nobody has bought yet can be found by its text and
brand.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
from numpy.typing import NDArray

from heterformer.errors import OptionError
from heterformer.files import new_folder
from heterformer.options import check_seed

DEPARTMENTS = {
    "kitchen": "pan kettle knife apron ladle whisk oven bowl",
    "garden": "spade hose seed rake pot lawn hedge shears",
    "music": "guitar drum string amp chord pedal tuner flute",
    "travel": "suitcase map tent pillow passport strap bottle torch",
    "office": "desk stapler folder pen lamp chair ruler printer",
    "sports": "racket ball net shoe jersey whistle helmet glove",
    "toys": "puzzle doll train blocks kite dice robot marbles",
    "bath": "towel soap sponge mirror brush candle basket robe",
}
GENERIC = "new large small set with box best daily spare classic light pack"
STYLES = 4
OWN_SHARE = 0.9  # of the purchases that follow a user's departments and style
WORDS = tuple(" ".join([*DEPARTMENTS.values(), GENERIC]).split())
SPECIFICATION = """\
name: shop
nodes:
  item:  {file: items.csv, id: id, text: [text], label: department}
  user:  {}
  brand: {}
relations:
  bought:  {from: user, to: item, file: bought.csv, columns: [user, item]}
  made_by: {from: item, to: brand, column: brand}
predict: bought
neighbors: {item: 5, user: 5, brand: 1}
max_tokens: 16
"""


@dataclass(frozen=True)
class ShopOptions:
    """The size of a synthetic shop."""

    items: int = 400
    """Number of items, 64 to 1,000,000."""
    users: int = 200
    """Number of users, 10 to 1,000,000."""
    purchases: int = 12
    """Number of items that a user buys, 2 to 1,000; the same item only once."""
    brands: int = 16
    """Number of brands, 4 to 10,000."""
    seed: int = 0
    """Seed of all random draws: the same options and seed give the same tables."""

    def __post_init__(self) -> None:
        check_seed(self)
        limits = {"items": (64, 10**6), "users": (10, 10**6), "purchases": (2, 1000), "brands": (4, 10**4)}
        for name, (least, most) in limits.items():
            if not least <= (value := getattr(self, name)) <= most:
                raise OptionError(self, name, f"is {value}, expected {least:,} to {most:,}.")


def write_shop(out: Path | str, options: ShopOptions | None = None) -> Path:
    """Write the tables of a shop and their specification, and return the specification's path.

    Args:
        out: The folder to write; it must not exist.
        options: Numbers of items, users, purchases and brands.

    Example:
        >>> spec = write_shop("shop", ShopOptions(items=1000))
    """
    options = options or ShopOptions()
    rng = np.random.default_rng(options.seed)
    departments, styles = len(DEPARTMENTS), STYLES
    department = np.arange(options.items) % departments
    style = rng.permutation(np.arange(options.items) // departments) % styles
    brand = styles * rng.integers(0, max(1, options.brands // styles), options.items) + style
    appeal = rng.pareto(2.0, options.items) + 0.5
    with new_folder(Path(out)) as folder:
        items = {
            "id": [f"item-{i}" for i in range(options.items)],
            "text": [_text(list(DEPARTMENTS.values())[d], rng) for d in department],
            "department": [list(DEPARTMENTS)[d] for d in department],
            "brand": [f"brand-{b}" for b in brand],
        }
        pv.write_csv(pa.table(items), folder / "items.csv")
        bought = [
            (f"user-{user}", f"item-{item}")
            for user in range(options.users)
            for item in _purchases(department, style, appeal, options.purchases, rng)
        ]
        columns = dict(zip(("user", "item"), map(list, zip(*bought, strict=True)), strict=True))
        pv.write_csv(pa.table(columns), folder / "bought.csv")
        (folder / "network.yaml").write_text(SPECIFICATION, encoding="utf-8")
    return Path(out) / "network.yaml"


def _text(words: str, rng: np.random.Generator) -> str:
    """Three words of the department and two of any."""
    style = rng.choice(words.split(), 3, replace=False)
    return " ".join([*style, *rng.choice(GENERIC.split(), 2, replace=False)])


def _purchases(
    department: NDArray[np.int64],
    style: NDArray[np.int64],
    appeal: NDArray[np.float64],
    count: int,
    rng: np.random.Generator,
) -> list[int]:
    """What one user buys, each item once."""
    own = np.isin(department, rng.choice(len(DEPARTMENTS), 2, replace=False)) & (
        style == rng.integers(STYLES)
    )
    weights = np.where(own, appeal, 0.0)
    chance = OWN_SHARE * weights / weights.sum() + (1 - OWN_SHARE) * appeal / appeal.sum()
    count = min(count, len(appeal))
    return sorted(rng.choice(len(appeal), count, replace=False, p=chance / chance.sum()).tolist())
