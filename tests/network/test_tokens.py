"""Texts as packed tokens."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from heterformer.digests import DIGESTS
from heterformer.errors import InputError
from heterformer.network.store import Network
from heterformer.network.tokens import PackedTokens, check_tokens, open_tokens
from tests.networks import SPECIAL, WORDS, Tables, files, new_tokenizer


@pytest.fixture
def network(tables: Tables) -> Network:
    """Two text-rich types; one text is empty, one is long."""
    tables.write("papers.csv", f"id,title\np1,graph kernel\np2,\np3,{' poem' * 40}\n")
    tables.write("works.csv", "id,title\nw1,enzyme\nw2,kernel unheard-of market\n")
    tables.write("cites.csv", "source,target\np1,w1\n")
    tables.spec["nodes"]["work"] = {"file": "works.csv", "text": "title"}
    tables.cites["to"] = "work"
    return tables.build()


def texts_of(tokens: PackedTokens) -> list[list[int]]:
    bounds = zip(tokens.offsets[:-1], tokens.offsets[1:], strict=True)
    return [tokens.tokens[a:b].tolist() for a, b in bounds]


def expected(network: Network, tokenizer: Any, limit: int) -> list[list[int]]:
    texts = [text for t in network.schema.text_rich for text in network.texts(t)]
    return [tokenizer(text, truncation=True, max_length=limit)["input_ids"] for text in texts]


def stored(network: Network) -> int:
    return len(list((network.path / "tokens").iterdir()))


def test_tokens_are_what_the_tokenizer_gives_text_by_text(network: Network) -> None:
    tokens = open_tokens(network, new_tokenizer())
    assert texts_of(tokens) == expected(network, new_tokenizer(), limit=32)
    assert [len(t) for t in texts_of(tokens)] == [4, 2, 32, 3, 5]
    assert tokens.text_offset == {"paper": 0, "work": 3}


def test_chosen_texts_are_gathered_in_their_order(network: Network) -> None:
    tokens = open_tokens(network, new_tokenizer())
    packed, offsets = tokens.gather(np.array([4, 1, 4, 0]))
    together = [t for number in (4, 1, 4, 0) for t in texts_of(tokens)[number]]
    assert (packed.tolist(), offsets.tolist()) == (together, [0, 5, 7, 12, 16])
    packed, offsets = tokens.gather(np.empty(0, dtype=np.int64))
    assert (packed.tolist(), offsets.tolist()) == ([], [0])


def test_a_limit_of_ones_own_is_stored_beside_the_networks(network: Network) -> None:
    assert texts_of(open_tokens(network, new_tokenizer(), 3)) == expected(network, new_tokenizer(), 3)
    assert texts_of(open_tokens(network, new_tokenizer())) == expected(network, new_tokenizer(), 32)
    assert stored(network) == 2


@pytest.mark.parametrize("again", ["the same object", "another object", "one that has been used"])
def test_texts_are_tokenised_once_per_tokenizer(
    again: str, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = new_tokenizer()
    first = texts_of(open_tokens(network, tokenizer))
    if again == "another object":
        tokenizer = new_tokenizer()
    elif again == "one that has been used":
        tokenizer = new_tokenizer()
        tokenizer(["graph"] * 2, padding=True, truncation=True, max_length=5)
    monkeypatch.setattr(Network, "text_batches", lambda *_: pytest.fail("the texts were read again"))
    assert texts_of(open_tokens(network, tokenizer)) == first
    assert stored(network) == 1


def test_another_tokenizer_gets_tokens_of_its_own(network: Network) -> None:
    open_tokens(network, new_tokenizer())
    other = new_tokenizer((*SPECIAL, *reversed(WORDS)))
    assert texts_of(open_tokens(network, other)) == expected(network, other, 32)
    assert stored(network) == 2


def test_tokens_are_no_more_private_than_the_network(network: Network) -> None:
    open_tokens(network, new_tokenizer())
    (folder,) = (network.path / "tokens").iterdir()
    assert folder.stat().st_mode == network.path.stat().st_mode


def test_a_folder_that_cannot_be_written(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(InputError) as caught:
        open_tokens(network, new_tokenizer())
    assert str(caught.value) == f"{network.path}: tokens cannot be stored there (Permission denied)."


def test_a_full_disk_leaves_no_half_of_the_tokens(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(InputError, match=r"tokens cannot be stored there \(No space left on device\)"):
        open_tokens(network, new_tokenizer())
    assert not files(network.path / "tokens")


def test_an_interrupt_leaves_no_half_of_the_tokens(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            open_tokens(network, new_tokenizer())
    assert not files(network.path / "tokens")
    assert texts_of(open_tokens(network, new_tokenizer())) == expected(network, new_tokenizer(), 32)


def test_a_slow_tokenizer_is_refused(network: Network) -> None:
    with pytest.raises(InputError) as caught:
        open_tokens(network, SimpleNamespace(is_fast=False))
    assert str(caught.value) == (
        "found the tokenizer SimpleNamespace, expected a fast one (with a tokenizer.json)."
    )


def test_tokens_stay_on_disk(network: Network) -> None:
    tokens = open_tokens(network, new_tokenizer())
    assert isinstance(tokens.tokens.base, np.memmap)
    assert isinstance(tokens.offsets.base, np.memmap)
    assert Path(tokens.tokens.base.filename).is_relative_to(network.path)


def test_what_a_kill_left_is_cleared(network: Network) -> None:
    open_tokens(network, new_tokenizer())
    (folder,) = (network.path / "tokens").iterdir()
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(folder)
    partial.mkdir()
    (partial / "tokens.bin").write_bytes(b"half of it")
    open_tokens(network, new_tokenizer())
    assert list((network.path / "tokens").iterdir()) == [folder]


def test_tokens_are_not_written_where_a_link_leads(network: Network, tmp_path: Path) -> None:
    elsewhere = tmp_path / "thesis"
    elsewhere.mkdir()
    (network.path / "tokens").symlink_to(elsewhere)
    with pytest.raises(InputError, match=r"tokens: is a symbolic link to '.*, outside"):
        open_tokens(network, new_tokenizer())
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("damage", ["half a token", "a token more", "a token less", "emptied", "gone"])
def test_tokens_of_another_size_are_refused(network: Network, damage: str) -> None:
    """Digests are gone, as in networks of earlier versions: the size alone tells."""
    open_tokens(network, new_tokenizer())
    (folder,) = (network.path / "tokens").iterdir()
    (folder / DIGESTS).unlink()
    path = folder / "tokens.bin"
    data = path.read_bytes()
    contents = {
        "half a token": data + b"xx",
        "a token more": data + b"xxxx",
        "a token less": data[:-4],
        "emptied": b"",
    }
    path.unlink() if damage == "gone" else path.write_bytes(contents[damage])
    problem = {"half a token": f"it has {len(data) + 2:,} bytes", "gone": "it is missing"}
    with pytest.raises(InputError) as caught:
        check_tokens(network, folder)
    file = "tokens.bin" if damage in problem else "offsets.npy"
    assert str(caught.value).startswith(f"{folder / file}: cannot be read")
    assert problem.get(damage, "its offsets do not run from 0 to") in str(caught.value)


@pytest.mark.parametrize("damage", ["half a token", "offsets elsewhere"])
def test_damaged_tokens_without_digests_are_made_again(
    network: Network, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As networks of earlier versions have them."""
    open_tokens(network, new_tokenizer())
    (folder,) = (network.path / "tokens").iterdir()
    (folder / DIGESTS).unlink(missing_ok=True)
    if damage == "half a token":
        with (folder / "tokens.bin").open("ab") as file:
            file.write(b"x")
    else:
        offsets = np.load(folder / "offsets.npy")
        offsets[1] = 10**6
        np.save(folder / "offsets.npy", offsets)
    assert texts_of(open_tokens(network, new_tokenizer())) == expected(network, new_tokenizer(), limit=32)
    named = {"half a token": "tokens.bin: cannot be read", "offsets elsewhere": "offsets.npy: cannot be read"}
    assert named[damage] in capsys.readouterr().err
