"""A plan in the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from heterformer.plan.core import Plan, ProcessGroupPlan
from heterformer.plan.memory import Memory
from heterformer.tables import Sheet

UNKNOWN = "?"


def plan_tables(plan: Plan) -> RenderableType:
    """The network, the memory of a process, the disk, and several processes side by side."""
    return Group(
        Text(_about(plan)), *(sheet.table() for sheet in (_memory(plan), _disk(plan), _together(plan)))
    )


def _about(plan: Plan) -> str:
    network, sample = plan.network, plan.network.sample
    counts = ", ".join(f"{n:,} {t}" for t, n in network.schema.counts.items())
    neighbors = ", ".join(f"{n:.1f} {t}" for t, n in network.neighbors.items())
    length = f"{sample.length:.1f} tokens a text"
    limit = "" if sample.texts else " (the limit; the backbone has no tokenizer to count with)"
    return (
        f"{network.name}: {counts}; {network.pairs:,} training pairs, {length}{limit}, "
        f"{neighbors} neighbours each."
    )


def _memory(plan: Plan) -> Sheet:
    training, embedding = plan.together[0].memory, plan.embedding
    several = next((t for t in plan.together if t.processes > 1), None)
    rows = [
        ("weights without textless tables", training.weights, embedding.weights),
        ("their moments (Adam)", training.moments, embedding.moments),
        ("textless tables", training.textless, embedding.textless),
        ("their moments (lazy Adam, whole tables)", training.textless_moments, embedding.textless_moments),
        ("gradients", training.gradients, embedding.gradients),
        ("activations", training.activations, embedding.activations),
        ("vectors and scores", training.exchanged, embedding.exchanged),
        ("on the device, all together", training.device, embedding.device),
        ("on the host besides, for pairs or nodes", training.host, embedding.host),
        ("once, for the warm-up, on the main process's host", plan.warm_up, 0),
    ]
    batch = f"batch {plan.options.batch_size}"
    if plan.options.micro_batch:
        batch += f" in parts of {plan.options.micro_batch}"
    note = f"{batch}, precision {plan.options.precision}, {plan.options.neighbor_states} neighbour states."
    if several is not None:
        note += " Of several processes each has this much, and the rows and scores of all (below)."
    note += " Python and PyTorch take half a gigabyte more."
    return Sheet(
        f"{plan.options.model.name} on {plan.options.model.backbone}: {plan.size.parameters:,} parameters",
        ("memory of one process", "training", "embedding"),
        tuple((name, _bytes(a), _bytes(b)) for name, a, b in rows),
        note,
        1,
    )


def _disk(plan: Plan) -> Sheet:
    disk, embed = plan.disk, plan.embed
    rows = [
        (f"text states while embedding, {embed.states_dtype}", disk.text_states),
        (f"vectors, {embed.dtype}, without ids", disk.vectors),
        ("run: last and best checkpoint, model", disk.checkpoints),
    ]
    if disk.cached:
        rows.append(("cached states of neighbours while training, float32", disk.cached))
    note = "While the vectors are written those of text-rich nodes are there twice; a checkpoint as well."
    return Sheet("Disk", ("", "bytes"), tuple((name, _bytes(n)) for name, n in rows), note, 1)


def _together(plan: Plan) -> Sheet:
    def row(name: str, cell: Callable[[ProcessGroupPlan], str]) -> tuple[str, ...]:
        return (name, *(cell(one) for one in plan.together))

    rows = (
        row("pairs per step", lambda t: f"{t.pairs_per_step:,}"),
        row("steps per epoch", lambda t: f"{t.steps_per_epoch:,}"),
        row("memory of each, on its device", lambda t: _bytes(t.memory.device)),
        row("exchanged by each per step", lambda t: _bytes(t.exchange.total)),
        row("network traffic of each per step", lambda t: _bytes(round(t.exchange.sent(t.processes)))),
        row("seconds per step", lambda t: _number(t.step_seconds)),
        row("of which computing", lambda t: UNKNOWN if t.efficiency is None else f"{t.efficiency:.0%}"),
        row("hours per epoch", lambda t: _number(t.epoch_hours)),
        row("hours to embed all nodes", lambda t: _number(t.embedding_hours)),
    )
    return Sheet("Processes", ("", *(f"{t.processes}" for t in plan.together)), rows, _speed(plan), 1)


def _speed(plan: Plan) -> str:
    speed = plan.speed
    if not speed.pairs and not speed.nodes:
        return "Speeds are unknown: give pairs and nodes per second, or measure them."
    pairs = f"{speed.pairs:,.1f} pairs" if speed.pairs else "an unknown number of pairs"
    nodes = f"{speed.nodes:,.1f} nodes" if speed.nodes else "an unknown number of nodes"
    return (
        f"One process: {pairs} trained on and {nodes} embedded per second ({speed.source}). "
        f"Steps wait for the exchange at {plan.bandwidth:g} GB/s per process; embedding exchanges nothing. "
        "Warm-up and validation come on top."
    )


def _bytes(count: int) -> str:
    """In decimal units, as disks and GPUs are sold."""
    if count == 0:
        return "0"
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:,.{0 if count >= 100 * size else 1}f} {unit}"
    return f"{count} B"


def _number(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def as_json(plan: Plan) -> dict[str, Any]:
    """Everything in bytes, seconds and hours."""
    network = plan.network
    return {
        "network": network.name,
        "counts": network.schema.counts,
        "training_pairs": network.pairs,
        "tokens_per_text": network.sample.length,
        "neighbors": network.neighbors,
        "parameters": plan.size.parameters,
        "model": asdict(plan.size),
        "embedding_memory": _as_json(plan.embedding),
        "warm_up_memory": plan.warm_up,
        "disk": asdict(plan.disk),
        "speed": asdict(plan.speed),
        "bandwidth": plan.bandwidth,
        "processes": [
            asdict(one)
            | {"memory": _as_json(one.memory)}
            | {"exchange": asdict(one.exchange) | {"wire": one.exchange.sent(one.processes)}}
            for one in plan.together
        ],
    }


def _as_json(memory: Memory) -> dict[str, int]:
    return asdict(memory) | {"device": memory.device, "total": memory.total}
