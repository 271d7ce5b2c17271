"""A vector for every node of a network: states of all texts first, then every centre, each exactly once."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from heterformer.batches.visible import VisibleNetwork
from heterformer.device import Device, chosen_device
from heterformer.distributed import ProcessGroup
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.place import check_place
from heterformer.embedding.two_passes import Embedding
from heterformer.embedding.vectors import (
    Vectors,
)
from heterformer.errors import InputError, OptionError
from heterformer.files import file_lock, write_text
from heterformer.models.contract import NodeEncoder
from heterformer.network.store import Network
from heterformer.options import with_keywords
from heterformer.progress import say
from heterformer.states.row_file import PART
from heterformer.states.text_states import TextStates
from heterformer.temporary import remove_path
from heterformer.training.run import Run
from heterformer.untrusted import check_no_links_out, checked_path, short_repr

MANIFEST = "manifest.json"


@overload
def embed(
    model: NodeEncoder,
    network: Network | Path | str,
    options: EmbedOptions | None = None,
    *,
    out: None = None,
    tokenizer: Any = None,
    hide_split: bool = False,
    **keywords: Any,
) -> dict[str, NDArray[Any]]: ...


@overload
def embed(
    model: NodeEncoder,
    network: Network | Path | str,
    options: EmbedOptions | None = None,
    *,
    out: Path | str,
    tokenizer: Any = None,
    hide_split: bool = False,
    **keywords: Any,
) -> Vectors: ...


def embed(
    model: NodeEncoder,
    network: Network | Path | str,
    options: EmbedOptions | None = None,
    *,
    out: Path | str | None = None,
    tokenizer: Any = None,
    hide_split: bool = False,
    **keywords: Any,
) -> dict[str, NDArray[Any]] | Vectors:
    """Compute a vector for every node of a network.

    Nodes that the model did not see in training get vectors, too. For texts that are no nodes use
    ``model.encode``.

    Args:
        model: A trained model, from ``load_model``, ``Heterformer.from_pretrained`` or ``run.model()``.
        network: The network that it was trained on, or another one of the same types; or its folder.
        options: Which node types, how many neighbours, in which precision. Instead they can be given as
            keywords.
        out: Write to this file or folder instead, in bounded memory: a Parquet table if the name ends in
            ``.parquet``, else a folder of NumPy arrays. An interrupted call is resumed by the same call.
        tokenizer: Needed only if the model was not loaded from a folder.
        hide_split: Hide the held-out pairs of the run that the model was loaded from, so that link prediction
            with the vectors is fair.
        keywords: Options by the names that they have on the command line, with underscores for dashes:
            ``types=["paper"]``, ``all_neighbors=100``, ``h0=True``.

    Returns:
        Arrays (n, d) by node type, rows in network order, so that row i belongs to
        ``network.ids(node_type)[i]``. With ``out``, the ``Vectors`` that were written. With ``h0=True``
        the short embeddings of textless types are there as ``"author.h0"``.

    Example:
        >>> from heterformer import Network, embed, load_model
        >>> model, network = load_model("runs/papers"), Network.open("papers.net")
        >>> vectors = embed(model, network)
        >>> vectors["paper"] @ vectors["author"][0]  # scores of all papers for the first author
        >>> papers = embed(model, network, types=["paper"], dtype="float16")["paper"]
        >>> embed(model, network, out="papers.parquet").types
        ('paper', 'author', 'venue')
    """
    options = with_keywords(options or EmbedOptions(), keywords)
    if not isinstance(model, NodeEncoder):
        problem = f"the model is {short_repr(model)}, expected a model"
        raise InputError(f"{problem}; load_model gives that of a run's folder.")
    network = network if isinstance(network, Network) else Network.open(network)
    visible = _visible(model, network, hide_split)
    if out is not None:
        return embed_to(out, model, network, options, tokenizer=tokenizer, visible=visible)
    with tempfile.TemporaryDirectory(prefix="heterformer-") as folder:
        work = Embedding(model, visible, options, tokenizer)
        work.compute(Path(folder))
        arrays: dict[str, NDArray[Any]] = {}
        for node_type in work.types:
            chunks = list(work.chunks(node_type))
            arrays[node_type] = np.concatenate([chunk.vectors for chunk in chunks])
            if work.options.h0 and "h0" in chunks[0].extra:
                arrays[f"{node_type}.h0"] = np.concatenate([chunk.extra["h0"] for chunk in chunks])
        return arrays


def _visible(model: NodeEncoder, network: Network, hide_split: bool) -> VisibleNetwork:
    """What the model may see of a network: all of it, or all but the held-out pairs of the model's run."""
    if not hide_split:
        return VisibleNetwork.whole(network)
    if model.folder is None or not (run := Run(model.folder)).exists:
        where = "no folder" if model.folder is None else str(model.folder)
        raise InputError(f"hide_split needs a model that was loaded from a run, found one of {where}.")
    return VisibleNetwork.for_evaluation(network, run.split(network))


def embed_to(
    out: Path | str,
    model: NodeEncoder,
    network: Network,
    options: EmbedOptions | None = None,
    *,
    since: Path | None = None,
    tokenizer: Any = None,
    processes: ProcessGroup | None = None,
    visible: VisibleNetwork | None = None,
    part: int = PART,
    texts: TextStates | None = None,
) -> Vectors:
    """Write vectors of every node: a Parquet table if the name ends so, else a folder of NumPy arrays.

    What is computed is kept beside ``out`` until it is whole: after a kill the same call resumes from there.
    Several processes divide the nodes and write a folder of Parquet tables, one each. ``visible`` may hide
    edges; the output says which. ``part`` nodes are written at once. ``texts`` are states of all texts that
    the caller has computed already, in the same precision.
    """
    out = checked_path(out, "the output", "the path of a file or folder")
    processes = processes or ProcessGroup()
    with processes.main_process_first():
        check_place(out, processes.world_size)
        visible_network = visible or VisibleNetwork.whole(network)
        work = Embedding(model, visible_network, options, tokenizer, since, processes, part, texts=texts)
    folder = out.with_name(f".{out.name}.work")
    with ExitStack() as held:
        with processes.main_process_first():
            if processes.is_main:
                busy = f"{out}: another process is writing it; wait until it is done."
                held.enter_context(file_lock(out, busy=busy))
                _settle(folder, work.manifest)
        processes.check_all_equal(work.manifest, work.options.states, out.resolve(), folder.is_dir())
        try:
            work.compute(folder)
            work.write(out, folder)
            if since is not None:
                (anew,) = processes.all_reduce(float(work.anew))
                total = sum(file.count for file in work.vectors.values())
                counts = f"{anew:,.0f} of {total:,} nodes with text"
                say(f"{out}: computed {counts}; the rest are those of {since}.")
        except KeyboardInterrupt:
            say(f"{out}: not finished yet; the same command resumes.")
            raise
        if processes.is_main:
            _remove(folder)
        processes.barrier()
        return Vectors.open(out)


def _remove(folder: Path) -> None:
    """At once and whole: half of it must not pass for the work of another call."""
    gone = folder.with_name(folder.name + ".old")
    folder.rename(gone)
    remove_path(gone)


def embed_run(
    path: Path | str,
    out: Path | str,
    options: EmbedOptions | None = None,
    *,
    network: Path | None = None,
    since: Path | None = None,
    device: Device = "auto",
    processes: ProcessGroup | None = None,
    hide_split: bool = False,
    part: int = PART,
) -> Vectors:
    """Write vectors of a run's network, or of another one of the same types, under the run's best model.

    With ``hide_split`` no neighbourhood shows the run's held-out pairs.
    """
    processes = processes or ProcessGroup()
    with processes.main_process_first():
        run = Run(path)
        opened = run.network() if network is None else Network.open(network)
        model = run.model().to(processes.device if processes.world_size > 1 else chosen_device(device))
        visible = _visible(model, opened, hide_split)
    return embed_to(out, model, opened, options, since=since, processes=processes, visible=visible, part=part)


def _settle(folder: Path, manifest: dict[str, Any]) -> None:
    """Keep what an earlier call left if it was to make the same vectors; else start anew."""
    text = json.dumps(manifest, indent=1)
    path, old = folder / MANIFEST, folder.with_name(folder.name + ".old")
    remove_path(old)
    if folder.is_symlink():
        folder.unlink()  # we make none
    check_no_links_out(folder)
    if folder.exists() and not (path.is_file() and path.read_text(encoding="utf-8") == text):
        if path.is_file():
            say(f"{folder}: belongs to other options, model or network; starting over.")
        _remove(folder)
    if not folder.exists():
        folder.mkdir()
        write_text(path, text)


def or_anew(embed_since: Callable[..., Vectors], kept: Path) -> Vectors:
    """Embed with vectors that we kept ourselves, or without if an earlier version made them otherwise."""
    try:
        return embed_since(since=kept)
    except OptionError as error:
        if error.fields != ("since",):
            raise
        return embed_since(since=None)
