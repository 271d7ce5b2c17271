"""Several processes write together what one would write alone, whoever does which part."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from heterformer.cli.main import main
from heterformer.distributed import ProcessGroup
from heterformer.embedding import two_passes
from heterformer.embedding.embed import embed_run
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError
from heterformer.states import row_file
from heterformer.states.text_states import TextStates
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.embedding.growing import first_run, first_state
from tests.learning import start_process, tiny_network, tiny_options, tiny_reader, wait_for_lines
from tests.training.several import said, start_together, together

PART = 4  # rows, so that there is something to divide


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    further = {"network_readout": "both", "second_hop": 3, "textless_neighbors": 3}
    options = tiny_options(tiny_reader(), max_steps=4, evaluate_every=2, **further)
    return train(tiny_network(), tmp_path_factory.mktemp("runs") / "run", options)


@pytest.fixture(scope="module")
def one_hop_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose model needs few texts for a node."""
    options = tiny_options(tiny_reader(), max_steps=2)
    return train(tiny_network(), tmp_path_factory.mktemp("runs") / "one-hop", options)


def in_small_parts(path: Path, out: Path, options: EmbedOptions, told: Path | None = None) -> None:
    """As ``embed_run``; what each process writes is told in ``told``, slowly."""
    write = row_file.RowFile.write

    def telling(self: row_file.RowFile, start: int, values: Any) -> None:
        write(self, start, values)
        assert told is not None
        name = self.path.relative_to(out.with_name(f".{out.name}.work"))
        with told.open("a") as file:
            file.write(f"{os.environ.get('RANK', '0')} {name} {start}\n")
        time.sleep(0.02)

    if told is not None:
        row_file.RowFile.write = telling  # type: ignore[method-assign]
    embed_run(path, out, options, processes=ProcessGroup.from_environment(), part=PART)


@pytest.fixture(scope="module")
def alone(run: Run, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    folder = tmp_path_factory.mktemp("alone")
    process = start_process(
        folder / "log", in_small_parts, run.path, folder / "v.parquet", EmbedOptions(h0=True)
    )
    process.join()
    assert process.exitcode == 0, (folder / "log").read_text()
    return pl.read_parquet(folder / "v.parquet")


def in_order(frame: pl.DataFrame) -> pl.DataFrame:
    """Parts have some nodes of every type; within a type the order is the network's."""
    types = list(dict.fromkeys(frame["type"]))
    return pl.concat([frame.filter(type=node_type) for node_type in sorted(types)])


@pytest.mark.parametrize(("count", "states"), [(2, "shared"), (3, "own")])
def test_parts_together_are_what_one_process_writes(
    run: Run, alone: pl.DataFrame, tmp_path: Path, count: int, states: Any
) -> None:
    out, told = tmp_path / "v.parquet", tmp_path / "told"
    asked = EmbedOptions(h0=True, states=states)
    codes = together(tmp_path / "p", count, in_small_parts, run.path, out, asked, told)
    assert codes == [0] * count, [said(tmp_path / "p", rank) for rank in range(count)]
    parts = sorted(out.glob("part-*.parquet"))
    assert [p.name for p in parts] == [f"part-{i:05}-of-{count:05}.parquet" for i in range(count)]
    for part in parts:
        assert len(pl.read_parquet(part)) >= len(alone) // count - 3  # one row less of each type
    found = pl.concat([pl.read_parquet(part) for part in parts])
    if states == "shared":
        assert in_order(found).equals(in_order(alone))  # to the bit
    else:  # texts were read in other company, which may round otherwise
        a, b = in_order(found), in_order(alone)
        assert a.drop("vector").equals(b.drop("vector"))
        np.testing.assert_allclose(a["vector"].to_numpy(), b["vector"].to_numpy(), rtol=1e-5, atol=1e-6)
    # Everyone worked, and nothing was done twice but texts that two need, each for itself.
    lines = [line.split(maxsplit=1) for line in told.read_text().splitlines()]
    assert {who for who, _ in lines} == {str(rank) for rank in range(count)}
    assert len({what for _, what in lines}) == len(lines)
    assert any(what.startswith("states-1-of-3") for _, what in lines) == (states == "own")
    assert not (tmp_path / ".v.parquet.work").exists()


def test_parts_are_vectors_like_any_others(run: Run, alone: pl.DataFrame, tmp_path: Path) -> None:
    out = tmp_path / "v.parquet"
    codes = together(tmp_path / "p", 2, in_small_parts, run.path, out, EmbedOptions(h0=True))
    assert codes == [0, 0]
    opened = Vectors.open(out)
    assert set(opened.types) == set(alone["type"])
    for node_type in opened.types:
        expected = alone.filter(type=node_type)
        assert opened.ids(node_type) == expected["id"].to_list()
        assert (opened.matrix(node_type) == expected["vector"].to_numpy()).all()
        assert (opened.signatures(node_type) == expected["signature"].to_numpy()).all()
    read = pl.read_parquet(out / "*.parquet")  # as anybody's tools read it
    assert sorted(read["id"]) == sorted(alone["id"])
    (out / "part-00001-of-00002.parquet").unlink()
    with pytest.raises(InputError, match="holds no vectors"):
        Vectors.open(out)


def test_a_kill_leaves_parts_for_any_number_of_processes(
    run: Run, alone: pl.DataFrame, tmp_path: Path
) -> None:
    out, told = tmp_path / "v.parquet", tmp_path / "told"
    asked = EmbedOptions(h0=True)
    told.touch()
    started = start_together(tmp_path / "p", 3, in_small_parts, run.path, out, asked, told)
    try:
        wait_for_lines(told, 12, started[0])
    finally:
        for process in started:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join()
    assert not out.exists()
    before = told.read_text().splitlines()
    codes = together(tmp_path / "q", 2, in_small_parts, run.path, out, asked, told)
    assert codes == [0, 0], said(tmp_path / "q", 0)
    found = pl.concat([pl.read_parquet(part) for part in sorted(out.glob("*.parquet"))])
    assert in_order(found).equals(in_order(alone))
    after = told.read_text().splitlines()[len(before) :]
    done = {line.split(maxsplit=1)[1] for line in before}
    assert after
    assert not done & {line.split(maxsplit=1)[1] for line in after}  # nothing was made again


def test_several_processes_write_parquet_alone(run: Run, tmp_path: Path) -> None:
    codes = together(tmp_path / "p", 2, in_small_parts, run.path, tmp_path / "arrays", EmbedOptions())
    assert 0 not in codes
    assert "several processes write Parquet; expected a name that ends in .parquet" in said(tmp_path / "p", 0)
    assert not (tmp_path / "arrays").exists()


def test_parts_do_not_take_the_place_of_a_file(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "v.parquet"
    embed_run(run.path, out)
    codes = together(tmp_path / "p", 2, in_small_parts, run.path, out, EmbedOptions())
    assert 0 not in codes
    assert "exists and is no folder of parts" in said(tmp_path / "p", 0)
    assert out.is_file()


def test_a_file_does_not_take_the_place_of_parts(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "v.parquet"
    assert together(tmp_path / "p", 2, in_small_parts, run.path, out, EmbedOptions()) == [0, 0]
    with pytest.raises(InputError, match="is a folder, of parts that several processes wrote"):
        embed_run(run.path, out)


def test_own_states_are_those_of_a_processes_own_neighbours(one_hop_run: Run, tmp_path: Path) -> None:
    """What a process keeps to itself is less than what all of them need."""
    counts = tmp_path / "counts"
    codes = together(tmp_path / "p", 2, counting_states, one_hop_run.path, tmp_path / "v.parquet", counts)
    assert codes == [0, 0], said(tmp_path / "p", 0)
    own = [int(line) for line in counts.read_text().split()]
    total = sum(tiny_network().schema.counts[t] for t in tiny_network().schema.text_rich)
    assert len(own) == 2
    assert np.all(np.array(own) < total)


def counting_states(path: Path, out: Path, counts: Path) -> None:
    made = TextStates.fill

    def counted(self: TextStates) -> None:
        with counts.open("a") as file:
            file.write(f"{self.store.file.count}\n")
        made(self)

    TextStates.fill = counted  # type: ignore[method-assign]
    in_small_parts(path, out, EmbedOptions(states="own"))


def test_the_command_says_it_once(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "v.parquet"
    codes = together(tmp_path / "p", 2, main, ["embed", str(run.path), str(out)])
    assert codes == [0, 0], said(tmp_path / "p", 0)
    assert f"Wrote vectors of paper, author, venue nodes to {out}." in said(tmp_path / "p", 0)
    assert said(tmp_path / "p", 1) == ""
    assert set(Vectors.open(out).types) == {"paper", "author", "venue"}


def test_since_serves_several_processes(run: Run, alone: pl.DataFrame, tmp_path: Path) -> None:
    """An earlier table is unpacked once, by the first; what has not changed is not computed again."""
    old, out, computed = tmp_path / "old.parquet", tmp_path / "v.parquet", tmp_path / "computed"
    embed_run(run.path, old, EmbedOptions(h0=True))
    codes = together(tmp_path / "p", 2, embedded_since, run.path, out, old, computed)
    assert codes == [0, 0], said(tmp_path / "p", 0)
    found = pl.concat([pl.read_parquet(part) for part in sorted(out.glob("*.parquet"))])
    assert in_order(found).equals(in_order(pl.read_parquet(old)))
    assert set(computed.read_text().split()) == {"0"}


def test_nodes_that_were_folded_in_before_serve_several_processes(tmp_path: Path) -> None:
    run, state = first_run("heterformer"), first_state()
    first = state.with_paper("new-1", "kernel methods", list(state.titles)[:2], ["new author"], "new venue")
    network = first.with_paper("new-2", "other words", list(state.titles)[2:3], ["newer"], "v").built()
    old, alone, out = (tmp_path / f"{name}.parquet" for name in ("old", "alone", "out"))
    embed_run(run.path, old, network=first.built().path)
    embed_run(run.path, alone, network=network.path, since=old)
    codes = together(tmp_path / "p", 2, embedded_later, run.path, out, network.path, old)
    assert codes == [0, 0], said(tmp_path / "p", 0)
    found = pl.concat([pl.read_parquet(part) for part in sorted(out.glob("*.parquet"))])
    assert in_order(found).equals(in_order(pl.read_parquet(alone)))


def embedded_later(path: Path, out: Path, network: Path, old: Path) -> None:
    embed_run(path, out, network=network, since=old, processes=ProcessGroup.from_environment())


def embedded_since(path: Path, out: Path, old: Path, computed: Path) -> None:
    """Tells how many vectors were computed in each part."""
    whole = two_passes.sampled_vectors

    def counted(model: Any, batcher: Any, nodes: Any, *more: Any, **others: Any) -> Any:
        with computed.open("a") as file:
            file.write(f"{len(nodes)}\n")
        return whole(model, batcher, nodes, *more, **others)

    two_passes.sampled_vectors = counted
    embed_run(path, out, EmbedOptions(h0=True), since=old, processes=ProcessGroup.from_environment())
