"""A student: a plain text encoder that stands in for a trained model where there is no network.

It is a folder of sentence-transformers: an encoder, its pooling and, if vectors have length 1, a
normalisation. Whatever reads such folders reads it; we read the same files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heterformer.batches.batch import Texts
from heterformer.files import reading
from heterformer.models.plm.backbone import load_backbone, text_vectors
from heterformer.models.plm.loading import load_tokenizer
from heterformer.models.plm.packing import pack
from heterformer.models.student_folder import ABOUT, MODULES, check_student

LENGTH = "sentence_bert_config.json"
POOLING, NORMALIZE = "1_Pooling", "2_Normalize"
SETTINGS = "config_sentence_transformers.json"
POOLING_MODES = {"cls": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens"}
# Not ours, but readers that take no field for granted expect them.
OTHER_POOLING_MODES = ("pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens")
MODULE_TYPE = "sentence_transformers.models."  # the names that all versions understand


@dataclass
class Student:
    """A text encoder distilled from a trained model: its vectors compare with that model's.

    :func:`heterformer.distill` makes one. ``SentenceTransformer(folder)`` reads the same folder and gives
    the same vectors.

    Example:
        >>> from heterformer import Student
        >>> student = Student.open("papers-student")
        >>> vectors = student.encode(["graph attention networks", "news recommendation"])
    """

    plm: Any
    """The encoder, a model of Transformers."""
    tokenizer: Any
    """Its tokenizer."""
    readout: str
    """``cls`` or ``mean``: how the states of a text's tokens become its vector."""
    normalize: bool
    """Whether vectors have length 1."""
    max_tokens: int
    """Longer texts are cut."""
    about: Mapping[str, Any]
    """What it was distilled from, and how well."""

    @classmethod
    def open(cls, folder: Path | str) -> Student:
        """Open a folder that ``distill`` wrote.

        Args:
            folder: The folder.

        Example:
            >>> student = Student.open("papers-student")
        """
        folder = Path(folder)
        check_student(folder)
        with reading(folder):
            modules, pooling, length, about = (
                json.loads((folder / name).read_text(encoding="utf-8"))
                for name in (MODULES, f"{POOLING}/config.json", LENGTH, ABOUT)
            )
            readout = next(name for name, mode in POOLING_MODES.items() if pooling.get(mode) is True)
            normalize = any(str(module["type"]).endswith(".Normalize") for module in modules)
            max_tokens = int(length["max_seq_length"])
        return cls(load_backbone(str(folder)), load_tokenizer(folder), readout, normalize, max_tokens, about)

    @property
    def width(self) -> int:
        """d, the length of a vector."""
        return int(self.plm.config.hidden_size)

    def vectors(self, texts: Texts) -> Tensor:
        """(U, d): the vectors of tokenised texts, with gradients where they are on.

        Args:
            texts: Tokens of all texts, end to end.
        """
        vectors = text_vectors(self.plm, pack(texts), self.readout)
        return torch.nn.functional.normalize(vectors, dim=-1) if self.normalize else vectors

    def encode(self, texts: str | Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Encode texts.

        Args:
            texts: One text or a list of texts.
            batch_size: Texts per forward pass.

        Returns:
            A float32 array (n, d), or (d,) for a single text.

        Example:
            >>> student.encode(["graph attention networks", "news recommendation"]).shape
            (2, 384)
        """
        if isinstance(texts, str):
            vector: NDArray[np.float32] = self.encode([texts])[0]
            return vector
        words = [text.strip() for text in texts]
        vectors = np.empty((len(words), self.width), dtype=np.float32)
        if not words:
            return vectors
        tokens = self.tokenizer(words, truncation=True, max_length=self.max_tokens)["input_ids"]
        order = np.argsort([len(each) for each in tokens], kind="stable")  # texts of similar length together
        self.plm.eval()
        with torch.no_grad():
            for start in range(0, len(order), batch_size):
                chosen = order[start : start + batch_size]
                packed = _packed([tokens[i] for i in chosen], self.plm.device)
                vectors[chosen] = self.vectors(packed).float().cpu().numpy()
        return vectors

    def save(self, folder: Path, files: Mapping[str, str]) -> None:
        """Write the folder, with further ``files`` by name, such as its README.md.

        Args:
            folder: An empty folder.
            files: Texts of further files by name.
        """
        self.plm.save_pretrained(folder)
        self.tokenizer.model_max_length = self.max_tokens
        self.tokenizer.save_pretrained(folder)
        modules = [("", "Transformer"), (POOLING, "Pooling"), *[(NORMALIZE, "Normalize")] * self.normalize]
        settings = {
            MODULES: [
                {"idx": number, "name": str(number), "path": path, "type": MODULE_TYPE + name}
                for number, (path, name) in enumerate(modules)
            ],
            LENGTH: {"max_seq_length": self.max_tokens, "do_lower_case": False},
            SETTINGS: {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": self.similarity},
            f"{POOLING}/config.json": {
                "word_embedding_dimension": self.width,
                **{mode: readout == self.readout for readout, mode in POOLING_MODES.items()},
                **dict.fromkeys(OTHER_POOLING_MODES, False),
            },
            ABOUT: dict(self.about),
        }
        if self.normalize:
            settings[f"{NORMALIZE}/config.json"] = {}  # an empty folder would be lost on a hub
        for path, _ in modules[1:]:
            (folder / path).mkdir()
        texts = {name: json.dumps(values, indent=2) + "\n" for name, values in settings.items()}
        for name, text in {**texts, **files}.items():
            (folder / name).write_text(text, encoding="utf-8")

    @property
    def similarity(self) -> str:
        """How vectors compare, in the words of sentence-transformers."""
        return "cosine" if self.normalize else "dot"


def _packed(tokens: Sequence[Sequence[int]], device: torch.device) -> Texts:
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in tokens])])
    end_to_end = np.concatenate([np.asarray(each, dtype=np.int64) for each in tokens])
    return Texts(torch.from_numpy(end_to_end).to(device), torch.from_numpy(offsets).to(device))
