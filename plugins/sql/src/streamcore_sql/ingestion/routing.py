"""Which tables a rule means, and what they are called at the sink."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple


class TableId(NamedTuple):
    """A table's full name; what a system does not have is empty."""

    namespace: str
    schema: str
    table: str

    @classmethod
    def of(cls, text: str) -> TableId:
        """Read `table`, `schema.table` or `namespace.schema.table`; more dots stay in front."""
        parts = text.rsplit(".", 2)
        return cls(*[""] * (3 - len(parts)), *parts)

    def __str__(self) -> str:
        return ".".join(part for part in self if part)


class BadPattern(ValueError):  # noqa: N818 - says what it is
    """A text that selects no tables; says why."""


@dataclass(frozen=True)
class Selector:
    r"""Tables by a regular expression for each part of their name.

    A dot separates the parts; the dot of a regular expression is written `\.`, so `shop.\.*` are
    all tables of `shop`. Several are separated by commas.
    """

    text: str

    def match(self, table: TableId) -> re.Match[str] | None:
        """The match of the first pattern that fits the whole name."""
        name = str(table)
        return next((found for each in self.patterns if (found := each.fullmatch(name))), None)

    @cached_property
    def patterns(self) -> Sequence[re.Pattern[str]]:
        """Raises BadPattern for what is no regular expression."""
        return [_pattern(each) for each in _listed(self.text)]

    @property
    def literals(self) -> list[str]:
        """The patterns that are plain names."""
        return [each for each in _listed(self.text) if re.fullmatch(r"[\w$-]+(\.[\w$-]+)*", each)]

    @property
    def is_literal(self) -> bool:
        """Whether it names all its tables in full."""
        return len(self.literals) == len(self.patterns)

    @property
    def groups(self) -> int:
        """How many captured parts every match has at least."""
        return min(each.groups for each in self.patterns)


def _listed(text: str) -> list[str]:
    """Patterns separated by commas; one inside braces, brackets or parentheses separates none."""
    found, depth = [""], 0
    escaped = False
    for character in text:
        if character == "," and not depth and not escaped:
            found.append("")
            continue
        if not escaped:
            depth += (character in "([{") - (character in ")]}")
        escaped = character == "\\" and not escaped
        found[-1] += character
    return [each.strip() for each in found if each.strip()]


def _pattern(text: str) -> re.Pattern[str]:
    expression = ""
    position = 0
    for match in re.finditer(r"\\\.|\.", text):
        expression += text[position : match.start()]
        expression += "." if match[0] == r"\." else r"\."
        position = match.end()
    try:
        return re.compile(expression + text[position:])
    except re.error as error:
        raise BadPattern(f"'{text}' is not a regular expression: {error.msg}") from None


@dataclass(frozen=True)
class Route:
    """Tables, and what they are called at the sink."""

    source: Selector
    target: str
    symbol: str = ""
    """Stands in `target` for the name of the source table."""

    def sink_of(self, table: TableId) -> str | None:
        """The name at the sink; None if this route is for other tables."""
        match = self.source.match(table)
        if match is None:
            return None
        if self.symbol:
            return self.target.replace(self.symbol, table.table)
        return re.sub(r"\$(\d+)", lambda group: match[int(group[1])] or "", self.target)

    @property
    def references(self) -> list[int]:
        """The numbers of the captured parts that `target` uses."""
        return (
            [] if self.symbol else [int(number) for number in re.findall(r"\$(\d+)", self.target)]
        )


class Router:
    """Sends tables where the routes say; a table without a route keeps its name."""

    def __init__(self, routes: Sequence[Route], *, first_only: bool = False) -> None:
        self._routes, self._first_only = routes, first_only
        self.sinks_of = lru_cache(maxsize=10_000)(self._sinks_of)

    def _sinks_of(self, table: TableId) -> tuple[str, ...]:
        """The names of a table at the sink, in the order of the routes."""
        found = [name for route in self._routes if (name := route.sink_of(table)) is not None]
        if self._first_only:
            found = found[:1]
        return tuple(dict.fromkeys(found)) or (str(table),)
