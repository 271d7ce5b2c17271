"""Effects are differences to what the model gives when it is asked again, from the beginning, without it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heterformer.batches.batch import Batch, Neighbors, Texts
from heterformer.embedding.embed import embed
from heterformer.errors import InputError
from heterformer.explanation.core import Explainer, relation_of
from heterformer.explanation.effects import Effect, LeaveOneOut, node_effects
from heterformer.models.inference import evaluating
from heterformer.network.lookup import Node
from heterformer.training.run import Run
from tests.explanation.explaining import other_run
from tests.learning import tiny_network
from tests.search.searching import tiny_run

PAPER, AUTHOR, OTHER = Node("paper", 7), Node("author", 3), Node("paper", 11)


@cache
def explainer(run: Path | None = None) -> Explainer:
    return Explainer(run or tiny_run())


@cache
def effects(node: Node = PAPER, pair: Node | None = None, run: Path | None = None) -> LeaveOneOut:
    return node_effects(explainer(run), node, pair)


def recomputed(gone: Any = (), tokens: list[int] | None = None, run: Path | None = None) -> Tensor:
    """The paper's vector by a forward of its own, without edges to nodes ``gone``, with other tokens."""
    own = explainer(run)
    work = own.embedding
    batch: Batch = work.batcher.nodes(PAPER.node_type, np.array([PAPER.row]), work.sampler)
    assert batch.text_rows is not None
    neighbors = {}
    for edge_type, edges in batch.neighbors.items():
        relation = relation_of(own.schema, edge_type)
        kept = []
        for place, node in enumerate(edges.node.tolist()):
            if edge_type.neighbor in own.schema.textless:
                row = int(batch.textless[edge_type.neighbor][node])
            else:
                row = int(batch.text_rows[node]) - work.tokens.text_offset[edge_type.neighbor]
            node_id = own.network.ids(edge_type.neighbor, [row])[0]
            if (edge_type.neighbor, node_id) not in gone and (*relation, edge_type.neighbor) not in gone:
                kept.append(place)
        index = torch.tensor(kept, dtype=torch.int64)
        neighbors[edge_type] = Neighbors(edges.center[index], edges.node[index])
    if tokens is not None:
        near = batch.texts.first(batch.neighbor_texts)
        end = torch.tensor([int(near.offsets[-1]) + len(tokens)])
        texts = Texts(torch.cat([near.tokens, torch.tensor(tokens)]), torch.cat([near.offsets, end]))
        batch = replace(batch, texts=texts, centers=torch.tensor([len(near)]), text_rows=None)
    with evaluating(own.model):
        return own.model.encode_batch(replace(batch, neighbors=neighbors))[0].double()


def change(without: Tensor, run: Path | None = None) -> float:
    whole = recomputed(run=run)
    return float((whole - without).norm() / whole.norm())


def close(value: float | None) -> Any:
    return pytest.approx(value, rel=1e-3, abs=2e-6)


def paper_tokens() -> list[int]:
    tokens = explainer().embedding.tokens
    ids, _ = tokens.gather(np.array([PAPER.row + tokens.text_offset["paper"]]))
    return [int(i) for i in ids]


def test_every_neighbour_is_left_out_as_if_it_were_not_there() -> None:
    found = effects().neighbors
    assert {n.node_type for n in found} == {"paper", "author", "venue"}
    for neighbor in found:
        without = recomputed({(neighbor.node_type, neighbor.id)})
        assert neighbor.change == close(change(without))
        assert neighbor.change > 1e-6
        assert neighbor.cosine == close(float(torch.cosine_similarity(recomputed(), without, dim=0)))
        assert neighbor.score_change is None
    assert [n.change for n in found] == sorted((n.change for n in found), reverse=True)


def test_kinds_of_neighbours_and_all_of_them_and_the_text() -> None:
    kinds = {(k.relation, k.direction, k.node_type): k for k in effects().kinds if k.kind == "relation"}
    assert sum(k.number for k in kinds.values()) >= len(effects().neighbors)
    for kind, effect in kinds.items():
        assert effect.change == close(change(recomputed({kind})))
    (everyone,) = [k for k in effects().kinds if k.kind == "neighbors"]
    assert everyone.change == close(change(recomputed(set(kinds))))
    assert everyone.number == len(effects().neighbors)
    (text,) = [k for k in effects().kinds if k.kind == "text"]
    first, *_, last = paper_tokens()
    assert text.change == close(change(recomputed(tokens=[first, last])))
    assert text.number == len(effects().words)


def test_every_word_is_left_out_with_all_its_tokens() -> None:
    title = tiny_network().texts("paper", [PAPER.row])[0]
    assert "".join(w.word for w in effects().words) == title.lower().replace(" ", "")
    encoded = explainer().tokenizer(title)
    assert encoded["input_ids"] == paper_tokens()
    for number, word in enumerate(effects().words):
        kept = [t for t, w in zip(encoded["input_ids"], encoded.word_ids(), strict=True) if w != number]
        assert len(kept) < len(encoded["input_ids"])
        assert word.change == close(change(recomputed(tokens=kept)))


@pytest.mark.parametrize("pair", [OTHER, AUTHOR])
def test_the_score_of_a_pair(pair: Node) -> None:
    vectors = embed(Run(tiny_run()).model(), tiny_network())
    other = torch.from_numpy(vectors[pair.node_type][pair.row]).double()
    found = effects(PAPER, pair)
    assert found.pair is not None
    assert (found.pair.node_type, found.score) == (pair.node_type, close(float(recomputed() @ other)))
    kinds = {(k.relation, k.direction, k.node_type): k for k in found.kinds if k.kind == "relation"}
    encoded = explainer().tokenizer(tiny_network().texts("paper", [PAPER.row])[0])
    tokens = list(zip(encoded["input_ids"], encoded.word_ids(), strict=True))
    by_kind = {k.kind: k for k in found.kinds}
    pairs: list[tuple[Effect, Tensor]] = [(n, recomputed({(n.node_type, n.id)})) for n in found.neighbors]
    pairs += [(effect, recomputed({kind})) for kind, effect in kinds.items()]
    pairs += [(by_kind["neighbors"], recomputed(set(kinds)))]
    pairs += [(by_kind["text"], recomputed(tokens=[t for t, word in tokens if word is None]))]
    pairs += [
        (effect, recomputed(tokens=[t for t, word in tokens if word != number]))
        for number, effect in enumerate(found.words)
    ]
    for effect, without in pairs:
        # A difference of two float32 scores: rounded at their size, not at its own.
        expected = float((recomputed() - without) @ other)
        assert effect.score_change == pytest.approx(expected, abs=2e-6 * max(1, abs(found.score or 0)))
    sizes = [abs(n.score_change or 0) for n in found.neighbors]
    assert sizes == sorted(sizes, reverse=True)
    assert {n.id: n.change for n in found.neighbors} == {n.id: n.change for n in effects().neighbors}


def test_a_model_without_virtual_tokens_is_explained_as_well() -> None:
    run = other_run(model="bert_mean_sage")
    found = effects(run=run)
    for neighbor in found.neighbors:
        assert neighbor.change == close(change(recomputed({(neighbor.node_type, neighbor.id)}, run=run), run))
    assert max(n.change for n in found.neighbors) > 1e-6


def test_a_long_text_is_left_out_in_runs_of_words() -> None:
    found = node_effects(explainer(), PAPER, most_words=2)
    assert len(found.words) == 2
    joined = "".join(w.word for w in found.words).replace(" ", "")
    assert joined == "".join(w.word for w in effects().words)


def test_a_node_without_text_has_nothing_to_leave_out() -> None:
    with pytest.raises(InputError, match="has no text, and its vector is learnt"):
        effects(AUTHOR, PAPER)
