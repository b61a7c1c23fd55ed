"""What a job would do: as SQL that one could run instead, and where each table goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from streamcore import Column, Secret
from streamcore.values import masked

from ..lexer import name_literal, text_literal
from ..texttable import text_table
from .model import Job
from .routing import Router, Selector, TableId
from .row_sql import TABLE, TOLD
from .sinks import SinkPlan
from .sources import SourcePlan

ColumnsOf = Callable[[TableId], Sequence[Column] | None]
"""The columns of a table as the sink gets them; None where only its rows can tell."""

_WHERE = {
    "debezium-json": ("value.source.database", "value.source.schema", "value.source.table"),
    "canal-json": ("value.database", "", "value.table"),
    "maxwell-json": ("value.database", "", "value.table"),
    "ogg-json": ("", "", "value.table"),
}
"""The metadata that tell the database, the schema and the table of a row."""
_NAMESPACE, _SCHEMA, _TABLE, _EVENT = TOLD
_WHOLE = "__table"
_LIKELY = (
    (re.compile(r"\\\.[*+]|\[[^\]]*\][*+]|\\w[*+]"), "any"),
    (re.compile(r"\\d[*+]?|\[0-9\][*+]?"), "1"),
)
"""What the usual parts of patterns stand for in a made-up name."""


def plan_text(
    job: Job,
    router: Router,
    source: SourcePlan,
    sink: SinkPlan,
    columns_of: ColumnsOf,
    samples: Sequence[str] = (),
) -> str:
    """The whole plan as SQL, for the tables that the file names and for those given as samples."""
    selectors = [rule.route.source for rule in job.routes] + [
        rule.source for rule in job.transforms
    ]
    named = [name for selector in selectors for name in selector.literals]
    tables = list(dict.fromkeys([*job.source.names, *map(TableId.of, [*named, *samples])]))
    tables = [table for table in tables if job.source.wants(table)]
    written = _Sql(job, router, source, sink, columns_of)
    shown = tables if samples else [*tables, *_made_up(selectors, job, tables)]
    told = "\n".join(_routing(job, router, sink, shown)).splitlines()
    return "\n".join([*written.lines(tables), "", *(f"-- {line}".rstrip() for line in told)])


def _made_up(
    selectors: Iterable[Selector], job: Job, known: Iterable[TableId]
) -> Iterator[TableId]:
    """A table for each pattern that is for none of those known, where one is easily made up."""
    found = list(known)
    for selector in selectors:
        text = selector.text
        for pattern, word in _LIKELY:
            text = pattern.sub(word, text)
        table = TableId.of(re.sub(r"[()]", "", text))
        if (
            not any(map(selector.match, found))
            and selector.match(table)
            and job.source.wants(table)
        ):
            found.append(table)
            yield table


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


_OURS = (
    "topic",
    "format",
    "key.format",
    "value.format",
    "partition.strategy",
    "stream.arn",
    "debezium-json.include-schema.enabled",
)


class _Sql:
    """Writes a job as statements."""

    def __init__(
        self,
        job: Job,
        router: Router,
        source: SourcePlan,
        sink: SinkPlan,
        columns_of: ColumnsOf,
    ) -> None:
        self._job, self._router, self._columns_of = job, router, columns_of
        self._read, self._sink = source, sink
        self._format = job.source.options.get("value.format") or job.source.options.get("format")
        told = source.table.by_name.get(TABLE) if source.typed else None
        self._teller = told.metadata if told else None

    def lines(self, tables: Sequence[TableId]) -> Iterator[str]:
        inserts: list[str] = []
        targets: set[str] = set()
        yield "-- the same in SQL"
        yield from (f"-- but for {each}" for each in self._unsaid())
        for table in tables:
            declared = self._job.source.declared(table)
            columns = self._columns_of(table)
            if declared is None or columns is None:
                yield f"-- '{table}': its columns are taken from its rows"
                continue
            rule = self._job.transform_of(table)
            key = (rule.primary_key if rule else ()) or declared.primary_key
            if self._sink.needs_key and not key:
                yield f"-- '{table}': its primary key is taken from its messages"
                continue
            source = f"source.{table}"
            yield self._source(table, source, declared.columns, declared.primary_key)
            for name in self._router.sinks_of(table):
                if name not in targets:
                    targets.add(name)
                    yield self._target(name, columns, key)
                inserts.append(self._insert(table, source, name, declared.columns))
        if inserts:
            yield "EXECUTE STATEMENT SET BEGIN"
            yield from inserts
            yield "END;"
        elif not tables:
            yield "-- no statements: declare columns in 'source.tables' to see some"

    def _source(
        self, table: TableId, name: str, columns: Sequence[Column], key: Sequence[str]
    ) -> str:
        extra = [
            f"{column} STRING METADATA FROM '{place}' VIRTUAL"
            for column, place, _ in self._places(table)
        ]
        if _EVENT in self._used(table):
            extra.append(f"{_EVENT} STRING METADATA FROM 'row-kind' VIRTUAL")
        shown = {"connector": self._job.source.type, **self._job.source.options}
        if self._teller == "topic":
            shown = {key: t for key, t in shown.items() if key != "topic-pattern"}
            shown["topic"] = str(table)
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
        prefix = "sink.transactional-id-prefix"
        if prefix in self._sink.options:
            own[prefix] = f"{self._sink.options[prefix]}-{name}"  # each table is a sink of its own
        shown = own | {k: text for k, text in sink.options.items() if k not in _OURS}
        return _create(name, columns, key, [], shown, sink.secrets)

    def _insert(self, table: TableId, source: str, name: str, columns: Sequence[Column]) -> str:
        rule = self._job.transform_of(table)
        every = ", ".join(name_literal(column.name) for column in columns)
        projection = every
        conditions = [f"{column} = {text_literal(name)}" for column, _, name in self._places(table)]
        if rule is not None and rule.projection is not None:
            projection = rule.projection.text.replace(r"\*", every)
        if rule is not None and rule.filter is not None:
            conditions.append(f"({rule.filter.text})")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        rows = f"SELECT {projection} FROM {name_literal(source)}{where}"  # noqa: S608 - only shown
        return f"  INSERT INTO {name_literal(name)} {rows};"

    def _places(self, table: TableId) -> list[tuple[str, str, str]]:
        """What tells rows of a table from others: a column, its metadata key and its value."""
        if self._teller is not None and self._teller != "topic":
            return [(_WHOLE, self._teller, str(table))]
        database, schema, name = _WHERE.get(self._format or "", ("", "", ""))
        if table.namespace and schema:
            told = [(_NAMESPACE, database, table.namespace), (_SCHEMA, schema, table.schema)]
        else:
            told = [(_SCHEMA, database, table.schema)]
        told.append((_TABLE, name, table.table if database else str(table)))
        return [each for each in told if each[1]]

    def _unsaid(self) -> Iterator[str]:
        """What a job does that its SQL does not."""
        sink = self._job.sink
        for key in ("sink.custom-header", "sink.add-tableId-to-header-enabled"):
            if key in sink.node.members:
                yield f"'{key}': declare a column METADATA FROM 'headers' to write them"
        if sink.type == "kafka" and self._sink.partitioner:
            yield f"partitions: this job writes with '{self._sink.partitioner}'"
        for number, rule in enumerate(self._job.transforms, 1):
            if rule.soft_delete:
                yield f"transform[{number}]: deletes are written as rows there, and deleted here"
            if rule.partition_keys:
                yield f"transform[{number}]: 'partition-keys' has no equal"

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
