"""Heterformer: vectors for every node of a heterogeneous text-rich network."""

from heterformer.errors import InputError
from heterformer.network.store import Network

__all__ = ["InputError", "Network"]
__version__ = "0.1.0"
