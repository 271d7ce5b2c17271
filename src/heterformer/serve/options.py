"""Options of the server. Each option has one sentence, which is also its help text."""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import ip_address
from math import ceil
from typing import Annotated, Literal

from tyro.conf import arg

from heterformer.errors import OptionError

KEY_VARIABLE = "HETERFORMER_API_KEY"
COMPUTING = 10  # seconds in which a request that waits no more is answered
POSITIVE = (
    "workers",
    "batch_tokens",
    "max_inputs",
    "max_characters",
    "max_body",
    "max_waiting",
    "max_requests",
)


@dataclass(frozen=True)
class ServeOptions:
    """Where to serve, for whom, and how much at once."""

    host: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """The address to listen at; beyond this machine (0.0.0.0) it needs an API key."""
    port: int = 8080
    """The port to listen at; 0 for any that is free."""
    api_key: Annotated[str, arg(metavar="KEY")] = ""
    """What clients send as 'Authorization: Bearer KEY'; better set as HETERFORMER_API_KEY, out of sight."""
    insecure: bool = False
    """Listen beyond this machine without a key."""
    mcp: bool = False
    """Speak the Model Context Protocol on standard input and output, for agents, instead of HTTP."""
    mcp_http: bool = False
    """Answer the Model Context Protocol over HTTP too, at /mcp."""
    device: Literal["auto", "cpu"] = "auto"
    """Where to compute: a GPU if there is one, or the CPU."""
    workers: int = 1
    """Processes that answer; one that ends is replaced. Vectors are in memory once, the model in each."""
    batch_tokens: int = 4096
    """Maximum number of tokens to encode at once; texts of several requests share a batch."""
    timeout: float = 30.0
    """Seconds after which a request that still waits is answered with 503."""
    max_inputs: int = 256
    """Texts, nodes, users or neighbours in one request."""
    max_characters: int = 20_000
    """Characters of one text."""
    max_body: int = 4_000_000
    """Bytes of one request."""
    max_waiting: int = 2048
    """Texts that may wait to be encoded; more are answered with 429."""
    max_requests: int = 256
    """Requests under way at once; more are answered with 429."""

    def __post_init__(self) -> None:
        if not 0 <= self.port < 1 << 16:
            raise OptionError(self, "port", f"is {self.port}, expected 0 to 65535.")
        for name in POSITIVE:
            if getattr(self, name) < 1:
                raise OptionError(self, name, f"is {getattr(self, name)}, expected at least 1.")
        if not self.timeout > 0:
            raise OptionError(self, "timeout", f"is {self.timeout}, expected seconds above 0.")
        if self.max_waiting < self.max_inputs:
            problem = f"is {self.max_waiting}, expected at least {{max_inputs}} ({self.max_inputs})."
            raise OptionError(self, "max_waiting", problem)
        if not (self.is_local or self.key or self.insecure):
            problem = (
                f"is {self.host}, which others can reach; give {{api_key}}, or {{insecure}} to do without."
            )
            raise OptionError(self, "host", problem)

    @property
    def ending(self) -> int:
        """Seconds that requests under way have after SIGTERM: what they may wait, and some to be computed."""
        return ceil(self.timeout) + COMPUTING

    @property
    def key(self) -> str:
        """The key that clients must send, or nothing."""
        return self.api_key or os.environ.get(KEY_VARIABLE, "")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False
