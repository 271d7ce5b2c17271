"""Every task that a network allows, with a run's model and with vectors from elsewhere."""

from __future__ import annotations

import tempfile
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heterformer.arrays import Ints
from heterformer.batches.batch import Batch, Texts
from heterformer.batches.batcher import Batcher
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding.embed import embed
from heterformer.embedding.node_vectors import NodeVectors
from heterformer.errors import InputError
from heterformer.evaluation import core as evaluation
from heterformer.evaluation import model_ranking
from heterformer.evaluation.core import evaluate, evaluate_run, evaluate_vectors
from heterformer.evaluation.open_run import OpenRun, open_run
from heterformer.evaluation.options import ClassificationOptions, ClusteringOptions, EvaluateOptions
from heterformer.metrics import chance_range
from heterformer.models import Heterformer
from heterformer.models.contract import NodeEncoder
from heterformer.models.registry import load_model
from heterformer.network import labels
from heterformer.network.label_options import LabelOptions
from heterformer.network.schema import NodeType
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.store import Network
from heterformer.training.train import train
from tests.evaluation.held_out_pairs import link_prediction_of
from tests.learning import tiny_network, tiny_options, tiny_reader
from tests.networks import Tables

QUICK = EvaluateOptions(
    classification=ClassificationOptions(repeats=1, max_epochs=3),
    clustering=ClusteringOptions(runs=1),
    labels=LabelOptions(min_members=5),
)
TYPES = tiny_network().schema.node_types
OTHERS = {"written_by": "author", "published_in": "venue"}
RELATIONS = [r.name for r in tiny_network().schema.relations]


def opened(folder: Path, split: SplitOptions) -> OpenRun:
    options = tiny_options(tiny_reader(), max_steps=2, split=split)
    return open_run(train(tiny_network(), folder, options).path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> OpenRun:
    """A fifth of its queries were hidden in training, with their authors, and some venues of papers."""
    split = SplitOptions(hold_out=0.2, hold_out_with="author", also="published_in")
    return opened(tmp_path_factory.mktemp("runs") / "run", split)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"tasks": ["linkprediction"]},
            r"^tasks is \['linkprediction'\], expected a list, each of which",
        ),
        ({"tasks": "link_prediction"}, r"^tasks is 'link_prediction', expected a list"),
        ({"parts": ("tests",)}, r"^parts is "),
        ({"task": "map"}, r"^no option 'task' \(did you mean 'tasks'\?\)\.$"),
    ],
)
def test_an_option_that_there_is_not(options: Any, message: str, run: OpenRun) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(run.run.path, **options)


def but_chance(notes: list[str]) -> list[str]:
    """All notes but those of figures that chance may explain."""
    return [note for note in notes if " chance (" not in note]


def random_vectors(seed: int = 0) -> dict[str, NodeVectors]:
    rng = np.random.default_rng(seed)
    counts = tiny_network().schema.counts
    return {t: NodeVectors.from_matrix(rng.normal(size=(counts[t], 4))) for t in TYPES}


def test_a_run_is_evaluated_in_everything(run: OpenRun) -> None:
    found, vectors = evaluate_run(run, QUICK)
    asked = [(one.relation, one.part) for one in found.link_prediction]
    others = [(name, "test") for name in RELATIONS if name != "cites"]
    assert asked == [("cites", "validation"), ("cites", "test"), *others]
    assert found.seen == ("written_by",)  # the pairs of published_in were held out
    assert [(one.node_type, one.setting) for one in found.classification] == [
        ("paper", "transductive"),
        ("paper", "inductive"),
        ("author", "transductive"),
        ("author", "inductive"),
    ]
    assert any(note.startswith("No transductive classification: venue: ") for note in found.notes)
    assert {one.node_type for one in found.clustering} == {"paper"}
    assert set(vectors) == set(TYPES)


def test_a_text_is_read_once_for_all_tasks_and_once_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = opened(tmp_path / "run", SplitOptions())
    texts_read, alone = 0, dict.fromkeys(TYPES, np.empty(0, dtype=np.int64))
    text_states, center_vectors = Heterformer.text_states, model_ranking.center_vectors

    def counted(self: Heterformer, texts: Texts) -> Tensor:
        nonlocal texts_read
        texts_read += len(texts)
        return text_states(self, texts)

    def noted(model: NodeEncoder, batcher: Batcher, node_type: NodeType, rows: Ints, *rest: Any) -> Tensor:
        alone[node_type] = np.concatenate([alone[node_type], rows])
        return center_vectors(model, batcher, node_type, rows, *rest)

    monkeypatch.setattr(Heterformer, "text_states", counted)
    monkeypatch.setattr(model_ranking, "center_vectors", noted)
    found, vectors = evaluate_run(run, QUICK)
    assert texts_read == run.network.schema.counts["paper"]
    queries = {*run.split.validation[:, 0], *run.split.test[:, 0]}
    assert queries < {*alone["paper"]}  # and those of the other relations
    assert len(alone["paper"]) == len({*alone["paper"]})
    expected = embed(run.run.model(), run.network)
    for node_type in TYPES:
        np.testing.assert_allclose(vectors[node_type].matrix, expected[node_type], rtol=1e-4, atol=1e-5)
    assert found.classification


def test_a_run_is_evaluated_by_its_folder(run: OpenRun) -> None:
    evaluation = evaluate(run.run.path, QUICK, tasks=("link_prediction",), parts=("test",))
    first = evaluation.link_prediction[0]
    assert (first.relation, first.part) == ("cites", "test")
    assert evaluation.link_prediction[:1] == link_prediction_of(run, ("test",))
    assert not evaluation.classification
    with pytest.raises(InputError, match=r"split is for vectors .* its own split"):
        evaluate(run.run.path, split="some.parquet")


def test_after_a_split_by_time_training_saw_no_pair_of_the_test(tmp_path: Path) -> None:
    """Nor of relations whose pairs are drawn only now; papers have a year, and so their edges have one."""
    found = evaluate(opened(tmp_path / "run", SplitOptions(by="time")).run.path, tasks=("link_prediction",))
    assert {one.relation for one in found.link_prediction} == {"cites", *OTHERS}
    assert [one.part for one in found.link_prediction if one.relation == "cites"] == ["validation", "test"]
    assert found.seen == ()


def test_unseen_nodes_are_classified_among_themselves(run: OpenRun) -> None:
    found, _ = evaluate_run(
        run, replace(QUICK, tasks=("classification",), labels=LabelOptions(min_members=1))
    )
    hidden = {t: len(rows) for t, rows in run.split.hidden.items()}
    nodes = {(one.node_type, one.setting): one.result.nodes for one in found.classification}
    total = tiny_network().schema.counts["paper"]
    assert 0 < nodes["paper", "inductive"] <= hidden["paper"]
    assert total - hidden["paper"] - 10 <= nodes["paper", "transductive"] <= total - hidden["paper"]


def test_the_predicted_relations_figures_are_those_of_link_prediction_alone(run: OpenRun) -> None:
    found, _ = evaluate_run(run, replace(QUICK, tasks=("link_prediction",)))
    alone = link_prediction_of(run, ("validation", "test"))
    assert found.link_prediction[:2] == alone
    assert not found.classification
    assert not found.clustering


def test_what_grows_with_the_network_is_in_the_runs_folder(
    run: OpenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder for temporary files is in memory on many systems."""
    folders = list[object]()
    new_file = tempfile.TemporaryFile

    def recorded(*args: Any, **options: Any) -> Any:
        folders.append(options["dir"])
        return new_file(*args, **options)

    monkeypatch.setattr(tempfile, "TemporaryFile", recorded)
    evaluate_run(run, replace(QUICK, tasks=("link_prediction",)))
    assert folders
    assert set(folders) == {run.run.path}


def test_vectors_can_be_made_in_bf16_and_are_ranked_exactly(run: OpenRun) -> None:
    scored: list[tuple[torch.dtype, Tensor]] = []

    class Watched(type(run.model)):  # type: ignore[misc]
        def scores(self, queries: Tensor, keys: Tensor, relation: str | None = None) -> Tensor:
            found = super().scores(queries, keys)
            scored.append((found.dtype, keys))
            return found

    def seen(options: EvaluateOptions) -> list[tuple[torch.dtype, Tensor]]:
        scored.clear()
        evaluate_run(replace(run, model=watched), options)
        return list(scored)

    watched = deepcopy(run.model)
    watched.__class__ = Watched
    links = replace(QUICK, tasks=("link_prediction",))
    exact, rounded = seen(links), seen(replace(links, precision="bf16"))
    assert {dtype for dtype, _ in rounded} == {torch.float32}
    assert len(exact) == len(rounded)
    same = [torch.equal(a[1], b[1]) for a, b in zip(exact, rounded, strict=True)]
    assert not any(same[:2])  # papers
    assert all(same[-2:])  # venues, which no product but W_phi makes
    assert all(torch.allclose(a[1], b[1], atol=0.1) for a, b in zip(exact, rounded, strict=True))


class Acquainted(nn.Module):
    """A text-rich node scores 1 with each textless node that it is shown as a neighbour, 0 with others."""

    device = torch.device("cpu")
    embedded_types: tuple[NodeType, ...] = TYPES

    textless_fan_out = 0

    def __init__(self, network: Network) -> None:
        super().__init__()
        counts = {t: network.schema.counts[t] for t in network.schema.textless}
        self.first = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
        self.total = self.width = sum(counts.values())
        self.widths = (self.width,)

    def text_states(self, texts: Texts) -> Tensor:
        return torch.zeros(len(texts), 1, 1)

    def forward(self, batch: Batch, states: Tensor) -> Tensor:
        shown = torch.zeros(len(batch.centers), self.total)
        for edge_type, edges in batch.neighbors.items():
            if (rows := batch.textless.get(edge_type.neighbor)) is not None:
                shown[edges.center, self.first[edge_type.neighbor] + rows[edges.node]] = 1
        return shown

    def textless_vectors(self, node_type: NodeType, rows: Tensor) -> Tensor:
        return torch.eye(self.total)[self.first[node_type] + rows]

    def scores(self, queries: Tensor, keys: Tensor, relation: str | None = None) -> Tensor:
        return queries @ keys.T


def test_who_reads_the_neighbours_does_not_see_the_pairs_asked_for(
    run: OpenRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheating = replace(run, model=Acquainted(run.network))
    asked = {"written_by", "published_in"}

    def hits() -> dict[str, float]:
        found, _ = evaluate_run(cheating, replace(QUICK, tasks=("link_prediction",)))
        return {one.relation: one.metrics["hits_1"] for one in found.link_prediction if one.relation in asked}

    assert hits() == dict.fromkeys(asked, 0.0)
    monkeypatch.setattr(VisibleNetwork, "for_evaluation", lambda network, *_: VisibleNetwork.whole(network))
    assert min(hits().values()) > 0.5  # the cheater is able to cheat


def test_a_run_of_several_widths_is_ranked_at_each(tmp_path: Path) -> None:
    """A model that reads texts alone: its vectors depend on no sample of neighbours."""
    network = tiny_network()
    widths = {"widths": (8, 2), "readout": "mean", "normalize": "yes", "temperature": 0.1}
    options = tiny_options(tiny_reader(), max_steps=4, model="bert", **widths)
    path = train(network, tmp_path / "run", options).path
    found = evaluate(path, tasks=("link_prediction",), parts=("test",))
    assert list(found.by_width) == [16, 8, 2]
    assert found.by_width[16] == found.link_prediction
    for width, (at_width,) in found.by_width.items():
        vectors = {"paper": NodeVectors.from_matrix(embed(load_model(path), network, width=width)["paper"])}
        split = str(path / "split.parquet")
        (cut,) = evaluate_vectors(
            network, vectors, EvaluateOptions(parts=("test",), split=split)
        ).link_prediction
        for name in ("prec", "mrr", "full_mrr", "hits_10"):
            assert at_width.metrics[name] == pytest.approx(cut.metrics[name], abs=0.02)  # ties may break
            assert at_width.metrics[f"alone_{name}"] == at_width.metrics[name]  # there are no neighbours
    figures = [one.metrics["full_mrr"] for (one,) in found.by_width.values()]
    assert len(set(figures)) == 3


def test_vectors_from_elsewhere_are_ranked_by_product_or_angle() -> None:
    """Queries point where their keys do; a node that nobody asks for is a little like all, and long."""
    network = tiny_network()
    pairs, count = make_split(network).test, network.schema.counts["paper"]
    keys, stranger = np.unique(pairs[:, 1]), int(np.setdiff1d(np.arange(count), pairs)[0])
    matrix = np.zeros((count, len(keys)), dtype=np.float32)
    matrix[pairs[:, 0], np.searchsorted(keys, pairs[:, 1])] = 1.0
    matrix[keys, np.arange(len(keys))] = 1.0
    matrix[stranger] = 10.0
    vectors = {"paper": NodeVectors.from_matrix(matrix)}
    options = EvaluateOptions(tasks=("link_prediction",), parts=("test",))
    (inner,) = evaluate_vectors(network, vectors, options).link_prediction
    (cosine,) = evaluate_vectors(network, vectors, replace(options, similarity="cosine")).link_prediction
    assert inner.pairs == len(pairs)
    assert inner.candidates == count
    # The stranger is a true key of some.
    assert inner.metrics["hits_1"] < 0.2 < 0.5 < cosine.metrics["hits_1"]


def test_a_perfect_model_is_first_though_keys_repeat_in_a_batch() -> None:
    """Venues are few: most keys of a batch are there several times, and authors are several per paper."""
    network = tiny_network()
    counts, places = network.schema.counts, {"author": 0, "venue": network.schema.counts["author"]}
    matrix = np.zeros((counts["paper"], counts["author"] + counts["venue"]), dtype=np.float32)
    for name, target in (("written_by", "author"), ("published_in", "venue")):
        source, node = network.edges(name)
        matrix[source, places[target] + node] = 1
    unit = np.eye(matrix.shape[1], dtype=np.float32)
    vectors = {"paper": matrix, "author": unit[: counts["author"]], "venue": unit[counts["author"] :]}
    known = {t: NodeVectors.from_matrix(m) for t, m in vectors.items()}
    found = evaluate_vectors(network, known, replace(QUICK, tasks=("link_prediction",)))
    others = {one.relation: one for one in found.link_prediction if one.relation != "cites"}
    assert set(others) == {"written_by", "published_in"}
    for one in others.values():
        assert one.metrics["prec"] == one.metrics["hits_1"] == 1


def test_figures_that_are_no_better_than_chance_are_named() -> None:
    links = replace(QUICK, tasks=("link_prediction",), parts=("test",))
    found = evaluate_vectors(tiny_network(), random_vectors(), links)
    one = found.link_prediction[0]
    guessing = chance_range(one.chance["prec"], one.pairs)
    told = f"PREC {one.metrics['prec']:.4f} is no better than chance ({guessing})."
    assert f"cites (test): {told}" in found.notes
    better = replace(one, metrics=one.metrics | {"prec": 0.5, "alone_prec": 0.0})
    (alone,) = better.chance_notes()
    assert alone.startswith("cites (test, query alone): PREC 0.0000 is no better")


def test_nodes_without_vectors_are_left_out_and_counted() -> None:
    network, vectors = tiny_network(), random_vectors()
    rows = np.arange(0, network.schema.counts["paper"], 2)
    some = vectors | {"paper": NodeVectors(rows, vectors["paper"].matrix[rows])}
    found = evaluate_vectors(network, some, QUICK)
    asked = {(one.relation, one.part): one for one in found.link_prediction}
    assert asked["cites", "test"].candidates == len(rows)
    both = np.isin(make_split(network).test, rows).all(1).sum()
    assert asked["cites", "test"].pairs == both
    assert any(note.startswith(f"cites: {both} of ") for note in found.notes)
    paper = next(one for one in found.classification if one.node_type == "paper")
    assert paper.result.nodes <= len(rows)


def test_a_network_without_labels_says_so_unless_they_were_asked_for(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.write(
        "cites.csv", "source,target\n" + "".join(f"p{a},p{b}\n" for a in range(20) for b in (a // 2, 19))
    )
    tables.papers("papers.csv", "id,title\n" + "".join(f"p{i},Kernel {i}\n" for i in range(20)))
    network, vectors = tables.build(), {"paper": NodeVectors.from_matrix(np.eye(20))}
    found = evaluate_vectors(network, vectors, QUICK)
    assert [one.part for one in found.link_prediction] == ["validation", "test"]
    assert but_chance(found.notes)[-1].startswith("No classification and no clustering: ")
    with pytest.raises(InputError, match="no node type has a 'label' column"):
        evaluate_vectors(network, vectors, replace(QUICK, tasks=("classification",)))


def test_labels_that_cannot_be_told_are_a_note(tmp_path: Path) -> None:
    vectors = random_vectors()
    few = replace(QUICK, labels=LabelOptions(min_members=10_000))
    found = evaluate_vectors(tiny_network(), vectors, few)
    assert not found.classification
    assert any("No transductive classification: paper: no node has a class" in note for note in found.notes)
    with pytest.raises(InputError, match="no node has a class"):
        evaluate_vectors(tiny_network(), vectors, replace(few, tasks=("classification",)))


def test_what_is_left_out_of_the_labels_is_a_note() -> None:
    tops = replace(QUICK, tasks=("classification",), labels=LabelOptions(min_members=5, top_classes=2))
    found = evaluate_vectors(tiny_network(), random_vectors(), tops)
    (paper,) = (one.result for one in found.classification if one.node_type == "paper")
    (lost,) = paper.left_out
    assert lost.nodes == tiny_network().schema.counts["paper"] - paper.nodes > 0
    assert f"paper: {lost}." in found.notes
    assert lost.reason == "not among the 2 most frequent"
    few = replace(QUICK, tasks=("classification",), labels=LabelOptions(min_members=1))
    few = replace(few, classification=ClassificationOptions(repeats=1, max_epochs=1, max_nodes=30))
    found = evaluate_vectors(tiny_network(), random_vectors(), few)
    (rare,) = (one.result.left_out for one in found.classification if one.node_type == "paper")
    assert [f"paper (transductive): {one}." for one in rare] == [n for n in found.notes if "paper (" in n]
    assert rare


def small_network(folder: Path, papers: int) -> Network:
    tables = Tables(folder)
    tables.write("cites.csv", "source,target\n" + "".join(f"p{a},p{a - 1}\n" for a in range(1, papers)))
    tables.papers("papers.csv", "id,title\n" + "".join(f"p{i},Kernel {i}\n" for i in range(papers)))
    return tables.build()


def test_a_network_too_small_for_parts_says_so_unless_link_prediction_was_asked_for(tmp_path: Path) -> None:
    network = small_network(tmp_path, 3)
    vectors = {"paper": NodeVectors.from_matrix(np.eye(3))}
    found = evaluate_vectors(network, vectors, QUICK)
    assert not found.link_prediction
    assert found.notes[-1].startswith(f"No link prediction: {network.path}: the ")
    assert found.notes[-1].endswith("choose other shares.")
    with pytest.raises(InputError, match=r"^No link prediction: .* part is empty"):
        evaluate_vectors(network, vectors, replace(QUICK, tasks=("link_prediction",)))


def test_relations_without_vectors_are_a_note(run: OpenRun) -> None:
    papers = {"paper": random_vectors()["paper"]}
    links = replace(QUICK, tasks=("link_prediction",))
    told = [f"{name}: not ranked; there are no vectors of {t} nodes." for name, t in OTHERS.items()]
    found = evaluate_vectors(tiny_network(), papers, links)
    assert [one.part for one in found.link_prediction] == ["validation", "test"]
    assert but_chance(found.notes) == told
    text_only = Acquainted(run.network)
    text_only.embedded_types = ("paper",)
    assert but_chance(evaluate_run(replace(run, model=text_only), links)[0].notes) == told
    venues = {"venue": random_vectors()["venue"]}
    assert (
        "cites: not ranked; there are no vectors of paper nodes."
        in evaluate_vectors(tiny_network(), venues, QUICK).notes
    )
    with pytest.raises(InputError, match="No link prediction: there are no vectors of nodes that it needs"):
        evaluate_vectors(tiny_network(), venues, links)


def test_a_split_file_says_which_pairs_are_asked_for_and_which_nodes_are_unseen(
    run: OpenRun, tmp_path: Path
) -> None:
    given = replace(QUICK, split=str(run.run.path / "split.parquet"))
    found, own = evaluate_vectors(tiny_network(), random_vectors(), given), evaluate_run(run, QUICK)[0]
    figures, expected = (
        [(one.relation, one.part, one.pairs) for one in result.link_prediction] for result in (found, own)
    )
    assert figures == expected
    settings, expected_settings = (
        [(one.node_type, one.setting, one.result.nodes) for one in result.classification]
        for result in (found, own)
    )
    assert settings == expected_settings
    assert {setting for _, setting, _ in settings} == {"transductive", "inductive"}
    usual = evaluate_vectors(tiny_network(), random_vectors(), QUICK)
    assert {one.setting for one in usual.classification} == {"transductive"}
    with pytest.raises(InputError, match="not a split"):
        evaluate_vectors(tiny_network(), random_vectors(), replace(QUICK, split=str(tmp_path / "none")))


def test_relations_between_types_of_other_lengths_are_a_note() -> None:
    vectors = random_vectors()
    vectors["author"] = NodeVectors.from_matrix(vectors["author"].matrix[:, :3])
    found = evaluate_vectors(tiny_network(), vectors, replace(QUICK, tasks=("link_prediction",)))
    assert {one.relation for one in found.link_prediction} == {"cites", "published_in"}
    told = "vectors of paper nodes have 4 numbers, those of author 3"
    assert but_chance(found.notes) == [f"written_by: not ranked; {told}."]


def test_one_types_labels_that_fail_leave_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    papers = labels.own_labels(tiny_network(), "paper", QUICK.labels)
    few = partial(labels.own_labels, most_cells=papers.matrix.size - 1)
    monkeypatch.setattr(labels, "own_labels", few)
    found = evaluate_vectors(tiny_network(), random_vectors(), replace(QUICK, tasks=("classification",)))
    assert {one.node_type for one in found.classification} == {"author"}
    assert any(n.startswith("No classification and no clustering of paper: paper: ") for n in found.notes)


def test_labels_that_are_asked_for_in_vain_are_told_of_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "rank_pairs", lambda *_: pytest.fail("pairs were ranked"))
    network = small_network(tmp_path, 20)
    vectors = {"paper": NodeVectors.from_matrix(np.eye(20))}
    with pytest.raises(InputError, match="no node type has a 'label' column"):
        evaluate_vectors(network, vectors, replace(QUICK, tasks=("link_prediction", "clustering")))


def noisy(codes: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return np.eye(codes.max() + 1)[codes] * 4 + rng.normal(size=(len(codes), codes.max() + 1))


def test_vectors_that_know_the_labels_are_told_from_those_that_do_not() -> None:
    network = tiny_network()
    names = [labels[0] for labels in network.labels("paper").to_list()]
    codes = np.unique(names, return_inverse=True)[1]
    knowing = {"paper": NodeVectors.from_matrix(noisy(codes, 0))}
    shuffled = {"paper": NodeVectors.from_matrix(noisy(np.random.default_rng(1).permutation(codes), 0))}
    options = replace(
        QUICK, tasks=("classification", "clustering"), classification=ClassificationOptions(repeats=2)
    )
    good, bad = (evaluate_vectors(network, one, options) for one in (knowing, shuffled))
    assert good.classification[0].result.scores["mlp"]["micro"].mean > 0.8
    chance = bad.classification[0].result.scores["majority"]["micro"].mean
    assert bad.classification[0].result.scores["mlp"]["micro"].mean < chance + 0.25
    nmi = [one.clustering[0].result.metrics["nmi"].mean for one in (good, bad)]
    assert nmi[0] > 0.6 > 0.4 > nmi[1]
