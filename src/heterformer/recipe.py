"""The default recipe: the training defaults that depart from the paper.

To change a default is to change its ``value`` here. ``earlier`` is what runs have that were started
when the default was another one, or that are older than the option: they are resumed with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Default(NamedTuple):
    """An option's default now, and before that."""

    value: Any
    earlier: Any


RECIPE: Mapping[str, Default] = MappingProxyType(
    {
        "network_readout": Default("auto", earlier="none"),
        "readout_aggregation": Default("mean", earlier="attention"),
        "second_hop": Default("auto", earlier=None),
        "neighbor_codes": Default(True, earlier=False),
        "gate_learning_rate": Default(0.02, earlier=None),
        "neighbor_states": Default("cached", earlier="live"),
        "neighbor_dropout": Default(0.3, earlier=0.0),
        "positives": Default("fresh", earlier="fixed"),
        "schedule": Default("constant", earlier="constant"),
        "popularity_correction": Default("auto", earlier=0.0),
        "refresh_every": Default("auto", earlier=None),
    }
)


def earlier(*names: str) -> Mapping[str, Any]:
    """The earlier defaults of these options."""
    return MappingProxyType({name: RECIPE[name].earlier for name in names})
