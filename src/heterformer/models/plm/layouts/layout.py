"""What the layers of all PLM families have in common: Eq. 4 and 5 on packed texts, without padding.

Linear maps and normalisations see one row per token and nothing else; attention works on blocks of
equally long texts. Where only [CLS] of a layer is read, only [CLS] is computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from heterformer.models.plm.attention import NO_POSITIONS, PADDED, Positions, attend, attend_to_states
from heterformer.models.plm.dropout import dropped
from heterformer.models.plm.packing import Packing
from heterformer.models.plm.rounding import next_multiple

COMPILED = "_compiled_outputs"  # an attribute of a PLM


class Projection(NamedTuple):
    """A linear map of states to queries, keys or values."""

    weight: Tensor  # (d, d)
    bias: Tensor | None  # (d,)


def _joined(*maps: Projection) -> Projection:
    """Several maps as one, whose results stand side by side."""
    biases = [m.bias for m in maps if m.bias is not None]
    return Projection(
        torch.cat([m.weight for m in maps]), torch.cat(biases) if len(biases) == len(maps) else None
    )


def _scaled(projection: Projection, scale: float) -> Projection:
    weight, bias = projection
    return Projection(weight * scale, None if bias is None else bias * scale)


class Layout(ABC):
    """One pass of a PLM over packed texts, by the PLM's own weights.

    A subclass says how a family names and orders its parts. What depends on the texts alone, such as a
    position bias, is computed once in a pass.
    """

    def __init__(self, plm: Any, packing: Packing) -> None:
        self.plm, self.packing = plm, packing
        self.layers = self.layers_of(plm)
        self.heads = int(plm.config.num_attention_heads)
        self.head_size = int(plm.config.hidden_size) // self.heads

    @staticmethod
    @abstractmethod
    def layers_of(plm: Any) -> Sequence[Any]:
        """The PLM's layers."""

    @staticmethod
    def max_tokens(plm: Any) -> int:
        """The longest text the PLM reads."""
        return int(plm.config.max_position_embeddings)

    @abstractmethod
    def embed(self) -> Tensor:
        """H^(0), (T, d)."""

    @abstractmethod
    def projections(self, depth: int) -> tuple[Projection, Projection, Projection]:
        """The maps to queries, keys and values."""

    @abstractmethod
    def attention_dropout(self, depth: int) -> float:
        """Dropout of the attention's weights; 0 unless the PLM is training."""

    @abstractmethod
    def outputs(self, depth: int, hidden: Tensor, mixture: Tensor) -> Tensor:
        """The layer behind its attention: (Q, d) states and the mixtures they attended to, to (Q, d)."""

    def behind_attention(self, depth: int, hidden: Tensor, mixture: Tensor) -> Tensor:
        """``outputs``, compiled if the PLM is to be (``compile_layers``)."""
        compiled = getattr(self.plm, COMPILED, None)
        if compiled is None:
            return self.outputs(depth, hidden, mixture)
        result: Tensor = compiled(self, depth, hidden, mixture)
        return result

    def attention_input(self, depth: int, states: Tensor) -> Tensor:
        """What queries, keys and values are made of: the states, or their normalisation."""
        return states

    def positions(self, depth: int) -> Positions:
        """How the layer's scores depend on positions, if they do."""
        return NO_POSITIONS

    @property
    def longest(self) -> int:
        """The length of the longest text, with the padding that attention may give it."""
        length = self.packing.blocks[-1].length if self.packing.blocks else 0
        return next_multiple(length, PADDED)

    def run_layer(
        self, depth: int, hidden: Tensor, virtual: Tensor | None = None, first_only: bool = False
    ) -> Tensor:
        """One Transformer layer (Eq. 5): (T, d) to (T, d), or to (U, d) states of [CLS] if ``first_only``.

        ``virtual`` (U, V, d) holds tokens that every token of a text attends to and that attend to nothing.
        They enter as other tokens do, but without a position.
        """
        states = self.attention_input(depth, hidden)
        if virtual is not None:
            virtual = self.attention_input(depth, self.packing.each_window(virtual))
        if not first_only:
            return self.behind_attention(depth, hidden, self.attention(depth, states, virtual))
        first = hidden.index_select(0, self.packing.first_token)  # (U, d)
        mixture = self.attention_of_first(depth, self.attention_input(depth, first), states, virtual)
        return self.packing.average_windows(self.behind_attention(depth, first, mixture))

    def attention(self, depth: int, states: Tensor, virtual: Tensor | None) -> Tensor:
        """MHA(H, H~): queries from the text, keys and values from the text and the virtual tokens (Eq. 4)."""
        query, key, value = self.projections(depth)
        keys_and_values = _joined(key, value)
        # One product for all three is faster. The scale of the scores (Eq. 2) is cheapest applied here.
        all_three = _joined(_scaled(query, self.head_size**-0.5), keys_and_values)
        qkv = F.linear(states, *all_three)  # (T, 3d)
        virtual_kv = None if virtual is None else F.linear(virtual, *keys_and_values)  # (U, V, 2d)
        dropout = self.attention_dropout(depth)
        return attend(qkv, virtual_kv, self.packing.blocks, self.heads, dropout, self.positions(depth))

    def attention_of_first(self, depth: int, first: Tensor, states: Tensor, virtual: Tensor | None) -> Tensor:
        """(U, d): what ``attention`` gives for the first tokens, at the cost of these tokens.

        The others' keys and values are never computed: ``q (W_K h) = (W_K q) h``, so the query is taken to
        the states instead, and ``sum a (W_V h) = W_V sum a h``. (The keys' bias adds the same to all scores
        of a query, which the softmax does not see.)
        """
        query_map, key_map, value_map = self.projections(depth)
        key = key_map.weight.view(self.heads, self.head_size, -1)  # (H, d/H, d)
        value = value_map.weight.view(self.heads, self.head_size, -1)
        query = F.linear(first, *query_map).view(-1, self.heads, self.head_size)  # (U, H, d/H)
        query = torch.einsum("uhc,hcd->uhd", query, key) * self.head_size**-0.5  # (U, H, d)
        dropout, bias = self.attention_dropout(depth), self.positions(depth).bias
        mixtures, totals = attend_to_states(query, states, virtual, self.packing.blocks, dropout, bias)
        mixture = torch.einsum("uhd,hcd->uhc", mixtures, value)  # (U, H, d/H)
        if value_map.bias is not None:  # totals (U, H) are 1 but for dropout
            mixture = mixture + totals[:, :, None] * value_map.bias.view(self.heads, self.head_size)
        return mixture.flatten(1)


def compile_layers(plm: Any, layout: type[Layout], backend: Any = "inductor") -> None:
    """Compile what a layer does behind its attention, for any number of tokens.

    Each layer is compiled once. Attention is not compiled: its shapes differ from batch to batch, and on GPUs
    it is one kernel already.
    """
    config = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, 4 * len(layout.layers_of(plm)))
    compiled = torch.compile(layout.outputs, dynamic=True, backend=backend)
    object.__setattr__(plm, COMPILED, compiled)  # no module, and no part of the weights


def position_embedded(
    embeddings: Any, packing: Packing, first_position: int = 0, token_type: Tensor | None = None
) -> Tensor:
    """(T, d): word and position embeddings (and one of a token type), normalised."""
    length = packing.blocks[-1].length if packing.blocks else 0
    places = embeddings.position_embeddings.weight[first_position : first_position + length]  # (longest, d)
    if token_type is not None:
        places = places + token_type
    hidden = embeddings.word_embeddings(packing.texts.tokens) + F.embedding(packing.positions(), places)
    return dropped(embeddings.LayerNorm(hidden), dropout_of(embeddings))


def dropout_of(module: Any) -> float:
    """The probability of a module's ``dropout``; 0 unless it is training."""
    return float(module.dropout.p) if module.training else 0.0


def projection(linear: Any) -> Projection:
    """A linear module's parameters; low-rank adapters are part of the weight."""
    return Projection(linear.weight, linear.bias)
