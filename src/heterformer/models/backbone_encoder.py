"""Models whose texts are read by a pretrained language model: loaded, cut or in windows, frozen, adapted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from heterformer.batches.batch import Texts
from heterformer.errors import OptionError
from heterformer.models.contract import NodeEncoder
from heterformer.models.plm.backbone import max_tokens, text_vectors, without_pooler
from heterformer.models.plm.layouts import layout_class
from heterformer.models.plm.layouts.layout import compile_layers
from heterformer.models.plm.loading import untrained_plm
from heterformer.models.plm.low_rank import add_adapters, fitted, merged
from heterformer.models.plm.packing import Packing, pack


class BackboneEncoder(NodeEncoder):
    """Base of the models that keep a PLM, as ``backbone``."""

    backbone: Any

    def add_backbone(self) -> None:
        """Make the PLM of the configuration; its weights are yet to be loaded."""
        self.backbone = without_pooler(untrained_plm(self.config.backbone_config))

    def start_from(self, plm: Any) -> None:
        self.backbone.load_state_dict(plm.state_dict())

    def limit_training(self) -> None:
        """Freeze the backbone or give it low-rank adapters, as the options say. A saved model has neither."""
        if self.config.lora is not None:
            add_adapters(self.backbone, self.config.lora, self.config.lora_targets)
        elif self.config.freeze == "backbone":
            self.backbone.requires_grad_(False)
        if not any(p.requires_grad for p in self.parameters()):
            problem = f"is 'backbone', but {type(self).__name__} has nothing else to train; expected 'none'."
            raise OptionError(self.config.options_class, "freeze", problem)

    def compile_layers(self, backend: Any = "inductor") -> None:
        compile_layers(self.backbone, layout_class(self.backbone), backend)

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load weights, with low-rank adapters or without, whether or not the model has some.

        Args:
            state_dict: Tensors by name.
            args: Further arguments of PyTorch.
            kwargs: Further keywords of PyTorch.
        """
        return super().load_state_dict(fitted(state_dict, self), *args, **kwargs)

    def save_pretrained(self, save_directory: Path | str, **kwargs: Any) -> None:
        """Save the model for ``from_pretrained``; low-rank adapters become part of the weights.

        Args:
            save_directory: The folder to write.
            kwargs: Further keywords of Transformers.

        Example:
            >>> model.save_pretrained("papers-model")
        """
        weights = merged(kwargs.pop("state_dict", None) or self.state_dict())
        super().save_pretrained(save_directory, state_dict=weights, **kwargs)

    @property
    def text_limit(self) -> int:
        if self.config.long_texts == "windows":
            return self.schema.max_tokens
        return min(self.schema.max_tokens, max_tokens(self.backbone))

    def pack(self, texts: Texts, index: Tensor | None = None) -> Packing:
        """``texts`` (or those at ``index``) for the PLM's layers; long ones in windows, by option."""
        if self.config.long_texts == "cut":
            return pack(texts, index)
        limit = max_tokens(self.backbone)
        return pack(texts, index, min(self.config.window_tokens or limit, limit))

    def text_vectors(self, texts: Texts, index: Tensor | None = None) -> Tensor:
        """(U, d): the PLM's vectors of ``texts`` (or of those at ``index``), without any neighbour.

        Args:
            texts: Tokens of all texts, end to end.
            index: Which of the texts; all unless given.
        """
        return text_vectors(self.backbone, self.pack(texts, index), self.config.readout)

    @property
    def width(self) -> int:
        return int(self.backbone.config.hidden_size)

    def get_input_embeddings(self) -> nn.Module:
        """The PLM's word embeddings; set ``.sparse = True`` on them for gradients of the rows used alone."""
        return self.backbone.get_input_embeddings()  # type: ignore[no-any-return]
