"""JSON text to a tree in which numbers stay as they were written, and back to compact text."""

from __future__ import annotations

import json
import re
from typing import Any

from .unreadable import Unreadable

DEEPEST = 500
"""Levels of nesting a message may have: what the parsers' stacks surely bear."""

NOTHING = object()
"""What a message of no bytes, or of blanks only, stands for."""


class Whole(str):
    """A JSON number without fraction or exponent, as it was written."""

    __slots__ = ()


class Real(str):
    """Any other JSON number, as it was written."""

    __slots__ = ()


class _NoValue(Exception):  # noqa: N818 - never leaves this module, and reads better
    """A number that JavaScript knows and JSON does not."""


def _refuse(word: str) -> None:
    raise _NoValue(word)


_PARSER = json.JSONDecoder(strict=False, parse_int=Whole, parse_float=Real, parse_constant=_refuse)
_BLANKS = re.compile(r"[ \t\n\r]*")
_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_NO_VALUES = re.compile(r'"(?:[^"\\]++|\\.)*+"|(NaN|-?Infinity)', re.DOTALL)
_BOM = "\ufeff"


def parse(message: bytes) -> Any:
    """The first JSON value of a message; what follows it is not looked at.

    Invalid UTF-8 is kept aside as surrogates, so it costs only the columns that hold it.
    """
    if message.count(b"[") + message.count(b"{") > DEEPEST:
        _measure(message)
    text = message.decode("utf-8", "surrogateescape").removeprefix(_BOM)
    start = _BLANKS.match(text).end()  # type: ignore[union-attr]
    if start == len(text):
        return NOTHING
    try:
        return _PARSER.raw_decode(text, start)[0]
    except json.JSONDecodeError as error:
        trouble = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
        byte = _byte(message, text, error.pos)
        raise Unreadable(f"not JSON: {trouble} at byte {byte}") from error
    except _NoValue as word:
        # the parser went as far as this word, so it is the first outside a string
        at = next(found.start() for found in _NO_VALUES.finditer(text, start) if found[1])
        byte = _byte(message, text, at)
        raise Unreadable(f"not JSON: '{word}' at byte {byte} is not a value") from None
    except RecursionError as error:
        raise Unreadable(_TOO_DEEP) from error


def _byte(message: bytes, text: str, at: int) -> int:
    """Where in the message a character of its text stands."""
    return len(message) - len(text[at:].encode("utf-8", "surrogateescape"))


_TOO_DEEP = f"nested deeper than {DEEPEST} levels"


def is_deep(message: bytes) -> bool:
    """Whether a message may be nested too deeply; cheap, and only ever wrong towards yes."""
    return message.count(b"[") + message.count(b"{") > DEEPEST


def _measure(message: bytes) -> None:
    level = 0
    for token in _TOKENS.finditer(message.decode("latin-1")):
        mark = token[0][0]
        if mark in "[{":
            level += 1
            if level > DEEPEST:
                raise Unreadable(f"{_TOO_DEEP} at byte {token.start()}")
        elif mark != '"':
            level -= 1


def compact(tree: Any) -> str:
    """A tree as JSON without blanks, numbers as they were written."""
    if isinstance(tree, Whole | Real):
        return str(tree)
    if isinstance(tree, dict):
        pairs = []
        for key, value in tree.items():
            pairs.append(f"{_quoted(key)}:{compact(value)}")
        return "{" + ",".join(pairs) + "}"
    if isinstance(tree, list):
        items = []
        for value in tree:
            items.append(compact(value))
        return "[" + ",".join(items) + "]"
    return _quoted(tree) if isinstance(tree, str) else json.dumps(tree)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def kind_of(tree: Any) -> str:
    """What a JSON value is, in words."""
    if type(tree) is dict:
        return "an object"
    if type(tree) is list:
        return "an array"
    if tree is None:
        return "null"
    return compact(tree)[:60].encode("utf-8", "backslashreplace").decode()
