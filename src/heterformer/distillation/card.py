"""The README of a student: what it is, how to use it, and what it is worth."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from heterformer.distillation.options import DistillOptions
from heterformer.escapes import markdown_text
from heterformer.evaluation.open_run import OpenRun
from heterformer.metrics import RANKING_METRICS
from heterformer.models.card_metadata import RANKING, CardFigures, front_matter, metadata
from heterformer.models.student import Student
from heterformer.tables import four_digits

if TYPE_CHECKING:
    from heterformer.distillation.core import Distillation

LIBRARY = "sentence-transformers"
TAGS = [LIBRARY, "feature-extraction", "sentence-similarity", "heterformer"]
NO_MATTER = ("json", "device", "onnx")  # to what a student learns


def student_card(result: Distillation, student: Student, opened: OpenRun, options: DistillOptions) -> str:
    """The card in Markdown."""
    network, relation = opened.network, opened.network.schema.predicted[0]
    trained = opened.run.options().model
    ends = " and ".join(map(markdown_text, dict.fromkeys((relation.source, relation.target))))
    compared = student.similarity if student.normalize else "inner product"
    rows = "\n".join(
        f"| {who} | {' | '.join(four_digits(metrics[one.name]) for one in RANKING_METRICS)} |"
        for who, metrics in (("this encoder", result.test["student"]), ("the model", result.test["model"]))
    )
    chosen = "\n".join(f"| {n} | {v} |" for n, v in asdict(options).items() if n not in NO_MATTER)
    figures = CardFigures("test", network.name, {name: result.test["student"][name] for name in RANKING})
    title = f"Text encoder for {network.name}"
    about = metadata(LIBRARY, trained.backbone, title, TAGS, figures)
    return f"""{front_matter(about)}# Text encoder for the network "{markdown_text(network.name)}"

Maps texts of up to {student.max_tokens} tokens to vectors of {student.width} dimensions.
It was distilled from a {trained.display_name} model of the network: its vectors compare with that model's
vectors of {ends} nodes by their {compared}.

```python
from sentence_transformers import SentenceTransformer

encoder = SentenceTransformer("{result.path.name}")
vectors = encoder.encode(["news recommendation"])
```

Link prediction of {result.pairs:,} test pairs; queries are read alone, keys are the model's vectors:

| queries read by | {" | ".join(metric.heading for metric in RANKING_METRICS)} |
|---|{"---:|" * len(RANKING_METRICS)}
{rows}

Distilled by `heterformer distill`; the best of its weights, by validation, are those of step {result.step}:

| option | value |
|---|---|
{chosen}
"""
