"""Which pairs were hidden, as a digest that outputs carry and later commands compare."""

from __future__ import annotations

import hashlib

import numpy as np

from heterformer.network.hashes import string_hashes
from heterformer.network.schema import Relation
from heterformer.network.split.pairs import Pairs
from heterformer.network.store import Network


def pairs_digest(network: Network, relation: Relation, pairs: Pairs) -> str:
    """A digest of the pairs' ids: the same in any order, and in any network that has these nodes."""
    ends = (relation.source, relation.target)
    hashes = [string_hashes(network.column(end, "id"))[pairs[:, side]] for side, end in enumerate(ends)]
    order = np.lexsort(hashes)
    return hashlib.blake2b(np.stack(hashes)[:, order].tobytes(), digest_size=16).hexdigest()
