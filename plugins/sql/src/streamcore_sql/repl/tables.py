"""Results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..texttable import cell_text


def rich_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = ""
) -> RenderableType:
    """A table that fits the terminal; numbers to the right, NULL set apart."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for at, name in enumerate(columns):
        numbers = bool(rows) and all(_is_number(row[at]) for row in rows)
        table.add_column(Text(name), justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    return Group(table, Text(caption, style="dim")) if caption else table


def _cell(value: Any) -> Text:
    return Text("NULL", style="dim") if value is None else Text(cell_text(value))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def row_count(count: int, *, more: bool = False) -> str:
    """What stands below a table."""
    if more:
        return f"the first {count:,} rows; there are more"
    return "1 row" if count == 1 else f"{count:,} rows"
