"""A training step on stored neighbour states against one that reads the neighbours itself, and text only.

    python benchmarks/cached_training.py [--repeats 5] [--refresh-every 300] [--threads 1]

All three take batches of 30 pairs of the shapes of benchmarks/training_step.py on MiniLM: forward, backward,
update, with dropout. The cached step finds the states of 300 random texts in a store on the disk. To it comes
its share of the refresh: reading a text is timed as training does it, in large batches without gradients,
and a refresh reads the distinct texts that its steps meet. How many these are depends on the network: given
here are one of which --refresh-every steps are an epoch (30 pairs a step, 7 in 10 texts a training query, so
that the refresh once an epoch costs the same in a network of any size), and, as the worst case, one so
large that no text is met twice between two refreshes.

Steps of all forms alternate; times are medians, of processor time with one thread, else of the clock.
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
from heterformer.models.inference import each_text, evaluating
from heterformer.network.tokens import PackedTokens
from heterformer.states.store import StateStore, new_store
from heterformer.training.cached_states import STORED, TEXTS

TRAINING_SHARE = 0.7  # of the texts are queries of an epoch
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


def seconds(shape: Shape, texts: int, repeats: int, folder: Path) -> dict[str, float]:
    """Median time of a step in each form and of reading a text, taken in turn."""
    live, cached, text_only = (new_model(shape, virtual_tokens=v) for v in ("both", "both", "none"))
    store = random_store(folder, texts, cached)
    batch = shape.batch()
    forms: dict[str, Callable[[], Tensor]] = {
        "live": training_step(lambda: live.encode_batch(batch), new_optimizers(live)),
        "cached": training_step(cached_vectors(cached, shape, store), new_optimizers(cached)),
        "text only": training_step(lambda: text_only.encode_batch(batch), new_optimizers(text_only)),
        "text": reading(cached, shape),
    }
    for model in (live, cached, text_only):
        model.train()
    for form in forms.values():
        form()
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(repeats):
        for name, form in forms.items():
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
    parser.add_argument("--refresh-every", type=int, default=300)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    every = options.refresh_every
    network = round(every * PAIRS / TRAINING_SHARE)
    table = Table("shape", "form", "step", "share of a refresh", "together", "live / this", title="seconds")
    figures, ratios = [], []
    for name in options.shapes:
        shape = SHAPES[name]
        with tempfile.TemporaryDirectory() as folder:
            took = seconds(shape, network, options.repeats, Path(folder) / "spool")
        draws = 2 * PAIRS * shape.text_neighbors
        met = network * (1 - (1 - 1 / network) ** (draws * every)) / every  # distinct texts per step
        shares = {"live": 0.0, "cached": met * took["text"], "text only": 0.0}
        rows = [(form, took[form], share) for form, share in shares.items()]
        rows.insert(2, ("cached, no text met twice", took["cached"], draws * took["text"]))
        for form, step, share in rows:
            ratio = took["live"] / (step + share)
            values = (f"{step:.3f}", f"{share:.3f}", f"{step + share:.3f}", f"{ratio:.2f}")
            table.add_row(TITLES[name], form, *values)
        step, refreshed = took["cached"], took["cached"] + shares["cached"]
        figures.append(f"{TITLES[name]} {took['live'] / refreshed:.2f} times faster per step")
        beside = step / took["text only"], refreshed / took["text only"]
        ratios.append(f"{TITLES[name]} {beside[0]:.2f} times as long, with the refresh {beside[1]:.2f} times")
        print(f"{TITLES[name]}: {met:.0f} texts per step to refresh, {1000 * took['text']:.2f} ms each")
    Console(width=110).print(table)
    print(f"cached vs live: {', '.join(figures)}")
    print(f"cached vs text only: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
