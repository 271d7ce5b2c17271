"""Random numbers that are a function of what they are for.

A draw depends on a key and on the node it is made for, not on how many draws were made before: a
resumed run sees the same neighbours, and so does a node that is met in another batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Keys = np.uint64 | NDArray[np.uint64]  # one for all nodes, or one each

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def stream_key(*parts: int) -> np.uint64:
    """One number for a purpose, such as (seed, epoch, step)."""
    key = np.zeros(1, dtype=np.uint64)
    for part in parts:
        key = _mixed(key ^ np.uint64(part % (1 << 64)))
    return np.uint64(key[0])


def uniform(key: Keys, nodes: NDArray[np.integer[Any]], rounds: int) -> NDArray[np.float64]:
    """Numbers in [0, 1): one per node and round, (nodes, rounds)."""
    seeds = _mixed(nodes.astype(np.uint64) + key)[:, None]
    bits = _mixed(seeds + np.arange(rounds, dtype=np.uint64) * GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, 2014): every input bit reaches every output bit."""
    values = values + GOLDEN
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
