"""Which topics a table means: names, or a pattern written for Java."""

from __future__ import annotations

import re

TOPIC_NAME = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_NAMED_GROUP = re.compile(r"\(\?<(?=[a-zA-Z])")


def java_pattern(text: str) -> re.Pattern[str]:
    r"""Compile a Java regular expression: `\Q..\E` and `(?<name>..)` are spelt otherwise here."""
    quoted = _QUOTED.sub(lambda match: re.escape(match[1]), text)
    return re.compile(_NAMED_GROUP.sub("(?P<", quoted))


def matches(pattern: re.Pattern[str], topic: str) -> bool:
    """Whether the whole name matches, as Java's `matches()` has it."""
    return pattern.fullmatch(topic) is not None
