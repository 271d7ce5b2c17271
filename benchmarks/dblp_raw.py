"""DBLP from its raw file: peak memory and time, against reading the file whole with ``json.load``.

A file of the published shape is generated (one array, a record per line, 2.4 kB each as in dblp.v12.json) and
built in a process of its own, whose peak memory is read afterwards. The same is done by json.load, lists of
rows and frames in memory, with the same building of the network at the end.

    python benchmarks/dblp_raw.py [--records 1000000] [--plain-records N] [--folder FOLDER]

json.load wants several times the file's size in memory: where a machine lacks that, give --plain-records for
a smaller file of its own, to be compared per record. With --folder the raw files are kept there.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
from memory import peak_bytes

from heterformer import Network
from heterformer.datasets.dblp import FIELDS, SPECIFICATION, DblpOptions, build_dblp

MEMORY_TARGET = 3e9
WORDS = [
    f"{a}{b}"
    for a in ("neural", "graph", "text", "data", "Ünder", "kernel")
    for b in ("", "s", "ing", "-2", "net")
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--plain-records", type=int)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--build", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build:
        way, raw, out = arguments.build
        in_this_process(WAYS[way], Path(raw), Path(out))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        plain_records = arguments.plain_records or arguments.records
        seconds, memory, counts = measured("streaming", raw_file(folder, arguments.records))
        plain_seconds, plain_memory, plain_counts = measured("json.load", raw_file(folder, plain_records))
    if plain_records == arguments.records:
        assert counts == plain_counts, "both ways must give the same network"
    faster = (plain_seconds / plain_records) / (seconds / arguments.records)
    smaller = (plain_memory / plain_records) / (memory / arguments.records)
    print(f"per record: {faster:.1f} times as fast as json.load, {smaller:.1f} times less memory")
    verdict = "below" if memory < MEMORY_TARGET else "NOT below"
    print(f"{arguments.records:,} records in {seconds:.1f} s, peak {memory / 1e9:.2f} GB ({verdict} 3 GB)")


def raw_file(folder: Path, records: int) -> Path:
    path = folder / f"dblp-{records}" / "dblp.v12.json"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_raw(path, records)
    return path


def write_raw(path: Path, records: int, seed: int = 0) -> None:
    """Papers of 1980 to 2020 that cite earlier ones; many lack some field, one in 500 is there twice."""
    rng = random.Random(seed)
    abstracts = [json.dumps(abstract(rng)) for _ in range(200)]
    fields = [
        json.dumps([{"name": n, "w": 0.4} for n in rng.sample([*FIELDS, "Computer science"], 4)])
        for _ in range(200)
    ]
    authors = max(records * 3 // 4, 10)
    with path.open("w", encoding="utf-8") as file:
        file.write("[\n")
        for number in range(records):
            paper = number - 1 if number % 500 == 499 else number
            record = {
                "id": 1_000_000 + paper * 7,
                "title": " ".join(rng.choices(WORDS, k=9)),
                "authors": [person(rng.randrange(authors)) for _ in range(rng.randrange(1, 6))],
                "year": 1980 + number * 41 // records,
                "n_citation": 5,
                "page_start": "1",
                "page_end": "9",
                "doc_type": "Conference",
                "publisher": "IEEE",
                "doi": f"10.1109/{paper}",
            }
            if number % 4:
                record["references"] = [1_000_000 + rng.randrange(paper + 5) * 7 for _ in range(12)]
                record["venue"] = {
                    "raw": f"Conference {rng.randrange(records // 120 + 1)}",
                    "id": 5,
                    "type": "C",
                }
            line = json.dumps(record, ensure_ascii=False)
            if number % 5:
                line = (
                    f'{line[:-1]}, "fos": {rng.choice(fields)}, "indexed_abstract": {rng.choice(abstracts)}}}'
                )
            file.write(f"{',' if number else ''}{line}\n")
        file.write("]\n")


def person(number: int) -> dict[str, Any]:
    return {
        "name": f"Name{number % 997} Surname{number}",
        "org": "A University of Somewhere",
        "id": number + 10**9,
    }


def abstract(rng: random.Random) -> dict[str, Any]:
    return {"IndexLength": 120, "InvertedIndex": {f"{rng.choice(WORDS)}{i}": [i, i + 9] for i in range(85)}}


def measured(way: str, raw: Path) -> tuple[float, float, dict[str, int]]:
    """Seconds, peak bytes, and the counts of the network."""
    out = raw.parent / "net"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, __file__, "--build", way, str(raw), str(out)]
    last = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
    seconds, memory = map(float, last.split())
    network = Network.open(out)
    counts = {**network.schema.counts, **{n: t.kept for n, t in network.report.relations.items()}}
    size = raw.stat().st_size
    print(f"{way}: {size / 1e9:.2f} GB in {seconds:.1f} s, peak {memory / 1e9:.2f} GB; {counts}", flush=True)
    return seconds, memory, counts


def streaming(raw: Path, out: Path) -> None:
    build_dblp(raw, out, DblpOptions())


def plain(raw: Path, out: Path) -> None:
    """What one writes first."""
    with raw.open(encoding="utf-8") as file:
        records = json.load(file)
    papers: dict[int, dict[str, Any]] = {}
    for record in records:
        papers.setdefault(record["id"], record)
    papers = {i: r for i, r in papers.items() if 1990 <= r.get("year", 0) <= 2020}
    labels = set(FIELDS)
    rows = [
        {
            "id": i,
            "title": r["title"],
            "year": r["year"],
            "fields": [f["name"] for f in r.get("fos", []) if f["name"] in labels],
            "venue": r.get("venue", {}).get("raw"),
        }
        for i, r in papers.items()
    ]
    cites = [(i, t) for i, r in papers.items() for t in r.get("references", [])]
    people = [(i, f"{a['id']} {a['name']}", a["name"]) for i, r in papers.items() for a in r["authors"]]
    written_by = pl.DataFrame(people, schema=["paper", "author", "name"], orient="row")
    Network.from_frames(
        SPECIFICATION,
        {"paper": pl.DataFrame(rows), "author": written_by.select(id="author", name="name").unique("id")},
        {"cites": pl.DataFrame(cites, schema=["source", "target"], orient="row"), "written_by": written_by},
        out,
    )


WAYS: dict[str, Callable[[Path, Path], None]] = {"streaming": streaming, "json.load": plain}


def in_this_process(build: Callable[[Path, Path], None], raw: Path, out: Path) -> None:
    start = time.perf_counter()
    build(raw, out)
    seconds = time.perf_counter() - start
    print(seconds, peak_bytes())


if __name__ == "__main__":
    main()
