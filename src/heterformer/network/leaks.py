"""Labels in plain sight: relations and attributes from which the label of a node, or its number, follows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from heterformer.network.labels import label_lists
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

LEAK_ACCURACY = 0.99  # a neighbour or value that predicts the label this often leaks it
LEAK_GROUPS = 3  # the most neighbours per class that count as a leak
GROUP_NODES = 5  # the fewest nodes per neighbour for which a neighbour's mean says something of numbers


def leak_warnings(network: Network, node_type: NodeType) -> list[str]:
    """Relations, then attributes, from which the label follows."""
    return [*relation_leaks(network, node_type), *attribute_leaks(network, node_type)]


def relation_leaks(network: Network, node_type: NodeType) -> list[str]:
    """Relations from whose other end the label follows."""
    labels, warnings = _labels(network, node_type), []
    for name, edges in _relations(network, node_type):
        if accuracy := _leak_accuracy(edges, labels):
            leak = f"relation {name!r} leaks the label of {node_type} nodes"
            warnings.append(f"{leak} ({accuracy:.1%} of its edges): remove it before classification.")
    return warnings


def attribute_leaks(network: Network, node_type: NodeType) -> list[str]:
    """Attributes from whose value the label follows. Only some models read any."""
    labels, warnings = _labels(network, node_type), []
    for name in network.attribute_kinds.get(node_type, {}):
        values = network.attribute(node_type, name)
        frame = pl.DataFrame({"row": pl.int_range(len(values), eager=True), "other": values}).drop_nulls()
        if accuracy := _leak_accuracy(frame, labels):
            leak = f"attribute {name!r} leaks the label of {node_type} nodes"
            warnings.append(f"{leak} ({accuracy:.1%} of its values): remove it before classification.")
    return warnings


def number_leaks(network: Network, node_type: NodeType, numbers: NDArray[np.float64]) -> list[str]:
    """Relations from whose other end a node's number follows; (n,) ``numbers`` are NaN where unknown."""
    known = pl.DataFrame({"row": np.flatnonzero(np.isfinite(numbers))})
    known = known.with_columns(number=numbers[known["row"].to_numpy()])
    warnings = []
    for name, edges in _relations(network, node_type):
        grouped = edges.join(known, on="row").with_columns(mean=pl.col("number").mean().over("other"))
        if grouped["other"].n_unique() * GROUP_NODES > len(grouped) or len(grouped) == 0:
            continue
        total = float(grouped["number"].to_numpy().var())
        left = float(np.mean((grouped["number"] - grouped["mean"]).to_numpy() ** 2))
        if total > 0 and left <= (1 - LEAK_ACCURACY) * total:
            leak = f"relation {name!r} leaks the number of {node_type} nodes"
            warnings.append(f"{leak} ({1 - left / total:.1%} of its variance): remove it before regression.")
    return warnings


def _labels(network: Network, node_type: NodeType) -> pl.DataFrame:
    """(row, label), those of a textless type from its neighbours if it has none of its own."""
    lists = label_lists(network, node_type)
    if lists is None:
        return pl.DataFrame(schema={"row": pl.Int64, "label": pl.String})
    rows = pl.int_range(len(lists), eager=True)
    return pl.DataFrame({"row": rows, "label": lists}).explode("label").drop_nulls()


def _relations(network: Network, node_type: NodeType) -> Iterator[tuple[str, pl.DataFrame]]:
    """The relations of a type to other types, each with its edges as (row, other)."""
    for relation in network.schema.relations:
        if node_type not in (relation.source, relation.target) or relation.source == relation.target:
            continue
        source, target = network.edges(relation.name)
        row, other = (source, target) if relation.source == node_type else (target, source)
        yield relation.name, pl.DataFrame({"row": row.astype(np.int64), "other": other.astype(np.int64)})


def _leak_accuracy(groups: pl.DataFrame, labels: pl.DataFrame) -> float | None:
    """How often a node has the label that most nodes of its group have, if that is a leak.

    ``groups`` are (row, other): the nodes with one neighbour or value are a group.
    """
    classes = labels["label"].n_unique()
    if classes < 2:
        return None
    majority = max(labels.group_by("label").len()["len"]) / labels["row"].n_unique()
    groups = groups.join(labels.select("row").unique(), on="row", how="semi")
    if groups.is_empty() or groups["other"].n_unique() > LEAK_GROUPS * classes:
        return None
    counts = groups.join(labels, on="row").group_by("other", "label").len()
    accuracy = int(counts.group_by("other").agg(pl.col("len").max())["len"].sum()) / len(groups)
    return accuracy if accuracy >= LEAK_ACCURACY and 1 - accuracy < (1 - majority) / 4 else None
