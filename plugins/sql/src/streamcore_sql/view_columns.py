"""What a view looks like without running it: names, and the types of columns taken as they are."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

from .catalog import Catalog
from .rewrite import rewrite
from .rewrite.context import alias_of, sources
from .statements import ComputedColumn, CreateTable, CreateView, Name

Known = list[tuple[str, str]]
"""Names and types; no type where only Spark could tell."""


def view_columns(view: CreateView, catalog: Catalog) -> Known:
    """The columns of a view."""
    found = rewrite(
        view.query,
        lookup=lambda parts: catalog.find(Name(parts, place=view.place)),
        streaming=False,
    )
    tables = {ref.view: _declared(catalog.find(Name(ref.name))) for ref in found.tables}
    columns = _selected(sqlglot.parse_one(found.sql, read="spark"), tables)
    return _renamed(columns, [name.last for name in view.columns])


def _declared(table: CreateTable | CreateView) -> Known:
    assert isinstance(table, CreateTable)  # the query of a view is in its place
    return [
        (
            column.name,
            ""
            if isinstance(column, ComputedColumn)
            else column.type.sql().removesuffix(" NOT NULL"),
        )
        for column in table.columns
    ]


def _selected(node: Any, tables: dict[str, Known]) -> Known:
    if isinstance(node, exp.Subquery):
        return _selected(node.this, tables)
    if isinstance(node, exp.SetOperation):
        return _selected(node.left, tables)
    if not isinstance(node, exp.Select):
        return []
    by_alias = {alias_of(source): _of_source(source, tables) for source in sources(node)}
    columns: Known = []
    for each in node.expressions:
        wanted = [each.text("table")] if each.text("table") else list(by_alias)
        reachable = [column for alias in wanted for column in by_alias.get(alias, ())]
        if each.is_star:
            columns += reachable
        else:
            column = each.unalias()
            own = column.name if isinstance(column, exp.Column) else ""
            kind = next((kind for name, kind in reachable if name == own), "")
            columns.append((each.alias_or_name or each.sql(dialect="spark"), kind))
    return columns


def _of_source(source: Any, tables: dict[str, Known]) -> Known:
    if isinstance(source, exp.Subquery):
        columns = _selected(source.this, tables)
    else:
        named = (cte for cte in source.root().find_all(exp.CTE) if cte.alias == source.name)
        cte = next(named, None)
        columns = tables.get(source.name, []) if cte is None else _selected(cte.this, tables)
    alias = source.args.get("alias")
    return _renamed(columns, [c.name for c in alias.args.get("columns") or ()] if alias else [])


def _renamed(columns: Known, names: list[str]) -> Known:
    return [(name, kind) for name, (_, kind) in zip(names, columns, strict=False)] or columns
