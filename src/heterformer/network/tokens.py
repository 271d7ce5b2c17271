"""Texts as tokens: made once per tokenizer, stored packed beside the network, memory-mapped ever after."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heterformer.arrays import mapped
from heterformer.errors import InputError
from heterformer.files import file_lock, replace_folder
from heterformer.network.hashes import Hashes, sequence_hashes
from heterformer.network.schema import NodeType
from heterformer.network.store import Network
from heterformer.progress import progress_bar
from heterformer.untrusted import check_no_links_out


@dataclass(frozen=True)
class PackedTokens:
    """The tokens of every text of a network, end to end. Text rows count over all text-rich types."""

    text_offset: dict[NodeType, int]  # the text row of each type's row 0
    offsets: NDArray[np.int64]  # (texts + 1,)
    tokens: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def gather(self, texts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The chosen texts' tokens end to end, and their offsets."""
        start = self.offsets[texts]
        lengths = self.offsets[texts + 1] - start
        offsets = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        positions = np.arange(offsets[-1]) + np.repeat(start - offsets[:-1], lengths)
        return self.tokens[positions].astype(np.int64), offsets

    def hashes(self) -> Hashes:
        """(texts,): a hash of each text's tokens."""
        found = np.empty(len(self), dtype=np.uint64)
        for start in range(0, len(found), 1 << 16):
            offsets = self.offsets[start : start + (1 << 16) + 1]
            part = self.tokens[offsets[0] : offsets[-1]]
            found[start : start + (1 << 16)] = sequence_hashes(part, offsets)
        return found


def open_tokens(network: Network, tokenizer: Any, max_tokens: int | None = None) -> PackedTokens:
    """The network's texts under a fast Hugging Face tokenizer, at most ``max_tokens`` each."""
    limit = max_tokens or network.schema.max_tokens
    folder = network.path / "tokens" / _fingerprint(tokenizer, limit)
    if not folder.is_dir():
        _write(network, tokenizer, limit, folder)
    text_offset, count = {}, 0
    for node_type in network.schema.text_rich:
        text_offset[node_type] = count
        count += network.schema.counts[node_type]
    tokens = np.asarray(np.memmap(folder / "tokens.bin", dtype=np.int32, mode="r"))
    return PackedTokens(text_offset, mapped(folder / "offsets.npy"), tokens)


def _write(network: Network, tokenizer: Any, limit: int, folder: Path) -> None:
    try:
        check_no_links_out(network.path)  # it is about to be written into
        folder.parent.mkdir(exist_ok=True)
        waiting = f"{network.path}: another process makes its tokens; waiting for it."
        with file_lock(folder, waiting=waiting):
            if not folder.is_dir():  # the other has made them
                with replace_folder(folder) as partial:  # which clears what a kill has left
                    _tokenise(network, tokenizer, limit, partial)
    except OSError as error:
        raise InputError(f"{network.path}: tokens cannot be stored there ({error.strerror}).") from None


def _tokenise(network: Network, tokenizer: Any, limit: int, into: Path) -> None:
    total = sum(network.schema.counts[t] for t in network.schema.text_rich)
    lengths = []
    with (into / "tokens.bin").open("wb") as file, progress_bar("tokenising", total) as bar:
        for node_type in network.schema.text_rich:
            for texts in network.text_batches(node_type):
                encoded = tokenizer(
                    texts,
                    truncation=True,
                    max_length=limit,
                    return_attention_mask=False,
                    return_token_type_ids=False,
                )["input_ids"]
                lengths.append(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)))
                file.write(np.concatenate([np.asarray(e, dtype=np.int32) for e in encoded]).tobytes())
                bar.advance(len(texts))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate(lengths))])
    np.save(into / "offsets.npy", offsets, allow_pickle=False)


def _fingerprint(tokenizer: Any, limit: int) -> str:
    if not getattr(tokenizer, "is_fast", False):
        found = type(tokenizer).__name__
        raise InputError(f"found the tokenizer {found}, expected a fast one (with a tokenizer.json).")
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    content |= {"truncation": None, "padding": None}  # what the last call left there
    return hashlib.blake2b(f"{limit} {json.dumps(content)}".encode(), digest_size=8).hexdigest()
