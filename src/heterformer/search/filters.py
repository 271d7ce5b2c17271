"""Filters: which nodes of a type may be results, as ``year >= 2015 and venue == 'ACL'``.

    filter     = and-terms joined by "or"
    and-terms  = terms joined by "and"
    term       = "not" term | "(" filter ")" | column test
    test       = ("==" | "=" | "!=" | "<" | "<=" | ">" | ">=") value | "is" ["not"] "null"
               | ["not"] "in" "(" value, ... ")" | ["not"] ("contains" | "startswith") string
    value      = string in single or double quotes | number | "null"
    column     = word | `any name in backquotes`

The parser is written by hand and makes polars expressions of columns, constants and the tests above;
nothing in a filter is ever evaluated as code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import polars as pl

from heterformer.arrays import Ints
from heterformer.errors import InputError
from heterformer.network.columns import node_column, own_name
from heterformer.network.schema import NodeType
from heterformer.network.store import Network

MAX_LENGTH = 2000  # characters of a filter
MAX_DEPTH = 32  # nested parentheses and nots
MAX_WHOLE = 2**53  # whole numbers up to here are exact as floats
MAX_SHOWN_LENGTH = 40  # characters of a filter that an error shows

TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | `(?P<quoted>[^`]+)`
    | (?P<word>[^\W\d][\w.]*(?:-[\w.]+)*)
    | (?P<sign>==|!=|<>|<=|>=|[=<>(),])
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
KEYWORDS = ("and", "or", "not", "in", "is", "null", "contains", "startswith")
Test = Callable[[pl.Expr, pl.Expr], pl.Expr]
ORDERS: dict[str, Test] = {
    "==": lambda column, value: column == value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}
SPELLINGS = {"=": "==", "<>": "!="}
WORD_TESTS: dict[str, Test] = {
    "contains": lambda column, value: column.str.contains(value, literal=True),
    "startswith": lambda column, value: column.str.starts_with(value),
}


@dataclass(frozen=True)
class Token:
    """A piece of a filter. ``kind`` is number, string, column, keyword, sign or end."""

    kind: str
    value: str | float | None
    text: str  # as it is written
    position: int  # from 1


class Columns:
    """The columns of one node type that a filter may name: id, name, text, label, time, split and kept ones.

    A kept column of the same name as one of these is called ``attribute.NAME``.
    """

    def __init__(self, network: Network, node_type: NodeType) -> None:
        self.network, self.node_type = network, node_type
        stored = network.columns(node_type)
        plain = {own_name(column): column for column in reversed(stored)}
        self.stored = {column: column for column in stored} | plain | {"name": "name"}
        short = [own_name(c) if self.stored[own_name(c)] == c else c for c in stored]
        self.names = tuple(dict.fromkeys(["id", "name", *short]))
        self.used: dict[str, pl.Series] = {}

    def get(self, name: str) -> str | None:
        """The stored column of that name, which is read for the filter; or nothing."""
        stored = self.stored.get(name)
        if stored is not None and stored not in self.used:
            self.used[stored] = self._series(stored).alias(stored)
        return stored

    def _series(self, stored: str) -> pl.Series:
        if stored == "name":  # what a person is shown, as in results
            return self.network.name_series(self.node_type)
        series = pl.from_arrow(self.network.column(self.node_type, stored))
        assert isinstance(series, pl.Series)
        return series


def matching_rows(network: Network, node_type: NodeType, where: str) -> Ints:
    """The rows of the nodes that meet a filter, ascending. A missing value meets only tests for null.

    Args:
        network: The network.
        node_type: The type that is ranked; the filter names its columns.
        where: The filter, as this module's docstring has it.

    Example::

        rows = matching_rows(network, "paper", "year >= 2015 and label in ('nlp', 'ir')")
    """
    columns = Columns(network, node_type)
    condition = _Parser(where, columns).parse()
    frame = pl.DataFrame(list(columns.used.values()))
    meets = frame.select(condition.fill_null(False).alias("meets"))["meets"]
    return meets.arg_true().to_numpy().astype(np.int64)


def check_filter(where: str) -> None:
    """Refuse a filter that is wrong whatever the columns are, before anything is opened."""
    _Parser(where, None).parse()


def check_columns(network: Network, node_type: NodeType, where: str) -> None:
    """Refuse a filter that the columns of a type do not fit, without looking at the nodes."""
    _Parser(where, Columns(network, node_type)).parse()


class _Parser:
    """Recursive descent over the tokens of one filter. Without columns every name is accepted."""

    def __init__(self, where: str, columns: Columns | None) -> None:
        self.where, self.columns, self.depth = where, columns, 0
        if len(where) > MAX_LENGTH:
            raise InputError(f"the filter has {len(where):,} characters, expected at most {MAX_LENGTH:,}.")
        self.tokens = _tokens(where)
        self.place = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.place]

    def parse(self) -> pl.Expr:
        condition = self._either()
        if self.token.kind != "end":
            self._expected("'and', 'or' or the end")
        return condition

    def _either(self) -> pl.Expr:
        terms = [self._both()]
        while self._take("or"):
            terms.append(self._both())
        return terms[0] if len(terms) == 1 else pl.any_horizontal(terms)  # flat: a long filter is not deep

    def _both(self) -> pl.Expr:
        terms = [self._term()]
        while self._take("and"):
            terms.append(self._term())
        return terms[0] if len(terms) == 1 else pl.all_horizontal(terms)

    def _term(self) -> pl.Expr:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            _wrong(self.token, f"more than {MAX_DEPTH} parentheses and nots are nested")
        if self._take("not"):
            condition = ~self._term()
        elif self._take("("):
            condition = self._either()
            self._must("(", ")")
        else:
            condition = self._test()
        self.depth -= 1
        return condition

    def _test(self) -> pl.Expr:
        name = self.token
        if name.kind != "column":
            self._expected("the name of a column")
        self.place += 1
        column = self._column(name)
        if self._take("is"):
            negated = self._take("not")
            self._must("is", "null")
            return ~column.missing() if negated else column.missing()
        if self.token.kind == "sign" and self.token.text not in "(),":
            sign = self._next().text
            return self._compared(column, SPELLINGS.get(sign, sign))
        negated = self._take("not")
        if self._take("in"):
            condition = column.any_of(self._values())
        elif (word := next((w for w in WORD_TESTS if self._take(w)), None)) is not None:
            if self.token.kind != "string":
                self._expected(f"a string in quotes after {word!r}")
            condition = column.test(WORD_TESTS[word], self._next())
        else:
            self._expected("a comparison such as ==, 'in', 'is', 'contains' or 'startswith'")
        return ~condition if negated else condition

    def _compared(self, column: _Column, sign: str) -> pl.Expr:
        value = self._value()
        if value.value is None or value.value == "":
            if sign not in ("==", "!="):
                _wrong(value, f"a missing value cannot be compared by {sign}, expected == null or != null")
            return ~column.missing() if sign == "!=" else column.missing()
        if sign == "!=":
            return ~column.test(ORDERS["=="], value)
        return column.test(ORDERS[sign], value)

    def _values(self) -> list[Token]:
        self._must("in", "(")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._must("in", ")")
        return values

    def _value(self) -> Token:
        if self.token.kind not in ("string", "number") and self.token.value != "null":
            self._expected("a string in quotes, a number or null")
        token = self._next()
        return Token("null", None, token.text, token.position) if token.kind == "keyword" else token

    def _column(self, name: Token) -> _Column:
        if self.columns is None:
            return _Column(pl.lit(None, dtype=pl.String), pl.String(), name.text)
        stored = self.columns.get(name.text)
        if stored is None:
            known = ", ".join(self.columns.names)
            _wrong(name, f"{self.columns.node_type} nodes have no column {_cut(name.text)!r}, only {known}")
        dtype = pl.String() if stored == "name" else node_column(stored).dtype
        return _Column(pl.col(stored), dtype, name.text)

    def _next(self) -> Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def _take(self, word: str) -> bool:
        taken = self.token.kind in ("keyword", "sign") and self.token.value == word
        self.place += taken
        return taken

    def _must(self, after: str, word: str) -> None:
        if not self._take(word):
            self._expected(f"{word!r} after {after!r}")

    def _expected(self, what: str) -> NoReturn:
        token = self.token
        actual = "the end" if token.kind == "end" else repr(_cut(token.text))
        _wrong(token, f"found {actual}, expected {what}")


@dataclass(frozen=True)
class _Column:
    """A column in a test. A list meets a test if one of its elements does."""

    expression: pl.Expr
    dtype: pl.DataType
    name: str

    def missing(self) -> pl.Expr:
        """Null, an empty text or an empty list, as the build report counts them."""
        if isinstance(self.dtype, pl.List):
            return self.expression.list.len().fill_null(0) == 0
        if self.dtype == pl.String:
            return self.expression.fill_null("") == ""
        return self.expression.is_null() | self.expression.is_nan()

    def test(self, test: Test, value: Token) -> pl.Expr:
        if isinstance(self.dtype, pl.List):
            tested = self.expression.list.eval(self._tested(pl.element(), test, value)).list.any()
        else:
            tested = self._tested(self.expression, test, value)
        return pl.when(~self.missing()).then(tested)

    def any_of(self, values: Sequence[Token]) -> pl.Expr:
        tests = [self.missing() if v.value is None else self.test(ORDERS["=="], v) for v in values]
        return pl.any_horizontal(tests)

    def _tested(self, values: pl.Expr, test: Test, value: Token) -> pl.Expr:
        """A number is compared with the numbers in a column of texts; other texts are no numbers."""
        if value.kind == "string":
            if self.dtype == pl.Float64:
                _wrong(value, f"{_cut(self.name)} is a number, found the string {_cut(value.text)}")
            return test(values, pl.lit(value.value, dtype=pl.String))
        if self.dtype != pl.Float64:
            values = values.str.strip_chars().cast(pl.Float64, strict=False)
        return test(values.fill_nan(None), pl.lit(value.value, dtype=pl.Float64))  # polars: NaN is largest


def _tokens(where: str) -> list[Token]:
    tokens, place = [], 0
    while True:
        match = TOKEN.match(where, place)
        if match is None:
            at = place + len(where[place:]) - len(where[place:].lstrip())
            quote = where[at] in "'\"`"
            problem = "the quote is not closed" if quote else f"cannot read {_cut(where[at:])!r}"
            raise InputError(f"the filter, position {at + 1}: {problem}.")
        tokens.append(_token(match))
        if match.lastgroup == "end":
            return tokens
        place = match.end()


def _token(match: re.Match[str]) -> Token:
    kind = str(match.lastgroup)
    text, position = match[kind], match.start(kind) + 1
    if kind == "number":
        number = float(text)
        if not math.isfinite(number) or abs(number) > MAX_WHOLE:
            problem = f"the number {_cut(text)} is too large to compare; put it in quotes"
            raise InputError(f"the filter, position {position}: {problem}.")
        return Token(kind, number, text, position)
    if kind == "string":
        return Token(kind, re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL), text, position)
    if kind == "word" and text.lower() in KEYWORDS:
        return Token("keyword", text.lower(), text, position)
    return Token("column" if kind in ("word", "quoted") else kind, text, text, position)


def _wrong(token: Token, problem: str) -> NoReturn:
    raise InputError(f"the filter, position {token.position}: {problem}.")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_LENGTH else text[: MAX_SHOWN_LENGTH - 1] + "…"
