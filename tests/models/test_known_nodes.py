from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heterformer.batches.visible import VisibleNetwork
from heterformer.digests import DIGESTS
from heterformer.errors import InputError
from heterformer.models import known_nodes
from heterformer.models.known_nodes import KnownNodes
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.tokens import PackedTokens
from tests.learning import tiny_network, tiny_tokens


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    kept = KnownNodes.from_network(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    kept.save(tmp_path)
    found = KnownNodes.open(tmp_path)
    assert found is not None
    assert found.are_all(tiny_network())
    for node_type in ("author", "venue"):
        assert found.ids[node_type].to_list() == tiny_network().ids(node_type)
    assert (found.texts.tokens == kept.texts.tokens).all()
    assert (found.texts.offsets == kept.texts.offsets).all()


def test_some_texts_are_kept_or_all_if_there_are_no_more() -> None:
    everything = KnownNodes.from_network(VisibleNetwork.whole(tiny_network()), tiny_tokens())
    assert len(everything.texts.offsets) - 1 == min(200, known_nodes.TEXTS)
    assert (everything.texts.tokens == tiny_tokens().tokens).all()


def test_a_node_that_training_does_not_see_is_not_known() -> None:
    network = tiny_network()
    split = make_split(network, SplitOptions(hold_out=0.2))
    kept = KnownNodes.from_network(VisibleNetwork.for_training(network, split), tiny_tokens())
    hidden = set(split.hidden["paper"].tolist())
    papers, authors = network.edges("written_by")
    seen = {int(a) for p, a in zip(papers, authors, strict=True) if int(p) not in hidden}
    unknown = set(np.flatnonzero(kept.ids["author"].is_null().to_numpy()).tolist())
    assert unknown == set(range(network.schema.counts["author"])) - seen
    assert unknown
    assert not kept.are_all(network)


def test_a_folder_that_says_nothing(tmp_path: Path) -> None:
    assert KnownNodes.open(tmp_path) is None


def test_of_equal_texts_one_is_kept() -> None:
    texts = [[1, 2, 3]] * 100 + [[4, 5, n] for n in range(100)]
    offsets = np.arange(201, dtype=np.int64) * 3
    tokens = PackedTokens({"paper": 0}, offsets, np.array(texts, dtype=np.int32).ravel())
    known = KnownNodes.from_network(VisibleNetwork.whole(tiny_network()), tokens, max_texts=20)
    kept = known.texts.tokens.reshape(-1, 3)
    assert len(kept) == 20
    assert len(np.unique(kept, axis=0)) == 20


def test_damage_is_a_sentence(tmp_path: Path) -> None:
    KnownNodes.from_network(VisibleNetwork.whole(tiny_network()), tiny_tokens()).save(tmp_path)
    folder = tmp_path / known_nodes.FOLDER
    with np.load(folder / "texts.npz") as arrays:
        offsets, tokens = arrays["offsets"], arrays["tokens"]
    with (folder / "texts.npz").open("ab") as file:
        file.write(b"x")
    with pytest.raises(InputError, match=r"texts\.npz: is damaged: it has .* bytes"):
        KnownNodes.open(tmp_path)
    (folder / DIGESTS).unlink()
    offsets[1] = 10**6
    np.savez(folder / "texts.npz", offsets=offsets, tokens=tokens)
    with pytest.raises(InputError, match=r"texts\.npz: .*number 1 cannot be right"):
        KnownNodes.open(tmp_path)
