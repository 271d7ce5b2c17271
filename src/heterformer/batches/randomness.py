"""Random numbers that are a function of what they are for.

A draw depends on a key and on the node it is made for, not on how many draws were made before: a
resumed run sees the same neighbours, and so does a node that is met in another batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.network.hashes import GOLDEN, mixed

Keys = np.uint64 | NDArray[np.uint64]  # one for all nodes, or one each


def stream_key(*parts: int) -> np.uint64:
    """One number for a purpose, such as (seed, epoch, step)."""
    key = np.zeros(1, dtype=np.uint64)
    for part in parts:
        key = mixed(key ^ np.uint64(part % (1 << 64)))
    return np.uint64(key[0])


def stream_keys(keys: Keys, part: int) -> Keys:
    """``stream_key(key, part)`` for each of ``keys``."""
    first = mixed(np.atleast_1d(np.asarray(keys, dtype=np.uint64)))
    return mixed(first ^ np.uint64(part % (1 << 64)))


def uniform(key: Keys, nodes: NDArray[np.integer[Any]], rounds: int) -> NDArray[np.float64]:
    """Numbers in [0, 1): one per node and round, (nodes, rounds)."""
    seeds = mixed(nodes.astype(np.uint64) + key)[:, None]
    bits = mixed(seeds + np.arange(rounds, dtype=np.uint64) * GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53
