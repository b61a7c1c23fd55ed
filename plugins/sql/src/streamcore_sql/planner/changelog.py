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
from ..statements import Option
from .binding import bind
from .retraction import (
    aggregate_by_sign,
    delete_groups,
    delete_what_is_filtered,
    filter_by_kind,
)
from .sources import Scan
from .temporal import versioned_views


def carried(
    rewritten: Rewritten, scans: tuple[Scan, ...], query: SqlText, *, upserts: bool = False
) -> Rewritten:
    """The query with `_row_kind` as one more column, if it reads a changelog.

    `upserts` for a table that keeps the latest row of each key and is not told old ones.
    """
    kinds = _changing(rewritten, scans)
    if not kinds:
        return _deleting(rewritten) if upserts and rewritten.mode == "update" else rewritten
    name = next(iter(kinds.values())).bound.name
    if rewritten.stages or rewritten.keeps_last or rewritten.windows:
        raise SqlError(
            f"'{name}' updates and deletes rows, and this query cannot take rows back",
            query.place,
            "Select, filter, look rows up, or COUNT, SUM and AVG them by key.",
        )
    if len(rewritten.aggregations) > 1:
        raise SqlError(
            f"'{name}' updates and deletes rows, and an aggregate of an aggregate cannot take them "
            "back",
            query.place,
            "Insert the inner aggregate into an 'upsert-kafka' table, and aggregate that one.",
        )
    if rewritten.aggregations:
        for read in kinds.values():
            _check_old_rows(read, query)
    tree: Any = _inlined(sqlglot.parse_one(rewritten.sql, read="spark"))
    if rewritten.aggregations:
        carried_on = _aggregated(tree, set(kinds), query)
    else:
        carried_on = _carry(tree, set(kinds), upserts=upserts)
    if not carried_on:
        raise SqlError(
            f"'{name}' updates and deletes rows, which a join or set of streams cannot pass on",
            query.place,
            "Read it alone, or as a lookup: JOIN ... FOR SYSTEM_TIME AS OF PROCTIME().",
        )
    return replace(rewritten, sql=tree.sql(dialect="spark", normalize_functions=False))


def _deleting(rewritten: Rewritten) -> Rewritten:
    """The query with kinds that delete groups which a later row takes out of the result."""
    tree: Any = _inlined(sqlglot.parse_one(rewritten.sql, read="spark"))
    if len(rewritten.aggregations) != 1 or not _filters_groups(tree):
        return rewritten
    return replace(rewritten, sql=tree.sql(dialect="spark", normalize_functions=False))


def _filters_groups(node: exp.Expression) -> bool:
    """Add kinds to a SELECT of groups; False if it leaves none out, or is none."""
    *around, groups = _down_to_groups(node) or (None,)
    if groups is None:
        return False
    if groups.args.get("having") is None and not any(each.args.get("where") for each in around):
        return False
    delete_groups(groups)
    for each in reversed(around):
        filter_by_kind(each)
    return True


def _down_to_groups(node: exp.Expression) -> tuple[exp.Select, ...]:
    """The SELECTs from a result down to the one that groups its rows; none if none does."""
    if not isinstance(node, exp.Select) or node.args.get("joins"):
        return ()
    if node.args.get("group"):
        return (node,)
    source = node.args["from_"].this if node.args.get("from_") else None
    inner = _down_to_groups(source.this) if isinstance(source, exp.Subquery) else ()
    return (node, *inner) if inner else ()


def with_old_rows(rewritten: Rewritten, scans: tuple[Scan, ...]) -> tuple[Scan, ...]:
    """The reads as aggregates need them: with rows as they were, and none dropped for being late.

    A query without aggregates needs neither, and so does not pay for them.
    """
    if not rewritten.aggregations or rewritten.windows:
        return scans
    changing = _changing(rewritten, scans)
    return tuple(
        _with_old_rows(read) if ref.view in changing else read
        for ref, read in zip(rewritten.tables, scans, strict=True)
    )


def _changing(rewritten: Rewritten, scans: tuple[Scan, ...]) -> dict[str, Scan]:
    """The reads, by their views, whose rows change while the query runs."""
    versions = versioned_views(rewritten)
    return {
        ref.view: read
        for ref, read in zip(rewritten.tables, scans, strict=True)
        if read.changelog and not ref.lookup and ref.view not in versions
    }


def _with_old_rows(read: Scan) -> Scan:
    read, connector = replace(read, delay=None), read.bound.connector
    if not read.streaming or "-U" in connector.produces():
        return read
    options = [Option(key, value) for key, value in connector.with_old_rows().items()]
    return replace(read, bound=bind(read.bound.statement, tuple(options)))


def _check_old_rows(read: Scan, query: SqlText) -> None:
    name, connector = read.bound.name, read.bound.connector
    if "-U" not in connector.produces():
        raise SqlError(
            f"'{name}' tells what a row is now but not what it was, and so no aggregate can take "
            "the old row back",
            query.place,
            "Aggregate a bounded table, which has only its latest rows.",
        )
    if connector.forgets_rows():
        raise SqlError(
            f"'{name}' forgets rows that no longer change, and so no aggregate could take them "
            "back: a row that changes after that would count twice",
            query.place,
            "Remove 'changelog.normalize.ttl'.",
        )


def _aggregated(node: exp.Expression, changelogs: set[str], query: SqlText) -> bool:
    """Carry kinds up to the one aggregation there is, and turn it into sums of signs."""
    if not isinstance(node, exp.Select):
        return False
    source = node.args["from_"].this if node.args.get("from_") else None
    if source is None or node.args.get("joins") or not _holds(source, changelogs):
        return False
    if not node.args.get("group") and not _own_aggregates(node):
        if not isinstance(source, exp.Subquery) or not _aggregated(source.this, changelogs, query):
            return False
        filter_by_kind(node)
        return True
    if isinstance(source, exp.Subquery) and not _carry(source, changelogs):
        return False
    aggregate_by_sign(node, query)
    return True


def _own_aggregates(node: exp.Select) -> bool:
    return any(found.find_ancestor(exp.Select) is node for found in node.find_all(exp.AggFunc))


def _inlined(tree: Any) -> Any:
    """The query with each name of its WITH replaced by what it stands for."""
    named = tree.args.get("with_")
    if named is None or named.args.get("recursive"):
        return tree
    if any(each.args["alias"].columns for each in named.expressions):
        return tree
    tree.set("with_", None)
    known: dict[str, Any] = {}
    for each in named.expressions:
        known[each.alias] = _filled(each.this.copy(), known)
    return _filled(tree, known)


def _filled(body: Any, known: dict[str, Any]) -> Any:
    for table in list(body.find_all(exp.Table)):
        if table.name in known and not table.db:
            alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name))
            table.replace(exp.Subquery(this=known[table.name].copy(), alias=alias))
    return body


def _carry(node: exp.Expression, changelogs: set[str], *, upserts: bool = False) -> bool:
    """Add the kind to every SELECT from the changelog up; False where there is no one way."""
    if isinstance(node, exp.Subquery):
        return _carry(node.this, changelogs, upserts=upserts)
    if not isinstance(node, exp.Select):
        return False
    first = node.args.get("from_")
    joined = [join.this for join in node.args.get("joins") or ()]
    sources = [*([first.this] if first else []), *joined]
    holders = [source for source in sources if _holds(source, changelogs)]
    if len(holders) != 1 or holders[0] is not sources[0]:
        return False
    source = holders[0]
    if isinstance(source, exp.Subquery) and not _carry(source, changelogs, upserts=upserts):
        return False
    kind = exp.column(ROW_KIND, table=source.alias_or_name, quoted=True)
    if upserts and node.args.get("where") and not (joined and node.is_star):
        delete_what_is_filtered(node, kind.sql(dialect="spark"))
    elif not node.is_star:
        node.select(kind, copy=False)
    return True


def _holds(source: exp.Expression, changelogs: set[str]) -> bool:
    return any(table.name in changelogs for table in source.find_all(exp.Table))
