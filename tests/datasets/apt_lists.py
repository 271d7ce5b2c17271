"""A folder of lists as APT keeps them, small and full of odd cases."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
from pathlib import Path

import pyarrow as pa

SITE = "deb.example.org_debian_dists_stable"
PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".lz4": lambda data: framed(data, "lz4"),
    ".zst": lambda data: framed(data, "zstd"),
}


def framed(data: bytes, compression: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, compression) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def write_list(folder: Path, name: str, text: str, ending: str = "") -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{SITE}_{name}{ending}"
    path.write_bytes(PACK[ending](text.encode()))
    return path


class Lists:
    """Packages and their translations, collected, then written."""

    def __init__(self) -> None:
        self.packages: list[str] = []
        self.translations: dict[str, str] = {}

    def add(self, name: str, description: str, **fields: str) -> None:
        """A package as Packages has it: the first line and a digest; the rest is a translation's."""
        first, _, rest = description.partition("\n")
        continued = "".join(f"\n {line or '.'}" for line in rest.split("\n")) if rest else ""
        digest = hashlib.md5(f"{description}\n".encode()).hexdigest()
        # Names of fields are written as keywords: Pre_Depends is Pre-Depends.
        lines = [f"{key.replace('_', '-')}: {value}" for key, value in fields.items()]
        known = ["Version: 1.0", "Maintainer: Team <team@example.org>", "Section: misc"]
        lines += [line for line in known if line.split(":")[0] not in fields]
        more = [f"Package: {name}", *lines, f"Description: {first}", f"Description-md5: {digest}"]
        self.packages.append("\n".join(more) + "\n")
        self.translations[digest] = (
            f"Package: {name}\nDescription-md5: {digest}\nDescription-en: {first}{continued}\n"
        )

    def write(self, folder: Path, name: str = "main", ending: str = ".lz4", tail: str = "") -> None:
        packages = "\n".join(self.packages) + tail
        write_list(folder, f"{name}_binary-amd64_Packages", packages, ending)
        write_list(folder, f"{name}_i18n_Translation-en", "\n".join(self.translations.values()), ending)
