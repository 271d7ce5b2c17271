"""The README of a trained model: what it is, what it was trained on, how to use it."""

from __future__ import annotations

from heterformer.escapes import markdown_text
from heterformer.files import write_text
from heterformer.models.contract import NodeEncoder
from heterformer.network.store import Network
from heterformer.training.early_stopping import EarlyStopping
from heterformer.training.run import CARD, Run


def write_model_card(
    run: Run, network: Network, model: NodeEncoder, early: EarlyStopping, reason: str
) -> None:
    """Write ``README.md`` into the run folder."""
    write_text(run.path / CARD, _card(run, network, model, early, reason))


def _card(run: Run, network: Network, model: NodeEncoder, early: EarlyStopping, reason: str) -> str:
    options = run.options()
    schema = network.schema
    nodes = "\n".join(
        f"| {t} | {'text-rich' if t in schema.text_rich else 'textless'} | {schema.counts[t]:,} |"
        for t in schema.node_types
    )
    values = options.to_dict()["model"].items()
    chosen = "\n".join(f"| {name} | {markdown_text(str(value))} |" for name, value in values)
    predicted, pairs = schema.predicted, run.progress()[0].pairs_per_step  # of all processes
    return f"""---
library_name: heterformer
tags: [graph, text-rich network, node representation]
---
# {options.model.display_name} for the network "{markdown_text(network.name)}"

Vectors of {model.width} dimensions for the nodes of a heterogeneous
text-rich network, trained to predict the relation `{predicted.name}` ({predicted.source} to
{predicted.target}) with in-batch negatives.

| node type | kind | nodes |
|---|---|---:|
{nodes}

Validation PREC {early.best:.4f} at step {early.best_step}, in batches of {schema.test_batch_size} pairs;
training, {pairs} pairs a step, ended because {reason}.
Everything that decided the result is in `config.yaml`, every step in `metrics.jsonl`.

| model option | value |
|---|---|
{chosen}

```python
from heterformer import load_model

model = load_model("{run.path.name}")
```

The vectors of two nodes are compared by their inner product. Texts of more than {schema.max_tokens}
tokens are cut.
The model knows the nodes of its network; it says nothing sensible of texts in other languages or of other
subjects than those that its backbone and this network have seen.
"""
