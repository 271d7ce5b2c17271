"""Twitter: tweets about places (POIs) in Los Angeles and New York, with users, hashtags and mentioned users.

Tweets and places both have text. A place is a query, its tweets are the keys; its label is its category.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import pyarrow as pa
from tyro.conf import Positional, arg

from heterformer.datasets.raw_build import DatasetBuild, RawTables, build_from_raw, filled, textless
from heterformer.datasets.raw_file import RawFile, found_in

ARCHIVE = (
    "https://drive.google.com/file/d/0Byrzhr4bOatCRHdmRVZ1YVZqSzA/view?resourcekey=0-3_R5EWrLYjaVuysxPTqe5A"
)
FILES = (RawFile("tweets-la.json", ARCHIVE), RawFile("tweets-ny.json", ARCHIVE))
RECORD = pa.schema(
    {
        "tweet_id": pa.string(),
        "tweet_text": pa.string(),
        "author_id": pa.string(),
        "poi_id": pa.string(),
        "poi_text": pa.string(),
        "label": pa.string(),
        "tags": pa.list_(pa.string()),
        "mentions": pa.list_(pa.string()),
    }
)
SPECIFICATION = {
    "name": "twitter",
    "nodes": {
        "poi": {"file": "pois", "id": "poi_id", "text": "poi_text", "label": "label"},
        "tweet": {"file": "tweets", "id": "tweet_id", "text": "tweet_text"},
        **textless("hashtag", "user", "mention"),
    },
    "relations": {
        "place_of": {"from": "poi", "to": "tweet", "file": "tweets", "columns": ["poi_id", "tweet_id"]},
        "tagged": {"from": "tweet", "to": "hashtag", "column": "tags"},
        "posted_by": {"from": "tweet", "to": "user", "column": "author_id"},
        "mentions": {"from": "tweet", "to": "mention", "column": "mentions"},
    },
    "predict": "place_of",
    # The one place of a tweet is what is asked for, so the paper samples none.
    "neighbors": {"poi": 0, "tweet": 6, "mention": 2, "hashtag": 3, "user": 1},
    "max_tokens": 12,
    "test_batch_size": 300,
}
PUBLISHED = {
    "tweet": 279_694,
    "poi": 36_895,
    "hashtag": 72_297,
    "user": 76_398,
    "mention": 24_089,
    "place_of": 279_694,
    "posted_by": 195_785,
    "tagged": 194_939,
    "mentions": 50_901,
}


def build_twitter(
    raw: Annotated[Path, Positional, arg(metavar="RAW")],
    out: Annotated[Path, Positional, arg(metavar="OUT")],
) -> DatasetBuild:
    """Build the Twitter network: places in Los Angeles and New York with tweets, users and hashtags.

    Args:
        raw: The folder with tweets-la.json and tweets-ny.json.
        out: The network folder to write; it must not exist.
    """
    files = found_in(raw, FILES)
    return build_from_raw(out, SPECIFICATION, lambda tables: _fill(tables, files), PUBLISHED)


def _fill(tables: RawTables, files: list[Path]) -> None:
    seen: set[str] = set()
    for file in files:
        for frame in tables.records(file, RECORD, "tweet_id", seen):
            frame = frame.with_columns(map(filled, ("author_id", "poi_id", "poi_text", "label")))
            frame = frame.with_columns(_names("tags"), _names("mentions"))
            tables.write(
                "tweets", tables.kept(file, frame, pl.col("poi_id").is_not_null(), "no place", "tweet_id")
            )
    # Each tweet repeats its place's text and category: the first that are there are taken.
    known = pl.col("poi_text", "label").drop_nulls().first()
    tables.derive("pois", tables.scan("tweets").group_by("poi_id", maintain_order=True).agg(known))


def _names(column: str) -> pl.Expr:
    """A list without empty names."""
    return pl.col(column).list.eval(filled(pl.element()).drop_nulls())
