"""The README of a student: what it is, how to use it, and what it is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heterformer.escapes import markdown_text
from heterformer.evaluation.open_run import OpenRun
from heterformer.models.student import Student
from heterformer.tables import four_digits

if TYPE_CHECKING:
    from heterformer.distillation.core import Distillation

FIGURES = {"prec": "PREC", "mrr": "MRR", "ndcg": "NDCG", "full_mrr": "full MRR", "hits_10": "Hits@10"}


def student_card(result: Distillation, student: Student, opened: OpenRun) -> str:
    """The card in Markdown."""
    network, name = opened.network, markdown_text(opened.network.name)
    tokens, (center, target) = (
        student.max_tokens,
        (
            network.schema.predicted[0].source,
            network.schema.predicted[0].target,
        ),
    )
    rows = "\n".join(
        f"| {who} | {' | '.join(four_digits(metrics[key]) for key in FIGURES)} |"
        for who, metrics in (("this encoder", result.test["student"]), ("the model", result.test["model"]))
    )
    return f"""---
library_name: sentence-transformers
pipeline_tag: feature-extraction
tags: [sentence-transformers, feature-extraction, heterformer]
---
# Text encoder for the network "{name}"

Maps texts of up to {tokens} tokens to vectors of {student.width} dimensions. It was distilled from a
{opened.run.options().model.display_name} model of the network: its vectors compare with that model's vectors
of {center} and {target} nodes by their {student.similarity if student.normalize else "inner product"}.

```python
from sentence_transformers import SentenceTransformer

encoder = SentenceTransformer("{result.path.name}")
vectors = encoder.encode(["news recommendation"])
```

Link prediction of {result.pairs:,} test pairs; queries are read alone, keys are the model's vectors:

| queries read by | {" | ".join(FIGURES.values())} |
|---|{"---:|" * len(FIGURES)}
{rows}
"""
