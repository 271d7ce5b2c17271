"""Vectors of whole networks: those of Algorithm 1, whatever the sizes, kills and restarts."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoTokenizer

from heterformer.batches.batcher import Batcher
from heterformer.batches.stable import StableSampler
from heterformer.batches.visible import VisibleNetwork
from heterformer.cli import main as cli
from heterformer.embedding import embed as embed_module
from heterformer.embedding import two_passes
from heterformer.embedding.embed import embed, embed_run, embed_to, or_anew
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.two_passes import Embedding
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError, OptionError
from heterformer.files import file_lock
from heterformer.models import Heterformer
from heterformer.network.build.frames import temporary_folder
from heterformer.network.store import Network
from heterformer.network.tokens import open_tokens
from heterformer.search.searcher import Searcher
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.learning import WORDS, tiny_model, tiny_network, tiny_options, tiny_reader
from tests.models.test_inference import backbone
from tests.networks import Facts, few, networks, tokenizer
from tests.processor import with_bf16
from tests.reference import reference_vectors

ABLATIONS: list[dict[str, Any]] = [
    {},
    {"virtual_tokens": "text_rich"},
    {"virtual_tokens": "textless"},
    {"virtual_tokens": "none"},
    {"heterogeneous_projection": False},
    {"neighbor_pooling": "mean", "readout": "mean", "normalize": True, "temperature": 0.05},
    {"share_aggregation_layers": True, "share_aggregation_kinds": True},
    {"second_hop": 2, "virtual_tokens": "both"},
]


def reader() -> Any:
    return AutoTokenizer.from_pretrained(tiny_reader())


def literal(model: Heterformer, network: Network, words: Any, options: EmbedOptions) -> dict[str, Any]:
    """Node by node, by the literal form of Algorithm 1, from the same sample."""
    visible = VisibleNetwork.whole(network)
    cap = options.all_neighbors
    fan_out = {t: cap or n for t, n in network.schema.neighbors.items()}
    second_hop = model.config.second_hop or 0
    batcher = Batcher(visible, open_tokens(network, words), fan_out, second_hop=second_hop)
    sampler = StableSampler(network, options.seed)
    found = {}
    with torch.no_grad():
        for t in network.schema.text_rich:
            rows = range(network.schema.counts[t])
            batches = [batcher.nodes(t, np.array([row]), sampler) for row in rows]
            found[t] = torch.cat([reference_vectors(model, batch) for batch in batches]).numpy()
        for t in network.schema.textless:
            found[t] = model.textless_vectors(t, torch.arange(network.schema.counts[t])).numpy()
    return found


@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda ablation: "-".join(ablation) or "none")
@settings(few, max_examples=4)
@given(networks(), st.integers(1, 60), st.integers(1, 5), st.none() | st.just(9))
def test_vectors_are_those_of_algorithm_1(
    ablation: dict[str, Any], facts: Facts, tokens: int, part: int, cap: int | None
) -> None:
    with facts.built() as network, tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        model = Heterformer.from_backbone(backbone(), network, aggregation_init="random", **ablation)
        options = EmbedOptions(all_neighbors=cap, seed=3)
        sizes = {"part": part, "tokens_per_batch": tokens}
        work = Embedding(model, VisibleNetwork.whole(network), options, tokenizer(), **sizes)
        work.compute(Path(folder))
        expected = literal(model, network, tokenizer(), options)
        assert work.types == model.embedded_types
        for node_type in work.types:
            vectors = np.concatenate([chunk.vectors for chunk in work.chunks(node_type)])
            np.testing.assert_allclose(vectors, expected[node_type], rtol=1e-5, atol=1e-5)


def test_all_neighbours_are_more_than_a_sample() -> None:
    model = tiny_model()
    sampled = embed(model, tiny_network(), tokenizer=reader())
    every = embed(model, tiny_network(), EmbedOptions(all_neighbors=50), tokenizer=reader())
    assert not np.allclose(sampled["paper"], every["paper"], atol=1e-4)


def test_options_as_keywords() -> None:
    model, network = tiny_model(), tiny_network()
    expected = embed(
        model, network, EmbedOptions(types=("paper",), dtype="float16", seed=1), tokenizer=reader()
    )
    found = embed(model, network, EmbedOptions(seed=1), types=["paper"], dtype="float16", tokenizer=reader())
    assert list(found) == ["paper"]
    assert found["paper"].dtype == expected["paper"].dtype
    assert (found["paper"] == expected["paper"]).all()
    with pytest.raises(InputError, match=r"^all_neighbors is 0, expected at least 1"):
        embed(model, network, all_neighbors=0)
    with pytest.raises(
        InputError, match=r"^no option 'all_neighbours' \(did you mean 'all_neighbors'\?\)\.$"
    ):
        embed(model, network, all_neighbours=9)


def test_held_out_pairs_can_be_hidden(run: Run, tmp_path: Path) -> None:
    model, network = run.model(), run.network()
    whole, hidden = (embed(model, network, hide_split=hide)["paper"] for hide in (False, True))
    changed = np.flatnonzero((whole != hidden).any(1))
    split = run.split(network)
    held_out = np.unique(np.concatenate([split.validation, split.test]))
    assert len(changed)
    assert set(changed) <= set(held_out)  # the nodes that lose a neighbour
    written = embed_run(run.path, tmp_path / "vectors", hide_split=True)
    assert np.array_equal(written.matrix("paper"), hidden)


def test_only_a_model_of_a_run_has_held_out_pairs_to_hide(run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"hide_split needs a model .* found one of no"):
        embed(tiny_model(), tiny_network(), tokenizer=reader(), hide_split=True)
    run.model().save_pretrained(tmp_path)
    with pytest.raises(InputError, match=f"loaded from a run, found one of {tmp_path}"):
        embed(Heterformer.from_pretrained(tmp_path), tiny_network(), hide_split=True)


def test_the_sample_is_the_seeds() -> None:
    model = tiny_model()
    first, again, other = (
        embed(model, tiny_network(), EmbedOptions(seed=s), tokenizer=reader())["paper"] for s in (0, 0, 1)
    )
    assert (first == again).all()
    assert not np.allclose(first, other, atol=1e-4)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    options = tiny_options(tiny_reader(), max_steps=3)
    return train(tiny_network(), tmp_path_factory.mktemp("embed") / "run", options)


def test_the_command_writes_every_node_under_its_id(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "vectors.parquet"
    cli.main(["embed", str(run.path), str(out), "--h0"])
    assert "Wrote vectors of paper, author, venue nodes" in " ".join(capsys.readouterr().out.split())
    frame, network = pl.read_parquet(out), tiny_network()
    expected = embed(Heterformer.from_pretrained(run.path), network)
    for t in network.schema.node_types:
        mine = frame.filter(type=t)
        assert mine["id"].to_list() == network.ids(t)
        np.testing.assert_array_equal(np.stack(mine["vector"].to_numpy()), expected[t])
    h0, _ = run.model().textless.parameters_of("author")
    stored = np.stack(frame.filter(type="author")["h0"].to_numpy())
    np.testing.assert_array_equal(stored, h0.detach().numpy())
    assert {p.name for p in out.parent.iterdir()} == {"vectors.parquet"}


def test_arrays_chosen_types_and_half_precision(run: Run, tmp_path: Path) -> None:
    options = EmbedOptions(types=("author", "paper"), dtype="float16", states_dtype="float16")
    vectors = embed_run(run.path, tmp_path / "out", options)
    assert vectors.types == ("author", "paper")
    whole = embed(run.model(), tiny_network())
    for t in vectors.types:
        assert vectors.matrix(t).dtype == np.float16
        np.testing.assert_allclose(vectors.matrix(t), whole[t], rtol=5e-3, atol=5e-3)


def test_bf16_products_give_almost_the_same_vectors(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = embed_run(run.path, tmp_path / "a")
    fast = embed_run(run.path, tmp_path / "b", EmbedOptions(precision="bf16"))
    for t in exact.types:
        a, b = exact.matrix(t), fast.matrix(t)
        assert a.dtype == b.dtype == np.float32
        cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        assert cosine.min() > 0.999
    assert not np.array_equal(exact.matrix("paper"), fast.matrix("paper"))
    with_bf16(monkeypatch)
    assert embed_run(run.path, tmp_path / "d").metadata["precision"] == "bf16"
    assert embed_run(run.path, tmp_path / "e", since=tmp_path / "a").metadata["precision"] == "float32"
    with pytest.raises(InputError, match="was made with precision float32, not bf16"):
        embed_run(run.path, tmp_path / "c", EmbedOptions(precision="bf16"), since=tmp_path / "a")


@pytest.mark.parametrize("name", ["out.parquet", "out"])
def test_a_second_call_replaces_the_first(run: Run, tmp_path: Path, name: str) -> None:
    embed_run(run.path, tmp_path / name, EmbedOptions(types=("paper",)))
    embed_run(run.path, tmp_path / name, EmbedOptions(types=("venue",)))
    assert Vectors.open(tmp_path / name).types == ("venue",)


def test_other_work_that_was_left_is_not_taken_over(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    _leave_unfinished(run, out, monkeypatch)
    assert [p.name for p in tmp_path.iterdir()] == [".out.work"]
    found = embed_run(run.path, out, EmbedOptions(seed=0)).matrix("paper")
    assert "starting over" in " ".join(capsys.readouterr().err.split())
    np.testing.assert_array_equal(found, embed(run.model(), tiny_network())["paper"])
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def _leave_unfinished(run: Run, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work under another seed that all but wrote its output."""
    with monkeypatch.context() as patched:
        patched.setattr(two_passes, "write_vectors", _fail)
        with pytest.raises(KeyError):
            embed_run(run.path, out, EmbedOptions(seed=1))


def _fail(*_: Any) -> None:
    raise KeyError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"types": ("papr",)}, "types has 'papr', expected some of 'paper', 'author', 'venue'."),
        ({"all_neighbors": 0}, "all_neighbors is 0, expected at least 1 or None."),
    ],
)
def test_a_mistake_is_one_sentence(run: Run, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        embed_run(run.path, tmp_path / "out", EmbedOptions(**options))
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


def test_something_else_in_the_place_of_the_output(run: Run, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    (tmp_path / "out.parquet").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis").write_text("mine")
    messages = {
        "out": "exists and holds something else",
        "full": "exists and holds something else",
        "out.parquet": "is a folder, expected a file's name",
        "vectors.csv": ".csv is not written",
        "vectors.csv.gz": "one without an ending for a folder of NumPy arrays; .gz is not written",
        "vectors.h5": ".h5 is not written",
        "vectors.npy": ".npy is not written",
        "vectors.parquets": ".parquets is not written",
    }
    for name, message in messages.items():
        with pytest.raises(InputError, match=message):
            embed_run(run.path, tmp_path / name)
    assert (tmp_path / "out").read_text() == (tmp_path / "full" / "thesis").read_text() == "mine"
    with pytest.raises(InputError, match="exists and holds something else"):
        embed_run(run.path, run.path)
    assert run.is_complete


def test_work_without_a_manifest_is_nobodys(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kill leaves it that comes while other work is being removed."""
    out = tmp_path / "out"
    _leave_unfinished(run, out, monkeypatch)
    (tmp_path / ".out.work" / "manifest.json").unlink()
    found = embed_run(run.path, out, EmbedOptions(seed=0)).matrix("paper")
    np.testing.assert_array_equal(found, embed(run.model(), tiny_network())["paper"])


def test_a_name_in_capitals_and_a_version_in_a_name(run: Run, tmp_path: Path) -> None:
    embed_run(run.path, tmp_path / "out.PARQUET", EmbedOptions(types=("venue",)))
    assert len(pl.read_parquet(tmp_path / "out.PARQUET")) == 10
    assert embed_run(run.path, tmp_path / "aan-1.2", EmbedOptions(types=("venue",))).path.is_dir()


def test_no_two_processes_write_one_output(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    with file_lock(out), pytest.raises(InputError) as caught:
        embed_run(run.path, out)
    assert str(caught.value) == f"{out}: another process is writing it; wait until it is done."
    assert list(tmp_path.iterdir()) == []
    embed_run(run.path, out, EmbedOptions(types=("venue",)))
    assert list(tmp_path.iterdir()) == [out]


def test_h0_in_python_too(run: Run) -> None:
    found = embed(run.model(), tiny_network(), EmbedOptions(h0=True))
    assert list(found) == ["paper", "author", "author.h0", "venue", "venue.h0"]
    for t in ("author", "venue"):
        table, projection = run.model().textless.parameters_of(t)
        np.testing.assert_array_equal(found[f"{t}.h0"], table.detach().numpy())
        np.testing.assert_allclose(found[t], found[f"{t}.h0"] @ projection.detach().numpy().T, atol=1e-5)


def test_h0_of_a_model_or_a_choice_that_has_none() -> None:
    with pytest.raises(InputError, match="nodes without text, of which this Heterformer has none"):
        embed(tiny_model(virtual_tokens="none"), tiny_network(), EmbedOptions(h0=True), tokenizer=reader())
    with pytest.raises(InputError, match="nodes without text, but types has no such type"):
        embed(tiny_model(), tiny_network(), EmbedOptions(h0=True, types=("paper",)), tokenizer=reader())


def test_a_type_named_twice_is_written_once(run: Run, tmp_path: Path) -> None:
    vectors = embed_run(run.path, tmp_path / "out.parquet", EmbedOptions(types=("venue", "venue")))
    assert len(vectors.ids("venue")) == 10


def test_a_model_without_textless_tokens_has_nothing_to_say_of_textless_nodes(tmp_path: Path) -> None:
    for tokens in ("none", "text_rich"):
        model = tiny_model(virtual_tokens=tokens)
        assert set(embed(model, tiny_network(), tokenizer=reader())) == {"paper"}
        with pytest.raises(InputError, match="but the model has vectors of 'paper' only"):
            embed(model, tiny_network(), EmbedOptions(types=("author",)), tokenizer=reader())


def test_a_run_stopped_before_its_first_validation_has_its_last_weights(tmp_path: Path) -> None:
    options = tiny_options(tiny_reader(), max_steps=2)
    run = train(tiny_network(), tmp_path / "run", options)
    last = load_file(run.last / "model.safetensors")
    shutil.rmtree(run.best)
    assert all(torch.equal(value, last[name]) for name, value in run.model().state_dict().items())


def test_anybody_may_read_what_was_written(run: Run, tmp_path: Path) -> None:
    embed_run(run.path, tmp_path / "out.parquet", EmbedOptions(types=("venue",)))
    written = [tmp_path / "out.parquet", *run.path.rglob("*.safetensors")]
    assert len(written) > 3
    assert {file.stat().st_mode & 0o777 for file in written} == {0o666 & ~_umask()}


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_model_without_a_tokenizer() -> None:
    with pytest.raises(InputError, match="give tokenizer= as well"):
        embed(tiny_model(), tiny_network())


def test_memory_holds_no_network(run: Run) -> None:
    """Nothing that grows with the network but bits and hashes: the states are read batch by batch."""
    work = Embedding(run.model(), VisibleNetwork.whole(tiny_network()))
    work.compute(temporary_folder())
    held = [v for v in vars(work).values() if isinstance(v, (np.ndarray, torch.Tensor))]
    assert held == []


def test_embed_to_takes_any_model(tmp_path: Path) -> None:
    vectors = embed_to(
        tmp_path / "out", tiny_model(virtual_tokens="none"), tiny_network(), tokenizer=reader()
    )
    assert vectors.matrix("paper").shape == (200, 16)


def test_a_type_may_have_any_name(tmp_path: Path) -> None:
    """Also that of the file in which texts' states are kept meanwhile."""
    ids = [f"s{i}" for i in range(60)]
    nodes = pl.DataFrame({"id": ids, "text": [f"kernel {WORDS[8 + i % 20]}" for i in range(60)]})
    targets = np.random.default_rng(0).permutation(ids * 3)
    edges = pl.DataFrame({"a": ids * 3, "b": targets}).filter(pl.col("a") != pl.col("b"))
    spec = {
        "name": "odd",
        "nodes": {"states": {"text": ["text"]}},
        "relations": {"to": {"from": "states", "to": "states", "columns": ["a", "b"]}},
    }
    network = Network.from_frames(spec, {"states": nodes}, {"to": edges}, tmp_path / "net")
    run = train(network, tmp_path / "run", tiny_options(tiny_reader(), max_steps=1))
    whole = embed(run.model(), network)["states"]  # in one part
    in_parts = Embedding(run.model(), VisibleNetwork.whole(network), part=16)
    in_parts.compute(tmp_path)
    vectors = np.concatenate([chunk.vectors for chunk in in_parts.chunks("states")])
    np.testing.assert_allclose(vectors, whole, rtol=1e-5, atol=1e-6)


def test_somebody_elses_table_is_not_overwritten(run: Run, tmp_path: Path) -> None:
    mine = pl.DataFrame({"id": ["p1"], "title": ["my own table"]})
    mine.write_parquet(tmp_path / "papers.parquet")
    with pytest.raises(InputError, match="exists and is not what 'heterformer embed' wrote"):
        embed_run(run.path, tmp_path / "papers.parquet")
    assert pl.read_parquet(tmp_path / "papers.parquet").equals(mine)
    with pytest.raises(InputError, match="expected the name of a file or folder to write"):
        embed_run(run.path, Path("."))


def test_finished_work_goes_at_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill while it is deleted must leave nothing that could pass for the work of the next call."""
    removed: list[str] = []

    def killed(folder: Path, **_: Any) -> None:
        removed.append(Path(folder).name)
        raise KeyboardInterrupt

    monkeypatch.setattr(embed_module, "remove_path", killed)
    with pytest.raises(KeyboardInterrupt):
        embed_run(run.path, tmp_path / "out.parquet")
    assert not (tmp_path / ".out.parquet.work").exists()


@pytest.mark.parametrize("name", [".out.work", ".out.work.old"])
def test_work_goes_nowhere_that_a_link_leads(tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "thesis"
    elsewhere.mkdir()
    (elsewhere / "text").write_text("mine")
    (tmp_path / name).symlink_to(elsewhere)
    embed_to(tmp_path / "out", tiny_model(), tiny_network(), tokenizer=reader())
    assert [path.name for path in elsewhere.iterdir()] == ["text"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "thesis"]


def test_a_path_in_the_place_of_a_model_is_one_sentence() -> None:
    with pytest.raises(InputError) as caught:
        embed("runs/papers", tiny_network())  # type: ignore[call-overload]
    problem = "the model is 'runs/papers', expected a model; load_model gives that of a run's folder."
    assert str(caught.value) == problem


def test_a_number_in_the_place_of_an_output_is_one_sentence() -> None:
    with pytest.raises(InputError, match=r"^the output is 3, expected the path of a file or folder\.$"):
        embed(tiny_model(), tiny_network(), out=3)  # type: ignore[call-overload]


def test_shorter_vectors_are_the_beginnings_of_long_ones(tmp_path: Path) -> None:
    options = tiny_options(tiny_reader(), max_steps=2, widths=(8, 4), normalize="yes", temperature=0.1)
    run = train(tiny_network(), tmp_path / "run", options)
    assert run.options().model.widths == (8, 4)
    model = run.model()
    assert model.widths == (16, 8, 4)
    whole, short = (embed(model, tiny_network(), width=width) for width in (None, 8))
    for node_type, vectors in short.items():
        cut = whole[node_type][:, :8]
        np.testing.assert_allclose(vectors, cut / np.linalg.norm(cut, axis=1, keepdims=True), atol=1e-6)
    written = embed_run(run.path, tmp_path / "short.parquet", EmbedOptions(width=4))
    assert (written.matrix("paper").shape[1], written.metadata["width"]) == (4, 4)
    answer = Searcher(run.path, tmp_path / "short.parquet").search("kernel methods", top=3)
    query = model.encode("kernel methods")[:4]
    best = written.matrix("paper") @ (query / np.linalg.norm(query))
    assert [hit.id for hit in answer.rankings[0].hits] == tiny_network().ids("paper", np.argsort(-best)[:3])
    for width in (None, 8):
        with pytest.raises(InputError, match="was made with another width; leave since out"):
            embed_run(run.path, tmp_path / "x", EmbedOptions(width=width), since=tmp_path / "short.parquet")
    with pytest.raises(InputError, match=r"width is 5, expected one of 16, 8, 4\."):
        embed(model, tiny_network(), width=5)
    again = train(tiny_network(), tmp_path / "run", options)  # the same command: widths in YAML are a list
    assert again.options() == run.options()


def test_widths_that_a_model_does_not_have() -> None:
    with pytest.raises(InputError, match="expected one of 16, since the model was trained without"):
        embed(tiny_model(), tiny_network(), width=8, tokenizer=reader())
    with pytest.raises(InputError, match="widths has 32, but vectors have 16 numbers"):
        tiny_model(widths=(32,))
    with pytest.raises(InputError, match="widths has 0, expected positive"):
        tiny_model(widths=(8, 0))


def test_kept_vectors_that_do_not_fit_are_computed_anew(tmp_path: Path) -> None:
    asked: list[Path | None] = []

    def embed_since(since: Path | None) -> Any:
        asked.append(since)
        if since is not None:
            raise OptionError(None, "since", "was made with another model.")
        return "vectors"

    assert or_anew(embed_since, tmp_path) == "vectors"
    assert asked == [tmp_path, None]

    def fails(since: Path | None) -> Any:
        raise OptionError(None, "types", "is wrong.")

    with pytest.raises(OptionError, match="types is wrong"):
        or_anew(fails, tmp_path)


def test_what_is_refused_leaves_nothing(tmp_path: Path) -> None:
    out = tmp_path / "vectors.parquet"
    with pytest.raises(InputError, match="types has 'reviewer'"):
        embed(tiny_model(), tiny_network(), EmbedOptions(types=("reviewer",)), tokenizer=reader(), out=out)
    assert list(tmp_path.iterdir()) == []
