"""A training step on stored neighbour states against one that reads the neighbours itself, and text only.

    python benchmarks/cached_training.py [--repeats 5] [--precision float32] [--threads 1]

All three take batches of 30 pairs of the shapes of benchmarks/training_step.py on MiniLM: forward, backward,
update, with dropout. The cached step finds the states of 300 random texts in a store on the disk. To it comes
its share of the refresh: reading a text is timed as training does it, in large batches without gradients,
and a refresh reads the texts that its steps meet. How many these are depends on how often it comes: as seldom
as ``--refresh-every auto`` chooses, once an epoch (of 30 pairs a step, 7 in 10 texts a training query; both
cost the same in a network of any size), and, as the worst case, in a network so large that no text is met
twice between two refreshes.

Steps of all forms alternate, two of each, of which the second counts; times are medians, of processor time
with one thread, else of the clock. The last line is the figure: a cached step with its share of the refresh
against a step of text only.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from shapes import PAIRS, SHAPES, Shape, new_model, new_optimizers, training_step
from torch import Tensor

from heterformer import Heterformer
from heterformer.allocator import keep_freed_memory
from heterformer.device import computing_in
from heterformer.models.inference import each_text, evaluating
from heterformer.network.tokens import PackedTokens
from heterformer.precision import TrainingPrecision
from heterformer.states.store import StateStore, new_store
from heterformer.training.cached_states import REFRESH_SHARE, STORED, TEXTS, refresh_interval

EPOCH = 300  # steps, of a network whose texts are queries of an epoch in 7 cases of 10
TRAINING_SHARE = 0.7
READ = 300  # texts at a time, for their time
TITLES = {"dblp": "DBLP-shaped", "goodreads": "Goodreads-shaped"}


def texts_of(shape: Shape, count: int) -> PackedTokens:
    """Texts of the shape's lengths."""
    generator = torch.Generator().manual_seed(1)
    lengths = shape.lengths(count, generator).numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = torch.randint(1000, 30000, (int(offsets[-1]),), generator=generator)
    return PackedTokens({"text": 0}, offsets, tokens.numpy().astype(np.int32))


def reading(model: Heterformer, shape: Shape) -> Callable[[], Tensor]:
    """Some texts of a refresh."""
    tokens, numbers = texts_of(shape, READ), np.arange(READ)

    def read() -> Tensor:
        with evaluating(model):
            return each_text(model.text_states, tokens, numbers, model.device)

    return read


def random_store(folder: Path, texts: int, model: Heterformer) -> StateStore:
    """States that mean nothing, as many and as large as the model's would be."""
    nothing = PackedTokens({"text": 0}, np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int32))
    with evaluating(model):
        shape = each_text(model.text_states, nothing, np.arange(0), model.device).shape[1:]  # (S, d)
    rng = np.random.default_rng(0)
    with new_store(folder, np.arange(texts), shape, STORED, {}, TEXTS) as store:
        for start in range(0, texts, TEXTS):
            store.file.write(start, rng.normal(size=(min(TEXTS, texts - start), *shape)))
    opened = StateStore.open(folder)
    assert opened is not None
    return opened


def cached_vectors(model: Heterformer, shape: Shape, store: StateStore) -> Callable[[], Tensor]:
    """The centres' vectors from a store, other rows each time; as ``Trainer`` does it."""
    batch, rng = shape.batch(), np.random.default_rng(0)

    def vectors() -> Tensor:
        numbers = np.sort(rng.choice(len(store.text_rows), batch.neighbor_texts, replace=False))
        states = torch.from_numpy(store.read(numbers)).float()
        return model(batch.without_neighbor_texts(), states)

    return vectors


def in_precision(vectors: Callable[[], Tensor], precision: TrainingPrecision) -> Callable[[], Tensor]:
    """The same, its products in a precision, as ``Trainer`` does it: the loss is in float32."""

    def computed() -> Tensor:
        with computing_in(precision, torch.device("cpu")):
            return vectors().float()

    return computed


def seconds(
    shape: Shape, texts: int, repeats: int, folder: Path, precision: TrainingPrecision
) -> dict[str, float]:
    """Median time of a step in each form and of reading a text, taken in turn."""
    live, cached, text_only = (new_model(shape, virtual_tokens=v) for v in ("both", "both", "none"))
    store = random_store(folder, texts, cached)
    batch = shape.batch()
    vectors = {
        live: lambda: live.encode_batch(batch),
        cached: cached_vectors(cached, shape, store),
        text_only: lambda: text_only.encode_batch(batch),
    }
    steps = [training_step(in_precision(v, precision), new_optimizers(model)) for model, v in vectors.items()]
    read = in_precision(reading(cached, shape), precision)
    forms = dict(zip(("live", "cached", "text only", "text"), [*steps, read], strict=True))
    for model in (live, cached, text_only):
        model.train()
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(repeats):
        for name, form in forms.items():
            form()  # as in training a step follows one of its own kind, which leaves it its memory
            start = clock()
            form()
            times[name].append(clock() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return medians | {"text": medians["text"] / READ}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--precision", choices=["float32", "bf16"], default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()  # as the commands do
    network = round(EPOCH * PAIRS / TRAINING_SHARE)
    rarely = network / refresh_interval(network, 2 * PAIRS, REFRESH_SHARE)  # texts to refresh per step
    columns = ("shape", "form", "step", "share of a refresh", "together", "live / this", "this / text only")
    table = Table(*columns, title=f"seconds, {options.precision}")
    figures = []
    for name in options.shapes:
        shape = SHAPES[name]
        with tempfile.TemporaryDirectory() as folder:
            took = seconds(shape, network, options.repeats, Path(folder) / "spool", options.precision)
        draws = 2 * PAIRS * shape.text_neighbors
        met = network * (1 - (1 - 1 / network) ** (draws * EPOCH)) / EPOCH  # distinct texts per step
        rows = {
            "live": ("live", 0.0),
            "cached": ("cached", rarely),
            "cached, refreshed once an epoch": ("cached", met),
            "cached, no text met twice": ("cached", draws),
            "text only": ("text only", 0.0),
        }
        for title, (form, texts) in rows.items():
            together = took[form] + texts * took["text"]
            numbers = (took[form], texts * took["text"], together)
            ratios = (took["live"] / together, together / took["text only"])
            cells = [f"{value:.3f}" for value in numbers] + [f"{ratio:.2f}" for ratio in ratios]
            table.add_row(TITLES[name], title, *cells)
        cached = took["cached"] + rarely * took["text"]
        figures.append(
            f"{TITLES[name]} {took['live'] / cached:.2f} times faster than live, "
            f"{took['cached'] / took['text only']:.2f} times as long as text only, "
            f"with the refresh {cached / took['text only']:.2f} times"
        )
        print(
            f"{TITLES[name]}: {1000 * took['text']:.2f} ms to read a text; "
            f"{rarely:.1f} texts per step to refresh, {met:.0f} if once an epoch"
        )
    Console(width=120).print(table)
    print(f"a cached step: {'; '.join(figures)}")


if __name__ == "__main__":
    main()
