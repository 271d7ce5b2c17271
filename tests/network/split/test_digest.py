from __future__ import annotations

import numpy as np

from heterformer.batches.visible import VisibleNetwork
from heterformer.network.split.digest import pairs_digest
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from tests.learning import tiny_network


def test_the_digest_is_of_the_pairs_in_any_order() -> None:
    network, split = tiny_network(), make_split(tiny_network())
    relation, pairs = network.schema.predicted[0], split.held_out
    digest = pairs_digest(network, relation, pairs)
    assert pairs_digest(network, relation, pairs[::-1]) == digest
    assert pairs_digest(network, relation, pairs[1:]) != digest
    assert pairs_digest(network, relation, np.ascontiguousarray(pairs[:, ::-1])) != digest
    swapped = pairs.copy()
    swapped[:2, 1] = swapped[1::-1, 1]
    assert pairs_digest(network, relation, swapped) != digest


def test_a_view_says_which_pairs_it_hides() -> None:
    network, split = tiny_network(), make_split(tiny_network(), SplitOptions(also="published_in"))
    assert VisibleNetwork.whole(network).hidden_pairs() == {}
    hidden = VisibleNetwork.for_evaluation(network, split).hidden_pairs()
    assert set(hidden) == {"cites", "published_in"}
    assert hidden["cites"] == pairs_digest(network, network.schema.predicted[0], split.held_out)
