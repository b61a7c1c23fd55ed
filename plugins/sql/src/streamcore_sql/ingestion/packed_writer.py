"""Rows of many tables to the messages of one write, in the task that hands them on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType
from streamcore import Column
from streamcore.registry import installed
from streamcore.spark.carrier import JSON_OPTION
from streamcore.spark.datasource import StreamcoreDataSource

from .errors import RowRefused
from .messages import Message, Packer, Row, RowPlan, Target
from .routing import TableId
from .row_sql import KIND, TABLE, TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAME = "streamcore-tables"
_PLAN = "plan"
_SHOWN = 200
_HEADERS = pa.map_(pa.string(), pa.binary())


@dataclass(frozen=True)
class Packing:
    """Everything a task must know to write rows as messages."""

    plans: Sequence[RowPlan]
    declared: Mapping[str, Sequence[Column]]
    """Tables whose rows are read and written through the columns that the file declares."""
    envelope: str
    key_style: str
    headers: Mapping[str, str]
    table_headers: bool
    reading: Mapping[str, str]
    writing: Mapping[str, str]
    columns: Sequence[str] = ()
    """What the connector takes, in its order."""

    @property
    def topics(self) -> list[str]:
        """Every topic that these tables go to."""
        return sorted({target.topic for plan in self.plans for target in plan.targets})

    def to_text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Packing:
        plain = json.loads(text)
        plans = [_row_plan(each) for each in plain.pop("plans")]
        columns = {
            table: [Column(**each) for each in found]
            for table, found in plain.pop("declared").items()
        }
        return cls(plans, columns, **plain)

    def headers_of(self, target: Target) -> list[tuple[str, bytes]] | None:
        """The headers of every message of a table."""
        found = dict(self.headers)
        if self.table_headers:
            namespace, schema, table = target.table
            found |= {"namespace": namespace, "schemaName": schema, "tableName": table}
        return [(name, value.encode()) for name, value in found.items()] or None


def _row_plan(plain: dict[str, Any]) -> RowPlan:
    targets = [Target(TableId(*each["table"]), each["topic"]) for each in plain["targets"]]
    keep = plain["keep"]
    return RowPlan(
        TableId(*plain["table"]),
        tuple(targets),
        tuple(plain["key"]),
        tuple(plain["partition_keys"]),
        None if keep is None else tuple(keep),
    )


def write(frame: DataFrame, options: Mapping[str, str], packing: Packing) -> None:
    """Write rows; `options` carry the connector's table of messages."""
    writer = frame.write.format(NAME).options(**options).option(_PLAN, packing.to_text())
    writer.mode("append").save()


class TablesDataSource(DataSource):
    """What Spark writes rows of many tables with."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        packing = Packing.from_text(self.options[_PLAN])
        carried: Any = {JSON_OPTION: self.options[JSON_OPTION]}
        inner = StreamcoreDataSource(carried).writer(schema, overwrite)
        return PackedWriter(inner, packing)


class PackedWriter(DataSourceArrowWriter):
    """Packs rows and hands the messages to another writer."""

    def __init__(self, inner: Any, packing: Packing) -> None:
        self._inner, self._packing = inner, packing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Called by Spark in a task, with the rows of one partition."""
        written: WriterCommitMessage = self._inner.write(packed(iterator, self._packing))
        return written

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._inner.commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._inner.abort(messages)


def packed(batches: Iterable[pa.RecordBatch], packing: Packing) -> Iterator[pa.RecordBatch]:
    """The messages of rows, in the columns that the connector takes."""
    always_place = "place" in packing.columns and "key" not in packing.columns
    packer = Packer(packing.plans, packing.envelope, packing.key_style, always_place=always_place)
    normal = Normalize(packing)
    targets = [target for plan in packing.plans for target in plan.targets]
    numbers = {id(target): number for number, target in enumerate(targets)}  # hashing them is slow
    topics = pa.array([target.topic for target in targets], pa.string())
    headers = pa.array([packing.headers_of(target) for target in targets], _HEADERS)

    def batch(messages: list[Message]) -> pa.RecordBatch:
        whole = zip(*messages, strict=True) if messages else iter([()] * 5)
        chosen, keys, values, places, kinds = whole
        at = pa.array(map(numbers.__getitem__, map(id, chosen)), pa.int32())
        arrays = {
            "topic": lambda: topics.take(at),
            "key": lambda: pa.array(keys, pa.binary()),
            "place": lambda: pa.array(places, pa.string()),
            "value": lambda: pa.array(values, pa.binary()),
            "headers": lambda: headers.take(at),
            "_row_kind": lambda: pa.array(kinds, pa.string()),
        }
        columns = [arrays[name]() for name in packing.columns]
        return pa.RecordBatch.from_arrays(columns, list(packing.columns))

    for rows in batches:
        tables = rows.column(TABLE).to_pylist()
        texts = normal.texts(rows, tables)
        messages = packer.pack(map(Row, tables, texts, rows.column(KIND).to_pylist()))
        if messages:
            yield batch(messages)
    if left := packer.end():
        yield batch(left)


class Normalize:
    """Text to text, through the columns that a job file declares for a table."""

    def __init__(self, packing: Packing) -> None:
        self._both: dict[str, tuple[Any, Any]] = {}
        if not packing.declared:
            return
        reading = installed().build("format", "json", packing.reading)
        writing = installed().build("format", "json", packing.writing)
        for table, columns in packing.declared.items():
            schema = pa.schema([column.field.with_nullable(True) for column in columns])
            self._both[table] = (reading.decoder(schema), writing.encoder(schema))

    def texts(self, rows: pa.RecordBatch, tables: Sequence[str]) -> list[bytes]:
        """The rows' texts; raises RowRefused for one that does not fit its columns."""
        texts: list[bytes] = rows.column(TEXT).cast(pa.binary()).to_pylist()
        places: dict[str, list[int]] = {}
        if self._both:
            for at, table in enumerate(tables):
                if table in self._both:
                    places.setdefault(table, []).append(at)
        for table, found in places.items():
            decoder, encoder = self._both[table]
            own = [texts[at] for at in found]
            decoded = decoder.decode(own)
            if decoded.rejected:
                index, reason = decoded.rejected[0]
                shown = own[index][:_SHOWN].decode(errors="replace")
                raise RowRefused(f"table '{table}': {reason}; the row is {shown}")
            for at, text in zip(found, encoder.encode(decoded.rows), strict=True):
                texts[at] = text
        return texts
