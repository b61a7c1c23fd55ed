"""Where rows come from: any connector, as rows of text that tell their table and their kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamcore import ROW_KIND, Column, Connector, Secret, StreamcoreError, Table
from streamcore.checks import check_table
from streamcore.spark.carrier import pack
from streamcore.spark.changes import read_changes
from streamcore.spark.types import spark_schema

from ..lexer import text_literal
from . import ends
from .errors import Problems, RowRefused
from .model import Job, Source
from .routing import TableId
from .row_sql import KIND, ROW, TABLE, TEXT, to_text
from .shapes import Seen
from .table_changes import Envelope

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE = 1000
"""How many changes of each part of a topic are looked at before a job starts."""
_SHAPE, _KEY, _MESSAGE_KEY = "shape", "primary_key", "message_key"
_KIND = Column(ROW_KIND, "STRING", metadata="row-kind", virtual=True)
_ENVELOPES = {each.value for each in Envelope}
_TELLERS = ("table", "value.table")
"""Metadata of a connector, or of its format, that is the full name of the table of each row."""
_OWN = ("type", "name", "tables")


def _told(name: str, kind: str, key: str) -> Column:
    return Column(name, kind, metadata=key, virtual=True)


@dataclass(frozen=True)
class SourcePlan:
    """How a job reads: `table` is what the connector is asked for, with these options."""

    connector: Connector
    options: Mapping[str, str | Secret]
    table: Table
    typed: Mapping[TableId, Sequence[Column]]
    """The tables of a source whose format needs their columns; empty if rows tell their own."""
    reading: Mapping[str, str]
    """How JSON rows are to be read."""
    notes: Sequence[str] = ()
    is_open: bool = False
    """Whether typed rows may belong to tables that the file does not name."""

    @property
    def has_before(self) -> bool:
        """Whether an update tells the former row too."""
        return "-U" in self.connector.produces()

    @property
    def tells_shapes(self) -> bool:
        return not self.typed

    def stream(self, spark: SparkSession) -> DataFrame:
        """The rows, as they come, through what the connector adds to a read."""
        return self._shown(read_changes(spark, self.options, self.table))

    def sample(self, spark: SparkSession) -> DataFrame | None:
        """Some of the rows the job would begin with, if the source can say where they end."""
        if not self.tells_shapes or not ends.has_option(self.connector, "scan.bounded.mode"):
            return None
        kept = {
            key: text
            for key, text in self.options.items()
            if not key.startswith(("scan.bounded.", "scan.deser.failure-"))
        }
        own = {"scan.bounded.mode": "latest-offset"}
        if ends.has_option(self.connector, "scan.deser.failure-handler"):
            own["scan.deser.failure-handler"] = "skip"  # the job itself will meet them, and tell
        return self._rows(spark.read, {**kept, **own}).limit(SAMPLE)

    def _rows(self, reader: object, options: Mapping[str, str | Secret]) -> DataFrame:
        schema = spark_schema(self.table.columns)
        packed = pack(options, self.table)
        frame: DataFrame = (
            reader.format("streamcore").options(**packed).schema(schema).load()  # type: ignore[attr-defined]
        )
        return self._shown(frame)

    def _shown(self, frame: DataFrame) -> DataFrame:
        frame = frame.withColumnRenamed(ROW_KIND, KIND)
        if KIND not in frame.columns:
            frame = frame.selectExpr("*", f"'+I' AS {KIND}")
        return _as_text(frame, self.typed) if self.typed else frame


def _as_text(frame: DataFrame, typed: Mapping[TableId, Sequence[Column]]) -> DataFrame:
    """Typed rows as text, each with the columns of its own table."""
    if TABLE not in frame.columns:
        (table,) = typed
        frame = frame.selectExpr("*", f"{text_literal(str(table))} AS {TABLE}")
    cases = " ".join(
        f"WHEN {text_literal(str(table))} THEN {to_text(columns)}"
        for table, columns in typed.items()
    )
    return frame.selectExpr(TABLE, f"CASE {TABLE} {cases} END AS {TEXT}", KIND).select(*ROW)


def plan_source(job: Job, problems: Problems) -> SourcePlan | None:
    """Check the source's options and columns."""
    source = job.source
    given = ends.secretive(source, source.options)
    if not source.type:
        return None
    connector, notes = ends.build(source, "source", given, problems, _OWN)
    if connector is None:
        return None
    if not connector.can("stream_reader"):
        trouble = f"source: type: connector '{source.type}' cannot be read as a stream"
        problems.add(trouble, source.node.members["type"])
        return None
    value_format = source.options.get("value.format") or source.options.get("format") or ""
    if source.unread:
        return None
    if value_format in _ENVELOPES:
        found: SourcePlan | None = _of_text(job, connector, given, value_format)
    else:
        found = _of_columns(job, connector, given, problems)
    return replace(found, notes=[*notes, *found.notes]) if found else None


def _of_text(job: Job, connector: Connector, given: ends.Options, value_format: str) -> SourcePlan:
    """Messages that tell their table: read as text, whatever the columns."""
    kept = {
        key: value
        for key, value in given.items()
        if key not in ("format", "value.format")
        and not key.startswith(("key.", "value.", f"{value_format}."))
    }
    settings = {
        key.removeprefix("value.").removeprefix(f"{value_format}."): str(value)
        for key, value in given.items()
        if key.removeprefix("value.").startswith(f"{value_format}.")
    }
    own = {"envelope": value_format}
    own |= {k: v for k, v in settings.items() if k in ("schema-include", "ignore-parse-errors")}
    options = {**kept, "connector": job.source.type, "format": "table-changes"}
    options |= {f"table-changes.{key}": text for key, text in own.items()}
    columns = [
        _told(TABLE, "STRING", "value.table"),
        _told(_SHAPE, "STRING", "value.shape"),
        _told(_KEY, "STRING", "value.primary-key"),
    ]
    if value_format == Envelope.DEBEZIUM.value and ends.has_option(connector, "key.format"):
        options |= {"key.format": "raw", "key.fields": _MESSAGE_KEY}
        options |= {"value.fields-include": "EXCEPT_KEY"}
        columns.append(Column(_MESSAGE_KEY, "STRING"))
    table = Table((Column(TEXT, "STRING"), *columns, _KIND), job.source.name or "source")
    reading = {
        key: text
        for key, text in settings.items()
        if key in ("timestamp-format.standard", "ignore-parse-errors")
    }
    notes = [
        f"source: '{key}' has no effect: '{value_format}' tells its tables and columns itself"
        for key in given
        if key.startswith(("key.", "value.fields"))
    ]
    return SourcePlan(connector, options, table, {}, reading, notes)


def _of_columns(
    job: Job, connector: Connector, given: ends.Options, problems: Problems
) -> SourcePlan | None:
    """Messages that need their columns declared; one table, or one for each topic."""
    source = job.source
    typed: dict[TableId, Sequence[Column]] = {}
    for each in source.tables:
        if each.table is None:
            trouble = f"source: tables: '{each.selector.text}' needs 'columns'"
            hint = (
                f"Format '{_format_of(source.options)}' does not tell them. Write "
                "columns: id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED"
            )
            problems.add(trouble, each.node, hint)
            continue
        for name in each.selector.literals:
            typed[TableId.of(name)] = each.table.columns
        if not each.selector.literals:
            trouble = f"source: tables: '{each.selector.text}' must be a whole name here"
            problems.add(trouble, each.node, "Name each table; its rows are those of its topic.")
    if not source.tables:
        hint = (
            f"Format '{_format_of(source.options)}' needs columns: add\n  tables:\n"
            "    - name: shop.orders\n      columns: id BIGINT, PRIMARY KEY (id) NOT ENFORCED\n"
            "or read one of " + ", ".join(sorted(_ENVELOPES)) + ", whose rows tell theirs."
        )
        problems.add("source: 'tables' is missing", source.node, hint, key=True)
    if not typed:
        return None
    columns = _united(job, typed, problems)
    keys = {each.table.primary_key for each in source.tables if each.table}
    extra: list[Column] = []
    teller = next((key for key in _TELLERS if key in connector.metadata()), None)
    if teller is not None:
        extra = [_told(TABLE, "STRING", teller)]
    elif len(typed) > 1:
        if "topic" not in connector.metadata():
            trouble = (
                f"source: tables: connector '{source.type}' reads one table, found {len(typed)}"
            )
            problems.add(trouble, source.node.members["tables"], key=True)
            return None
        extra = [_told(TABLE, "STRING", "topic")]
        _match_topics(source, typed, problems)
    key = next(iter(keys)) if len(keys) == 1 else ()
    if connector.produces() != {"+I"}:
        extra.append(_KIND)
    is_open = teller is not None or (len(typed) > 1 and "topic" not in source.options)
    table = Table((*columns, *extra), source.name or "source", key)
    try:
        check_table(connector, table, writing=False)
    except StreamcoreError as error:
        problems.add(f"source: {error}", source.node, key=True)
    options = {**given, "connector": source.type}
    return SourcePlan(connector, options, table, typed, {}, is_open=is_open)


def _match_topics(source: Source, typed: Iterable[TableId], problems: Problems) -> None:
    """Complain where tables and topics differ: rows of any other topic would be lost."""
    topics = [each.strip() for each in source.options.get("topic", "").split(";") if each.strip()]
    names = [str(table) for table in typed]
    why = f"Format '{_format_of(source.options)}' does not tell the table of a row, its topic does"
    for name in names if topics else ():
        if name not in topics:
            trouble = f"source: tables: '{name}' is no topic of this source"
            hint = f"{why}: there are {', '.join(topics)}."
            problems.add(trouble, source.node.members["tables"], hint, key=True)
    for topic in topics:
        if topic not in names:
            trouble = f"source: topic: no table is called '{topic}'"
            hint = f"{why}: declare '{topic}' in 'tables', or leave the topic out."
            problems.add(trouble, source.nodes["topic"], hint)


def _united(
    job: Job, typed: Mapping[TableId, Sequence[Column]], problems: Problems
) -> Sequence[Column]:
    """The columns of all tables together: one name has one type."""
    if len(typed) == 1:
        return next(iter(typed.values()))
    columns: dict[str, Column] = {}
    for table, own in typed.items():
        for column in own:
            known = columns.setdefault(column.name, Column(column.name, column.type))
            if known.type != column.type:
                trouble = (
                    f"source: tables: column '{column.name}' is {column.type} in '{table}' and "
                    f"{known.type} in another table"
                )
                hint = "This format decodes all tables alike: read them with two jobs."
                problems.add(trouble, job.source.node.members["tables"], hint, key=True)
    return list(columns.values())


def _format_of(options: Mapping[str, str]) -> str:
    return options.get("value.format") or options.get("format") or "none"


def look_at_names(frame: DataFrame) -> list[Seen]:
    """The tables of rows whose columns the file declares."""
    names = [row[TABLE] for row in frame.select(TABLE).distinct().collect()]
    if None in names:
        raise RowRefused("a row does not tell its table, so nothing of its batch was written")
    return [Seen(TableId.of(name), frozenset()) for name in names]


def look(frame: DataFrame) -> list[Seen]:
    """The tables of some rows, with every column and JSON type that is in them."""
    from pyspark.sql import functions as F  # noqa: N812 - as every Spark program writes it

    has_key = _MESSAGE_KEY in frame.columns
    message_key = F.first(F.col(_MESSAGE_KEY) if has_key else F.lit(None), True)
    by_shape = frame.groupBy(TABLE, _SHAPE).agg(
        F.first(_KEY, True).alias("told"), message_key.alias("key")
    )
    each = F.explode_outer(F.from_json(_SHAPE, "array<string>")).alias("column")
    by_table = (
        by_shape.select(TABLE, "told", "key", each)
        .groupBy(TABLE)
        .agg(
            F.collect_set("column").alias("columns"),
            F.first("told", True).alias("told"),
            F.first("key", True).alias("key"),
        )
    )
    return [
        Seen(
            TableId.of(row[TABLE]),
            frozenset(row["columns"]),
            tuple(json.loads(row["told"])) if row["told"] else _key_names(row["key"]),
        )
        for row in by_table.collect()
    ]


def _key_names(text: str | None) -> tuple[str, ...]:
    """The columns of Debezium's message key, which is an object, perhaps beside its schema."""
    try:
        key = json.loads(text or "null")
    except ValueError:
        return ()
    if isinstance(key, dict) and "payload" in key and "schema" in key:
        key = key["payload"]
    return tuple(key) if isinstance(key, dict) else ()
