"""Rows as a plain text table."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from .connectors.row_text import value_text


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns and rows, aligned; numbers to the right."""
    cells = [[cell_text(value) for value in row] for row in rows]
    widths = [
        max([_width(name), *(_width(row[at]) for row in cells)]) for at, name in enumerate(columns)
    ]
    right = [
        bool(rows) and all(isinstance(row[at], (int, float)) or row[at] is None for row in rows)
        for at in range(len(columns))
    ]
    lines = [_line(list(columns), widths, right), "-+-".join("-" * width for width in widths)]
    lines += [_line(row, widths, right) for row in cells]
    lines.append(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")
    return "\n".join(line.rstrip() for line in lines)


def html_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The same for notebooks."""

    def line(cells: Sequence[str], tag: str) -> str:
        inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    body = "".join(line([cell_text(value) for value in row], "td") for row in rows)
    return f"<table><thead>{line(columns, 'th')}</thead><tbody>{body}</tbody></table>"


def cell_text(value: Any) -> str:
    """A value as people read it in a table."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ")
    if hasattr(value, "asDict"):
        return value_text(value.asDict())
    return value_text(value).replace("\n", "\\n")


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        blank = " " * (width - _width(cell))
        padded.append(blank + cell if to_right else cell + blank)
    return " | ".join(padded)


def _width(text: str) -> int:
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
