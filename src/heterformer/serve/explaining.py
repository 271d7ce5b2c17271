"""An explanation as a client sees it: attention, where the model has it, and the effects of leaving out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from heterformer.explanation.core import Explainer
from heterformer.explanation.effects import node_effects
from heterformer.network.lookup import Node
from heterformer.search.searcher import NamedNode


def explained(
    explainer: Explainer,
    node: Node,
    pair: Node | None,
    queries: Literal["auto", "cls", "all"],
    effects: bool,
) -> dict[str, Any]:
    """What the library says of a node, without the run's path."""
    has_text = node.node_type in explainer.schema.text_rich
    if has_text and not explainer.has_attention:
        answer: dict[str, Any] = {"node": asdict(NamedNode.from_node(explainer.network, node))}
    else:
        answer = asdict(explainer.explain(node, queries))
    if pair is not None or (effects and has_text):
        answer["leave_one_out"] = asdict(node_effects(explainer, node, pair))
        del answer["leave_one_out"]["run"]
    else:
        answer["leave_one_out"] = None
    return answer
