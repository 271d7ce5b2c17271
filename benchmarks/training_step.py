"""One training step of Heterformer against the same step in its literal padded form, in time and memory.

    python benchmarks/training_step.py [--repeats 5] [--threads 1] [--network-readout both|none]
    python benchmarks/training_step.py [--lora RANK] [--freeze]

Both forms take the same batch of 30 pairs and the same MiniLM weights, compute the in-batch
cross-entropy (Eq. 13), its gradients, and an optimiser step, with the PLM's own dropout. The literal form
is batched PyTorch as one would write it from the paper: every text padded to the limit, every neighbour
of every centre through every layer of the PLM by the PLM's own code, AdamW over everything. That both
give the same loss is checked first. Steps alternate between the two; times are medians, of processor time
with one thread (which other work on the machine does not disturb), of the clock with several.

With ``--lora`` or ``--freeze``, full training is held against low-rank adapters or a frozen backbone instead.

Peak memory is measured in a fresh process per form: the largest resident size during two steps (VmHWM)
less the resident size just before them (VmRSS). So it holds activations, gradients and optimiser state,
but not the weights. (ru_maxrss will not do: a child process inherits its parent's.)
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from shapes import SHAPES, Shape, new_model, new_optimizers, training_step
from torch import Tensor, nn

from heterformer import Heterformer
from heterformer.batches.batch import Batch

TARGETS = {"dblp": (3.3, 0.40), "goodreads": (1.9, 0.60)}  # times faster, share of the memory


class LiteralHeterformer(nn.Module):
    """Algorithm 1 in padded, batched PyTorch, with the parameters of a ``Heterformer``."""

    def __init__(self, model: Heterformer) -> None:
        super().__init__()
        self.model = model
        for table in model.textless.tables:
            table.sparse = False

    def forward(self, batch: Batch) -> Tensor:
        plm, limit = self.model.backbone, self.model.schema.max_tokens
        centers = len(batch.centers)
        (text_edge, *textless_edges) = batch.neighbors
        text_neighbors = batch.neighbors[text_edge].node.numel() // centers
        # Input: every text padded to the limit; neighbours of one centre side by side.
        index = torch.cat([batch.neighbors[text_edge].node, batch.centers])  # (60 * 5 + 60,)
        lengths = batch.texts.lengths[index]
        mask = torch.arange(limit) < lengths[:, None]  # (N, limit)
        tokens = torch.zeros(len(index), limit, dtype=torch.int64)
        tokens[mask] = batch.texts.select(index).tokens
        additive = torch.zeros(len(index), 1, 1, limit).masked_fill(
            ~mask[:, None, None], torch.finfo(torch.float32).min
        )
        neighbors_mask, centers_mask = additive[:-centers], F.pad(additive[-centers:], (1, 1))

        hidden = plm.embeddings(input_ids=tokens)
        neighbors, center = hidden[:-centers], hidden[-centers:]
        textless = torch.cat(
            [
                self.model.edge_projections(
                    r, self.model.textless(r.neighbor, batch.textless[r.neighbor][batch.neighbors[r].node])
                ).view(centers, -1, hidden.shape[-1])
                for r in textless_edges
            ],
            dim=1,
        )  # (60, 4, d)
        for number, layer in enumerate(plm.encoder.layer):
            if number == 0:
                center = layer(center, additive[-centers:])
            else:
                text_rich = neighbors[:, 0].view(centers, text_neighbors, -1)
                text_rich = self.model.edge_projections(text_edge, text_rich)
                aggregations = self.model.aggregations
                before = self.aggregate(aggregations[f"text_rich_{number}"], center[:, :1], text_rich)
                after = self.aggregate(aggregations[f"textless_{number}"], center[:, :1], textless)
                center = self.asymmetric(layer, center, torch.cat([before, center, after], 1), centers_mask)
            neighbors = layer(neighbors, neighbors_mask)
        vectors, readout = center[:, :1], self.model.network_readout
        final = neighbors[:, 0].view(centers, text_neighbors, -1)
        messages = {"text_rich": self.model.edge_projections(text_edge, final), "textless": textless}
        edges = {"text_rich": [text_edge], "textless": textless_edges}
        for kind in readout.kinds:
            counts = [len(batch.neighbors[r].node) // centers for r in edges[kind]]
            for r, block in zip(edges[kind], messages[kind].split(counts, 1), strict=True):
                gate = readout.gates[kind][self.model.edge_types[kind].index(r)]
                vectors = vectors + gate * block.mean(1, keepdim=True)
        return vectors[:, 0]

    def aggregate(self, weights: Any, center: Tensor, messages: Tensor) -> Tensor:
        entries = torch.cat([center, messages], 1)
        q, k, v = center @ weights.query.T, entries @ weights.key.T, entries @ weights.value.T
        q, k, v = (x.view(*x.shape[:2], weights.heads, -1).transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def asymmetric(self, layer: Any, hidden: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
        attention = layer.attention.self
        q, k, v = attention.query(hidden), attention.key(tokens), attention.value(tokens)
        q, k, v = (x.view(*x.shape[:2], attention.num_attention_heads, -1).transpose(1, 2) for x in (q, k, v))
        dropout = attention.dropout.p if self.training else 0.0
        mixture = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        hidden = layer.attention.output(mixture.transpose(1, 2).flatten(2), hidden)
        return layer.output(layer.intermediate(hidden), hidden)


def our_step(shape: Shape, readout: str, **limits: Any) -> tuple[Callable[[], Tensor], nn.Module]:
    options = {"network_readout": readout, "neighbor_codes": False, **limits}  # codes the literal form lacks
    model, batch = new_model(shape, **options), shape.batch()
    return training_step(lambda: model.encode_batch(batch), new_optimizers(model)), model


def literal_step(shape: Shape, readout: str) -> tuple[Callable[[], Tensor], nn.Module]:
    model = LiteralHeterformer(new_model(shape, network_readout=readout, neighbor_codes=False))
    batch = shape.batch()
    return training_step(lambda: model(batch), [torch.optim.AdamW(model.parameters(), lr=1e-5)]), model


NewStep = Callable[[Shape, str], tuple[Callable[[], Tensor], nn.Module]]
STEPS: dict[str, NewStep] = {"ours": our_step, "literal": literal_step}


def limited_steps(lora: int | None, freeze: bool) -> dict[str, NewStep]:
    """Full training and what learns less than the whole backbone."""
    steps: dict[str, NewStep] = {"full": our_step}
    if lora is not None:
        steps["lora"] = partial(our_step, lora=lora)
    if freeze:
        steps["frozen"] = partial(our_step, freeze="backbone")
    return steps


def check_same_loss(shape: Shape, readout: str) -> None:
    """Without dropout, two steps of both forms have the same losses."""
    losses = {}
    for name, new_step in STEPS.items():
        step, model = new_step(shape, readout)
        model.eval()
        losses[name] = torch.stack([step() for _ in range(2)])
    difference = float((losses["ours"] - losses["literal"]).abs().max())
    assert difference < 1e-4, f"losses differ by {difference}: {losses}"


def seconds(forms: dict[str, NewStep], shape: Shape, readout: str, repeats: int) -> dict[str, float]:
    """Median time of a step in each form, steps alternating."""
    steps = {}
    for name, new_step in forms.items():
        steps[name], model = new_step(shape, readout)
        model.train()
        steps[name]()
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            start = clock()
            step()
            times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_memory(new_step: NewStep, shape: Shape, readout: str) -> float:
    """MB that two steps need beyond what is there before them; meant for a process of its own."""
    step, model = new_step(shape, readout)
    model.train()
    before = _status("VmRSS")
    step()
    step()
    return (_status("VmHWM") - before) / 1024


def _status(field: str) -> int:
    """A field of this process's status, in kB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


def in_own_process(*arguments: str) -> float:
    command = [sys.executable, __file__, *arguments]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES))
    parser.add_argument(
        "--network-readout", choices=("both", "none"), default="both", help="'none' is the paper's model"
    )
    parser.add_argument(
        "--lora", type=int, metavar="RANK", help="full training against adapters of this rank"
    )
    parser.add_argument("--freeze", action="store_true", help="full training against a frozen backbone")
    parser.add_argument("--memory", metavar="FORM", help="only print the peak memory of one form, MB")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    limited = options.lora is not None or options.freeze
    forms = limited_steps(options.lora, options.freeze) if limited else STEPS
    readout = options.network_readout
    if options.memory:
        print(peak_memory(forms[options.memory], SHAPES[options.shapes[0]], readout))
        return

    same = ["--threads", str(options.threads), "--network-readout", readout]
    same += [] if options.lora is None else ["--lora", str(options.lora)]
    same += ["--freeze"] * options.freeze
    figures = []
    for name in options.shapes:
        shape = SHAPES[name]
        if not limited:
            check_same_loss(shape, readout)
        took = seconds(forms, shape, readout, options.repeats)
        memory = {form: in_own_process("--memory", form, "--shapes", name, *same) for form in forms}
        for form in forms:
            print(f"{name:10} {form:8} {took[form]:7.3f} s  {memory[form]:7.0f} MB")
        if limited:
            figures += [
                f"{name} {form}: {took[form] / took['full']:.0%} of the time of full training, "
                f"{memory[form] / memory['full']:.0%} of the memory"
                for form in forms
                if form != "full"
            ]
            continue
        faster, share = took["literal"] / took["ours"], memory["ours"] / memory["literal"]
        targets = TARGETS[name]
        figures.append(
            f"{name} {faster:.2f} times faster (target {targets[0]}), "
            f"{share:.0%} of the memory (target {targets[1]:.0%})"
        )
    print("; ".join(figures))


if __name__ == "__main__":
    main()
