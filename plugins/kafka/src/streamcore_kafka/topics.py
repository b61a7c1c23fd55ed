"""Which topics a table means: names, or a pattern written for Java."""

from __future__ import annotations

import re
from collections.abc import Sequence

TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_NAMED_GROUP = re.compile(r"\(\?<(?=[a-zA-Z])")
_PIECE = re.compile(r"\\.|&&|\[\^?\]?|.", re.DOTALL)
_JAVAS_ESCAPES = {rf"\{letter}" for letter in "pPhHRXGkzV"}


class JavaOnly(re.error):
    """A pattern uses what Java alone knows; Python would refuse it, or take it for another."""


def java_pattern(text: str) -> re.Pattern[str]:
    r"""Compile a Java regular expression: `\Q..\E` and `(?<name>..)` are spelt otherwise here."""
    quoted = _QUOTED.sub(lambda match: re.escape(match[1]), text)
    _check(quoted)
    return re.compile(_NAMED_GROUP.sub("(?P<", quoted))


def _check(text: str) -> None:
    in_class = False
    for piece in _PIECE.findall(text):
        if piece in _JAVAS_ESCAPES:
            raise JavaOnly(f"'{piece}' is known to Java alone; list the characters")
        if in_class and (piece == "&&" or piece[0] == "["):
            what = "'&&'" if piece == "&&" else "a class"
            raise JavaOnly(f"{what} inside of '[…]' is known to Java alone; list the characters")
        if piece[0] == "[":
            in_class = True
        elif piece == "]":
            in_class = False


SHARE = re.compile(r"(\d+)(?:/(\d+))?", re.ASCII)
"""A partition's number, or '1/4': every fourth one from 1 on."""


def is_chosen(choices: Sequence[str], number: int) -> bool:
    """Whether 'scan.partitions' has this partition."""
    for choice in choices:
        first, _, every = choice.partition("/")
        if number == int(first) or (every and number % int(every) == int(first)):
            return True
    return not choices


def matches(pattern: re.Pattern[str], topic: str) -> bool:
    """Whether the whole name matches, as Java's `matches()` has it."""
    return pattern.fullmatch(topic) is not None
