"""The layout that a run keeps for the explorer."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from heterformer.errors import InputError
from heterformer.maps import layout as layouts
from heterformer.maps.layout import Layout
from heterformer.maps.options import MapOptions
from heterformer.search.searcher import Searcher
from heterformer.search.store import MAP, SearchStore, _folders
from tests.serve.serving import served_run


@pytest.fixture
def store(tmp_path: Path) -> SearchStore:
    without_map = shutil.ignore_patterns(MAP)  # which another test may have made
    return Searcher(shutil.copytree(served_run(), tmp_path / "run", ignore=without_map)).store


def test_it_is_made_once_and_then_read(store: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Layout.open(store) is None
    made = Layout.make(store)
    assert {t: len(p) for t, p in made.places.items()} == {t: len(store.matrix(t)) for t in store.types}
    monkeypatch.setattr(layouts, "lay_out", None)
    for kept in (Layout.open(store), Layout.make(store)):
        assert kept is not None
        assert kept.regions == made.regions
        assert all(np.array_equal(kept.places[t], made.places[t]) for t in store.types)


def test_other_options_make_it_anew(store: SearchStore) -> None:
    one, other = Layout.make(store, landmarks=50), Layout.make(store, MapOptions(seed=1), landmarks=50)
    assert not np.array_equal(one.places["paper"], other.places["paper"])
    kept = Layout.open(store)
    assert kept is not None
    assert np.array_equal(kept.places["paper"], other.places["paper"])


def test_it_belongs_to_its_vectors(store: SearchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    Layout.make(store)
    monkeypatch.setattr(SearchStore, "digest", lambda self, node_type: "another")
    assert Layout.open(store) is None


def test_a_damaged_one_is_one_sentence(store: SearchStore) -> None:
    Layout.make(store)
    np.save(store.folder / MAP / "paper.npy", np.zeros((3, 2), np.float32))
    with pytest.raises(InputError, match="is damaged; remove it"):
        Layout.open(store)
    (store.folder / MAP / "layout.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read or is damaged"):
        Layout.open(store)


def test_its_folder_is_not_taken_for_another_networks(store: SearchStore) -> None:
    Layout.make(store)
    assert _folders(store.run) == [store.folder]
