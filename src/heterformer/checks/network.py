"""Check a network: every file against its digest, and every array for what it must be."""

from __future__ import annotations

from pathlib import Path

from heterformer.checks.findings import Findings
from heterformer.digests import tree_digests
from heterformer.errors import InputError
from heterformer.network.adjacency import REBUILD
from heterformer.network.description import DESCRIPTION
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.network.tokens import check_tokens

TOKENS = "tokens"


def check_network(path: Path) -> Findings:
    """What is wrong with a network's folder."""
    findings = Findings(path, "network")
    has_digests = findings.compare_digests(path, REBUILD)
    network = findings.attempt(Network.open, path)
    if network is not None:
        if not has_digests:
            findings.attempt(_check_fingerprint, network)
        for node_type in network.schema.node_types:
            findings.attempt(_check_nodes, network, node_type)
            for neighbor in network.schema.neighbor_types_of(node_type):
                findings.attempt(_check_adjacency, network, node_type, neighbor)
    for folder in sorted((path / TOKENS).glob("[!.]*")):
        findings.compare_digests(folder, "remove the folder: it is made again")
        if network is not None:
            findings.attempt(check_tokens, network, folder)
    return findings


def _check_fingerprint(network: Network) -> None:
    """In place of digests: a network of an earlier version has one of all its files together."""
    outside = (DESCRIPTION, TOKENS)
    _, fingerprint = tree_digests(network.path, lambda name: name.split("/")[0] not in outside)
    if fingerprint != network.fingerprint:
        raise InputError(f"{network.path}: a file in it has changed since it was built; {REBUILD}.")


def _check_nodes(network: Network, node_type: NodeType) -> None:
    for _ in network.batches(node_type):  # each is validated in full
        pass
    ids = network.id_series(node_type)
    if ids.null_count() or ids.n_unique() != len(ids) or (ids == "").any():
        where = network.path / "nodes" / f"{node_type}.arrow"
        raise InputError(f"{where}: is damaged: it has a missing or duplicate id; {REBUILD}.")


def _check_adjacency(network: Network, center: NodeType, neighbor: NodeType) -> None:
    adjacency = network.adjacency(center, neighbor)
    folder = network.path / "adjacency" / f"{center}--{neighbor}"
    adjacency.check_order(folder, network.schema.edge_numbers(center, neighbor))
