"""Texts as bags of words weighted by TF-IDF, and their products with a matrix that learns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from heterformer.arrays import Ints
from heterformer.batches.batch import Texts
from heterformer.network.tokens import PackedTokens


class TfIdf(nn.Module):
    """``E^T x`` for the TF-IDF vector ``x`` of each text: as long as the vocabulary, of length 1.

    Words are the tokens of the PLM's tokenizer. ``x`` itself is never made: ``E^T x`` is a weighted sum of
    the rows of ``E`` that a text's tokens name, and only these rows have gradients. Until ``fit`` there is
    no word that it knows.
    """

    def __init__(self, tokens: int, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary, width, sparse=True, _weight=torch.empty(vocabulary, width))
        self.register_buffer("row", torch.full((tokens,), -1))  # each token's row of E, -1 if it has none
        self.register_buffer("idf", torch.zeros(vocabulary))
        self.row: Tensor
        self.idf: Tensor

    def fit(
        self, tokens: PackedTokens, special_tokens: Collection[int], hidden_texts: Ints | None = None
    ) -> None:
        """Choose the most frequent tokens as vocabulary and weigh them by scikit-learn's IDF.

        Nothing is counted of the texts in the rows ``hidden_texts``, which training must not see.
        """
        words: NDArray[np.signedinteger[Any]] = tokens.tokens
        offsets = tokens.offsets
        if hidden_texts is not None and len(hidden_texts):
            words, offsets = tokens.gather(np.setdiff1d(np.arange(len(offsets) - 1), hidden_texts))
        counts = np.bincount(words, minlength=len(self.row))
        counts[list(special_tokens)] = 0
        chosen = np.argsort(-counts, kind="stable")[: len(self.idf)]
        chosen = chosen[counts[chosen] > 0]
        row = np.full(len(self.row), -1, dtype=np.int32)
        row[chosen] = np.arange(len(chosen))
        idf = _inverse_document_frequencies(row[words], offsets, len(chosen))
        self.row.copy_(torch.from_numpy(row))
        self.idf.zero_()[: len(chosen)] = torch.from_numpy(idf).to(self.idf)

    def forward(self, texts: Texts) -> Tensor:
        row = self.row[texts.tokens]  # (T,)
        text = torch.arange(len(texts), device=row.device).repeat_interleave(texts.lengths)
        row, text = row[row >= 0], text[row >= 0]  # (T',)
        entry, count = torch.unique(text * len(self.idf) + row, return_counts=True)  # the entries of all x
        squares = (count * self.idf[entry % len(self.idf)]) ** 2
        length = squares.new_zeros(len(texts)).index_add(0, entry // len(self.idf), squares).sqrt()  # (U,)
        ends = torch.bincount(text, minlength=len(texts)).cumsum(0)
        return F.embedding_bag(
            row,
            self.embeddings.weight,
            ends - torch.bincount(text, minlength=len(texts)),
            mode="sum",
            sparse=True,
            per_sample_weights=self.idf[row] / length[text],
        )  # (U, d)


def _inverse_document_frequencies(
    columns: NDArray[np.int32], offsets: NDArray[np.int64], words: int
) -> NDArray[np.float64]:
    """Of texts laid end to end, given as columns of the bag of words; -1 is no word."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfTransformer

    known = columns >= 0
    starts = np.concatenate([[0], np.cumsum(known)])[offsets]
    bags = csr_matrix((known[known], columns[known], starts), shape=(len(offsets) - 1, words))
    bags.sum_duplicates()
    idf: NDArray[np.float64] = TfidfTransformer().fit(bags).idf_
    return idf
