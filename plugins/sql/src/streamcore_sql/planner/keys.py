"""Whether the changes of a query belong to the rows that a sink's primary key tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlglot
from sqlglot import exp
from streamcore.table import ROW_KIND

from ..cursor import SqlText
from ..errors import SqlError
from ..rewrite import Rewritten
from .sources import Scan

_WRITE = "Declare the PRIMARY KEY of '{sink}' on what tells the query's rows apart: {keys}."


def check_key(
    rewritten: Rewritten,
    scans: Sequence[Scan],
    positions: Sequence[int | None],
    sink: str,
    query: SqlText,
) -> None:
    """Refuse changes whose key is not the sink's, as far as the query shows it.

    `positions` are the columns of the query that fill the sink's primary key. A sink that keeps
    the latest row of each key would mix up, or never delete, rows that have other keys.
    """
    tree: Any = sqlglot.parse_one(rewritten.sql, read="spark")
    if not isinstance(tree, exp.Select) or None in positions:
        return
    chosen = [each.unalias() for each in tree.expressions if each.alias_or_name != ROW_KIND]
    if any(isinstance(each, exp.Star) for each in chosen):
        return
    filling = [chosen[at] for at in positions if at is not None and at < len(chosen)]
    keys = _grouped_by(tree, chosen) if rewritten.aggregations else _source_keys(scans)
    if keys is None or len(filling) != len(positions):
        return
    names = [key.alias_or_name or key.sql(dialect="spark") for key in keys]
    shown = ", ".join(names) or "nothing"
    hint = _WRITE.format(sink=sink, keys=shown)
    used = {column.name for each in filling for column in each.find_all(exp.Column)}
    for each in filling:
        if each.find(exp.AggFunc):
            trouble = (
                f"the primary key of '{sink}' is filled with {each.sql(dialect='spark')}, which "
                "changes with every row: rows written before could not be found again"
            )
            raise SqlError(trouble, query.place, hint)
    for key, name in zip(keys, names, strict=True):
        parts = {column.name for column in key.find_all(exp.Column)}
        if parts and not parts & used:
            trouble = (
                f"rows of this query are told apart by {shown}, but the primary key of '{sink}' "
                f"leaves out {name}: its rows would replace and delete each other"
            )
            raise SqlError(trouble, query.place, hint)
    if not rewritten.aggregations and (other := sorted(used - set(names))):
        trouble = (
            f"rows of this query are told apart by {shown}, but the primary key of '{sink}' is "
            f"filled with {', '.join(other)}: an update of it would leave the old row behind"
        )
        raise SqlError(trouble, query.place, hint)


def _grouped_by(tree: exp.Select, chosen: Sequence[Any]) -> list[Any] | None:
    """What the outermost aggregation groups by; None when it is further down."""
    group = tree.args.get("group")
    if group is None:
        return [] if any(tree.find_all(exp.AggFunc)) else None
    found = []
    for each in group.expressions:
        if isinstance(each, exp.Literal) and not each.is_string:
            at = int(each.this) - 1
            found.append(chosen[at] if at < len(chosen) else each)
        else:
            found.append(each)
    return found


def _source_keys(scans: Sequence[Scan]) -> list[Any] | None:
    """The primary key of the one changing table that is read; None when that says nothing."""
    changing = [read for read in scans if read.changelog]
    if len(changing) != 1 or len(scans) != 1 or not changing[0].bound.table.primary_key:
        return None
    return [exp.column(name) for name in changing[0].bound.table.primary_key]
