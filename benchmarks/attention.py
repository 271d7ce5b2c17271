"""How much attention goes to the virtual neighbour tokens: means over nodes, by layer, for one or more runs.

    python benchmarks/attention.py RUN [RUN ...] [--nodes 60]

What 'heterformer explain' shows of one node, over nodes of the predicted relation's source type, the same for
all runs; for the claim that warm-up makes the token of textless neighbours heard (the paper's Figure 7).
"""

from __future__ import annotations

import argparse

import numpy as np

from heterformer.explanation.core import Explainer, TextExplanation
from heterformer.network.lookup import Node


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for run in options.runs:
        explainer = Explainer(run)
        node_type = explainer.schema.predicted[0].source
        count = explainer.schema.counts[node_type]
        chosen = np.random.default_rng(options.seed).choice(count, min(count, options.nodes), replace=False)
        attention: dict[str, list[list[float]]] = {}
        for row in chosen.tolist():
            explanation = explainer.explain(Node(node_type, row))
            assert isinstance(explanation, TextExplanation)
            for token in explanation.virtual_tokens:
                layers = [
                    layer.virtual[token.kind] for layer in explanation.layers if token.kind in layer.virtual
                ]
                attention.setdefault(token.kind, []).append(layers)
        for kind, values in attention.items():
            by_layer = " ".join(f"{value:.3f}" for value in np.mean(values, 0))
            print(f"{run} {kind:9} layers 2 and up: {by_layer}  mean {np.mean(values):.4f}", flush=True)


if __name__ == "__main__":
    main()
