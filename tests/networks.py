"""Small networks, as tables and as plain facts, and a tiny fast tokenizer."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, reject, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from heterformer.errors import InputError
from heterformer.network.build import build_network
from heterformer.network.schema import EdgeType, NodeType, Relation
from heterformer.network.spec import NetworkSpec
from heterformer.network.split.draw import make_split
from heterformer.network.split.options import SplitOptions
from heterformer.network.split.pairs import Pairs
from heterformer.network.split.split import Split
from heterformer.network.store import Network
from heterformer.network.tables import Table

few = settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

WORDS = ("graph", "kernel", "byzantine", "transformer", "poem", "enzyme", "galaxy", "market")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
TYPES = ("paper", "work", "author", "venue")
VOCABULARY = (*SPECIAL, *WORDS, *TYPES, *(f"n{i}" for i in range(40)))


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    """One token per word, between [CLS] and [SEP]."""
    return new_tokenizer()


def new_tokenizer(words: Sequence[str] = VOCABULARY) -> PreTrainedTokenizerFast:
    """A tokenizer that nobody has used yet."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    numbers = {word: number for number, word in enumerate(words)}
    backend = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ends = [(token, numbers[token]) for token in ("[CLS]", "[SEP]")]
    backend.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    roles = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=backend, **roles)


# --- Tables: a folder of files that a test writes, breaks and builds -------------------------------------

PAPERS = "id,title\np1,Byzantine generals\np2,Byzantine poems\np3,Kernel methods\np4,Kernel bugs\n"
CITES = "source,target\np1,p2\np3,p4\np2,p3\n"
SPEC: dict[str, Any] = {
    "name": "small",
    "nodes": {"paper": {"file": "papers.csv", "text": ["title"]}},
    "relations": {
        "cites": {"from": "paper", "to": "paper", "file": "cites.csv", "columns": ["source", "target"]}
    },
}


class Tables:
    """A folder with the tables of a small, sound network, and its specification."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spec = copy.deepcopy(SPEC)
        self.out = folder / "network"
        self.node_tables: dict[NodeType, Table] = {}  # in place of files
        self.write("papers.csv", PAPERS)
        self.write("cites.csv", CITES)

    @property
    def paper(self) -> dict[str, Any]:
        """The specification of the paper type."""
        return self.spec["nodes"]["paper"]

    @property
    def cites(self) -> dict[str, Any]:
        """The specification of the citations."""
        return self.spec["relations"]["cites"]

    def write(self, name: str, content: str | bytes | Sequence[Mapping[str, Any]]) -> Path:
        """A file with this content, or with these rows in the format of its ending; ``.gz`` is packed."""
        path = self.folder / name
        if not isinstance(content, (str, bytes)):
            content = formatted(content, path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path

    def papers(self, name: str, content: str | bytes | Sequence[Mapping[str, Any]]) -> None:
        """Let ``name`` with this content be the paper table."""
        self.write(name, content)
        self.paper["file"] = name

    def write_spec(self) -> Path:
        """The specification as a file (JSON is YAML)."""
        return self.write("network.yaml", json.dumps(self.spec))

    def build(self) -> Network:
        spec = NetworkSpec.parse(self.spec)
        return build_network(spec, self.out, data=self.folder, node_tables=self.node_tables)

    def complaint(self) -> str:
        """What a build says that must fail, file names relative to the folder; it leaves nothing behind."""
        before = files(self.folder)
        with pytest.raises(InputError) as caught:
            self.build()
        assert files(self.folder) == before
        return str(caught.value).replace(f"{self.folder}/", "")


def files(folder: Path) -> set[str]:
    """Everything in a folder, hidden files and folders included."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def formatted(rows: Sequence[Mapping[str, Any]], ending: str) -> bytes:
    """Rows as a file of the format; in CSV and TSV a list is joined by ';'."""
    buffer = io.BytesIO()
    if ending == ".parquet":
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(buffer)
    elif ending == ".jsonl":
        buffer.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    else:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), delimiter="\t" if ending == ".tsv" else ",")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: ";".join(v) if isinstance(v, list) else v for k, v in row.items()})
        buffer.write(text.getvalue().encode())
    return buffer.getvalue()


# --- Facts: a network as plain values, to hold against what was built from them --------------------------


@dataclass(frozen=True)
class Facts:
    """A heterogeneous network in plain Python values. A node is (type, id)."""

    ids: dict[NodeType, list[str]]
    texts: dict[NodeType, list[str]]
    relations: dict[Relation, list[tuple[str, str]]]
    predict: str
    fan_out: dict[NodeType, int]
    more: dict[str, list[Any]] = field(default_factory=dict)
    """Columns of the query type's table by what they are for: label, split, time."""
    tableless: frozenset[NodeType] = frozenset()
    """Types whose nodes are those that relations name."""
    edge_values: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Weights and times of relations, in the order of their edges: ``{"cites": {"time": [...]}}``."""

    @property
    def predicted(self) -> Relation:
        return next(r for r in self.relations if r.name == self.predict)

    def edges(self, relation: Relation) -> set[tuple[str, str]]:
        return set(self.relations[relation])

    def around(self, node: tuple[NodeType, str]) -> set[tuple[EdgeType, str]]:
        """All neighbours of a node, by whatever relation and in both directions."""
        found = set()
        for relation, edges in self.relations.items():
            for source, target in edges:
                if (relation.source, source) == node:
                    found.add((relation.forward, target))
                if (relation.target, target) == node:
                    found.add((relation.backward, source))
        return found

    def build(self, out: Path | None = None) -> Network:
        nodes: dict[str, Any] = {}
        frames: dict[str, Any] = {}
        for node_type, ids in self.ids.items():
            if node_type in self.tableless:
                nodes[node_type] = {}
                continue
            columns: dict[str, Any] = {"id": ids}
            if node_type in self.texts:
                columns["text"] = self.texts[node_type]
            if node_type == self.predicted.source:
                columns |= self.more
            nodes[node_type] = {key: key for key in columns}
            frames[node_type] = pl.DataFrame(columns)
        relations: dict[str, Any] = {}
        tables: dict[str, Any] = {}
        for relation, edges in self.relations.items():
            ends = {"from": relation.source, "to": relation.target}
            values = self.edge_values.get(relation.name, {})
            relations[relation.name] = {**ends, "columns": ["a", "b"], **{name: name for name in values}}
            table = pl.DataFrame(edges, schema={"a": str, "b": str}, orient="row")
            tables[relation.name] = table.with_columns(**{n: pl.Series(v) for n, v in values.items()})
        rest = {"predict": self.predict, "neighbors": self.fan_out}
        return Network.from_frames({"nodes": nodes, "relations": relations, **rest}, frames, tables, out)

    @contextmanager
    def built(self) -> Iterator[Network]:
        with tempfile.TemporaryDirectory() as folder:
            yield self.build(Path(folder) / "network")


RELATIONS = (
    Relation("cites", "paper", "paper"),
    Relation("extends", "paper", "paper"),
    Relation("uses", "paper", "work"),
    Relation("explains", "work", "paper"),
    Relation("written_by", "paper", "author"),
    Relation("edits", "author", "work"),
    Relation("knows", "author", "author"),
    Relation("published_in", "paper", "venue"),
)


@st.composite
def networks(draw: st.DrawFn) -> Facts:
    """One or two text-rich types, up to two textless ones, any of eight relations, mutual edges.

    Every query-type node is a query, and every text begins with its type and number: no two are alike.
    """
    types = {"paper", *draw(st.sets(st.sampled_from(TYPES[1:])))}
    possible = [r for r in RELATIONS if {r.source, r.target} <= types]
    predicted = draw(st.sampled_from([r for r in possible if {r.source, r.target} <= {"paper", "work"}]))
    chosen = {predicted, *draw(st.sets(st.sampled_from(possible)))}
    rng = random.Random(draw(st.integers(0, 2**32)))
    ids = {}
    for node_type in (t for t in TYPES if t in types):
        count = draw(st.integers(8, 12) if node_type in ("paper", "work") else st.integers(1, 4))
        odd = draw(st.sampled_from(["", "x y", "é", "論文", ",\n", '"', "0", "[b]"]))
        ids[node_type] = [f"{odd}{i}" for i in range(count)]
    relations = {
        r: _random_edges(rng, ids[r.source], ids[r.target], r.source == r.target, r == predicted)
        for r in RELATIONS
        if r in chosen
    }
    tableless = draw(st.sets(st.sampled_from(("author", "venue"))))
    for node_type in tableless & types:
        named = _named(relations, node_type)
        ids[node_type] = [i for i in ids[node_type] if i in named] or ids[node_type]
        tableless -= set() if named else {node_type}
    texts = {
        t: [" ".join([t, f"n{i}", *rng.choices(WORDS, k=rng.randrange(4))]) for i in range(len(ids[t]))]
        for t in ids
        if t in ("paper", "work")
    }
    fan_out = {t: draw(st.sampled_from([1, 2, 3, 30])) for t in ids}
    return Facts(ids, texts, relations, predicted.name, fan_out, tableless=frozenset(tableless & types))


def _random_edges(
    rng: random.Random, sources: list[str], targets: list[str], within: bool, every_source: bool
) -> list[tuple[str, str]]:
    """Sparse or dense; within one type without self-loops and some of them mutual."""
    density = rng.choice([0.05, 0.2, 0.5])
    edges = {(s, t): None for s in sources for t in targets if rng.random() < density}
    if every_source:
        edges |= {(s, rng.choice([t for t in targets if not within or s != t])): None for s in sources}
    if within:
        edges |= {(t, s): None for s, t in edges if rng.random() < 0.3}
        edges = {(s, t): None for s, t in edges if s != t}
    return rng.sample(list(edges), len(edges))


def _named(relations: Mapping[Relation, list[tuple[str, str]]], node_type: NodeType) -> set[str]:
    sources = {s for r, edges in relations.items() if r.source == node_type for s, _ in edges}
    return sources | {t for r, edges in relations.items() if r.target == node_type for _, t in edges}


# --- What a network holds, as plain values ---------------------------------------------------------------


def nodes_of(network: Network, node_type: NodeType) -> dict[str, dict[str, Any]]:
    """Everything that is stored of each node of a type, by id."""
    columns: dict[str, list[Any]] = {}
    if node_type in network.schema.text_rich:
        columns["text"] = network.texts(node_type)
    if node_type in network.label_kinds:
        columns["label"] = network.labels(node_type).to_list()
    for name in network.attributes(node_type):
        columns[name] = kept(network, name, node_type)
    rows = zip(*columns.values(), strict=True) if columns else ([] for _ in network.ids(node_type))
    return {
        i: dict(zip(columns, row, strict=True)) for i, row in zip(network.ids(node_type), rows, strict=True)
    }


def kept(network: Network, name: str, node_type: NodeType = "paper") -> list[str | None]:
    """The values of a column that is kept for display."""
    values: list[str | None] = network.column(node_type, f"attribute.{name}").to_pylist()
    return values


def edges_of(network: Network, relation: str) -> list[tuple[str, str]]:
    """The edges of a relation as pairs of ids."""
    ends = network.schema.relation(relation)
    source, target = network.edges(relation)
    pairs = zip(network.ids(ends.source, source), network.ids(ends.target, target), strict=True)
    return list(pairs)


def split_of(network: Network, options: SplitOptions) -> Split:
    """The network's split; a random network that is too small for one is not an example."""
    try:
        return make_split(network, options)
    except InputError as error:
        if "part is empty" in str(error):
            reject()
        raise


def pairs_of(network: Network, pairs: Pairs, relation: Relation | None = None) -> list[tuple[str, str]]:
    """Pairs of rows of a relation, of the predicted one unless told, as pairs of ids."""
    ends = relation or network.schema.predicted[0]
    return list(
        zip(network.ids(ends.source, pairs[:, 0]), network.ids(ends.target, pairs[:, 1]), strict=True)
    )
