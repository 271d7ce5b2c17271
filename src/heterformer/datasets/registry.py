"""The builders of known data sets, by their name in ``heterformer dataset``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from heterformer.datasets.authors_tsv import build_authors_tsv
from heterformer.datasets.dblp import build_dblp
from heterformer.datasets.debian import DebianOptions, build_debian
from heterformer.datasets.goodreads import build_goodreads
from heterformer.datasets.raw_build import DatasetBuild
from heterformer.datasets.twitter import build_twitter
from heterformer.datasets.wordnet import WordNetOptions, build_wordnet


def debian(
    out: Annotated[Path, Positional, arg(metavar="OUT")], options: Annotated[DebianOptions, arg(name="")]
) -> DatasetBuild:
    """Build a network of Debian or Ubuntu packages and their dependencies from APT's lists on disk.

    Args:
        out: The network folder to write; it must not exist.
        options: Where the lists are, and what to exclude.
    """
    return DatasetBuild(build_debian(out, options))


def wordnet(
    out: Annotated[Path, Positional, arg(metavar="OUT")], options: Annotated[WordNetOptions, arg(name="")]
) -> DatasetBuild:
    """Build a network of WordNet's synsets and words from the files of Debian's package wordnet-base.

    Args:
        out: The network folder to write; it must not exist.
        options: Where the files are, and what of them becomes the network.
    """
    return DatasetBuild(build_wordnet(out, options))


# The command's arguments and help are the function's own.
DATASETS: dict[str, Callable[..., DatasetBuild]] = {
    "dblp": build_dblp,
    "goodreads": build_goodreads,
    "twitter": build_twitter,
    "authors-tsv": build_authors_tsv,
    "debian": debian,
    "wordnet": wordnet,
}
