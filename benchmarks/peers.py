"""Heterformer beside what else one would use: sentence-transformers, and PyTorch Geometric on frozen vectors.

    pip install datasets torch-scatter torch-sparse      # for the peers alone
    python benchmarks/peers.py aan.net --minutes 6

Each gets the same training pairs, the same MiniLM, 30 pairs per step, one thread and the same minutes, in
which whatever it does before its first step is included; each in a process of its own, one after another.
sentence-transformers is fine-tuned on the texts of the pairs with its MultipleNegativesRankingLoss. PyTorch
Geometric has frozen MiniLM vectors and learnt vectors of textless nodes as features, two layers of HGTConv,
neighbours from its LinkNeighborLoader and the same loss among the pairs of a step; the training pairs are no
edges of its training network. Its vectors, like ours, are made with the held-out pairs hidden. Our text-only
model does the work of sentence-transformers: what the two cost compares one implementation with the other.
The time of vectors is without what a peer does only once: ours reads stored tokens, and PyTorch Geometric has
its frozen vectors already.

The last line is the PREC of Heterformer against the best of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from memory import peak_bytes

from heterformer import Network, embed, load_model, train
from heterformer.models.plm.minilm import backbone_path
from heterformer.network.split.split import Split

BATCH = 30
NEIGHBORS = (10, 5)  # of each edge type and hop, for PyTorch Geometric
WIDTH = 384
OURS = "Heterformer"
SAME_WORK, TEXT_ONLY = "sentence-transformers", "text only, ours"


class Clock:
    """The time a peer has, from its first preparation on, and the steps it has made."""

    def __init__(self, minutes: float) -> None:
        self.start, self.seconds, self.steps = time.monotonic(), 60 * minutes, 0
        self.first_step = self.start

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def step(self) -> bool:
        """Count a step; whether it was the last."""
        if not self.steps:
            self.first_step = time.monotonic()  # the first one also loads what it needs
        self.steps += 1
        return self.elapsed >= self.seconds

    def seconds_per_step(self) -> float:
        return (time.monotonic() - self.first_step) / max(1, self.steps - 1)


Vectors = np.ndarray[Any, Any]
Peer = Callable[[Network, Split, Clock, Path], tuple[float, Callable[[], Vectors]]]


def sentence_transformers(
    network: Network, split: Split, clock: Clock, folder: Path
) -> tuple[float, Callable[[], Vectors]]:
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.losses import MultipleNegativesRankingLoss
    from transformers import TrainerCallback

    class Stop(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            control.should_training_stop = clock.step()

    query, target = predicted_types(network)
    pairs = split.train
    texts = {t: network.texts(t) for t in {query, target}}
    data = {
        "anchor": [texts[query][row] for row in pairs[:, 0]],
        "positive": [texts[target][row] for row in pairs[:, 1]],
    }
    model = SentenceTransformer(str(backbone_path("minilm")), device="cpu")
    model.max_seq_length = network.schema.max_tokens
    arguments = SentenceTransformerTrainingArguments(
        str(folder / "st"),
        num_train_epochs=1000,
        per_device_train_batch_size=BATCH,
        learning_rate=6e-5,  # of 7e-6, 2e-5 and 6e-5 the best for text alone
        lr_scheduler_type="constant",
        bf16=True,
        use_cpu=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
    )
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(
        model, arguments, Dataset.from_dict(data), loss=loss, callbacks=[Stop()]
    ).train()
    return clock.seconds_per_step(), lambda: np.asarray(model.encode(texts[target], batch_size=256))


def geometric(
    network: Network, split: Split, clock: Clock, folder: Path
) -> tuple[float, Callable[[], Vectors]]:
    import torch
    from sentence_transformers import SentenceTransformer
    from torch_geometric.loader import LinkNeighborLoader, NeighborLoader
    from torch_geometric.nn import HGTConv, Linear

    _, target = predicted_types(network)
    relation = network.schema.predicted[0]
    predicted = (relation.source, relation.name, relation.target)
    text_encoder = SentenceTransformer(str(backbone_path("minilm")), device="cpu")
    features = {
        t: torch.from_numpy(text_encoder.encode(network.texts(t), batch_size=256))
        for t in network.schema.text_rich
    }
    pairs = split.pairs[relation.name]
    embedding_data = visible_data(network, features, pairs.held_out)
    training_data = visible_data(network, features, np.concatenate([pairs.held_out, pairs.train]))

    class Convolutions(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            counts, textless = network.schema.counts, network.schema.textless
            self.tables = torch.nn.ModuleDict({t: torch.nn.Embedding(counts[t], WIDTH) for t in textless})
            self.inputs = torch.nn.ModuleDict({t: Linear(-1, WIDTH) for t in counts})
            metadata = training_data.metadata()
            self.layers = torch.nn.ModuleList(HGTConv(WIDTH, WIDTH, metadata, heads=4) for _ in NEIGHBORS)

        def forward(self, batch: Any) -> torch.Tensor:
            own = {t: batch[t].x if t in features else self.tables[t](batch[t].n_id) for t in self.inputs}
            states = {t: self.inputs[t](x).relu() for t, x in own.items()}
            for layer in self.layers:
                states |= layer(states, batch.edge_index_dict)
            # Texts are in the vectors from the first step on.
            return torch.nn.functional.normalize(states[target] + own[target], dim=-1)

    torch.manual_seed(0)
    model = Convolutions()
    loader = LinkNeighborLoader(
        training_data,
        num_neighbors=list(NEIGHBORS),
        edge_label_index=(predicted, torch.from_numpy(np.ascontiguousarray(pairs.train.T)).long()),
        batch_size=BATCH,
        shuffle=True,
    )
    optimizer: torch.optim.Optimizer | None = None
    over = False
    while not over:
        for batch in loader:
            vectors = model(batch)
            if optimizer is None:  # lazy layers have their sizes now
                optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
            queries, keys = vectors[batch[predicted].edge_label_index]
            scores = queries @ keys.T / 0.05
            loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(scores)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if over := clock.step():
                break

    def vectors_of_all() -> Vectors:
        every = NeighborLoader(
            embedding_data, num_neighbors=list(NEIGHBORS), input_nodes=target, batch_size=512
        )
        with torch.inference_mode():
            return np.concatenate([model(b)[: b[target].batch_size].numpy() for b in every])

    return clock.seconds_per_step(), vectors_of_all


def visible_data(network: Network, features: dict[str, Any], hidden: np.ndarray[Any, Any]) -> Any:
    """A HeteroData of all edges, both ways, but the hidden pairs of the predicted relation."""
    import torch
    from torch_geometric.data import HeteroData

    data, schema = HeteroData(), network.schema
    for node_type, count in schema.counts.items():
        data[node_type].num_nodes = count
        if node_type in features:
            data[node_type].x = features[node_type]
    for relation in schema.relations:
        sources, targets = (np.asarray(ends, dtype=np.int64) for ends in network.edges(relation.name))
        if relation == schema.predicted[0]:
            size = schema.counts[relation.target]
            keep = ~np.isin(sources * size + targets, hidden[:, 0].astype(np.int64) * size + hidden[:, 1])
            sources, targets = sources[keep], targets[keep]
        edges = torch.from_numpy(np.stack([sources, targets]))
        data[relation.source, relation.name, relation.target].edge_index = edges
        data[relation.target, f"rev_{relation.name}", relation.source].edge_index = edges.flip(0)
    return data


def heterformer(
    network: Network, split: Split, clock: Clock, folder: Path, model_name: str = "heterformer"
) -> tuple[float, Callable[[], Vectors]]:
    _, target = predicted_types(network)
    path = folder / f"run-{model_name}"
    train(
        *(network, path),
        split={"file": str(folder / "split.parquet")},
        model=model_name,
        precision="bf16",
        evaluate_every=100_000,
        callback=lambda progress: clock.step(),
    )
    seconds = clock.seconds_per_step()
    model = load_model(path)
    return seconds, lambda: np.asarray(embed(model, network, hide_split=True)[target])


PEERS: dict[str, Peer] = {
    SAME_WORK: sentence_transformers,
    "PyTorch Geometric": geometric,
    TEXT_ONLY: partial(heterformer, model_name="bert"),  # the work of sentence-transformers
    OURS: heterformer,
}


def predicted_types(network: Network) -> tuple[str, str]:
    relation = network.schema.predicted[0]
    if relation.source != relation.target:
        raise SystemExit("the predicted relation must join one type with itself")
    return relation.source, relation.target


def measure(name: str, path: str, folder: Path, minutes: float) -> None:
    """One peer from its start to its vectors, whose cost goes to a file."""
    network = Network.open(path)
    split = Split.open(folder / "split.parquet", network)
    clock = Clock(minutes)
    seconds_per_step, vectors_of_all = PEERS[name](network, split, clock, folder)
    memory, start = peak_bytes(), time.monotonic()
    vectors = vectors_of_all()
    embedding = time.monotonic() - start
    node_type = predicted_types(network)[1]
    columns = {"id": network.ids(node_type), "type": [node_type] * len(vectors), "vector": list(vectors)}
    pl.DataFrame(columns, schema_overrides={"vector": pl.List(pl.Float32)}).write_parquet(
        folder / f"{name}.parquet"
    )
    cost = {
        "steps": clock.steps,
        "epoch": seconds_per_step * -(-len(split.train) // BATCH),
        "memory": memory,
        "embedding": embedding / len(vectors) * 100_000,
    }
    (folder / f"{name}.json").write_text(json.dumps(cost))


def link_prediction(path: str, folder: Path, name: str) -> dict[str, float]:
    """The figures of a peer's vectors, by the command that anybody would use."""
    vectors, split = folder / f"{name}.parquet", folder / "split.parquet"
    command = [sys.executable, "-m", "heterformer", "evaluate", path, "--vectors", str(vectors)]
    command += ["--split", str(split), "--tasks", "link_prediction", "--parts", "test"]
    command += ["--out", str(folder / f"report-{name}")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    report = json.loads((folder / f"report-{name}" / "report.json").read_text())
    (parts,) = report["link_prediction"].values()
    in_batch, full = parts["test"]["in_batch"], parts["test"]["full"]
    return {**in_batch, "full_mrr": full["mrr"], "hits_100": full["hits"]["100"]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "network", type=os.path.abspath, help="a network whose predicted relation joins one text-rich type"
    )
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], options.network, Path(options.measure[1]), options.minutes)
        return
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    precs, seconds = {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        divide = [
            sys.executable,
            "-m",
            "heterformer",
            "split",
            options.network,
            str(folder / "split.parquet"),
        ]
        subprocess.run(divide, check=True, stdout=subprocess.DEVNULL)
        headings = ("PREC", "MRR", "full MRR", "Hits@100", "steps", "epoch", "memory", "100,000 nodes")
        print(f"{'':24}" + "".join(f"{heading:>14}" for heading in headings))
        for peer in options.peers:
            own = [sys.executable, __file__, options.network, "--minutes", str(options.minutes)]
            subprocess.run([*own, "--measure", peer, str(folder)], check=True, env=environment)
            cost = json.loads((folder / f"{peer}.json").read_text())
            metrics = link_prediction(options.network, folder, peer)
            precs[peer], seconds[peer] = metrics["prec"], cost["embedding"]
            quality = (metrics[m] for m in ("prec", "mrr", "full_mrr", "hits_100"))
            print(
                f"{peer:24}" + "".join(f"{value:>14.4f}" for value in quality),
                f"{cost['steps']:>13,}{cost['epoch']:>12.0f} s{cost['memory'] / 2**20:>11,.0f} MB"
                f"{cost['embedding']:>12.0f} s",
                flush=True,
            )
    if {SAME_WORK, TEXT_ONLY} <= seconds.keys():
        ratio = seconds[SAME_WORK] / seconds[TEXT_ONLY]
        print(f"at equal work our vectors are made {ratio:.2f} times as fast as those of {SAME_WORK}")
    others = [prec for peer, prec in precs.items() if peer != OURS]
    if OURS in precs and others:
        minutes, ratio = f"after {options.minutes:g} minutes", precs[OURS] / max(others)
        print(f"{minutes} Heterformer has {ratio:.2f} times the PREC of the best of the others")


if __name__ == "__main__":
    main()
