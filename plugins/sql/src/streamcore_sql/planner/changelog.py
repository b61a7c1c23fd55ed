"""Row kinds through a query: rows of a changelog keep theirs where each row stays one row.

Aggregates take rows back where they can: COUNT, SUM and AVG, by the sign of each change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import sqlglot
from sqlglot import exp

from ..cursor import SqlText
from ..errors import SqlError
from ..rewrite import Rewritten
from ..statements import Option
from .binding import bind
from .retraction import (
    aggregate_by_sign,
    delete_groups,
    delete_what_is_left_out,
    filter_by_kind,
    keep_kind,
)
from .sources import Scan
from .temporal import versioned_views


@dataclass(frozen=True)
class _Reads:
    """The views of a query: those whose rows change, and all that are streams."""

    changelogs: frozenset[str]
    streams: frozenset[str]
    upserts: bool = False
    """Whether the rows go into a table that keeps the latest row of each key."""


def carried(
    rewritten: Rewritten, scans: tuple[Scan, ...], query: SqlText, *, upserts: bool = False
) -> Rewritten:
    """The query with `_row_kind` as one more column, if it reads a changelog.

    `upserts` for a table that keeps the latest row of each key and is not told old ones.
    """
    _check_versions(rewritten, scans, query)
    kinds = changing(rewritten, scans)
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
    if upserts and tree.find(exp.Lateral):
        raise SqlError(
            f"'{name}' updates and deletes rows, and UNNEST makes several of one, which a later "
            "change could not find again by their key",
            query.place,
            "Insert into 'kafka' with a changelog format such as 'debezium-json'.",
        )
    both = zip(rewritten.tables, scans, strict=True)
    streams = frozenset(ref.view for ref, read in both if read.streaming)
    reads = _Reads(frozenset(kinds), streams, upserts)
    if rewritten.aggregations:
        carried_on = _aggregated(tree, replace(reads, upserts=False), query)
    else:
        carried_on = _carry(tree, reads)
    if not carried_on:
        raise SqlError(
            f"'{name}' updates and deletes rows, which a join or set of streams cannot pass on",
            query.place,
            "Read it alone, or as a lookup: JOIN ... FOR SYSTEM_TIME AS OF PROCTIME().",
        )
    return replace(rewritten, sql=tree.sql(dialect="spark", normalize_functions=False))


def _check_versions(rewritten: Rewritten, scans: tuple[Scan, ...], query: SqlText) -> None:
    views = versioned_views(rewritten)
    for ref, read in zip(rewritten.tables, scans, strict=True):
        if ref.view in views and read.bound.connector.stream_updates():
            raise SqlError(
                f"'{read.bound.name}' is normalised, and a join at a row's own time takes its "
                "versions as they are",
                query.place,
                "Declare it without 'changelog.normalize'.",
            )


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


def with_old_rows(
    rewritten: Rewritten, scans: tuple[Scan, ...], *, retracts: bool = False
) -> tuple[Scan, ...]:
    """The reads as aggregates need them: with rows as they were, and none dropped for being late.

    So do tables that keep every change, which `retracts` says. Any other query needs neither, and
    so does not pay for them.
    """
    if not (rewritten.aggregations or retracts) or rewritten.windows:
        return scans
    views = changing(rewritten, scans)
    return tuple(
        _with_old_rows(read) if ref.view in views else read
        for ref, read in zip(rewritten.tables, scans, strict=True)
    )


def changing(rewritten: Rewritten, scans: tuple[Scan, ...]) -> dict[str, Scan]:
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


def _aggregated(node: exp.Expression, reads: _Reads, query: SqlText) -> bool:
    """Carry kinds up to the one aggregation there is, and turn it into sums of signs."""
    if not isinstance(node, exp.Select):
        return False
    source = node.args["from_"].this if node.args.get("from_") else None
    if source is None or node.args.get("joins") or not _holds([source], reads.changelogs):
        return False
    if not node.args.get("group") and not _own_aggregates(node):
        if not isinstance(source, exp.Subquery) or not _aggregated(source.this, reads, query):
            return False
        filter_by_kind(node)
        return True
    if isinstance(source, exp.Subquery) and not _carry(source, reads):
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


def _carry(node: exp.Expression, reads: _Reads) -> bool:
    """Add the kind to every SELECT from the changelog up; False where there is no one way.

    The changelog comes first, and what is joined to it stands still while a micro-batch runs.
    """
    if isinstance(node, exp.Subquery):
        return _carry(node.this, reads)
    if not isinstance(node, exp.Select):
        return False
    source = node.args["from_"].this if node.args.get("from_") else None
    if source is None or not _holds([source], reads.changelogs):
        return False
    joins, where = node.args.get("joins") or [], node.args.get("where")
    others = [*joins, *node.expressions, *([where] if where else [])]
    if _holds(others, reads.streams | reads.changelogs):
        return False
    if any(join.side.upper() not in ("", "LEFT") or _halves(join) for join in joins):
        return False
    if isinstance(source, exp.Subquery) and not _carry(source, reads):
        return False
    if reads.upserts:
        delete_what_is_left_out(node)
    else:
        keep_kind(node)
    return True


def _halves(join: exp.Join) -> bool:
    return join.kind.upper() in ("SEMI", "ANTI")


def _holds(parts: Iterable[exp.Expression], views: frozenset[str]) -> bool:
    return any(table.name in views for part in parts for table in part.find_all(exp.Table))
