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

from heterformer.auto_classes import register_when_imported

if TYPE_CHECKING:
    from heterformer.comparison.core import compare
    from heterformer.distillation.entry import distill
    from heterformer.embedding.embed import embed
    from heterformer.embedding.vectors import Vectors
    from heterformer.errors import InputError
    from heterformer.evaluation.core import evaluate
    from heterformer.explanation.core import explain
    from heterformer.explanation.effects import leave_one_out
    from heterformer.finetuning.core import finetune
    from heterformer.geometric.encoder import HeteroTextEncoder
    from heterformer.geometric.loader import LinkLoader
    from heterformer.models.heterformer import Heterformer
    from heterformer.models.registry import load_model
    from heterformer.models.student import Student
    from heterformer.network.store import Network
    from heterformer.prediction.core import predict
    from heterformer.recommendation.core import Recommender
    from heterformer.search.searcher import Searcher
    from heterformer.training.options import TrainingOptions
    from heterformer.training.run import Run
    from heterformer.training.train import train

__all__ = [
    "Heterformer",
    "HeteroTextEncoder",
    "InputError",
    "LinkLoader",
    "Network",
    "Recommender",
    "Run",
    "Searcher",
    "Student",
    "TrainingOptions",
    "Vectors",
    "compare",
    "distill",
    "embed",
    "evaluate",
    "explain",
    "finetune",
    "leave_one_out",
    "load_model",
    "predict",
    "train",
]
__version__ = "0.2.0"

register_when_imported()

_MODULES = {
    "Heterformer": "models.heterformer",
    "HeteroTextEncoder": "geometric.encoder",
    "InputError": "errors",
    "LinkLoader": "geometric.loader",
    "Network": "network.store",
    "Recommender": "recommendation.core",
    "Run": "training.run",
    "Searcher": "search.searcher",
    "Student": "models.student",
    "TrainingOptions": "training.options",
    "Vectors": "embedding.vectors",
    "compare": "comparison.core",
    "distill": "distillation.entry",
    "embed": "embedding.embed",
    "evaluate": "evaluation.core",
    "explain": "explanation.core",
    "finetune": "finetuning.core",
    "leave_one_out": "explanation.effects",
    "load_model": "models.registry",
    "predict": "prediction.core",
    "train": "training.train",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: PyTorch and Transformers take seconds."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
