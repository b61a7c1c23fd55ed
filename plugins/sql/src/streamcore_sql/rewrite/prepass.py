"""Flink's tokens to text the stock Spark parser reads, with every name's place kept aside.

Function calls become `__f0(...)`, `__f1(...)`: the parser takes them as they are, so no call is
changed behind our back, and the number leads to the name and its place. Tables with options or
inside window functions become `__t0`, `__t1` for the same reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..cursor import Cursor, SqlText
from ..errors import SqlError
from ..lexer import Kind, Token, name_value, text_value, tokens
from ..pieces import options_of_hint
from ..source import NOWHERE, Place, Source
from ..statements import Name, Option
from ..typename import LONGEST, parse_type
from .placeholders import Aside, Call, Prepared, Reference
from .spark_text import spark_literal, spark_type

_STARTERS = """
SELECT DISTINCT ALL WHERE AND OR NOT IN ON HAVING BY WHEN THEN ELSE CASE BETWEEN LIKE ESCAPE FROM
JOIN LATERAL OF RLIKE DIV TO FOR IS EXISTS VALUE KEY DEFAULT PLACING BOTH LEADING TRAILING INTERVAL
LIMIT OFFSET QUALIFY USING TABLE UNION SYMMETRIC ANY SOME RETURNING
"""
_CLAUSES = """
AS WITH WHERE AND OR NOT IN ON USING HAVING FROM JOIN LATERAL TABLE VALUES SELECT DISTINCT ALL UNION
INTERSECT EXCEPT MINUS EXISTS ANY SOME CASE WHEN THEN ELSE BETWEEN LIKE IS BY OVER FILTER WITHIN
GROUP SETS CUBE ROLLUP INTERVAL ESCAPE UNNEST ORDINALITY PARTITION LIMIT OF OFFSET QUALIFY RLIKE
"""
_BEFORE_EXPRESSION = frozenset(_STARTERS.split())  # a name behind another word is an alias
_NOT_CALLS = frozenset(_CLAUSES.split())  # parentheses follow without making a call
_BARE_CALLS = frozenset(
    {"LOCALTIMESTAMP", "LOCALTIME", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME"}
)
_TYPED_TEXT = {"TIMESTAMP": "TIMESTAMP_NTZ", "TIME": "TIME(6)", "DATE": "DATE"}
# Keywords that separate the arguments of a call, as commas do elsewhere.
_SEPARATORS = {
    "POSITION": {"IN"},
    "SUBSTRING": {"FROM", "FOR"},
    "OVERLAY": {"PLACING", "FROM", "FOR"},
    "TRIM": {"FROM"},
    "EXTRACT": {"FROM"},
    "JSON_OBJECT": {"VALUE"},
    "JSON_OBJECTAGG": {"VALUE"},
}
_KEYED = ("JSON_OBJECT", "JSON_OBJECTAGG")
_TAILS = {
    "JSON_VALUE": {"RETURNING", "NULL", "ERROR", "DEFAULT"},
    "JSON_QUERY": {"RETURNING", "NULL", "ERROR", "EMPTY", "WITH", "WITHOUT"},
    "JSON_EXISTS": {"TRUE", "FALSE", "UNKNOWN", "ERROR"},
    "JSON_OBJECT": {"NULL", "ABSENT"},
    "JSON_OBJECTAGG": {"NULL", "ABSENT"},
    "JSON_ARRAYAGG": {"NULL", "ABSENT"},
}
_CONSTANT_WORDS = frozenset({"(", ")", ",", "-", "+", "NULL", "TRUE", "FALSE"})
_PAIRS = {"(": ")", "[": "]"}


def prepare(query: SqlText, aside: Aside) -> Prepared:
    """Turn a query into text for the parser."""
    return _Prepass(_place(query), aside).run()


def constant_rows(query: SqlText) -> str | None:
    """Spark's text for VALUES with nothing but constants, which needs no parser: it may be long."""
    prepass = _Prepass(_place(query), Aside())
    first, *rest = prepass.tokens
    constants = all(
        token.kind in (Kind.STRING, Kind.NUMBER, Kind.END) or token.word in _CONSTANT_WORDS
        for token in rest
    )
    return prepass.run().text if first.word == "VALUES" and constants else None


def _place(query: SqlText) -> Place:
    if query.place is NOWHERE:
        return Place(Source(query.text), 0, len(query.text))
    return query.place


@dataclass
class _Frame:
    """An open parenthesis; `call` is the name of the function it belongs to."""

    close: str
    call: str = ""


class _Prepass:
    def __init__(self, place: Place, aside: Aside) -> None:
        self.source, self.aside = place.source, aside
        self.end = place.end
        self.tokens = list(tokens(place.source, place.start, place.end))
        self.closing = _closing(self.tokens)
        self.at = 0
        self.frames: list[_Frame] = []
        self.out: list[str] = []
        self.length = 0
        self.starts: list[int] = []
        self.origins: list[Token] = []

    def run(self) -> Prepared:
        while self.token.kind is not Kind.END:
            self.step()
        return Prepared("".join(self.out), self.source, self.starts, self.origins)

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def peek(self, distance: int) -> Token:
        return self.tokens[min(max(self.at + distance, 0), len(self.tokens) - 1)]

    def text(self, token: Token) -> str:
        return self.source.text[token.start : token.end]

    def emit(self, text: str, origin: Token) -> None:
        if self.at and self.origins and origin.start > self.tokens[self.at - 1].end:
            text = " " + text
        self.starts.append(self.length)
        self.origins.append(origin)
        self.out.append(text)
        self.length += len(text)

    def step(self) -> None:
        """Read the next token, or the next few where they only make sense together."""
        token = self.token
        if token.kind is Kind.HINT:
            self.aside.hints.append(self.place(token))
            self.at += 1
        elif self.special(token):
            pass
        elif token.kind is Kind.STRING:
            self.emit(spark_literal(text_value(self.text(token))), token)
            self.at += 1
        elif token.kind is Kind.NUMBER and self.peek(1).kind is Kind.WORD:
            self.emit(self.text(token) + " " * (self.peek(1).start == token.end), token)
            self.at += 1
        elif token.kind in (Kind.WORD, Kind.QUOTED):
            self.name(token)
        else:
            self.symbol(token)

    # --- names ---------------------------------------------------------------------

    def name(self, token: Token) -> None:
        if refused := self.refused(token):
            what, hint = refused
            raise SqlError(f"{what} is not supported", self.place(token), hint)
        if token.word == "TABLE" and self.is_table_argument():
            self.at += 1
            self.reference(token)
        elif self.hint_of_path() is not None:
            self.reference(token)
        elif token.word in ("ARRAY", "MAP") and self.peek(1).word == "[":
            self.call(token, close="]")
        elif self.is_call(token):
            self.call(token, close=")")
        elif token.word in _BARE_CALLS and self.peek(1).word != "(" and self.peek(-1).word != ".":
            self.emit(self.new_call(token) + "()", token)
            self.at += 1
        elif token.word in _TYPED_TEXT and self.peek(1).kind is Kind.STRING:
            value = spark_literal(text_value(self.text(self.peek(1))))
            cast = self.new_call(token, "CAST")
            self.emit(f"{cast}({value}, '{_TYPED_TEXT[token.word]}')", token)
            self.at += 2
        else:
            self.emit(self.text(token), token)
            self.at += 1

    def refused(self, token: Token) -> tuple[str, str] | None:
        """A form that Spark has no words for, and what to write instead."""
        before, after = self.peek(-1).word if self.at else "", self.peek(1).word
        if token.word == "MATCH_RECOGNIZE":
            return (
                "MATCH_RECOGNIZE",
                "Find the pattern in a Python function over the rows of a key.",
            )
        if token.word == "SIMILAR" and after == "TO":
            return "SIMILAR TO", "Write s RLIKE '^(pattern)$', with a regular expression."
        if token.word == "OVERLAPS" and before == ")":
            return "OVERLAPS", "Compare the bounds: a_start < b_end AND b_start < a_end."
        is_tested = before == "IS" or (before == "NOT" and self.peek(-2).word == "IS")
        if token.word == "JSON" and is_tested:
            return "IS JSON", "Write TRY_PARSE_JSON(s) IS NOT NULL."
        return None

    def is_table_argument(self) -> bool:
        before, after = self.peek(-1).word, self.peek(1)
        return before in ("(", ",", "=>") and after.kind in (Kind.WORD, Kind.QUOTED)

    def is_call(self, token: Token) -> bool:
        if self.peek(1).word != "(" or token.word in _NOT_CALLS:
            return False
        before = self.peek(-1) if self.at else Token(Kind.SYMBOL, "", 0, 0)
        if before.kind is Kind.WORD and before.word not in _BEFORE_EXPRESSION:
            return False
        if before.kind in (Kind.QUOTED, Kind.STRING, Kind.NUMBER) or before.word in (")", "."):
            return False
        close = self.closing.get(self.at + 1, self.at)
        behind = self.tokens[min(close + 1, len(self.tokens) - 1) :][:2]
        is_cte = [each.word for each in behind] == ["AS", "("]
        return not is_cte

    def path_end(self, start: int) -> int:
        """The index behind a dotted name that starts at an index."""
        end = start + 1
        while self.tokens[end].word == "." and self.tokens[end + 1].kind is not Kind.END:
            end += 2
        return end

    def hint_of_path(self) -> Token | None:
        """The OPTIONS hint directly behind the name that starts here."""
        if self.at and self.peek(-1).word == ".":
            return None
        token = self.tokens[self.path_end(self.at)]
        is_options = token.kind is Kind.HINT and "OPTIONS" in self.text(token).upper()
        return token if is_options else None

    def reference(self, origin: Token) -> None:
        start = self.at
        self.at = self.path_end(start)
        path = self.tokens[start : self.at : 2]
        parts = tuple(
            name_value(self.text(t)) if t.kind is Kind.QUOTED else self.text(t) for t in path
        )
        place = Place(self.source, path[0].start, path[-1].end)
        options: tuple[Option, ...] = ()
        if self.token.kind is Kind.HINT:
            options = options_of_hint(self.place(self.token))
            self.at += 1
        keys = self.partition_keys() if self.token.word == "PARTITION" else ()
        self.aside.references.append(Reference(Name(parts, place=place), options, keys))
        self.starts.append(self.length)
        self.origins.append(Token(Kind.WORD, "", path[0].start, path[-1].end))
        text = f" __t{len(self.aside.references) - 1} "
        self.out.append(text)
        self.length += len(text)

    def partition_keys(self) -> tuple[str, ...]:
        """Read `PARTITION BY a, b` or `PARTITION BY (a, b)` of a table argument."""
        cursor = Cursor(self.source, self.token.start, self.end)
        cursor.expect("PARTITION", "BY")
        if cursor.at("("):
            keys = cursor.listed(lambda: cursor.identifier("a column name"))
        else:
            keys = (cursor.identifier("a column name"),)
        self.skip_to(cursor)
        return keys

    # --- calls ---------------------------------------------------------------------

    def new_call(self, token: Token, name: str = "") -> str:
        written = self.text(token)
        self.aside.calls.append(Call(name or token.word or written, written, self.place(token)))
        return f"__f{len(self.aside.calls) - 1}"

    def call(self, token: Token, close: str) -> None:
        self.emit(self.new_call(token) + "(", token)
        self.frames.append(_Frame(close, token.word))
        self.at += 2
        first = self.token
        if token.word == "EXTRACT":
            self.emit(f"'{first.word}'", first)
            self.at += 1
        elif token.word == "TRIM" and first.word in ("BOTH", "LEADING", "TRAILING"):
            blank = ", ' '" if self.peek(1).word == "FROM" else ","
            self.emit(f"'{first.word}'{blank}", first)
            self.at += 1

    def special(self, token: Token) -> bool:
        """Read what stands in for a comma inside a call: `FROM`, `AS type`, `RETURNING ...`."""
        frame = self.frames[-1] if self.frames else _Frame("")
        if token.kind is not Kind.WORD or not frame.call:
            return False
        starts_argument = self.peek(-1).word in ("(", ",")
        if frame.call in ("CAST", "TRY_CAST") and token.word == "AS":
            cursor = Cursor(self.source, token.end, self.end)
            kind = parse_type(cursor)
            self.emit(f", '{_cast_type(kind.name, kind.args, spark_type(kind))}'", token)
            self.skip_to(cursor)
        elif frame.call in ("CEIL", "CEILING", "FLOOR") and token.word == "TO":
            self.emit(f", '{self.peek(1).word}'", token)
            self.at += 2
        elif token.word in _SEPARATORS.get(frame.call, ()):
            self.emit(",", token)
            self.at += 1
        elif token.word in _TAILS.get(frame.call, ()) and not starts_argument:
            self.tail(token)
        elif frame.call in _KEYED and token.word == "KEY" and starts_argument:
            self.at += 1
        else:
            return False
        return True

    def tail(self, token: Token) -> None:
        """Hand everything up to the closing parenthesis over as one text."""
        start, depth = self.at, 0
        while self.token.kind is not Kind.END and not (depth == 0 and self.token.word == ")"):
            depth += (self.token.word == "(") - (self.token.word == ")")
            self.at += 1
        text = self.source.text[token.start : self.peek(-1).end]
        position, self.at = self.at, start
        self.emit(f", {spark_literal(text)}", token)
        self.at = position

    # --- symbols ---------------------------------------------------------------------

    def symbol(self, token: Token) -> None:
        text = self.text(token)
        if token.word == "," and self.peek(1).word == "FROM":
            hint = "Remove it, or name one more column."
            raise SqlError("',' does not fit before FROM", self.place(token), hint)
        if token.word in _PAIRS:
            self.frames.append(_Frame(_PAIRS[token.word]))
        elif self.frames and token.word == self.frames[-1].close:
            text = ")" if self.frames.pop().call else text
        self.emit(text, token)
        self.at += 1

    def place(self, token: Token) -> Place:
        return Place(self.source, token.start, token.end)

    def skip_to(self, cursor: Cursor) -> None:
        end = cursor.previous.end
        while self.token.kind is not Kind.END and self.token.start < end:
            self.at += 1


def _closing(found: list[Token]) -> dict[int, int]:
    """The index of the `)` for the index of each `(`."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(found):
        if token.word == "(":
            opened.append(index)
        elif token.word == ")" and opened:
            pairs[opened.pop()] = index
    return pairs


def _cast_type(name: str, args: tuple[int, ...], spark: str) -> str:
    """A cast to a text of some length also cuts or fills it, which Spark's does not."""
    return f"{name}({args[0]})" if name in ("CHAR", "VARCHAR") and args[0] < LONGEST else spark
