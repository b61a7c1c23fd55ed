"""What a job would do: as SQL that one could run instead, and where each table goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from streamcore import Column, Secret
from streamcore.values import masked

from ..lexer import name_literal, text_literal
from ..texttable import text_table
from .model import Job
from .routing import Router, TableId
from .sinks import SinkPlan

ColumnsOf = Callable[[TableId], Sequence[Column] | None]
"""The columns of a table as the sink gets them; None where only its rows can tell."""

_WHERE = {
    "debezium-json": ("value.source.database", "value.source.table"),
    "canal-json": ("value.database", "value.table"),
    "maxwell-json": ("value.database", "value.table"),
    "ogg-json": ("", "value.table"),
}
_SCHEMA, _TABLE, _EVENT = "__schema_name__", "__table_name__", "__data_event_type__"


def plan_text(job: Job, router: Router, sink: SinkPlan, columns_of: ColumnsOf) -> str:
    """The whole plan, for the tables that the file names."""
    named = [name for rule in (*job.routes, *job.transforms) for name in _names(rule)]
    tables = list(dict.fromkeys([*job.source.names, *map(TableId.of, named)]))
    tables = [table for table in tables if job.source.wants(table)]
    written = _Sql(job, router, sink, columns_of)
    return "\n".join([*written.lines(tables), "", *_routing(job, router, sink, tables)])


def _names(rule: object) -> list[str]:
    selector = rule.route.source if hasattr(rule, "route") else rule.source  # type: ignore[attr-defined]
    return list(selector.literals)


def _routing(job: Job, router: Router, sink: SinkPlan, tables: Sequence[TableId]) -> Iterator[str]:
    yield f"one query reads '{job.source.type}' and writes '{job.sink.type}'"
    rows = []
    for table in tables:
        rule = job.transform_of(table)
        told = f"transform[{job.transforms.index(rule) + 1}]" if rule else ""
        for name in router.sinks_of(table):
            rows.append((str(table), name, sink.target(name).topic, told))
    if rows:
        yield text_table(("source table", "sink table", "topic", "changed by"), rows)
    else:
        yield "every table keeps its name, unless a route is for it:"
    for number, each in enumerate(job.routes, 1):
        yield f"route[{number}]: {each.route.source.text} -> {each.route.target}"


class _Sql:
    """Writes a job as statements."""

    def __init__(self, job: Job, router: Router, sink: SinkPlan, columns_of: ColumnsOf) -> None:
        self._job, self._router, self._sink, self._columns_of = job, router, sink, columns_of

    def lines(self, tables: Sequence[TableId]) -> Iterator[str]:
        inserts: list[str] = []
        targets: set[str] = set()
        yield "-- the same in SQL"
        for table in tables:
            declared = self._job.source.declared(table)
            columns = self._columns_of(table)
            if declared is None or columns is None:
                yield f"-- '{table}': its columns are taken from its rows"
                continue
            source = f"source.{table}"
            yield self._source(table, source, declared.columns, declared.primary_key)
            for name in self._router.sinks_of(table):
                rule = self._job.transform_of(table)
                key = (rule.primary_key if rule else ()) or declared.primary_key
                if name not in targets:
                    targets.add(name)
                    yield self._target(name, columns, key)
                inserts.append(self._insert(table, source, name, declared.columns))
        if inserts:
            yield "EXECUTE STATEMENT SET BEGIN"
            yield from inserts
            yield "END;"

    def _source(
        self, table: TableId, name: str, columns: Sequence[Column], key: Sequence[str]
    ) -> str:
        options = self._job.source.options
        format_ = options.get("value.format") or options.get("format") or ""
        extra = []
        if format_ in _WHERE:
            for column, place in zip((_SCHEMA, _TABLE), _WHERE[format_], strict=True):
                if place:
                    extra.append(f"{column} STRING METADATA FROM '{place}' VIRTUAL")
        if _EVENT in self._used(table):
            extra.append(f"{_EVENT} STRING METADATA FROM 'row-kind' VIRTUAL")
        shown = {"connector": self._job.source.type, **options}
        return _create(name, columns, key, extra, shown, self._job.source.secrets)

    def _target(self, name: str, columns: Sequence[Column], key: Sequence[str]) -> str:
        sink = self._job.sink
        own: dict[str, str] = {"connector": sink.type}
        target = self._sink.target(name).topic
        if sink.type == "upsert-kafka":
            own |= {"topic": target, "key.format": "json", "value.format": "json"}
        elif sink.type == "kafka":
            own |= {"topic": target, "format": self._sink.envelope}
            if key:
                own |= {"key.format": "json", "key.fields": ";".join(key)}
        else:
            own |= {"stream.arn": target, "format": self._sink.envelope}
        ours = ("topic", "format", "key.format", "value.format", "partition.strategy", "stream.arn")
        shown = own | {k: text for k, text in sink.options.items() if k not in ours}
        return _create(name, columns, key, [], shown, sink.secrets)

    def _insert(self, table: TableId, source: str, name: str, columns: Sequence[Column]) -> str:
        rule = self._job.transform_of(table)
        every = ", ".join(name_literal(column.name) for column in columns)
        projection = every
        conditions = []
        if rule is not None and rule.projection is not None:
            projection = rule.projection.text.replace(r"\*", every)
        options = self._job.source.options
        places = _WHERE.get(options.get("value.format") or options.get("format") or "")
        if places:
            if places[0]:
                conditions.append(f"{_SCHEMA} = {text_literal(table.schema)}")
            named = table.table if places[0] else str(table)
            conditions.append(f"{_TABLE} = {text_literal(named)}")
        if rule is not None and rule.filter is not None:
            conditions.append(f"({rule.filter.text})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = f"SELECT {projection} FROM {name_literal(source)}{where}"  # noqa: S608 - only shown
        return f"  INSERT INTO {name_literal(name)} {rows};"

    def _used(self, table: TableId) -> str:
        rule = self._job.transform_of(table)
        nodes = [rule.projection, rule.filter] if rule else []
        return " ".join(node.text for node in nodes if node is not None)


def _create(
    name: str,
    columns: Sequence[Column],
    key: Sequence[str],
    extra: Sequence[str],
    options: Mapping[str, str | Secret],
    secrets: frozenset[str],
) -> str:
    lines = [f"{name_literal(column.name)} {column.type}" for column in columns]
    lines += extra
    if key:
        lines.append(f"PRIMARY KEY ({', '.join(map(name_literal, key))}) NOT ENFORCED")
    shown = [
        f"'{key}' = {text_literal('***' if key in secrets else masked(key, text))}"
        for key, text in options.items()
    ]
    body, settings = ",\n  ".join(lines), ",\n  ".join(shown)
    return f"CREATE TABLE {name_literal(name)} (\n  {body}\n) WITH (\n  {settings}\n);"
