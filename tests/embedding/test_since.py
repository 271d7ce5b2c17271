"""Only what changed is computed again, and the result is as if everything had been."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heterformer.cli import main as cli
from heterformer.embedding import two_passes
from heterformer.embedding.embed import embed, embed_run
from heterformer.embedding.options import EmbedOptions
from heterformer.embedding.vectors import Vectors
from heterformer.errors import InputError
from heterformer.network.store import Network
from heterformer.training import unseen
from heterformer.training.folding import FoldedIn, folded_rows
from heterformer.training.run import Run
from heterformer.training.train import train
from tests.embedding.growing import State, first_state
from tests.learning import tiny_options, tiny_reader

EVERY = EmbedOptions(all_neighbors=99)


@pytest.fixture(scope="module")
def before() -> State:
    return first_state()


@pytest.fixture(scope="module")
def run(before: State, tmp_path_factory: pytest.TempPathFactory) -> Run:
    options = tiny_options(tiny_reader(), max_steps=2)
    return train(before.built(), tmp_path_factory.mktemp("since") / "run", options)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., set[str]]:
    """Embed a network and return the ids of the papers whose vectors were computed."""

    def embedded(run: Run, network: Network, out: Path, since: Path | None, **more: Any) -> set[str]:
        found: set[str] = set()
        whole = two_passes.sampled_vectors

        def noted(model: Any, batcher: Any, nodes: Any, *others: Any, **more: Any) -> Any:
            found.update(network.ids(nodes.node_type, nodes.rows))
            return whole(model, batcher, nodes, *others, **more)

        with monkeypatch.context() as patched:
            patched.setattr(two_passes, "sampled_vectors", noted)
            embed_run(run.path, out, more.get("options", EVERY), network=network.path, since=since)
        return found

    return embedded


Embedded = Callable[..., set[str]]


@pytest.mark.parametrize("name", ["old.parquet", "old"])
def test_nothing_has_changed(run: Run, before: State, tmp_path: Path, computed: Embedded, name: str) -> None:
    network = before.built()
    assert computed(run, network, tmp_path / name, None) == set(before.titles)
    assert computed(run, network, tmp_path / "new", tmp_path / name) == set()
    for node_type in network.schema.node_types:
        old, new = (Vectors.open(tmp_path / n).matrix(node_type) for n in (name, "new"))
        np.testing.assert_array_equal(new, old)


def test_a_new_paper_a_new_title(run: Run, before: State, tmp_path: Path, computed: Embedded) -> None:
    papers = list(before.titles)
    retitled = papers[20]
    near = {a for a, b in before.cites if b == retitled} | {b for a, b in before.cites if a == retitled}
    later = before.with_paper("new", "a new title", papers[:2], ["new author"], "new venue")
    later = later.with_title(retitled, "other words")
    computed(run, before.built(), tmp_path / "old", None)
    network = later.built()
    assert computed(run, network, tmp_path / "new", tmp_path / "old") == {
        "new",
        *papers[:2],
        retitled,
        *near,
    }
    computed(run, network, tmp_path / "whole", None)
    for node_type in network.schema.node_types:
        new, whole = (Vectors.open(tmp_path / n).matrix(node_type) for n in ("new", "whole"))
        np.testing.assert_allclose(new, whole, rtol=1e-4, atol=1e-5)


def test_what_was_folded_in_before_need_not_be_again(
    run: Run, before: State, tmp_path: Path, computed: Embedded
) -> None:
    """Papers of an author who was new last time are as known now as any others."""
    papers = list(before.titles)
    first = before.with_paper("new-1", "a new title", papers[:2], ["new author"], "new venue")
    computed(run, first.built(), tmp_path / "first", None)
    second = first.with_paper("new-2", "a newer title", papers[5:6], ["newer author"], "new venue")
    found = computed(run, second.built(), tmp_path / "second", tmp_path / "first")
    assert found == {
        "new-2",
        papers[5],
        "new-1",
    }  # the new venue has one more text, and so says something else


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many nodes of each type were folded in."""
    found: dict[str, int] = {}

    def noted(model: Any, node_type: str, new: FoldedIn, *others: Any) -> Any:
        found[node_type] = len(new.nodes)
        return folded_rows(model, node_type, new, *others)

    monkeypatch.setattr(unseen, "folded_rows", noted)
    return found


@pytest.mark.parametrize("name", ["first.parquet", "first"])
@pytest.mark.parametrize("types", [(), ("paper",)])
def test_nodes_are_folded_in_once(
    run: Run, before: State, tmp_path: Path, folded: dict[str, int], name: str, types: tuple[str, ...]
) -> None:
    papers = list(before.titles)
    first = before.with_paper("new-1", "a new title", papers[:2], ["new author", "another"], "new venue")
    embed_run(run.path, tmp_path / name, EVERY, network=first.built().path)
    assert folded == {"author": 2, "venue": 1}
    second = first.with_paper("new-2", "a newer title", papers[5:6], ["newer author"], "new venue")
    options, network = EmbedOptions(all_neighbors=99, types=types), second.built()
    found = embed_run(run.path, tmp_path / "second", options, network=network.path, since=tmp_path / name)
    assert folded == {"author": 1, "venue": 1}  # the venue has one more text
    whole = embed_run(run.path, tmp_path / "whole", options, network=network.path)
    assert folded == {"author": 3, "venue": 1}
    for node_type in found.types:
        np.testing.assert_allclose(found.matrix(node_type), whole.matrix(node_type), rtol=1e-3, atol=1e-4)


def test_with_a_sample_few_are_computed_again(
    run: Run, before: State, tmp_path: Path, computed: Embedded
) -> None:
    computed(run, before.built(), tmp_path / "old", None, options=EmbedOptions())
    papers = list(before.titles)
    later = before.with_paper("new", "a new title", papers[:50], [before.written_by[0][1]], "new venue")
    found = computed(run, later.built(), tmp_path / "new", tmp_path / "old", options=EmbedOptions())
    assert "new" in found
    assert found <= {"new", *papers[:50]}
    assert len(found) < 45  # of those that it cites, some do not sample it


def test_the_command(run: Run, before: State, tmp_path: Path) -> None:
    network = before.with_paper("new", "a title", list(before.titles)[:1], [], "v").built()
    old, new = str(tmp_path / "old.parquet"), str(tmp_path / "new.parquet")
    cli.main(["embed", str(run.path), old])
    cli.main(["embed", str(run.path), new, "--network", str(network.path), "--since", old])
    assert "new" in Vectors.open(new).ids("paper")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 5}, "was made with seed 0, not 5"),
        ({"all_neighbors": 2}, "was made with another number of neighbours"),
        ({"dtype": "float16"}, "was made with dtype float32, not float16"),
    ],
)
def test_vectors_that_do_not_compare_are_refused(
    run: Run, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    embed_run(run.path, tmp_path / "old")
    with pytest.raises(InputError, match=message):
        embed_run(run.path, tmp_path / "new", EmbedOptions(**changes), since=tmp_path / "old")
    assert [p.name for p in tmp_path.iterdir()] == ["old"]


def test_vectors_of_another_model_are_refused(run: Run, before: State, tmp_path: Path) -> None:
    other = train(before.built(), tmp_path / "run", tiny_options(tiny_reader(), max_steps=1))
    embed_run(other.path, tmp_path / "old")
    with pytest.raises(InputError, match="was made with another model"):
        embed_run(run.path, tmp_path / "new", since=tmp_path / "old")


def test_an_earlier_output_without_the_type(run: Run, before: State, tmp_path: Path) -> None:
    network = before.built()
    embed_run(run.path, tmp_path / "old", EmbedOptions(types=("author",)), network=network.path)
    found = embed_run(run.path, tmp_path / "new", network=network.path, since=tmp_path / "old")
    np.testing.assert_array_equal(found.matrix("paper"), embed(run.model(), network)["paper"])


@pytest.fixture(scope="module")
def grown(before: State) -> Network:
    return before.with_paper("new", "a title", list(before.titles)[:1], ["new author"], "v").built()


def damaged(table: pa.Table, how: str) -> pa.Table:
    """Still with our metadata, as other tools leave it."""
    place = {name: number for number, name in enumerate(table.column_names)}
    if how == "no signature":
        return table.drop_columns(["signature"])
    if how == "null signature":
        return table.set_column(place["signature"], "signature", pa.nulls(len(table), pa.uint64()))
    if how == "h0 no lists":
        return table.set_column(place["h0"], "h0", pa.array(range(len(table))))
    short = [None if v is None else v[:3] for v in table["h0"].to_pylist()]
    return table.set_column(place["h0"], "h0", pa.array(short, pa.list_(pa.float32(), 3)))


@pytest.mark.parametrize("how", ["no signature", "null signature"])
def test_an_earlier_table_without_signatures(run: Run, grown: Network, tmp_path: Path, how: str) -> None:
    old = tmp_path / "old.parquet"
    embed_run(run.path, old, EVERY, network=grown.path)
    pq.write_table(damaged(pq.read_table(old), how), old)
    with pytest.raises(InputError, match=r"^since .* Leave since out\.$"):
        embed_run(run.path, tmp_path / "new", EVERY, network=grown.path, since=old)
    assert [p.name for p in tmp_path.iterdir()] == ["old.parquet"]


@pytest.mark.parametrize("how", ["h0 no lists", "h0 short"])
def test_an_earlier_table_with_odd_embeddings(
    run: Run, grown: Network, tmp_path: Path, folded: dict[str, int], how: str
) -> None:
    """They are not taken, everything else is."""
    old = tmp_path / "old.parquet"
    whole = embed_run(run.path, old, EVERY, network=grown.path).matrix("paper")
    pq.write_table(damaged(pq.read_table(old), how), old)
    folded.clear()
    found = embed_run(run.path, tmp_path / "new", EVERY, network=grown.path, since=old)
    assert folded == {"author": 1, "venue": 1}
    np.testing.assert_array_equal(found.matrix("paper"), whole)


@pytest.mark.parametrize("name", ["paper.npy", "author.signatures.npy", "author.ids.json", "author.h0.npy"])
def test_an_earlier_folder_that_is_not_whole(run: Run, grown: Network, tmp_path: Path, name: str) -> None:
    old = tmp_path / "old"
    embed_run(run.path, old, EVERY, network=grown.path)
    if name == "author.h0.npy":
        np.save(old / name, np.load(old / name)[:-1])
    else:
        (old / name).unlink()
    with pytest.raises(InputError, match=r"^since "):
        embed_run(run.path, tmp_path / "new", EVERY, network=grown.path, since=old)
    assert [p.name for p in tmp_path.iterdir()] == ["old"]


def test_in_place_after_a_kill_between_the_renames(run: Run, grown: Network, tmp_path: Path) -> None:
    out = tmp_path / "vectors"
    expected = embed_run(run.path, out, EVERY, network=grown.path).matrix("paper")
    expected = np.array(expected)
    out.rename(tmp_path / ".vectors.old")
    found = embed_run(run.path, out, EVERY, network=grown.path, since=out)
    np.testing.assert_array_equal(found.matrix("paper"), expected)
    assert [p.name for p in tmp_path.iterdir()] == ["vectors"]


def test_it_is_told_how_many_nodes_were_computed(
    run: Run, before: State, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = before.built()
    old, new, count = tmp_path / "old", tmp_path / "new", network.schema.counts["paper"]
    embed_run(run.path, old, EVERY, network=network.path)
    assert "computed" not in capsys.readouterr().err
    embed_run(run.path, new, EVERY, network=network.path, since=old)
    told = f"{new}: computed 0 of {count:,} nodes with text; the rest are those of {old}.\n"
    assert told in capsys.readouterr().err


def test_another_length_of_folded_in_nodes_is_another_vector(
    run: Run, before: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How far out new nodes are put is measured on the network at hand, and may change as it grows."""
    network = before.with_paper(
        "new", "Kernel poems", [next(iter(before.titles))], ["nobody yet"], "v"
    ).built()
    embed_run(run.path, tmp_path / "old", EVERY, network=network.path)
    monkeypatch.setattr(unseen, "length_factor", lambda *_: np.array(3.0))
    found = embed_run(run.path, tmp_path / "new", EVERY, network=network.path, since=tmp_path / "old")
    whole = embed_run(run.path, tmp_path / "whole", EVERY, network=network.path)
    assert not np.array_equal(found.matrix("author"), Vectors.open(tmp_path / "old").matrix("author"))
    np.testing.assert_allclose(found.matrix("paper"), whole.matrix("paper"), rtol=1e-5, atol=1e-6)
