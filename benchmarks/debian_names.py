"""How much names give away on Debian's packages: PREC@1 of plain word matching with and without masks.

A test query's text is compared by TF-IDF with the texts of the 100 keys of its batch, cut at as many words as
a model would read tokens; and, beside it, letter groups of the packages' names alone.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from sklearn.feature_extraction.text import TfidfVectorizer

from heterformer import Network
from heterformer.datasets.debian import DebianOptions, build_debian
from heterformer.network.split.draw import make_split


def precision(network: Network, texts: list[str], vectorizer: TfidfVectorizer, seed: int) -> float:
    """Ties count against the method."""
    vectors = vectorizer.fit_transform(texts)  # (N, words)
    pairs = np.random.default_rng(seed).permutation(make_split(network).test)
    size = network.schema.test_batch_size
    right = []
    for start in range(0, len(pairs) - size + 1, size):
        batch = pairs[start : start + size]  # (B, 2)
        scores = (vectors[batch[:, 0]] @ vectors[batch[:, 1]].T).toarray()  # (B, B)
        right.append((scores >= scores.diagonal()[:, None]).sum(axis=1) == 1)
    return float(np.mean(right))


def main(debian: Annotated[DebianOptions, tyro.conf.arg(name="")], seed: int = 0) -> None:
    """Build the network twice and match words.

    Args:
        debian: Where the lists are, and what of them becomes the network.
        seed: Which pairs are in a batch together.
    """
    words, by_mask = TfidfVectorizer(sublinear_tf=True), {}
    with tempfile.TemporaryDirectory() as folder:
        for mask in (True, False):
            out = Path(folder) / f"{mask}.net"
            network = build_debian(out, replace(debian, mask_names=mask))
            most = network.schema.max_tokens
            texts = [" ".join(text.split()[:most]) for text in network.texts("package")]
            by_mask[mask] = score = precision(network, texts, words, seed)
            print(f"{'masked' if mask else 'plain'} texts: PREC {score:.4f} among {len(texts):,} packages")
            letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4))
            names = [re.sub("[-0-9]", " ", name) for name in network.ids("package")]
            print(f"names alone: PREC {precision(network, names, letters, seed):.4f}")
    print(f"plain against masked texts: {by_mask[False] / by_mask[True]:.2f} times")


if __name__ == "__main__":
    tyro.cli(main)
