"""The network specification (YAML): where nodes, texts, labels and relations are in the user's tables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import yaml

from heterformer.errors import InputError
from heterformer.network.attributes import KINDS, AttributeKind
from heterformer.network.columns import KEYS, NODE_COLUMNS
from heterformer.network.schema import EdgeColumn, NodeType
from heterformer.untrusted import NAME_RULE, is_type_name, short_repr

# Sampled neighbours of each type. The paper has 5 papers or books; 20 give better vectors, a little slower.
TEXT_RICH_FAN_OUT = 20
TEXTLESS_FAN_OUT = 5
OWN_DATA = "docs/own-data.md"  # the page with a recipe for each shape of data
MOST_TOKENS = 32_768  # of a text: no backbone reads longer ones
MOST_NEIGHBORS = 1000  # of one type: every node of a batch has room for as many
# What other programs write where there is no value. 'Null', 'Na' and 'none' are left out: people and tags
# have such names.
MISSING = (
    *("NaN", "nan", "NAN", "NaT", "None", "null", "NULL", "nil"),
    *("N/A", "n/a", "NA", "#N/A", "<NA>", "<null>", "\\N", "-", "--"),
)


@dataclass(frozen=True)
class NodeSpec:
    """One node type: text-rich if it has ``text``; without ``file`` its nodes are those relations name."""

    file: str | None = None
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The table's columns by key (see ``network.columns``): ``{"id": ("id",), "text": ("title",)}``."""
    separator: str | None = None
    delimiter: str | None = None
    attribute_kinds: dict[str, AttributeKind] = field(default_factory=dict)
    """The kinds of those ``attributes`` for which one is declared."""
    text_from: Literal["name"] | None = None
    """Where a textless node's embedding starts: at the PLM's vector of its name, or nowhere in particular."""

    @property
    def text(self) -> tuple[str, ...]:
        """The columns that make up a node's text; none for a textless type."""
        return self.columns.get("text", ())


@dataclass(frozen=True)
class RelationSpec:
    """One relation: a table of its own (``file`` and ``columns``) or a ``column`` of the source table."""

    source: NodeType
    target: NodeType
    file: str | None = None
    columns: tuple[str, str] | None = None
    column: str | None = None
    separator: str | None = None
    unknown: Literal["drop", "error"] = "drop"
    delimiter: str | None = None
    weight: str | None = None
    """The column of ``file`` that has the edges' weights."""
    time: str | None = None
    """The column of ``file`` that has the edges' times."""

    @property
    def edge_columns(self) -> dict[EdgeColumn, str]:
        """The columns of ``file`` beside the two ends, by what they are for."""
        columns: dict[EdgeColumn, str | None] = {"weight": self.weight, "time": self.time}
        return {key: column for key, column in columns.items() if column is not None}


@dataclass(frozen=True)
class NetworkSpec:
    """A whole specification, checked for itself; the tables it names have not been opened."""

    name: str
    nodes: dict[NodeType, NodeSpec]
    relations: dict[str, RelationSpec]
    predict: str | dict[str, float]
    neighbors: dict[NodeType, int]
    max_tokens: int = 32
    test_batch_size: int = 100
    missing: tuple[str, ...] = MISSING
    """Spellings of "missing" in columns of ids, relations, labels, times, splits and attributes."""
    where: str = field(default="the specification", compare=False)

    @property
    def text_rich(self) -> tuple[NodeType, ...]:
        return tuple(t for t, node in self.nodes.items() if node.text)

    @property
    def textless(self) -> tuple[NodeType, ...]:
        return tuple(t for t, node in self.nodes.items() if not node.text)

    def column_relations(self, node_type: NodeType) -> dict[str, RelationSpec]:
        """The relations that are a column of ``node_type``'s own table."""
        return {n: r for n, r in self.relations.items() if r.source == node_type and r.column}

    @classmethod
    def load(cls, path: Path | str) -> NetworkSpec:
        """Read and check a YAML file."""
        path = Path(path)
        try:
            values = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{path}: the network specification cannot be read ({reason}).") from None
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8.") from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "somewhere"
            raise InputError(f"{path}: not valid YAML at {place}: {error.problem}.") from None
        except RecursionError:
            raise InputError(f"{path}: not valid YAML: brackets or mappings are nested too deeply.") from None
        except (KeyError, AttributeError):  # PyYAML's own, for '!!bool x' or '!!timestamp x'
            raise InputError(
                f"{path}: not valid YAML: a value does not fit its tag, such as '!!bool'."
            ) from None
        except (yaml.YAMLError, ValueError) as error:  # a control character, a date that cannot be
            reason = str(error).splitlines()[0]
            raise InputError(f"{path}: not valid YAML: {reason}.") from None
        return cls.parse(values, where=str(path))

    @classmethod
    def parse(cls, values: Any, where: str = "the specification") -> NetworkSpec:
        """Check a mapping of the same form as the YAML file."""
        return _Parser(where).network(values)


class _UniqueKeys(yaml.SafeLoader):
    """Safe YAML in which a duplicate key is an error, not a silent overwrite."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                break  # PyYAML reports it
            if key in seen:
                problem = f"duplicate key {key!r}"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


class _Parser:
    """Turns nested mappings into the dataclasses above; every error names the file and the key."""

    def __init__(self, where: str) -> None:
        self.where = where

    def network(self, values: Any) -> NetworkSpec:
        keys = (
            "name",
            "nodes",
            "relations",
            "predict",
            "neighbors",
            "max_tokens",
            "test_batch_size",
            "missing",
        )
        values = self.mapping(values, "the file", keys, required=("nodes", "relations"))
        raw_nodes = self.mapping(values["nodes"], "nodes")
        raw_relations = self.mapping(values["relations"], "relations")
        nodes = {self.type_name(t, "nodes"): self.node(v, f"nodes.{t}") for t, v in raw_nodes.items()}
        relations = {
            self.type_name(n, "relations"): self.relation(v, f"relations.{n}", nodes)
            for n, v in raw_relations.items()
        }
        if not any(node.text for node in nodes.values()):
            types = f"none of {_listed(nodes)} has" if nodes else "no type has"
            expected = f"expected columns of text for at least one (see {OWN_DATA})"
            raise self.error("nodes", f"{types} 'text', {expected}")
        predict = self.predict(values.get("predict"), relations, nodes)
        return NetworkSpec(
            name=self.string(values.get("name", "network"), "name"),
            nodes=nodes,
            relations=relations,
            predict=predict,
            neighbors=self.neighbors(values.get("neighbors", {}), nodes),
            max_tokens=self.max_tokens(values.get("max_tokens", 32)),
            test_batch_size=self.integer(values.get("test_batch_size", 100), "test_batch_size", least=2),
            missing=self.missing(values.get("missing", list(MISSING))),
            where=self.where,
        )

    def node(self, values: Any, at: str) -> NodeSpec:
        values = self.mapping(values, at, ("file", *KEYS, "separator", "delimiter", "text_from"))
        text_from = self.text_from(values, at)
        if not values.keys() - {"text_from"}:
            return NodeSpec(text_from=text_from)
        if "file" not in values:
            first = next(key for key in values if key != "text_from")
            raise self.error(f"{at}.{first}", "needs 'file', the table that has this column")
        values, kinds = self.attribute_kinds(values, at)
        columns = {}
        for column in NODE_COLUMNS:
            value = values.get(column.key, column.default)
            if value is None and column.key not in values:
                continue
            read = self.strings if column.several else self.single
            if names := read(value, f"{at}.{column.key}"):
                columns[column.key] = names
        single = {k: self.string(values[k], f"{at}.{k}") for k in ("file", "separator") if k in values}
        if kept := tuple(c for c in columns.get("keep", ()) if c not in columns.get("attributes", ())):
            columns["keep"] = kept  # an attribute is kept for display anyway
        else:
            columns.pop("keep", None)
        return NodeSpec(
            columns=columns,
            delimiter=self.delimiter(values, at),
            attribute_kinds=kinds,
            text_from=text_from,
            **single,
        )

    def text_from(self, values: Mapping[str, Any], at: str) -> Literal["name"] | None:
        if "text_from" not in values:
            return None
        if "text" in values:
            raise self.error(f"{at}.text_from", "is for types without text, but this one has 'text'")
        if values["text_from"] != "name":
            problem = f"found {short_repr(values['text_from'])}, expected 'name'"
            raise self.error(f"{at}.text_from", f"{problem}, the node's name or, without one, its id")
        return "name"

    def attribute_kinds(
        self, values: dict[str, Any], at: str
    ) -> tuple[dict[str, Any], dict[str, AttributeKind]]:
        """``attributes`` as a list of columns, and the kinds of those that a mapping declares."""
        attributes = values.get("attributes")
        if attributes is not None and not attributes:
            raise self.error(f"{at}.attributes", f"found {short_repr(attributes)}, expected some columns")
        if isinstance(attributes, list):
            for column in attributes:
                if attributes.count(column) > 1:
                    raise self.error(
                        f"{at}.attributes", f"found {short_repr(column)} twice, expected it once"
                    )
        if not isinstance(attributes, dict):
            return values, {}
        for column, kind in attributes.items():
            if kind not in KINDS:
                problem = f"found {short_repr(kind)}, expected one of {_listed(KINDS)}"
                raise self.error(f"{at}.attributes.{column}", problem)
        return {**values, "attributes": list(attributes)}, dict(attributes)

    def relation(self, values: Any, at: str, nodes: Mapping[NodeType, NodeSpec]) -> RelationSpec:
        places = ("file", "columns", "column", "separator", "delimiter", "weight", "time")
        keys = ("from", "to", *places, "unknown")
        values = self.mapping(values, at, keys, required=("from", "to"))
        for end in ("from", "to"):
            if values[end] not in list(nodes):  # a list, because what YAML gives may be unhashable
                problem = f"unknown node type {short_repr(values[end])}, expected one of {_listed(nodes)}"
                raise self.error(f"{at}.{end}", problem)
        if ("file" in values) == ("column" in values):
            raise self.error(at, "expected either 'file' and 'columns' or 'column' of the 'from' table")
        of_a_file = [(key, "file") for key in ("columns", "delimiter", "weight", "time")]
        for key, other in (*of_a_file, ("separator", "column")):
            if key in values and other not in values:
                raise self.error(f"{at}.{key}", f"needs {other!r}, to which it applies")
        if "column" in values and nodes[values["from"]].file is None:
            raise self.error(f"{at}.column", f"node type {values['from']!r} has no 'file' with this column")
        unknown = values.get("unknown", "drop")
        if unknown not in ("drop", "error"):
            raise self.error(f"{at}.unknown", f"found {short_repr(unknown)}, expected 'drop' or 'error'")
        return RelationSpec(
            source=values["from"],
            target=values["to"],
            unknown=unknown,
            columns=self.column_pair(values, at) if "file" in values else None,
            delimiter=self.delimiter(values, at),
            **{
                k: self.string(values[k], f"{at}.{k}")
                for k in ("file", "column", "separator", "weight", "time")
                if k in values
            },
        )

    def delimiter(self, values: Mapping[str, Any], at: str) -> str | None:
        """One character of ASCII, as the fast parser takes no other."""
        delimiter = values.get("delimiter")
        if delimiter is not None and not (
            isinstance(delimiter, str) and len(delimiter) == 1 and delimiter.isascii()
        ):
            raise self.error(
                f"{at}.delimiter", f"found {short_repr(delimiter)}, expected one ASCII character such as ';'"
            )
        if delimiter is not None and delimiter in '"\r\n\0':
            raise self.error(
                f"{at}.delimiter", f"found {short_repr(delimiter)}, which cannot separate columns"
            )
        return delimiter

    def column_pair(self, values: Mapping[str, Any], at: str) -> tuple[str, str]:
        columns = self.strings(values.get("columns", []), f"{at}.columns")
        if len(columns) != 2:
            raise self.error(f"{at}.columns", f"found {list(columns)}, expected the two columns [from, to]")
        return columns[0], columns[1]

    def predict(
        self, value: Any, relations: Mapping[str, RelationSpec], nodes: Mapping[NodeType, NodeSpec]
    ) -> str | dict[str, float]:
        """One relation's name, or the shares of several; a list gives them equal shares."""
        text_text = [n for n, r in relations.items() if nodes[r.source].text and nodes[r.target].text]
        with_text = [n for n, r in relations.items() if nodes[r.source].text or nodes[r.target].text]
        if not with_text:
            rich = _listed([name for name, node in nodes.items() if node.text])
            expected = f"expected one that joins a type with text ({rich}), to be predicted (see {OWN_DATA})"
            raise self.error("relations", f"found {_listed(relations) or 'nothing'}, {expected}")
        if value is None:
            candidates = text_text or with_text
            if len(candidates) == 1:
                return candidates[0]
            raise self.error("predict", f"missing, expected one of {_listed(candidates)} (see {OWN_DATA})")
        shares = self.shares(value)
        for name in shares:
            if name not in list(relations):
                problem = f"unknown relation {short_repr(name)}, expected one of {_listed(with_text)}"
                raise self.error("predict", problem)
            if name not in with_text:
                ends = f"joins {relations[name].source!r} and {relations[name].target!r}"
                reason = f"relation {short_repr(name)} {ends}, which are both without text"
                raise self.error(
                    "predict", f"{reason}, expected one of {_listed(with_text)} (see {OWN_DATA})"
                )
        return next(iter(shares)) if len(shares) == 1 else shares

    def shares(self, value: Any) -> dict[Any, float]:
        """What ``predict`` says, as shares by relation."""
        if isinstance(value, dict) and value:
            for name, share in value.items():
                number = isinstance(share, (int, float)) and not isinstance(share, bool)
                if not (number and 0 < share < math.inf):
                    expected = "expected a share of training, a number above 0"
                    raise self.error(f"predict.{name}", f"found {short_repr(share)}, {expected}")
            return {name: float(share) for name, share in value.items()}
        names = value if isinstance(value, list) else [value]
        if not names or isinstance(value, dict):
            raise self.error("predict", f"found {short_repr(value)}, expected at least one relation")
        for place, name in enumerate(names):
            if name in names[:place]:
                raise self.error("predict", f"duplicate relation {short_repr(name)}, expected each once")
        unhashable = [name for name in names if not isinstance(name, Hashable)]
        if unhashable:
            raise self.error("predict", f"found {short_repr(unhashable[0])}, expected the name of a relation")
        return dict.fromkeys(names, 1.0)

    def neighbors(self, values: Any, nodes: Mapping[NodeType, NodeSpec]) -> dict[NodeType, int]:
        values = self.mapping(values, "neighbors")
        for node_type in values:
            if node_type not in nodes:
                reason = f"unknown node type {short_repr(node_type)}, expected one of {_listed(nodes)}"
                raise self.error("neighbors", reason)
        fan_outs = {t: TEXT_RICH_FAN_OUT if node.text else TEXTLESS_FAN_OUT for t, node in nodes.items()}
        chosen = {t: self.integer(n, f"neighbors.{t}", least=0) for t, n in values.items()}
        for node_type, fan_out in chosen.items():
            if fan_out > MOST_NEIGHBORS:
                expected = f"expected at most {MOST_NEIGHBORS:,} sampled neighbours of a node"
                raise self.error(f"neighbors.{node_type}", f"found {short_repr(fan_out)}, {expected}")
        return fan_outs | chosen

    def missing(self, values: Any) -> tuple[str, ...]:
        if not isinstance(values, list) or not all(isinstance(v, str) and v.strip() for v in values):
            expected = "a list of spellings such as ['NaN', 'N/A'], in quotes, or [] for none"
            raise self.error("missing", f"found {short_repr(values)}, expected {expected}")
        return tuple(value.strip() for value in values)

    def type_name(self, name: Any, at: str) -> str:
        text = self.string(name, at)
        if not is_type_name(text):
            raise self.error(at, f"the name {short_repr(text)} is not allowed, expected {NAME_RULE}")
        if text.startswith("-") or text.endswith("-"):  # two types are joined by '--' in the name of a folder
            raise self.error(at, f"the name {short_repr(text)} is not allowed, expected no '-' at either end")
        return text

    def mapping(
        self, values: Any, at: str, keys: tuple[str, ...] = (), required: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        values = {} if values is None else values
        if not isinstance(values, dict):
            raise self.error(at, f"found {short_repr(values)}, expected a mapping of keys to values")
        for key in values:
            if keys and key not in keys:
                guess = get_close_matches(str(key), keys, n=1)
                hint = f" (did you mean {guess[0]!r}?)" if guess else ""
                raise self.error(at, f"unknown key {short_repr(key)}{hint}, the keys are {_listed(keys)}")
        for key in required:
            if key not in values:
                raise self.error(at, f"the key {key!r} is missing")
        return values

    def string(self, value: Any, at: str) -> str:
        if not isinstance(value, str) or not value:
            raise self.error(at, f"found {short_repr(value)}, expected a string")
        if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
            raise self.error(
                at, f"found {short_repr(value)}, expected text without unpaired surrogates and NUL"
            )
        return value

    def single(self, value: Any, at: str) -> tuple[str, ...]:
        return (self.string(value, at),)

    def strings(self, value: Any, at: str) -> tuple[str, ...]:
        values = value if isinstance(value, list) else [value]
        return tuple(self.string(v, at) for v in values)

    def max_tokens(self, value: Any) -> int:
        count = self.integer(value, "max_tokens", least=3)
        if count > MOST_TOKENS:
            expected = f"expected at most {MOST_TOKENS:,} tokens of a text"
            raise self.error("max_tokens", f"found {short_repr(count)}, {expected}")
        return count

    def integer(self, value: Any, at: str, least: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(at, f"found {short_repr(value)}, expected a whole number of at least {least}")
        return value

    def error(self, at: str, problem: str) -> InputError:
        return InputError(f"{self.where}: {at}: {problem}.")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(n) for n in names)
