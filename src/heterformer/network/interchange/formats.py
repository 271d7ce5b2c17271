"""The formats in which a network is written for other tools."""

from typing import Literal

Format = Literal["csv", "graphml", "networkx", "hetero-data"]
