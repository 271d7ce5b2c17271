from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import Tensor

from heterformer.batches.batch import Texts
from heterformer.models.baselines.tf_idf import TfIdf
from heterformer.network.tokens import PackedTokens

TOKENS, WIDTH = 12, 5
SPECIAL = (0, 1, 2)
# Token t from 3 on occurs as often as no other; 11 never; some twice in a text; one text has none of them.
DOCUMENTS = [
    [0, 3, 3, 3, 4, 9, 1],
    [0, 1],
    [0, 3, 4, 4, 5, 6, 1],
    [0, 3, 3, 4, 5, 5, 5, 6, 7, 1],
    [0, 3, 3, 4, 5, 6, 6, 7, 7, 8, 8, 1],
    [0, 3, 4, 10, 2, 1],
]


def packed(documents: list[list[int]]) -> PackedTokens:
    tokens = np.array([t for document in documents for t in document], dtype=np.int32)
    return PackedTokens({"paper": 0}, np.cumsum([0, *map(len, documents)]), tokens)


def texts(documents: list[list[int]]) -> Texts:
    found = packed(documents)
    return Texts(torch.from_numpy(found.tokens).long(), torch.from_numpy(found.offsets))


def fitted(vocabulary: int) -> TfIdf:
    module = TfIdf(TOKENS, vocabulary, WIDTH)
    torch.nn.init.normal_(module.embeddings.weight, generator=torch.Generator().manual_seed(0))
    module.fit(packed(DOCUMENTS), SPECIAL)
    return module


def by_scikit_learn(module: TfIdf, documents: list[list[int]], vocabulary: int) -> Tensor:
    """The bags of words as scikit-learn makes them, times E."""

    def words(document: list[int]) -> list[int]:
        return [t for t in document if t not in SPECIAL]

    vectorizer = TfidfVectorizer(analyzer=words, max_features=vocabulary).fit(DOCUMENTS)
    rows = [int(module.row[t]) for t in vectorizer.get_feature_names_out()]
    bags = torch.from_numpy(vectorizer.transform(documents).toarray())
    return bags @ module.embeddings.weight.double()[rows]


def test_hidden_texts_are_not_counted() -> None:
    found, expected = fitted(8), fitted(8)
    found.fit(packed(DOCUMENTS), SPECIAL, np.array([0, 5]))  # the only ones with tokens 9 and 10
    expected.fit(packed(DOCUMENTS[1:5]), SPECIAL)
    assert torch.equal(found.row, expected.row)
    assert torch.equal(found.idf, expected.idf)
    assert found.row[[9, 10]].tolist() == [-1, -1]
    assert (fitted(8).row[[9, 10]] >= 0).all()


@pytest.mark.parametrize("vocabulary", [3, 8, 40])
def test_equals_scikit_learn(vocabulary: int) -> None:
    module = fitted(vocabulary).double()
    unseen = [[3, 11, 5, 5], [11], []]
    for documents in (DOCUMENTS, unseen):
        expected = by_scikit_learn(module, documents, vocabulary)
        torch.testing.assert_close(module(texts(documents)), expected, atol=1e-6, rtol=0)


def test_the_most_frequent_tokens_are_the_vocabulary() -> None:
    module = fitted(3)
    assert [t for t in range(TOKENS) if module.row[t] >= 0] == [3, 4, 5]
    assert torch.equal(module.row[[3, 4, 5]], torch.tensor([0, 1, 2]))
    assert (module.idf > 0).all()


def test_gradients_are_of_the_words_used() -> None:
    module = fitted(8)
    module(texts([[0, 3, 5, 5, 1], [11, 5]])).sum().backward()
    gradient = module.embeddings.weight.grad
    assert gradient is not None
    assert gradient.is_sparse
    used = gradient.coalesce().indices().flatten().tolist()
    assert used == sorted(int(module.row[t]) for t in (3, 5))


def test_before_it_is_fitted_it_knows_no_word() -> None:
    module = TfIdf(TOKENS, 8, WIDTH)
    torch.nn.init.normal_(module.embeddings.weight)
    assert torch.equal(module(texts(DOCUMENTS)), torch.zeros(6, WIDTH))
