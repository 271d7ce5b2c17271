"""The networks that we know how to build, by the name under which ``heterformer dataset`` offers them."""

from __future__ import annotations

from collections.abc import Callable

from heterformer.datasets.authors_tsv import build_authors_tsv
from heterformer.datasets.dblp import build_dblp
from heterformer.datasets.goodreads import build_goodreads
from heterformer.datasets.raw_build import DatasetBuild
from heterformer.datasets.twitter import build_twitter

# The command's arguments and help are the function's own.
DATASETS: dict[str, Callable[..., DatasetBuild]] = {
    "dblp": build_dblp,
    "goodreads": build_goodreads,
    "twitter": build_twitter,
    "authors-tsv": build_authors_tsv,
}
