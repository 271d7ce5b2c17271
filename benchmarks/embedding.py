"""Embedding a network in two passes against the literal padded form, node by node; and memory.

    python benchmarks/embedding.py [--nodes 3000] [--literal 300] [--threads 1] [--memory 10000 200000]

Networks of the paper's two shapes with random texts are built, then embedded to a Parquet file by
``embed`` with MiniLM: sampling, both passes, spool and output are all in the time. The literal form is
batched PyTorch as one would write it from the paper (see training_step.py): for every centre its neighbours'
texts are padded and read anew, without gradients. That both give the same vectors is checked first. The two
are measured in turn; times are of the processor with one thread, of the clock with several.

The share of the machine's peak is that of the floating point operations of all matrix products that our
form executes, per second, to those of a product of two large square matrices, measured beside it.

Memory is the peak resident size (VmHWM) of a process of its own that embeds a network of each size, less that
before it begins; vectors go to disk. So that it takes minutes, texts have two words and MiniLM its first
three layers: their states alone are 3 kB per node.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import torch
from shapes import PAPER_READING, SHAPES, Shape
from torch.utils.flop_counter import FlopCounterMode
from training_step import LiteralHeterformer, _status
from transformers import AutoModel, AutoTokenizer

from heterformer import Heterformer, Network, embed
from heterformer.batches.batch import Batch, Neighbors
from heterformer.batches.batcher import Batcher
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.models.plm.minilm import backbone_path
from heterformer.network.tokens import open_tokens

TARGETS = {"dblp": 7.0, "goodreads": 3.5}
CENTERS = 60  # of the literal form, at a time: a training batch's


def build(shape: Shape, nodes: int, folder: Path, words_each: int | None = None) -> Network:
    """A network in which every text has at least as many neighbours of each type as are sampled."""
    rng, tokenizer = np.random.default_rng(0), AutoTokenizer.from_pretrained(backbone_path("minilm"))
    plain = sorted(w for w in tokenizer.get_vocab() if w.isascii() and w.isalpha())
    lengths = shape.lengths(nodes, torch.Generator().manual_seed(0)).numpy() - 2  # [CLS] and [SEP]
    if words_each is not None:
        lengths = np.full(nodes, words_each)
    words = np.array(plain)[rng.integers(0, len(plain), int(lengths.sum()))]
    texts = [" ".join(part) for part in np.split(words, np.cumsum(lengths)[:-1])]
    ids = np.array([f"t{i}" for i in range(nodes)])

    def edges(count: int, target: str, names: np.ndarray) -> pl.DataFrame:
        sources = np.repeat(ids, count)
        return pl.DataFrame({"source": sources, target: names[rng.integers(0, len(names), len(sources))]})

    relations = {"cites": edges(shape.text_neighbors + 1, "to", ids)}
    spec = {"cites": {"from": "text", "to": "text", "columns": ["source", "to"]}}
    for t, count in shape.textless.items():
        relations[f"has_{t}"] = edges(count + 1, t, np.array([f"{t}{i}" for i in range(2_000)]))
        spec[f"has_{t}"] = {"from": "text", "to": t, "columns": ["source", t]}
    return Network.from_frames(
        {
            "name": "random",
            "nodes": {"text": {"text": ["text"]}} | {t: {} for t in shape.textless},
            "relations": spec,
            "predict": "cites",
            "neighbors": {"text": shape.text_neighbors} | shape.textless,
            "max_tokens": shape.limit,
        },
        {"text": pl.DataFrame({"id": ids, "text": texts})},
        relations,
        folder / "network",
    )


def new_model(network: Network) -> Heterformer:
    torch.manual_seed(0)
    # One projection and no readout per edge type: see _both_directions_as_one.
    plain = {"heterogeneous_projection": False, "network_readout": "none"}
    return Heterformer.from_backbone("minilm", network, **PAPER_READING, **plain).eval()


def timed(work: Callable[[], object]) -> float:
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    start = clock()
    work()
    return clock() - start


def literal_batches(network: Network, count: int) -> list[Batch]:
    """Centres with the very neighbours that the embedding samples, texts not yet read."""
    visible = VisibleNetwork.whole(network)
    tokens = open_tokens(network, AutoTokenizer.from_pretrained(backbone_path("minilm")))
    batcher, sampler = Batcher(visible, tokens), StableSampler(network, 0)
    starts = range(0, count, CENTERS)
    batches = [batcher.nodes("text", np.arange(s, min(s + CENTERS, count)), sampler) for s in starts]
    return [_both_directions_as_one(batch) for batch in batches]


def _both_directions_as_one(batch: Batch) -> Batch:
    """The literal form wants all text neighbours of a centre side by side; the model's W_r is one for all."""
    texts = {r: edges for r, edges in batch.neighbors.items() if r.neighbor == "text"}
    center = torch.cat([edges.center for edges in texts.values()])
    order = torch.argsort(center, stable=True)
    merged = Neighbors(center[order], torch.cat([edges.node for edges in texts.values()])[order])
    rest = {r: edges for r, edges in batch.neighbors.items() if r not in texts}
    return replace(batch, neighbors={next(iter(texts)): merged} | rest)


def peak() -> float:
    """Floating point operations per second of a large matrix product."""
    a = torch.randn(2048, 2048)
    a @ a
    return 3 * 2 * 2048**3 / timed(lambda: [a @ a for _ in range(3)])


def compare(name: str, nodes: int, literal_nodes: int) -> str:
    shape = SHAPES[name]
    with tempfile.TemporaryDirectory() as folder:
        network = build(shape, nodes, Path(folder))
        model = new_model(network)
        tokenizer = AutoTokenizer.from_pretrained(backbone_path("minilm"))
        literal, batches = LiteralHeterformer(model).eval(), literal_batches(network, literal_nodes)

        @torch.no_grad()
        def literally() -> torch.Tensor:
            return torch.cat([literal(batch) for batch in batches])

        def ours() -> np.ndarray:
            out = Path(folder) / "out.parquet"
            vectors = embed(model, network, out=out, tokenizer=tokenizer, precision="float32")
            return vectors.matrix("text")

        with FlopCounterMode(display=False) as counter:
            actual = ours()
        expected = literally().numpy()
        difference = np.abs(actual[:literal_nodes] - expected).max()
        assert difference < 1e-4, f"vectors differ by {difference}"
        times: dict[str, list[float]] = {"ours": [], "literal": [], "peak": []}
        for _ in range(3):
            times["literal"].append(timed(literally) / literal_nodes)
            times["ours"].append(timed(ours) / nodes)
            times["peak"].append(peak())
        took = {form: float(np.median(values)) for form, values in times.items()}
        used = counter.get_total_flops() / nodes / took["ours"] / took["peak"]
        for form in ("ours", "literal"):
            print(f"{name:10} {form:8} {1 / took[form]:9.1f} nodes per second")
        print(
            f"{name:10} matrix products at {used:.0%} of the measured peak of {took['peak'] / 1e9:.0f} GFLOPS"
        )
        return f"{name} {took['literal'] / took['ours']:.1f} times faster (target {TARGETS[name]})"


def save_shallow(folder: str) -> None:
    """MiniLM without its upper half."""
    plm = AutoModel.from_pretrained(backbone_path("minilm"))
    plm.encoder.layer = plm.encoder.layer[:3]
    plm.config.num_hidden_layers = 3
    plm.save_pretrained(folder)


def memory(nodes: int) -> float:
    """MB at the peak of embedding a network of short texts; meant for a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        network = Network.open(build_in_own_process(nodes, Path(folder)))
        tokenizer = AutoTokenizer.from_pretrained(backbone_path("minilm"))
        shallow = str(Path(folder) / "shallow")
        save_shallow(shallow)
        model = Heterformer.from_backbone(shallow, network).eval()
        open_tokens(network, tokenizer)
        small = build(SHAPES["dblp"], 500, Path(folder) / "small")
        shallow_model = Heterformer.from_backbone(shallow, small)
        embed(shallow_model, small, out=Path(folder) / "small.parquet", tokenizer=tokenizer)
        before = _status("VmRSS")
        embed(model, network, out=Path(folder) / "out.parquet", tokenizer=tokenizer)
        return (_status("VmHWM") - before) / 1024


def build_in_own_process(nodes: int, folder: Path) -> Path:
    """So that what building needs is not counted."""
    command = [sys.executable, __file__, "--build", str(nodes), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "network"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--literal", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--memory", type=int, nargs="*", default=[10_000, 200_000])
    parser.add_argument(
        "--peak-of", type=int, help="print only the peak memory in MB for this number of nodes"
    )
    parser.add_argument("--build", nargs=2, help="build only a network: number of nodes and folder")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.build:
        build(SHAPES["dblp"], int(options.build[0]), Path(options.build[1]), words_each=2)
        return
    if options.peak_of:
        print(memory(options.peak_of))
        return
    figures = [compare(name, options.nodes, options.literal) for name in options.shapes]
    if options.memory:
        peaks = []
        for nodes in options.memory:
            command = [sys.executable, __file__, "--peak-of", str(nodes), "--threads", str(options.threads)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            peaks.append(float(output.split()[-1]))
            print(f"{nodes:,} nodes: peak memory {peaks[-1]:.0f} MB above the start")
        growth = peaks[-1] - peaks[0]
        figures.append(f"memory grows by {growth:.0f} MB (target below 300)")
    print("; ".join(figures))


if __name__ == "__main__":
    main()
