"""What a checkpoint depends on: the sources and the state of the query that wrote it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from streamcore.table import ROW_KIND

from .planner.queries import QueryPlan
from .planner.sources import Scan
from .rewrite import TemporalJoin
from .schema import options_of

_IDENTITY = ("connector", "topic", "topic-pattern", "stream", "stream.arn")
_PREFIX = re.compile(r"\b_q\d+_")


@dataclass(frozen=True)
class Fingerprint:
    """Enough of a query to tell whether another one can go on where it stopped."""

    sources: tuple[dict[str, str], ...]
    state: tuple[str, ...]
    columns: dict[str, str]
    """The types of the columns that state is made of; empty without state."""
    mode: str
    query: str
    """The query's own text, shown to people and never compared."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Fingerprint:
        sources, state = tuple(plain["sources"]), tuple(plain["state"])
        return cls(sources, state, plain["columns"], plain["mode"], plain["query"])


def fingerprint(plan: QueryPlan, scans: Sequence[Scan] | None = None) -> Fingerprint:
    """The fingerprint of a planned query; `scans` if it reads otherwise than planned."""
    reads = [read for read in scans or plan.scans if read.streaming]
    state = (*_latest_rows(reads), *_state(plan))
    columns = {
        f"{read.bound.name}.{name}": read.table.by_name[name].type
        for read in reads
        for name in (*read.projection, *read.table.primary_key)
        if state
    }
    mode = plan.mode if state else ""
    return Fingerprint(
        tuple(_source(read) for read in reads), state, columns, mode, plan.query.place.text
    )


def differences(before: Fingerprint, now: Fingerprint) -> Iterator[str]:
    """Why a query cannot go on from a checkpoint; nothing if it can."""
    if len(before.sources) != len(now.sources):
        yield f"it read {_listed(before.sources)}, and now reads {_listed(now.sources)}"
    else:
        for old, new in zip(before.sources, now.sources, strict=True):
            for key in _IDENTITY:
                if old.get(key) != new.get(key):
                    was, is_now = old.get(key, "none"), new.get(key, "none")
                    yield f"'{new['table']}' read {key} '{was}', and now reads '{is_now}'"
    if before.state != now.state:
        gone = [text for text in before.state if text not in now.state]
        new_ones = [text for text in now.state if text not in before.state]
        yield (
            f"its state was kept for {_joined(gone or before.state)}, "
            f"and is now needed for {_joined(new_ones or now.state)}"
        )
    else:
        for name in sorted(before.columns.keys() & now.columns.keys()):
            if before.columns[name] != now.columns[name]:
                yield f"column '{name}' was {before.columns[name]}, and is now {now.columns[name]}"
    if before.state and before.state == now.state and before.mode != now.mode:
        yield f"it ran in mode {before.mode}, and now needs {now.mode}"


def _source(read: Scan) -> dict[str, str]:
    options = options_of(read.bound.statement)
    return {"table": read.bound.name} | {key: options[key] for key in _IDENTITY if key in options}


def _listed(sources: Sequence[dict[str, str]]) -> str:
    return _joined([f"'{source['table']}'" for source in sources])


def _joined(texts: Sequence[str]) -> str:
    return ", ".join(texts) or "nothing"


# --- state ---------------------------------------------------------------------------------


def _latest_rows(reads: Sequence[Scan]) -> Iterator[str]:
    """What reads keep in state themselves, to tell the old row along with the new one."""
    for read in reads:
        if read.bound.connector.stream_updates():
            kept = dict.fromkeys((*read.projection, *read.table.primary_key))
            kept.pop(ROW_KIND, None)
            names, keys = ", ".join(kept), ", ".join(read.table.primary_key)
            forgets = " for a time" if read.bound.connector.forgets_rows() else ""
            yield f"the latest {names} of '{read.bound.name}' by {keys}{forgets}"


def _state(plan: QueryPlan) -> Iterator[str]:
    """Each thing Spark keeps state for, in words that change when the state does."""
    rewritten = plan.rewritten
    by_view = list(zip(rewritten.tables, plan.scans, strict=True))
    tables = _Tables(
        {_bare(ref.view): [n for n in read.projection if n != ROW_KIND] for ref, read in by_view},
        frozenset(_bare(ref.view) for ref, read in by_view if not read.streaming),
    )
    for stage in rewritten.stages:
        yield from _of_query(stage.sql, tables)
        operation = stage.operation
        columns = _selected(_parsed(stage.sql), tables)
        kept = ", ".join(columns)
        if isinstance(operation, TemporalJoin):
            columns += tables.columns[_bare(operation.right.view)]
            keys = ", ".join(map(str, operation.keys))
            yield f"TemporalJoin({keys}) of {', '.join(columns)}"
        else:
            yield f"DropDuplicates({', '.join(operation.keys) if operation.keys else kept})"
        tables.columns[_bare(stage.view)] = columns
    for window in (part.window for part in rewritten.aggregations):
        if window is not None:
            sizes = [window.size, *([window.slide] if window.slide else []), window.offset]
            lengths = ", ".join(f"{size} ms" for size in sizes if size)
            yield f"a {window.kind} window of {lengths} over {window.time}"
    yield from _of_query(rewritten.sql, tables)


@dataclass(frozen=True)
class _Tables:
    """The columns of each view that a query reads, and which of the views do not grow."""

    columns: dict[str, list[str]]
    static: frozenset[str]

    def are_static(self, node: Any) -> bool:
        return all(table.name in self.static for table in node.find_all(exp.Table))


def _of_query(sql: str, tables: _Tables) -> Iterator[str]:
    tree = _parsed(sql)
    for select in tree.find_all(exp.Select):
        calls = [call for each in select.expressions for call in _aggregates(each)]
        having = select.args.get("having")
        calls += _aggregates(having) if having else []
        group = select.args.get("group")
        if group is not None or calls:
            keys = ", ".join(_sql(key) for key in group.expressions) if group is not None else ""
            found = ", ".join(dict.fromkeys(_of_call(call, select, tables) for call in calls))
            yield f"{found or 'the keys alone'} by {keys or 'nothing'}"
        yield from _of_joins(select, tree, tables)


def _of_call(call: Any, select: Any, tables: _Tables) -> str:
    """An aggregate; of one that keeps whole rows, what they are made of."""
    whole = call.find(exp.Star) is not None and not isinstance(call, exp.Count)
    return f"{_sql(call)} of {', '.join(_of_sources(select, tables))}" if whole else _sql(call)


def _of_joins(select: Any, tree: Any, tables: _Tables) -> Iterator[str]:
    """The joins of a SELECT, with the columns of the rows that wait for others."""
    first = select.args.get("from_")
    alone = first is None or tables.are_static(first)
    for join in select.args.get("joins") or ():
        side = " ".join(filter(None, (join.side, join.kind))) or "INNER"
        condition = join.args.get("on")
        text = f"{side} JOIN ON {_sql(condition) if condition else 'nothing'}"
        waits = not alone and not tables.are_static(join.this)
        yield f"{text} of {', '.join(_used(tree, tables))}" if waits else text
    where = select.args.get("where")
    for node in where.find_all(exp.In, exp.Exists) if where else ():
        query = node.this if isinstance(node, exp.Exists) else node.args.get("query")
        if query is None or tables.are_static(query):
            continue
        inner = query.this if isinstance(query, exp.Subquery) else query
        condition = inner.args.get("where")
        what = (
            f"EXISTS {_sql(condition.this) if condition else 'any row'}"
            if isinstance(node, exp.Exists)
            else f"{_sql(node.this)} IN {', '.join(_selected(inner, tables))}"
        )
        negated = "NOT " if isinstance(node.parent, exp.Not) else ""
        yield f"{negated}{what} of {', '.join(_used(tree, tables))}"


def _used(tree: Any, tables: _Tables) -> list[str]:
    """The columns a query uses for more than to leave rows out."""
    names = {c.name for c in tree.find_all(exp.Column) if not c.find_ancestor(exp.Where)}
    for select in tree.find_all(exp.Select):
        if any(each.is_star for each in select.expressions):
            names.update(_of_sources(select, tables))
    return sorted(names - {"*"})


def _selected(node: Any, tables: _Tables) -> list[str]:
    """What a query selects; a star is what its sources have."""
    if isinstance(node, exp.Subquery):
        return _selected(node.this, tables)
    if isinstance(node, exp.SetOperation):
        return [*_selected(node.left, tables), *_selected(node.right, tables)]
    found: list[str] = []
    for each in node.expressions:
        found += _of_sources(node, tables) if each.is_star else [_sql(each)]
    return found


def _of_sources(select: Any, tables: _Tables) -> list[str]:
    first = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or ()]
    found: list[str] = []
    for source in [*([first.this] if first else []), *joined]:
        if isinstance(source, exp.Subquery):
            found += _selected(source, tables)
        else:
            named = (cte for cte in select.root().find_all(exp.CTE) if cte.alias == source.name)
            cte = next(named, None)
            found += _selected(cte.this, tables) if cte else tables.columns.get(source.name, [])
    return found


def _parsed(sql: str) -> Any:
    return sqlglot.parse_one(_bare(sql), read="spark")


def _bare(text: str) -> str:
    """Without the numbers that views are told apart by, which change with each planning."""
    return _PREFIX.sub("", text)


def _aggregates(node: Any) -> list[Any]:
    return [
        found for found in node.find_all(exp.AggFunc) if found.find_ancestor(exp.AggFunc) is None
    ]


def _sql(node: Any) -> str:
    return " ".join(str(node.sql(dialect="spark", comments=False)).split())
