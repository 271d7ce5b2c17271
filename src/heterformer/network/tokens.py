"""Texts as tokens: made once per tokenizer, stored packed beside the network, memory-mapped ever after."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.digests import check_sizes, write_digests
from heterformer.errors import InputError
from heterformer.files import damaged, file_lock, reading, replace_folder
from heterformer.network.hashes import Hashes, sequence_hashes
from heterformer.network.schema import MOST, NodeType
from heterformer.network.store import Network
from heterformer.progress import progress_bar, say
from heterformer.stored import check_offsets, map_array
from heterformer.temporary import remove_path
from heterformer.untrusted import check_no_links_out

TOKEN = np.dtype(np.int32)


@dataclass(frozen=True)
class PackedTokens:
    """The tokens of every text of a network, end to end. Text rows count over all text-rich types."""

    text_offset: dict[NodeType, int]  # the text row of each type's row 0
    offsets: NDArray[np.int64]  # (texts + 1,)
    tokens: NDArray[np.int32]
    vocabulary: int = MOST  # numbers of tokens are below

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def by_type(self, text_rows: NDArray[np.int64]) -> Iterator[tuple[NodeType, NDArray[np.int64]]]:
        """Ascending text rows as rows of each type that has some of them."""
        starts = np.searchsorted(text_rows, list(self.text_offset.values()))
        for number, (node_type, first) in enumerate(self.text_offset.items()):
            own = text_rows[starts[number] : starts[number + 1] if number + 1 < len(starts) else None]
            if len(own):
                yield node_type, own - first

    def gather(self, texts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The chosen texts' tokens end to end, and their offsets."""
        start = self.offsets[texts]
        lengths = self.offsets[texts + 1] - start
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        positions = np.arange(offsets[-1]) + np.repeat(start - offsets[:-1], lengths)
        tokens = self.tokens[positions].astype(np.int64)
        if len(tokens) and not 0 <= tokens.min() <= tokens.max() < self.vocabulary:
            problem = f"found the token {tokens[(tokens < 0) | (tokens >= self.vocabulary)][0]}"
            remedy = "remove the network's folder 'tokens', which is made again"
            raise InputError(
                f"the network's tokens are damaged: {problem}, "
                f"expected 0 to {self.vocabulary - 1:,}; {remedy}."
            )
        return tokens, offsets

    def hashes(self) -> Hashes:
        """(texts,): a hash of each text's tokens."""
        hashes = np.empty(len(self), dtype=np.uint64)
        for start in range(0, len(hashes), 1 << 16):
            offsets = self.offsets[start : start + (1 << 16) + 1]
            part = self.tokens[offsets[0] : offsets[-1]]
            hashes[start : start + (1 << 16)] = sequence_hashes(part, offsets)
        return hashes


def open_tokens(
    network: Network,
    tokenizer: Any,
    max_tokens: int | None = None,
    prompts: Mapping[NodeType, str] | None = None,
) -> PackedTokens:
    """The network's texts under a fast Hugging Face tokenizer, at most ``max_tokens`` each.

    ``prompts`` are put before the texts of their types.
    """
    limit = max_tokens or network.schema.max_tokens
    prompts = {node_type: prompt for node_type, prompt in (prompts or {}).items() if prompt}
    folder = network.path / "tokens" / _fingerprint(tokenizer, limit, prompts)
    if not folder.is_dir():
        _write(network, tokenizer, limit, prompts, folder)
    text_offset, count = {}, 0
    for node_type in network.schema.text_rich:
        text_offset[node_type] = count
        count += network.schema.counts[node_type]
    try:
        return _opened(folder, text_offset, count, limit, len(tokenizer))
    except InputError as error:  # they are made of the texts: nothing is lost
        say(f"{error} They are made again.")
    remove_path(folder)
    _write(network, tokenizer, limit, prompts, folder)
    return _opened(folder, text_offset, count, limit, len(tokenizer))


def _opened(
    folder: Path, text_offset: dict[NodeType, int], count: int, limit: int, vocabulary: int
) -> PackedTokens:
    """Stored tokens of ``count`` texts: their offsets are checked now, the tokens when they are used."""
    check_sizes(folder, "")
    path = folder / "tokens.bin"
    size = path.stat().st_size if path.is_file() else -1
    if size < 0 or size % TOKEN.itemsize:
        raise damaged(path, f"it has {size:,} bytes" if size >= 0 else "it is missing")
    offsets = map_array(folder / "offsets.npy", kind="i8")
    if len(offsets) != count + 1:
        raise damaged(folder / "offsets.npy", f"it has {len(offsets):,} numbers, expected {count + 1:,}")
    check_offsets(offsets, size // TOKEN.itemsize, folder / "offsets.npy", longest=limit)
    with reading(path):
        tokens = np.asarray(np.memmap(path, dtype=TOKEN, mode="r")) if size else np.empty(0, dtype=TOKEN)
    return PackedTokens(text_offset, offsets, tokens, vocabulary)


def check_tokens(network: Network, folder: Path) -> None:
    """Whether a folder holds tokens of all texts of a network, by whatever tokenizer."""
    _opened(folder, {}, sum(network.schema.counts[t] for t in network.schema.text_rich), MOST, MOST)


def _write(
    network: Network, tokenizer: Any, limit: int, prompts: Mapping[NodeType, str], folder: Path
) -> None:
    try:
        check_no_links_out(network.path)  # it is about to be written into
        folder.parent.mkdir(exist_ok=True)
        waiting = f"{network.path}: another process makes its tokens; waiting for it."
        with file_lock(folder, waiting=waiting):
            if not folder.is_dir():  # the other has made them
                with replace_folder(folder) as partial:  # which clears what a kill has left
                    _tokenise(network, tokenizer, limit, prompts, partial)
    except OSError as error:
        raise InputError(f"{network.path}: tokens cannot be stored there ({error.strerror}).") from None


def _tokenise(
    network: Network, tokenizer: Any, limit: int, prompts: Mapping[NodeType, str], into: Path
) -> None:
    total = sum(network.schema.counts[t] for t in network.schema.text_rich)
    lengths = []
    with (into / "tokens.bin").open("wb") as file, progress_bar("tokenising", total, "texts") as bar:
        for node_type in network.schema.text_rich:
            prompt = prompts.get(node_type, "")
            for texts in network.text_batches(node_type):
                encoded = tokenizer(
                    [prompt + text for text in texts] if prompt else texts,
                    truncation=True,
                    max_length=limit,
                    return_attention_mask=False,
                    return_token_type_ids=False,
                )["input_ids"]
                lengths.append(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)))
                file.write(np.concatenate([np.asarray(e, dtype=TOKEN) for e in encoded]).tobytes())
                bar.advance(len(texts))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate(lengths))])
    np.save(into / "offsets.npy", offsets, allow_pickle=False)
    write_digests(into)


def _fingerprint(tokenizer: Any, limit: int, prompts: Mapping[NodeType, str]) -> str:
    if not getattr(tokenizer, "is_fast", False):
        name = type(tokenizer).__name__
        raise InputError(f"found the tokenizer {name}, expected a fast one (with a tokenizer.json).")
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content |= {"truncation": None, "padding": None}  # what the last call left there
    about = f"{limit} {json.dumps(content)}"
    if prompts:
        about += json.dumps(prompts, sort_keys=True)
    return hashlib.blake2b(about.encode(), digest_size=8).hexdigest()
