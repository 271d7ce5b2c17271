"""How the families of PLMs are laid out: one module each, chosen by the configuration's ``model_type``."""

from __future__ import annotations

from typing import Any

from heterformer.models.plm.layouts.bert import BertLayout
from heterformer.models.plm.layouts.distilbert import DistilBertLayout
from heterformer.models.plm.layouts.layout import Layout
from heterformer.models.plm.layouts.modernbert import ModernBertLayout
from heterformer.models.plm.layouts.mpnet import MPNetLayout
from heterformer.models.plm.packing import Packing

LAYOUTS: dict[str, type[Layout]] = {
    "distilbert": DistilBertLayout,
    "modernbert": ModernBertLayout,
    "mpnet": MPNetLayout,
}


def layout_class(plm: Any) -> type[Layout]:
    """The layout of a PLM's family; of those that have no module it is BERT's."""
    return LAYOUTS.get(plm.config.model_type, BertLayout)


def layout_of(plm: Any, packing: Packing) -> Layout:
    """A PLM's pass over packed texts."""
    return layout_class(plm)(plm, packing)
