"""Every task that a network's pairs and labels allow, on a run's vectors or on anybody's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from heterformer.arrays import Ints
from heterformer.batches.pairs import evaluation_sampler
from heterformer.batches.visible import EvaluatedPart, VisibleNetwork
from heterformer.device import chosen_precision, computing_in, say_if_slow
from heterformer.distributed import ProcessGroup
from heterformer.embedding.node_vectors import NodeVectors, Vectorized, looked_up
from heterformer.errors import InputError
from heterformer.evaluation.classification import ClassificationResult, classify
from heterformer.evaluation.clustering import ClusteringResult, cluster
from heterformer.evaluation.link_prediction import LinkPrediction, PairSet, Ranks, predicted_pairs
from heterformer.evaluation.model_ranking import ModelVectors, vectors_alone
from heterformer.evaluation.notes import Notes
from heterformer.evaluation.open_run import OpenRun, open_run
from heterformer.evaluation.options import LABEL_TASKS, EvaluateOptions
from heterformer.evaluation.pair_ranking import rank_pairs
from heterformer.evaluation.recommendation import RecommendationResult, recommendations
from heterformer.network.labels import Labels, labelled_types, labels_of_type
from heterformer.network.schema import NodeType, Relation
from heterformer.network.split.draw import make_split
from heterformer.network.split.other_pairs import draw_other_pairs, other_relations
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.options import with_keywords
from heterformer.search.store import SearchStore
from heterformer.states.neighbor_states import neighbor_states
from heterformer.states.text_states import TextStates, stored_states

Setting = Literal["transductive", "inductive"]  # nodes that training has seen, or those it has not


@dataclass(frozen=True)
class NodeClassification:
    """The classes of some nodes of a type, predicted from their vectors."""

    node_type: NodeType
    setting: Setting
    result: ClassificationResult


@dataclass(frozen=True)
class NodeClustering:
    """The classes of a type's nodes, found by clustering their vectors."""

    node_type: NodeType
    result: ClusteringResult


@dataclass(frozen=True)
class Evaluation:
    """What was found, and why something is missing."""

    network: Network
    link_prediction: list[LinkPrediction] = field(default_factory=list)
    by_width: dict[int, list[LinkPrediction]] = field(default_factory=dict)
    """Of a run that was trained at several widths: pairs of the predicted relations at each, widest first."""
    recommendation: list[RecommendationResult] = field(default_factory=list)
    """Of predicted relations with a textless end, such as what users have bought."""
    seen: tuple[str, ...] = ()
    """Relations whose asked pairs were shown to the model in training: their figures flatter it."""
    seen_by_vectors: tuple[str, ...] | None = ()
    """Relations whose asked pairs vectors from a file were made with; None if the file does not say."""
    classification: list[NodeClassification] = field(default_factory=list)
    clustering: list[NodeClustering] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def evaluate(
    run: Path | str,
    options: EvaluateOptions | None = None,
    *,
    network: Path | str | None = None,
    **changes: Any,
) -> Evaluation:
    """Evaluate a run: link prediction and, if the network has labels, classification and clustering.

    Nothing is written but the vectors that the run keeps for searching; ``heterformer evaluate`` also writes
    a report, and reads vectors that no run has made.

    Args:
        run: A folder that ``train`` wrote.
        options: Which tasks, on which labels, and how; the map is not drawn.
        network: Evaluate on this network, which may have grown since training: pairs of new nodes are
            the part "new", and pairs of the run's split that are gone are left out.
        changes: Fields of ``EvaluateOptions`` that differ from ``options``.

    Example:
        >>> evaluation = evaluate("runs/papers", tasks=("link_prediction",), parts=("test",))
        >>> evaluation.link_prediction[0].metrics["mrr"]
    """
    options = with_keywords(options or EvaluateOptions(), changes)
    if options.split is not None:
        raise InputError("split is for vectors from elsewhere; a run is evaluated on its own split.")
    return evaluate_run(open_run(run, options.device, network), options, for_map=False)[0]


def evaluate_run(
    opened: OpenRun,
    options: EvaluateOptions,
    processes: ProcessGroup | None = None,
    *,
    for_map: bool = True,
) -> tuple[Evaluation, Vectorized]:
    """All tasks but the map, with a run's model; and the vectors, which the map is drawn from.

    Several processes share the ranking, which takes the time; the main process does the rest.
    """
    processes, options = processes or ProcessGroup(), with_chosen_precision(options, opened)
    evaluation, notes = Evaluation(opened.network), Notes(list(opened.notes))
    with processes.main_process_first():
        labels = _labels(evaluation.network, opened.model.embedded_types, options, notes)
    vectors: Vectorized = {}
    with ExitStack() as held:
        texts: TextStates | None = None
        if options.wants("link_prediction"):
            with _computing(options, opened):
                states = stored_states(opened.model, opened.batcher.tokens, opened.run.path, processes)
                texts = held.enter_context(states)
                evaluation = _links_of_run(evaluation, opened, options, notes, processes, texts)
        if processes.world_size > 1:  # the others do not wait for what the main process does alone
            held.close()
            texts = None
        if not processes.is_main:
            return evaluation, {}
        if labels or (for_map and options.wants("map")):
            vectors = _vectors_of_run(opened, options, texts)
    _on_labels(evaluation, labels, vectors, opened.split.hidden, options, notes)
    return replace(evaluation, notes=notes.sentences), vectors


def _vectors_of_run(opened: OpenRun, options: EvaluateOptions, texts: TextStates | None) -> Vectorized:
    """Of the whole network, as searching keeps them; ``texts`` are what link prediction has read already."""
    device, precision = options.device, options.precision
    store = SearchStore.open(opened.run, opened.network, device=device, precision=precision, texts=texts)
    return {t: NodeVectors.from_matrix(store.matrix(t)) for t in store.types}


def with_chosen_precision(options: EvaluateOptions, opened: OpenRun) -> EvaluateOptions:
    """The options with the precision that 'auto' is for the run's device: one for all tasks of a report."""
    return replace(options, precision=chosen_precision(options.precision, opened.model.device))


def evaluate_vectors(
    network: Network,
    vectors: Vectorized,
    options: EvaluateOptions,
    hidden_pairs: Mapping[str, str] | None = None,
) -> Evaluation:
    """All tasks but the map, with vectors from elsewhere.

    ``hidden_pairs`` are digests of the pairs that the vectors have not seen, by relation, as ``embed`` notes
    them; None if nothing is known.
    """
    evaluation, notes = Evaluation(network), Notes()
    split = None if options.split is None else Split.open(options.split, network)
    labels = _labels(network, tuple(vectors), options, notes)
    if options.wants("link_prediction"):
        with notes.trying("No link prediction", "link_prediction"):
            division = split or make_split(network)
            evaluation = _links_of_vectors(evaluation, vectors, division, options, notes, hidden_pairs)
        notes.insist("link_prediction", options.tasks, evaluation.link_prediction)
    _on_labels(evaluation, labels, vectors, split.hidden if split else {}, options, notes)
    return replace(evaluation, notes=notes.sentences)


def _links_of_run(
    evaluation: Evaluation,
    opened: OpenRun,
    options: EvaluateOptions,
    notes: Notes,
    processes: ProcessGroup,
    texts: TextStates,
) -> Evaluation:
    """The predicted relations' held-out pairs, then those of all others that the model can rank."""
    network, model, split = opened.network, opened.model, opened.split
    by_part = _pair_sets_by_part(opened, options)
    predicted = [pair_set for pair_sets in by_part.values() for pair_set in pair_sets]
    others, drawn = _other_pair_sets(network, split, model.embedded_types, notes)
    # Pairs of other relations are hidden while they are asked for; the predicted relation's figures, which
    # are compared between runs, are of all neighbours that training had.
    hiding = VisibleNetwork.for_evaluation(network, split, drawn)
    hiding_batcher = opened.batcher.showing(hiding)
    sampler, folder = evaluation_sampler(opened.seed), opened.run.path
    ranks: list[Ranks] = []
    at_widths: dict[int, list[Ranks]] = {width: [] for width in model.widths[1:]}
    lists, unseen = list[RecommendationResult](), _unseen(network, split)
    # Whatever is hidden of their neighbours.
    alone = vectors_alone(model, opened.batcher, opened.seed, texts, folder)
    for part, pair_sets in by_part.items():
        as_of = opened.for_part(part)
        batcher = as_of.batcher
        with neighbor_states(as_of.model, batcher, sampler, texts, folder, processes) as states:
            read = ModelVectors(as_of.model, batcher, opened.seed, states, alone, folder, opened.link_weight)
            ranks += read.rank(pair_sets, processes)
            for width, ranks_at_width in at_widths.items():
                ranks_at_width += read.rank(pair_sets, processes, width=width)
            lists += recommendations(
                pair_sets, read.cached, batcher.visible, read.scorer, unseen, processes=processes
            )
    if others:
        with neighbor_states(model, hiding_batcher, sampler, texts, folder, processes) as states:
            read = ModelVectors(model, hiding_batcher, opened.seed, states, alone, folder)
            ranks += read.rank(others, processes)
    figures = _results([*predicted, *others], ranks, network)
    by_width = {model.width: figures[: len(predicted)]} if at_widths else {}
    by_width |= {width: _results(predicted, ranks, network) for width, ranks in at_widths.items()}
    notes.sentences.extend(note for one in figures for note in one.chance_notes())
    seen = _shown_in_training(network, split, drawn)
    return replace(evaluation, link_prediction=figures, by_width=by_width, recommendation=lists, seen=seen)


def _computing(options: EvaluateOptions, opened: OpenRun) -> AbstractContextManager[object]:
    """In the precision that was chosen."""
    precision, device = chosen_precision(options.precision, opened.model.device), opened.model.device
    say_if_slow(precision, device)
    return computing_in(precision, device)


def _pair_sets_by_part(opened: OpenRun, options: EvaluateOptions) -> dict[EvaluatedPart, list[PairSet]]:
    """The pairs of the predicted relations that are ranked by the same vectors, by the part that these suit.

    After a split by time each part has vectors of its own, which show nothing later than its pairs.
    """
    split = opened.split
    names: tuple[EvaluatedPart, ...] = (*options.parts, "new")
    pair_sets = predicted_pairs(opened.network, {part: split.part(part) for part in names})
    pair_sets = [one for one in pair_sets if len(one.pairs)]  # another network may have none of a part
    if split.times is None:
        return {"test": pair_sets}
    by_part = {part: [one for one in pair_sets if one.part == part] for part in names}
    return {part: some for part, some in by_part.items() if some}


def _results(pair_sets: Sequence[PairSet], ranks: Sequence[Ranks], network: Network) -> list[LinkPrediction]:
    return [r.result(p, network.schema) for p, r in zip(pair_sets, ranks, strict=True)]


def _links_of_vectors(
    evaluation: Evaluation,
    vectors: Vectorized,
    split: Split,
    options: EvaluateOptions,
    notes: Notes,
    hidden_pairs: Mapping[str, str] | None,
) -> Evaluation:
    """A split's pairs among nodes that have vectors; whoever made those may have seen them."""
    network = evaluation.network
    pair_sets: list[PairSet] = []
    for relation in network.schema.predicted:
        if _rankable(relation, tuple(vectors), notes):
            pair_sets += [PairSet(part, relation, split.part(part)[relation.name]) for part in options.parts]
    others, drawn = _other_pair_sets(network, split, tuple(vectors), notes)
    pair_sets += others
    ranked_sets = []
    for pair_set in pair_sets:
        ends = pair_set.relation.source, pair_set.relation.target
        widths = [vectors[t].matrix.shape[1] for t in ends]
        if widths[0] != widths[1]:
            lengths = f"vectors of {ends[0]} nodes have {widths[0]} numbers, those of {ends[1]} {widths[1]}"
            notes.sentences.append(f"{pair_set.relation.name}: not ranked; {lengths}.")
            continue
        there = np.logical_and(*(vectors[t].has(pair_set.pairs[:, i]) for i, t in enumerate(ends)))
        if not there.all():
            covered = f"{there.sum():,} of {len(there):,} {pair_set.part} pairs have vectors at both ends"
            notes.sentences.append(f"{pair_set.relation.name}: {covered}; the others are left out.")
        if there.any():
            ranked_sets.append(replace(pair_set, pairs=pair_set.pairs[there]))
    known = {t: one.rows for t, one in vectors.items()}
    scaled = options.similarity == "cosine"

    visible = VisibleNetwork.for_evaluation(network, split, drawn)
    vectors_of = partial(looked_up, vectors, normalize=scaled)
    ranks = rank_pairs(ranked_sets, vectors_of, visible, lambda _: _inner_product, known)
    figures = _results(ranked_sets, ranks, network)
    notes.sentences.extend(note for one in figures for note in one.chance_notes())
    hiding, names = visible.hidden_pairs(), dict.fromkeys(one.relation.name for one in ranked_sets)
    seen = None
    if hidden_pairs is not None:
        seen = tuple(name for name in names if hidden_pairs.get(name) != hiding.get(name))
    predicted = [one for one in ranked_sets if one.relation in network.schema.predicted]
    products, unseen = (lambda _: _inner_product), _unseen(network, split)
    lists = recommendations(predicted, vectors_of, visible, products, unseen, known)
    return replace(evaluation, link_prediction=figures, recommendation=lists, seen_by_vectors=seen)


def _unseen(network: Network, split: Split) -> dict[NodeType, Ints]:
    """The nodes that training has not seen: hidden ones, and textless ones that it has no link of."""
    training = VisibleNetwork.for_training(network, split)
    return split.hidden | {t: training.without_texts(t) for t in network.schema.textless}


def _inner_product(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.T


def _other_pair_sets(
    network: Network, split: Split, types: tuple[NodeType, ...], notes: Notes
) -> tuple[list[PairSet], dict[str, Pairs]]:
    """Pairs of the relations besides the predicted ones: those that the split holds out, or drawn now."""
    pairs: dict[str, Pairs] = {}
    since = None if split.times is None else split.times.validation_until
    for relation in other_relations(network):
        if _rankable(relation, types, notes):
            drawn = split.others.get(relation.name)
            drawn = draw_other_pairs(network, relation, 0, since) if drawn is None else drawn
            if len(drawn):
                pairs[relation.name] = drawn
            else:
                whose = "" if since is None else " with an edge as late as the test"
                only = f"every {relation.target}{whose} has a single edge, and hidden it would be unknown"
                notes.sentences.append(f"{relation.name}: not ranked; {only}.")
    pair_sets = [PairSet("test", network.schema.relation(name), drawn) for name, drawn in pairs.items()]
    return pair_sets, pairs


def _shown_in_training(network: Network, split: Split, pairs: Mapping[str, Pairs]) -> tuple[str, ...]:
    """The relations of whose pairs training saw some; after a split by time the test is too late for that."""
    training, seen = VisibleNetwork.for_training(network, split), []
    for name, asked in pairs.items():
        relation = network.schema.relation(name)
        view = training.adjacency(relation.source, relation.target)
        start, stop = view.adjacency.between(*np.ascontiguousarray(asked.T))
        if (view.rank(stop) > view.rank(start)).any():
            seen.append(name)
    return tuple(seen)


def _rankable(relation: Relation, types: tuple[NodeType, ...], notes: Notes) -> bool:
    """Whether both ends have vectors; if not, that is a note."""
    lacking = [t for t in dict.fromkeys((relation.source, relation.target)) if t not in types]
    if lacking:
        missing = f"there are no vectors of {' and '.join(lacking)} nodes"
        notes.sentences.append(f"{relation.name}: not ranked; {missing}.")
    return not lacking


def _labels(
    network: Network, types: tuple[NodeType, ...], options: EvaluateOptions, notes: Notes
) -> dict[NodeType, Labels]:
    """The labels of every type with vectors. It comes first: a mistake shows before hours of work."""
    labels: dict[NodeType, Labels] = {}
    if not any(options.wants(task) for task in LABEL_TASKS):
        return labels
    with notes.trying("No classification and no clustering", *LABEL_TASKS):
        for node_type in (t for t in labelled_types(network) if t in types):
            with notes.trying(f"No classification and no clustering of {node_type}", *LABEL_TASKS):
                labels[node_type] = labels_of_type(network, node_type, options.labels)
                notes.sentences.extend(f"{node_type}: {one}." for one in labels[node_type].left_out)
    for task in LABEL_TASKS:
        notes.insist(task, options.tasks, labels)
    return labels


def _on_labels(
    evaluation: Evaluation,
    labels: Mapping[NodeType, Labels],
    vectors: Vectorized,
    hidden: Mapping[NodeType, Ints],
    options: EvaluateOptions,
    notes: Notes,
) -> None:
    """Classification and clustering of every type that has labels and vectors."""
    for node_type, all_labels in labels.items():
        known = all_labels.restricted(vectors[node_type].rows)
        unseen = hidden.get(node_type, np.empty(0, dtype=np.int64))
        one = _of_type(evaluation.network, known, vectors[node_type], unseen, options, notes)
        evaluation.classification.extend(one[0])
        evaluation.clustering.extend(one[1])
    notes.insist("classification", options.tasks, evaluation.classification)
    notes.insist("clustering", options.tasks, evaluation.clustering)


def _of_type(
    network: Network,
    labels: Labels,
    vectors: NodeVectors,
    unseen: Ints,
    options: EvaluateOptions,
    notes: Notes,
) -> tuple[list[NodeClassification], list[NodeClustering]]:
    """Nodes that training has not seen are classified apart from the others, among themselves."""
    node_type, textless = labels.node_type, labels.node_type in network.schema.textless
    rate = options.classification.learning_rate_of(textless)
    settings: dict[Setting, Labels] = {"transductive": labels.restricted(np.setdiff1d(labels.rows, unseen))}
    if len(unseen):
        settings["inductive"] = labels.restricted(unseen)
    classified, clustered = [], []
    for setting, chosen in settings.items() if options.wants("classification") else ():
        with notes.trying(f"No {setting} classification", "classification"):
            title = f"classifying {node_type} ({setting})"
            result = classify(vectors.lookup, chosen, options.classification, rate, title)
            classified.append(NodeClassification(node_type, setting, result))
            here = result.left_out[len(chosen.left_out) :]
            notes.sentences.extend(f"{node_type} ({setting}): {one}." for one in here)
    if options.wants("clustering") and not textless:
        with notes.trying("No clustering", "clustering"):
            grouped = cluster(vectors.lookup, labels, options.clustering)
            clustered.append(NodeClustering(node_type, grouped))
    return classified, clustered
