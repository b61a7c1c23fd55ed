"""Flink SQL text to tokens, lazily and in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from .errors import SqlError
from .source import Place, Source


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted"  # `name`
    STRING = "string"  # 'text': '' is a quote, a backslash is a backslash
    NUMBER = "number"
    HINT = "hint"  # /*+ ... */
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """A token; `word` is what keywords compare with: upper case, empty for text and names."""

    kind: Kind
    word: str
    start: int
    end: int


_PATTERN = re.compile(
    r"""
      (?P<blank> \s++ | --[^\n]*+ | /\*(?!\+)(?s:.*?)\*/ )
    | (?P<hint> /\*\+ (?: '(?:[^']++|'')*+' | [^'*]++ | \*(?!/) )*+ \*/ )
    | (?P<string> (?:[uU]&)? '(?:[^']++|'')*+' )
    | (?P<word> [^\W\d][\w$]*+ )
    | (?P<quoted> `(?:[^`]++|``)++` )
    | (?P<number> (?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)? )
    | (?P<open> /\* | ' | ` | " )
    | (?P<symbol> <> | != | <= | >= | => | \|\| | (?s:.) )
    """,
    re.VERBOSE,
)
_UNCLOSED = {
    "/*": ("this comment is never closed", "Close it with '*/'."),
    "'": ("this text is never closed", "Close it with a single quote; write '' for a quote in it."),
    "`": ("this name is never closed", "Close it with a backtick."),
    '"': (
        "double quotes mean nothing here",
        "Write text in 'single quotes', names in `backticks`.",
    ),
}
_KINDS = {kind.value: kind for kind in Kind}


def tokens(source: Source, start: int = 0, end: int | None = None) -> Iterator[Token]:
    """Yield the tokens of a script or a stretch of it, then one END; no comments, no blanks."""
    text = source.text
    last = len(text) if end is None else end
    for match in _PATTERN.finditer(text, start, last):
        group = match.lastgroup
        if group == "blank":
            continue
        start, end = match.span()
        if group == "word":
            yield Token(Kind.WORD, match[0].upper(), start, end)
        elif group == "symbol":
            yield Token(Kind.SYMBOL, match[0], start, end)
        elif group == "open":
            trouble, hint = _UNCLOSED[match[0]]
            raise SqlError(trouble, Place(source, start, end), hint)
        else:
            yield Token(_KINDS[str(group)], "", start, end)
    yield Token(Kind.END, "", last, last)


def text_value(literal: str) -> str:
    """The characters a string literal stands for."""
    body = literal[literal.index("'") + 1 : -1].replace("''", "'")
    if literal[0] in "uU":
        return re.sub(r"\\(?:(\\)|([0-9a-fA-F]{4}))", lambda m: m[1] or chr(int(m[2], 16)), body)
    return body


def text_literal(value: str) -> str:
    """The string literal that stands for `value`."""
    return "'" + value.replace("'", "''") + "'"


def name_value(quoted: str) -> str:
    """The name a backticked identifier stands for."""
    return quoted[1:-1].replace("``", "`")


def name_literal(name: str) -> str:
    """The backticked identifier that stands for `name`."""
    return "`" + name.replace("`", "``") + "`"
