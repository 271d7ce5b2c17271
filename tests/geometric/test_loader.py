"""Batches of links as HeteroData: their nodes and edges are the network's, and none of them leaks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from heterformer.errors import InputError
from heterformer.geometric.loader import LinkLoader
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from tests.learning import tiny_network


def edges_of(relation: str) -> set[tuple[int, int]]:
    source, target = tiny_network().edges(relation)
    return set(zip(source.tolist(), target.tolist(), strict=True))


def edges_in(batch: Any) -> list[tuple[str, int, int, int]]:
    """(relation as declared, source row, target row, position of the centre) of all edges of a batch."""
    found = []
    for source, name, target in batch.edge_types:
        index = batch[source, name, target].edge_index
        rows = batch[source].n_id[index[0]].tolist(), batch[target].n_id[index[1]].tolist()
        for neighbor, center, place in zip(*rows, index[1].tolist(), strict=True):
            if name.startswith("rev_"):
                found.append((name.removeprefix("rev_"), center, neighbor, place))
            else:
                found.append((name, neighbor, center, place))
    return found


@pytest.mark.parametrize("part", ["train", "validation", "test"])
def test_edges_are_the_networks_and_no_pair_sees_its_other_end(part: Any) -> None:
    split = make_split(tiny_network(), SplitOptions(hold_out=0.1))
    loader = LinkLoader(tiny_network(), split, part, batch_size=16)
    held_out = {tuple(pair) for pair in split.held_out.tolist()}
    hidden = set(split.hidden["paper"].tolist())
    known = {relation.name: edges_of(relation.name) for relation in tiny_network().schema.relations}
    pairs, met = [], set()
    for batch in loader:
        labels = batch["paper", "cites", "paper"].edge_label_index
        rows = batch["paper"].n_id
        queries, keys = rows[labels[0]].tolist(), rows[labels[1]].tolist()
        pairs += list(zip(queries, keys, strict=True))
        partner = dict(zip(labels.flatten().tolist(), [*keys, *queries], strict=True))
        for relation, source, target, place in edges_in(batch):
            met.add(relation)
            assert (source, target) in known[relation]
            if relation == "cites":
                assert (source, target) not in held_out
                center = int(rows[place])
                assert (target if center == source else source) != partner[place]
                if part == "train":
                    assert not {source, target} & hidden
    expected = {tuple(pair) for pair in getattr(split, part).tolist()}
    assert len(pairs) == len(set(pairs))
    assert set(pairs) <= expected
    assert len(pairs) >= len(expected) - 1  # a last batch of one pair has no negatives
    assert len(loader) == -(-len(pairs) // 16)
    assert met == set(known)


def test_each_pass_over_the_training_pairs_is_another_epoch() -> None:
    loader, again = (LinkLoader(tiny_network(), batch_size=16, seed=1) for _ in range(2))
    first, second = next(iter(loader)), next(iter(loader))
    assert torch.equal(first["paper"].n_id, next(iter(again))["paper"].n_id)
    assert not torch.equal(first["paper"].n_id[:32], second["paper"].n_id[:32])
    fixed = LinkLoader(tiny_network(), part="test", batch_size=16)
    assert torch.equal(*(next(iter(fixed))["paper"].n_id for _ in range(2)))


def test_sizes_of_a_batch() -> None:
    batch = next(iter(LinkLoader(tiny_network(), batch_size=8, neighbors={"paper": 2, "author": 0})))
    assert batch["paper", "cites", "paper"].edge_label_index.shape == (2, 8)
    assert batch.false_negatives.shape == (8, 8)
    assert not batch.false_negatives.diagonal().any()
    assert batch["author"].num_nodes == 0
    degrees = torch.zeros(batch["paper"].num_nodes)
    for name in ("cites", "rev_cites"):
        degrees.index_add_(
            0,
            batch["paper", name, "paper"].edge_index[1],
            torch.ones(batch["paper", name, "paper"].edge_index.shape[1]),
        )
    assert 0 < degrees.max() <= 2
    assert not degrees[16:].any()  # neighbours are not centres


def test_what_is_refused() -> None:
    with pytest.raises(InputError, match="part is 'dev', expected one of train, validation, test"):
        LinkLoader(tiny_network(), part="dev")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="batch_size is 1"):
        LinkLoader(tiny_network(), batch_size=1)
