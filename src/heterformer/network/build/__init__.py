"""From tables to a network folder: ``build_network``."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterformer.network.build.builder import build_network

__all__ = ["build_network"]


def __getattr__(name: str) -> Any:
    """Imported on first use: the store reads a build's report, and the builder opens a store."""
    if name == "build_network":
        from heterformer.network.build.builder import build_network

        return build_network
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
