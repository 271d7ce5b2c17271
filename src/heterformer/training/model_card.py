"""The README of a trained model: what it is, what it was trained on, how to use it."""

from __future__ import annotations

import re

from heterformer.escapes import markdown_text
from heterformer.files import CARD, write_text
from heterformer.metrics import metric_heading
from heterformer.models.card_metadata import CardFigures, front_matter, metadata
from heterformer.models.contract import NodeEncoder
from heterformer.network.store import Network
from heterformer.training.early_stopping import EarlyStopping
from heterformer.training.run import Run

TAGS = ["graph", "text-rich network", "node representation", "sentence-similarity"]


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
    relations = ", ".join(f"`{r.name}` ({r.source} to {r.target})" for r in schema.predicted)
    predicted = f"the relation{'s' * (len(schema.predicted) > 1)} {relations}"
    learnt = [f"{predicted} with in-batch negatives"] * ("link_prediction" in options.tasks)
    if model.head is not None:
        what = "numbers" if model.head.config.kind == "number" else "classes"
        learnt.append(f"the {what} of {model.head.config.node_type} nodes")
    pairs = run.progress()[0].pairs_per_step  # of all processes
    validated = f"Validation {metric_heading(options.watched)} {early.best:.4f} at step {early.best_step}"
    title = f"{options.model.display_name} for {network.name}"
    heading = f'# {options.model.display_name} for the network "{markdown_text(network.name)}"'
    figures = CardFigures("validation", network.name, {options.watched: early.best})
    about = metadata("heterformer", options.model.backbone, title, TAGS, figures)
    return f"""{front_matter(about)}{heading}

Vectors of {model.width} dimensions for the nodes of a heterogeneous
text-rich network, trained to predict {" and ".join(learnt)}.

| node type | kind | nodes |
|---|---|---:|
{nodes}

{validated}, in batches of {schema.test_batch_size} pairs;
training, {pairs} pairs a step, ended because {reason}.
Everything that decided the result is in `config.yaml`, every step in `metrics.jsonl`.

| model option | value |
|---|---|
{chosen}

```python
import heterformer  # so that Transformers knows the model
from transformers import AutoModel

model = AutoModel.from_pretrained("{run.path.name}")
vectors = model.encode(["{_example(network)}"])  # (1, {model.width})
```

The vectors of two nodes are compared by their inner product. Texts of more than {schema.max_tokens}
tokens are cut.
The model knows the nodes of its network; it says nothing sensible of texts in other languages or of other
subjects than those that its backbone and this network have seen.
"""


def _example(network: Network) -> str:
    """A few words of the network's own, as a query that a reader can try."""
    text = network.texts(network.schema.query_type, [0])[0]
    words = re.findall(r"[^\W_]+", text)[:6]
    return " ".join(words) or "a text"
