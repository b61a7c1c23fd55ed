"""Completes keywords, tables, columns, and the options of a table being created."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from streamcore.errors import StreamcoreError
from streamcore.options import Declared, declared
from streamcore.registry import installed

from ..catalog import Catalog
from ..errors import SqlError
from ..settings import KEYS
from ..statements import CreateFunction, CreateTable, CreateView

_KEYWORD_LINES = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT INNER OUTER ON AS AND OR NOT IN IS NULL
BETWEEN LIKE CASE WHEN THEN ELSE END DISTINCT UNION ALL WITH VALUES CREATE TABLE VIEW FUNCTION
TEMPORARY DROP ALTER IF EXISTS INSERT INTO DESCRIBE SHOW TABLES VIEWS FUNCTIONS JOBS DATABASES
COLUMNS EXPLAIN SET RESET USE EXECUTE STATEMENT BEGIN STOP JOB METADATA VIRTUAL WATERMARK FOR
INTERVAL SECOND MINUTE HOUR DAY PRIMARY KEY ENFORCED PARTITIONED TUMBLE HOP SESSION CUMULATE
DESCRIPTOR PROCTIME COUNT SUM AVG MIN MAX CAST STRING BIGINT INT DOUBLE BOOLEAN DECIMAL TIMESTAMP
TIMESTAMP_LTZ DATE BYTES ARRAY MAP ROW
"""
KEYWORDS = tuple(_KEYWORD_LINES.split())
COMMANDS = ("\\help", "\\quit", "\\tables", "\\describe", "\\jobs", "\\clear")

_OPTION_KEY = re.compile(r"'([\w.*-]*)$")
_OPTION_VALUE = re.compile(r"'([\w.-]+)'\s*=\s*'([\w.-]*)$")
_CONNECTOR = re.compile(r"'connector'\s*=\s*'([\w-]+)'", re.IGNORECASE)
_FORMAT = re.compile(r"'((?:key\.|value\.)?)format'\s*=\s*'([\w-]+)'", re.IGNORECASE)
_TABLE_EXPECTED = re.compile(r"\b(FROM|JOIN|INTO|DESC|DESCRIBE|LIKE)\s+[\w$]+$", re.IGNORECASE)
_WORD = re.compile(r"[\w$]*$")
_WITH = re.compile(r"\bWITH\s*\([^)]*$", re.IGNORECASE)


class SqlCompleter(Completer):
    """What may come next, from the text before the cursor and the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        text = document.text_before_cursor
        if text.startswith("\\"):
            yield from _matching(COMMANDS, text)
        elif match := _OPTION_VALUE.search(text):
            yield from _matching(_values(match[1], text), match[2])
        elif _WITH.search(text) and (match := _OPTION_KEY.search(text)):
            yield from _matching(_option_keys(text), match[1])
        elif re.search(r"\b(RE)?SET\s+'[\w.-]*$", text, re.IGNORECASE):
            match = _OPTION_KEY.search(text)
            yield from _matching(sorted(KEYS), match[1] if match else "")
        elif text.count("'") % 2 == 0:
            word = _WORD.search(text)
            if word and word[0]:
                yield from _matching(self._words(text), word[0])

    def _words(self, text: str) -> Iterator[str]:
        tables = self._catalog.list((CreateTable, CreateView))
        yield from tables
        if _TABLE_EXPECTED.search(text):
            return
        yield from self._catalog.list(CreateFunction)
        for name in tables:
            if re.search(rf"\b{re.escape(name)}\b", text):
                yield from self._columns(name)
        yield from KEYWORDS

    def _columns(self, table: str) -> Iterator[str]:
        from ..statements import Name

        try:
            entry = self._catalog.find(Name((table,)))
        except SqlError:  # a broken catalog file completes nothing
            return
        yield from (
            column.name if hasattr(column, "name") else column.last for column in entry.columns
        )


def _matching(words: Iterable[str], start: str) -> Iterator[Completion]:
    seen = set()
    for word in words:
        if word.lower().startswith(start.lower()) and word not in seen and word != start:
            seen.add(word)
            yield Completion(word, start_position=-len(start))


def _values(key: str, text: str) -> list[str]:
    """What an option may be set to, where that is a choice."""
    if key == "connector":
        return installed().names("connector")
    for prefix, option in _options_of(text):
        if key in (prefix + each for each in option.spec.keys):
            return _choices(option.hint)
    return []


def _choices(hint: Any) -> list[str]:
    for kind in typing.get_args(hint) or (hint,):
        if kind is bool:
            return ["true", "false"]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [str(member.value) for member in kind]
        if plugins := getattr(kind, "kind", ""):
            return installed().names(plugins)
    return []


def _option_keys(text: str) -> list[str]:
    if not _CONNECTOR.search(text):
        return ["connector"]
    keys = {
        prefix + key.removesuffix("*")
        for prefix, option in _options_of(text)
        for key in (option.spec.key, *option.spec.also)
    }
    return [key for key in sorted(keys) if f"'{key}'" not in text]


def _options_of(text: str) -> Iterator[tuple[str, Declared]]:
    """The options of the connector and the formats a text names, each with its prefix."""
    for name in _CONNECTOR.findall(text)[-1:]:
        yield from _declared("connector", name, "")
    for prefix, name in _FORMAT.findall(text):
        yield from _declared("format", name, f"{prefix}{name}.")


def _declared(kind: str, name: str, prefix: str) -> Iterator[tuple[str, Declared]]:
    try:
        factory: Any = installed().find(kind, name)
    except StreamcoreError:  # a typo in the name: nothing to offer until it is right
        return
    yield from ((prefix, each) for each in declared(factory))
