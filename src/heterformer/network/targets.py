"""What a supervised task learns: the classes or numbers of a type's nodes, in three parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.arrays import Ints
from heterformer.errors import InputError, OptionError
from heterformer.network.columns import node_column, own_name
from heterformer.network.labels import Labels, LeftOut, labelled_types, labels_of_type
from heterformer.network.leaks import attribute_leaks, number_leaks, relation_leaks
from heterformer.network.schema import NodeType
from heterformer.network.split.split import PARTS as PART_NAMES
from heterformer.network.store import Network
from heterformer.network.stratified import (
    LEAST_MEMBERS,
    PARTS,
    SHARES,
    TEST,
    TRAIN,
    VALIDATION,
    stratified_parts,
)
from heterformer.network.target_options import SupervisedTask, TargetKind, TargetOptions
from heterformer.untrusted import short_repr

NOT_USED = -1  # the part of a node without one
LEAST_NUMBERS = 10  # of which seven, one and two are a training, a validation and a test part


@dataclass(frozen=True)
class Targets:
    """The labelled nodes of one type: what is to be predicted for each, and the part that it is in."""

    node_type: NodeType
    kind: TargetKind
    """Whether a node has one class, may have several, or has a number."""
    classes: tuple[str, ...]
    """The C classes, most frequent first; for numbers the name of the column."""
    rows: Ints  # (n,) ascending
    values: NDArray[np.float32]  # (n, C): 1 for each class of a node; or the numbers themselves, (n, 1)
    part: Ints  # (n,): TRAIN, VALIDATION, TEST or NOT_USED
    left_out: tuple[LeftOut, ...] = ()

    def of_part(self, part: int) -> Targets:
        """The nodes of one part."""
        chosen = self.part == part
        return replace(self, rows=self.rows[chosen], values=self.values[chosen], part=self.part[chosen])

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def truth(self) -> NDArray[np.bool_]:
        """(n, C): the classes of each node."""
        return self.values > 0


def node_targets(
    network: Network,
    task: SupervisedTask,
    options: TargetOptions,
    hidden: Mapping[int, Mapping[NodeType, Ints]] | None = None,
) -> Targets:
    """The targets of a supervised task, divided into parts.

    Args:
        network: A network with labels, or for regression with numeric columns.
        task: Whether to predict classes or numbers.
        options: Which type and column, which labels count, and how nodes are divided.
        hidden: By part, rows of each type that it must not have; they are not used.

    Example::

        targets = node_targets(network, "classification", TargetOptions(type="paper"))
        targets.of_part(TEST).rows
    """
    targets = _numbers(network, options) if task == "regression" else _classes(network, options)
    for part, rows in (hidden or {}).items():
        is_hidden = (targets.part == part) & np.isin(targets.rows, rows.get(targets.node_type, ()))
        targets = replace(targets, part=np.where(is_hidden, NOT_USED, targets.part))
    for part, name in zip(PARTS, PART_NAMES, strict=True):
        if not (targets.part == part).any():
            problem = f"the {name} part has no labelled {targets.node_type} node"
            raise InputError(f"{network.path}: {problem}, expected some in each part.")
    if targets.kind != "number":
        _check_classes(network, targets)
    return _with_fraction(targets, options)


def target_type(network: Network, task: SupervisedTask, options: TargetOptions) -> NodeType:
    """The node type that a task predicts for; no label is read."""
    if task == "regression":
        return _type_with_column(network, options)
    return _chosen_type(labelled_types(network), options)


def _classes(network: Network, options: TargetOptions) -> Targets:
    node_type = target_type(network, "classification", options)
    if node_type in network.label_kinds and not options.visible_labels:
        _refuse(network, relation_leaks(network, node_type))
    labels = labels_of_type(network, node_type, options).with_members(LEAST_MEMBERS)
    _check_labels(network, labels)
    part = _parts(network, labels.rows, node_type, options, labels.matrix)
    kind: TargetKind = "multi" if labels.multi else "single"
    values = labels.matrix.astype(np.float32)
    return Targets(node_type, kind, labels.classes, labels.rows, values, part, labels.left_out)


def _chosen_type(types: tuple[NodeType, ...], options: TargetOptions) -> NodeType:
    known = ", ".join(map(repr, types))
    if options.type is None:
        if len(types) > 1:
            raise OptionError(options, "type", f"is not given, expected one of the labelled types {known}.")
        return types[0]
    if options.type not in types:
        problem = f"is {options.type!r}, expected one of the labelled types {known}."
        raise OptionError(options, "type", problem)
    return options.type


def _check_labels(network: Network, labels: Labels) -> None:
    if len(labels.classes) < 2:
        class_count = f"{len(labels.classes)} class{'es' * (len(labels.classes) != 1)}"
        besides = f" ({'; '.join(map(str, labels.left_out))})" if labels.left_out else ""
        problem = f"{labels.node_type} nodes have {class_count} of {LEAST_MEMBERS} nodes or more{besides}"
        raise InputError(f"{network.path}: {problem}, expected at least two.")


def check_attributes(
    network: Network, task: SupervisedTask, options: TargetOptions, types: tuple[NodeType, ...]
) -> None:
    """Refuse a label among the attributes that a model reads, which are those of ``types``."""
    node_type = target_type(network, task, options)
    if options.visible_labels or node_type not in types:
        return
    if task == "classification":
        _refuse(network, attribute_leaks(network, node_type))
    elif options.column in network.attribute_kinds.get(node_type, {}):
        seen = f"attribute {options.column!r} of {node_type} nodes is read by the model that is to predict it"
        _refuse(network, [f"{seen}: list it under 'keep' instead."])


def _refuse(network: Network, leaks: list[str]) -> None:
    if leaks:
        problem = f"{leaks[0].rstrip('.')}, or set {{visible_labels}} to train all the same."
        raise OptionError(TargetOptions, (), problem, place=f"{network.path}: ")


def _numbers(network: Network, options: TargetOptions) -> Targets:
    node_type = target_type(network, "regression", options)
    assert options.column is not None
    values = _as_numbers(_column(network, node_type, options.column), options)
    rows = np.flatnonzero(np.isfinite(values))
    if len(rows) < LEAST_NUMBERS:
        problem = f"{len(rows)} {node_type} nodes have a number in {options.column!r}"
        raise InputError(f"{network.path}: {problem}, expected at least {LEAST_NUMBERS}.")
    if not options.visible_labels:
        _refuse(network, number_leaks(network, node_type, values))
    part = _parts(network, rows, node_type, options)
    numbers = values[rows].astype(np.float32)[:, None]
    return Targets(node_type, "number", (options.column,), rows, numbers, part)


def _as_numbers(series: pl.Series, options: TargetOptions) -> NDArray[np.float64]:
    """(n,): NaN where a node has no number."""
    numbers = series.cast(pl.Float64, strict=False)
    texts = series.cast(pl.String, strict=False).fill_null("").str.strip_chars()
    wrong = numbers.is_null() & (texts != "")
    if wrong.any():
        value = short_repr(texts[int(wrong.arg_max() or 0)])
        problem = f"is {options.column!r}, which holds {value}, expected numbers."
        raise OptionError(options, "column", problem)
    return numbers.fill_null(float("nan")).to_numpy()


def _column(network: Network, node_type: NodeType, name: str) -> pl.Series:
    stored = next(c for c in network.columns(node_type) if node_column(c).prefix and own_name(c) == name)
    series = pl.from_arrow(network.column(node_type, stored))
    assert isinstance(series, pl.Series)
    return series


def _type_with_column(network: Network, options: TargetOptions) -> NodeType:
    if options.column is None:
        raise OptionError(options, "column", "is not given, expected the numeric column to predict.")
    types = tuple(t for t in network.schema.node_types if options.column in network.attributes(t))
    if not types:
        every = sorted({name for t in network.schema.node_types for name in network.attributes(t)})
        known = ", ".join(map(repr, every)) or "none; list columns under 'keep' in the specification"
        raise OptionError(options, "column", f"is {options.column!r}, the columns are {known}.")
    return _chosen_type(types, options)


def _parts(
    network: Network,
    rows: Ints,
    node_type: NodeType,
    options: TargetOptions,
    matrix: NDArray[np.bool_] | None = None,
) -> Ints:
    """(n,): the part of each node."""
    rng = np.random.default_rng(options.split_seed)
    if options.split_by == "column":
        names = network.splits(node_type).gather(rows).to_list()
        number = {name: part for part, name in enumerate(PART_NAMES)}
        return np.array([number.get(name, NOT_USED) for name in names])
    if options.split_by == "time":
        return _parts_by_time(network.times(node_type)[rows])
    return stratified_parts(np.ones((len(rows), 1), dtype=bool) if matrix is None else matrix, rng)


def _parts_by_time(times: NDArray[np.float64]) -> Ints:
    """Earlier nodes train, later ones test; nodes of one time share a part, those without one train."""
    known = np.where(np.isnan(times), -np.inf, times)
    ordered = np.sort(known)
    bounds = np.cumsum(SHARES)[:2] * len(ordered)
    until = [ordered[min(round(bound), len(ordered) - 1)] for bound in bounds]
    return np.where(known < until[0], TRAIN, np.where(known < until[1], VALIDATION, TEST))


def _check_classes(network: Network, targets: Targets) -> None:
    learnt = targets.of_part(TRAIN).truth.any(0)
    if not learnt.all():
        name = targets.classes[int(np.flatnonzero(~learnt)[0])]
        problem = f"class {name!r} of {targets.node_type} nodes has no node in the training part"
        raise InputError(f"{network.path}: {problem}; leave it out or divide the nodes otherwise.")


def _with_fraction(targets: Targets, options: TargetOptions) -> Targets:
    """Fewer labels to learn from: a share of each class, at least one; other parts stay as they are."""
    if options.fraction == 1:
        return targets
    rng = np.random.default_rng([options.split_seed, 1])
    used = np.zeros(len(targets), dtype=bool)
    train = targets.part == TRAIN
    columns = targets.truth.T if targets.kind != "number" else np.ones((1, len(targets)), dtype=bool)
    for members in columns:
        nodes = rng.permutation(np.flatnonzero(members & train))
        used[nodes[: max(1, round(options.fraction * len(nodes)))]] = True
    return replace(targets, part=np.where(train & ~used, NOT_USED, targets.part))


def class_weights(targets: Targets) -> NDArray[np.float32]:
    """(C,): in inverse proportion to the classes' frequency in the training part, with a mean of 1."""
    members = targets.of_part(TRAIN).values.sum(0)
    weights = 1 / np.maximum(members, 1)
    balanced: NDArray[np.float32] = (weights / weights.mean()).astype(np.float32)
    return balanced
