"""Heterformer: vectors for every node of a heterogeneous text-rich network.

What a user needs is here; each name is imported on first use, so that ``import heterformer`` is quick.

Example:
    >>> from heterformer import Network, embed, train
    >>> network = Network.open("papers.net")
    >>> run = train(network, "runs/papers", max_steps=100)
    >>> vectors = embed(run.model(), network)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heterformer.comparison.core import compare
    from heterformer.embedding.embed import embed
    from heterformer.embedding.vectors import Vectors
    from heterformer.errors import InputError
    from heterformer.evaluation.core import evaluate
    from heterformer.explanation.core import explain
    from heterformer.models.heterformer import Heterformer
    from heterformer.models.registry import load_model
    from heterformer.network.store import Network
    from heterformer.search.searcher import Searcher
    from heterformer.training.loop import train
    from heterformer.training.options import TrainingOptions
    from heterformer.training.run import Run

__all__ = [
    "Heterformer",
    "InputError",
    "Network",
    "Run",
    "Searcher",
    "TrainingOptions",
    "Vectors",
    "compare",
    "embed",
    "evaluate",
    "explain",
    "load_model",
    "train",
]
__version__ = "0.1.0"

_MODULES = {
    "Heterformer": "models.heterformer",
    "InputError": "errors",
    "Network": "network.store",
    "Run": "training.run",
    "Searcher": "search.searcher",
    "TrainingOptions": "training.options",
    "Vectors": "embedding.vectors",
    "compare": "comparison.core",
    "embed": "embedding.embed",
    "evaluate": "evaluation.core",
    "explain": "explanation.core",
    "load_model": "models.registry",
    "train": "training.loop",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: PyTorch and Transformers take seconds."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
