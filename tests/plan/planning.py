"""Plans of the tiny network."""

from __future__ import annotations

from typing import Any

from heterformer.embedding.options import EmbedOptions
from heterformer.network.store import Network
from heterformer.plan.core import Plan, make_plan
from heterformer.plan.options import PlanOptions
from heterformer.training.options import TrainingOptions
from tests.learning import tiny_network, tiny_options, tiny_reader


def planned(
    training: TrainingOptions | None = None,
    network: Network | None = None,
    embed: EmbedOptions | None = None,
    **options: Any,
) -> Plan:
    """Nothing is measured unless asked for."""
    training, network = training or tiny_options(tiny_reader()), network or tiny_network()
    return make_plan(network, training, embed or EmbedOptions(), PlanOptions(**{"measure": False} | options))
