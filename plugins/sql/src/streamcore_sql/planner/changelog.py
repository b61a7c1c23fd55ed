"""Row kinds through a query: rows of a changelog keep theirs where each row stays one row.

Aggregates take rows back where they can: COUNT, SUM and AVG, by the sign of each change.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sqlglot
from sqlglot import exp
from streamcore.table import ROW_KIND

from ..cursor import SqlText
from ..errors import SqlError
from ..rewrite import Rewritten
from .retraction import aggregate_by_sign
from .sources import Scan
from .temporal import versioned_views


def carried(rewritten: Rewritten, scans: tuple[Scan, ...], query: SqlText) -> Rewritten:
    """The query with `_row_kind` as one more column, if it reads a changelog."""
    kinds = {
        ref.view: read
        for ref, read in zip(rewritten.tables, scans, strict=True)
        if read.changelog and not ref.lookup and ref.view not in versioned_views(rewritten)
    }
    if not kinds:
        return rewritten
    name = next(iter(kinds.values())).bound.name
    if rewritten.stages or rewritten.keeps_last or rewritten.windows:
        raise SqlError(
            f"'{name}' updates and deletes rows, and this query cannot take rows back",
            query.place,
            "Select, filter, look rows up, or COUNT, SUM and AVG them by key.",
        )
    if rewritten.aggregations and not all(_gives_old_rows(read) for read in kinds.values()):
        raise SqlError(
            f"'{name}' tells what a row is now but not what it was, and so no aggregate can take "
            "the old row back",
            query.place,
            "Set 'changelog.normalize' to 'true', insert it into a table with a changelog format "
            "such as 'debezium-json', and aggregate that.",
        )
    tree: Any = sqlglot.parse_one(rewritten.sql, read="spark")
    if rewritten.aggregations:
        carried_on = _aggregated(tree, set(kinds), query)
    else:
        carried_on = _carry(tree, set(kinds))
    if not carried_on:
        raise SqlError(
            f"'{name}' updates and deletes rows, which a join or set of streams cannot pass on",
            query.place,
            "Read it alone, or as a lookup: JOIN ... FOR SYSTEM_TIME AS OF PROCTIME().",
        )
    return replace(rewritten, sql=tree.sql(dialect="spark", normalize_functions=False))


def _gives_old_rows(read: Scan) -> bool:
    """Whether every update comes with the row as it was, without an operator of its own."""
    connector = read.bound.connector
    return "-U" in connector.produces() and not getattr(connector, "normalize", False)


def _aggregated(node: exp.Expression, changelogs: set[str], query: SqlText) -> bool:
    """Carry kinds up to the one aggregation there is, and turn it into sums of signs."""
    if not isinstance(node, exp.Select):
        return False
    source = node.args["from_"].this if node.args.get("from_") else None
    if source is None or node.args.get("joins") or not _holds(source, changelogs):
        return False
    if not node.args.get("group") and not any(node.find_all(exp.AggFunc)):
        return False  # an aggregation further down, whose rows change once more
    if isinstance(source, exp.Subquery) and not _carry(source, changelogs):
        return False
    aggregate_by_sign(node, query)
    return True


def _carry(node: exp.Expression, changelogs: set[str]) -> bool:
    """Add the kind to every SELECT from the changelog up; False where there is no one way."""
    if isinstance(node, exp.Subquery):
        return _carry(node.this, changelogs)
    if not isinstance(node, exp.Select):
        return False
    first = node.args.get("from_")
    joined = [join.this for join in node.args.get("joins") or ()]
    sources = [*([first.this] if first else []), *joined]
    holders = [source for source in sources if _holds(source, changelogs)]
    if len(holders) != 1 or holders[0] is not sources[0]:
        return False
    source = holders[0]
    if isinstance(source, exp.Subquery) and not _carry(source, changelogs):
        return False
    if not any(isinstance(each, exp.Star) for each in node.expressions):
        node.select(exp.column(ROW_KIND, table=source.alias_or_name, quoted=True), copy=False)
    return True


def _holds(source: exp.Expression, changelogs: set[str]) -> bool:
    return any(table.name in changelogs for table in source.find_all(exp.Table))
