"""Every task that a network's pairs and labels allow, on a run's vectors or on anybody's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from heterformer.batches.batcher import Batcher
from heterformer.batches.sampling import Ints
from heterformer.batches.visible import VisibleNetwork
from heterformer.embedding.states import stored_states
from heterformer.errors import InputError
from heterformer.network.other_pairs import draw_other_pairs, other_relations
from heterformer.network.pairs import Pairs
from heterformer.network.schema import NodeType
from heterformer.network.split import Split, make_split
from heterformer.network.store import Network
from heterformer.tasks.classification import ClassificationResult, classify
from heterformer.tasks.clustering import ClusteringResult, cluster
from heterformer.tasks.evaluate import OpenRun
from heterformer.tasks.evaluation_options import EvaluateOptions
from heterformer.tasks.labels import Labels, labels_of
from heterformer.tasks.link_prediction import (
    LinkPrediction,
    Question,
    predicted_pairs,
    ranks_by_model,
    ranks_of,
)
from heterformer.tasks.node_vectors import NodeVectors, Vectorized, looked_up
from heterformer.tasks.search_store import SearchStore

Setting = Literal["transductive", "inductive"]  # nodes that training has seen, or those it has not


@dataclass(frozen=True)
class Classified:
    """The classes of some nodes of a type, told by their vectors."""

    node_type: NodeType
    setting: Setting
    result: ClassificationResult


@dataclass(frozen=True)
class Clustered:
    """The classes of a type's nodes, found by clustering their vectors."""

    node_type: NodeType
    result: ClusteringResult


@dataclass(frozen=True)
class Evaluation:
    """What was found, and why something is missing."""

    network: Network
    link_prediction: list[LinkPrediction] = field(default_factory=list)
    seen: tuple[str, ...] = ()
    """Relations whose asked pairs were shown to the model in training: their figures flatter it."""
    classification: list[Classified] = field(default_factory=list)
    clustering: list[Clustered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def evaluate_run(opened: OpenRun, options: EvaluateOptions) -> tuple[Evaluation, Vectorized]:
    """All tasks but the map, with a run's model; and the vectors, for the map."""
    found = Evaluation(opened.network)
    if options.wants("link_prediction"):
        found = _links_of_run(found, opened, options)
    vectors: Vectorized = {}
    if any(options.wants(task) for task in ("classification", "clustering", "map")):
        store = SearchStore.open(opened.run, opened.network, precision=options.precision)
        vectors = {t: NodeVectors.of_all(store.matrix(t)) for t in store.types}
        found = _on_labels(found, vectors, opened.split.hidden, options)
    return found, vectors


def evaluate_vectors(network: Network, vectors: Vectorized, options: EvaluateOptions) -> Evaluation:
    """All tasks but the map, with vectors from elsewhere."""
    found = Evaluation(network)
    if options.wants("link_prediction"):
        found = _links_of_vectors(found, vectors, options)
    return _on_labels(found, vectors, {}, options)


def _links_of_run(found: Evaluation, opened: OpenRun, options: EvaluateOptions) -> Evaluation:
    """The predicted relation's held-out pairs, then those of all others that the model can rank."""
    network, model, split = opened.network, opened.model, opened.split
    predicted = predicted_pairs(network, {part: getattr(split, part) for part in options.parts})
    others, drawn = _other_questions(network, split, model.embedded_types)
    # Pairs of other relations are hidden while they are asked for; the predicted relation's figures, which
    # are compared between runs, are of all neighbours that training had.
    hiding = VisibleNetwork.for_evaluation(network, split, drawn)
    hiding_batcher = Batcher(hiding, opened.batcher.tokens)
    fast = torch.autocast(model.device.type, torch.bfloat16, enabled=options.precision == "bf16")
    with fast, stored_states(model, opened.batcher.tokens, opened.run.path) as states:
        ranks = ranks_by_model(model, opened.batcher, predicted, opened.seed, states)
        ranks += ranks_by_model(model, hiding_batcher, others, opened.seed, states)
    figures = [r.figures(q, network.schema) for q, r in zip([*predicted, *others], ranks, strict=True)]
    return replace(found, link_prediction=figures, seen=tuple(n for n in drawn if n not in split.others))


def _links_of_vectors(found: Evaluation, vectors: Vectorized, options: EvaluateOptions) -> Evaluation:
    """The pairs of the usual split, among nodes that have vectors; whoever made those may have seen them."""
    network = found.network
    split = make_split(network)
    questions = predicted_pairs(network, {part: getattr(split, part) for part in options.parts})
    questions += _other_questions(network, split, tuple(vectors))[0]
    asked, notes = [], list(found.notes)
    for question in questions:
        ends = question.relation.source, question.relation.target
        if not all(t in vectors for t in ends):
            continue
        there = np.logical_and(*(vectors[t].has(question.pairs[:, i]) for i, t in enumerate(ends)))
        if not there.all():
            told = f"{there.sum():,} of {len(there):,} {question.part} pairs have vectors at both ends"
            notes.append(f"{question.relation.name}: {told}; the others are not asked for.")
        if there.any():
            asked.append(replace(question, pairs=question.pairs[there]))
    known = {t: one.rows for t, one in vectors.items()}
    scaled = options.similarity == "cosine"

    ranks = ranks_of(asked, partial(looked_up, vectors, normalize=scaled), network, _inner_product, known)
    figures = [r.figures(q, network.schema) for q, r in zip(asked, ranks, strict=True)]
    return replace(found, link_prediction=figures, notes=notes)


def _inner_product(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.T


def _other_questions(
    network: Network, split: Split, types: tuple[NodeType, ...]
) -> tuple[list[Question], dict[str, Pairs]]:
    """Pairs of the relations besides the predicted one: those that the split holds out, or drawn now."""
    pairs: dict[str, Pairs] = {}
    for relation in other_relations(network):
        if relation.source in types and relation.target in types:
            drawn = split.others.get(relation.name)
            drawn = draw_other_pairs(network, relation, seed=0) if drawn is None else drawn
            if len(drawn):
                pairs[relation.name] = drawn
    questions = [Question("test", network.schema.relation(name), drawn) for name, drawn in pairs.items()]
    return questions, pairs


def _on_labels(
    found: Evaluation,
    vectors: Vectorized,
    hidden: Mapping[NodeType, Ints],
    options: EvaluateOptions,
) -> Evaluation:
    """Classification and clustering of every type that has labels and vectors."""
    if not any(options.wants(task) for task in ("classification", "clustering")):
        return found
    reasons: list[str] = []
    with _noting(reasons, "No classification and no clustering"):
        for node_type, labels in labels_of(found.network, options.labels).items():
            if node_type in vectors:
                reasons.extend(f"{node_type}: {one}." for one in labels.left_out)
                known = labels.restricted(vectors[node_type].rows)
                unseen = hidden.get(node_type, np.empty(0, dtype=np.int64))
                one = _of_type(found.network, known, vectors[node_type], unseen, options, reasons)
                found.classification.extend(one[0])
                found.clustering.extend(one[1])
    for task, results in (("classification", found.classification), ("clustering", found.clustering)):
        if task in options.tasks and not results:  # somebody asked for it
            nothing = f"No {task}: there are no vectors of labelled nodes."
            raise InputError(next((reason for reason in reasons if task in reason), nothing))
    return replace(found, notes=found.notes + reasons)


def _of_type(
    network: Network,
    labels: Labels,
    vectors: NodeVectors,
    unseen: Ints,
    options: EvaluateOptions,
    reasons: list[str],
) -> tuple[list[Classified], list[Clustered]]:
    """Nodes that training has not seen are classified apart from the others, among themselves."""
    node_type, textless = labels.node_type, labels.node_type in network.schema.textless
    rate = options.classification.learning_rate_of(textless)
    settings: dict[Setting, Labels] = {"transductive": labels.restricted(np.setdiff1d(labels.rows, unseen))}
    if len(unseen):
        settings["inductive"] = labels.restricted(unseen)
    classified, clustered = [], []
    for setting, chosen in settings.items() if options.wants("classification") else ():
        with _noting(reasons, f"No {setting} classification"):
            title = f"classifying {node_type} ({setting})"
            told = classify(vectors.of(chosen.rows), chosen, options.classification, rate, title)
            classified.append(Classified(node_type, setting, told))
            here = told.left_out[len(chosen.left_out) :]
            reasons.extend(f"{node_type} ({setting}): {one}." for one in here)
    if options.wants("clustering") and not textless:
        with _noting(reasons, "No clustering"):
            grouped = cluster(vectors.of(labels.rows), labels, options.clustering)
            clustered.append(Clustered(node_type, grouped))
    return classified, clustered


@contextmanager
def _noting(reasons: list[str], what: str) -> Iterator[None]:
    """Why something cannot be done is a note; the rest is done."""
    try:
        yield
    except InputError as error:
        reasons.append(f"{what}: {error}")
