"""What a plugin is: a frozen dataclass whose fields are its options.

Subclass one of the four kinds, give it an identifier and a docstring, declare fields with
`option()`, and return the class from the matching hook.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, dataclass_transform

from .errors import PluginError, Problem
from .options import at_least, option
from .table import INSERT_ONLY, MetadataKey, Table
from .values import Secret

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

Row = Mapping[str, Any]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
class Plugin:
    """Base of the four kinds; not meant to be subclassed directly."""

    kind: ClassVar[str]
    identifier: ClassVar[str]
    option_prefix: ClassVar[str | None] = None
    """Where this plugin's options sit when it is nested in another; None: `<identifier>.`"""
    importable: ClassVar[bool] = False
    """Whether an option may name a class of this kind by its dotted Python path."""
    example_columns: ClassVar[tuple[str, ...]] = ("id BIGINT", "name STRING")
    """The columns and constraints of the CREATE TABLE that `describe` shows."""
    example_options: ClassVar[Mapping[str, str]] = {}
    """Options of that CREATE TABLE; those that are required need not be named."""

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    def problems(self) -> Iterator[Problem | str]:
        """Yield complaints about options that are fine alone but not together."""
        yield from ()


# --- formats -----------------------------------------------------------------------


class Rejected(NamedTuple):
    """A message that is no row: its place in the batch, and why."""

    index: int  # type: ignore[assignment]  # nobody searches this tuple
    reason: str


@dataclasses.dataclass
class Decoded:
    """What one batch of messages turned into."""

    rows: pa.RecordBatch
    """The wanted columns, then the wanted metadata, in the order they were asked for."""
    origin: pa.Int32Array | None = None
    """The message index of each row; None: exactly one row per message, in order."""
    kinds: pa.Int8Array | None = None
    """Each row's kind as an index into `ROW_KINDS`; None: all are inserts."""
    rejected: Sequence[Rejected] = ()
    ignored: int = 0
    """Messages dropped because the format was told to ignore what it cannot parse."""


class Decoder(Protocol):
    """Turns messages into rows; built once per task, so it may keep state such as schemas."""

    def decode(self, messages: Sequence[bytes | None]) -> Decoded:
        """Decode a batch. Never raises for a bad message: it is rejected with a reason."""
        ...


class Encoder(Protocol):
    """Turns rows into messages; built once per task."""

    def encode(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array | None = None
    ) -> Sequence[bytes | None]:
        """Encode each row; raises RecordError naming the row's index for what cannot be written."""
        ...


class Format(Plugin):
    """Turns payload bytes into rows and back."""

    kind = "format"
    changelog: ClassVar[bool] = False
    """Whether its messages carry updates and deletes, or inserts only."""
    marks_nulls: ClassVar[bool] = False
    """Whether a nullable column is written otherwise than one that is NOT NULL."""
    metadata_keys: ClassVar[Mapping[str, MetadataKey]] = {}

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        """Build a decoder for messages laid out as `schema`.

        Only `columns` (all if None) are decoded, in that order, followed by `metadata` keys.
        """
        raise PluginError(f"format '{self.identifier}' cannot read.")

    def encoder(self, schema: pa.Schema) -> Encoder:
        raise PluginError(f"format '{self.identifier}' cannot write.")

    def schema_problems(self, schema: pa.Schema, *, writing: bool) -> Iterator[Problem | str]:
        """Yield complaints about columns this format cannot carry, when a query is planned."""
        yield from ()

    def online_problems(self) -> Iterator[Problem | str]:
        """Ask whatever system it needs, such as a registry; `check --online` calls it."""
        yield from ()

    def written_to(self, target: str, part: str) -> Format:
        """Adapt to the one topic this format writes; `part` is 'key' or 'value'."""
        return self


class RecordFormat(Format):
    """The easy door to a format: one payload at a time, rows as dicts; core does the batching."""

    def decode_record(self, payload: bytes, schema: pa.Schema) -> Iterable[Row]:
        """Yield the rows of one payload; raise RecordError (or ValueError) if it is none."""
        raise PluginError(f"format '{self.identifier}' cannot read.")

    def encode_record(self, row: Row, schema: pa.Schema) -> bytes:
        raise PluginError(f"format '{self.identifier}' cannot write.")

    def decoder(
        self,
        schema: pa.Schema,
        columns: Sequence[str] | None = None,
        metadata: Sequence[str] = (),
    ) -> Decoder:
        from .records import RecordDecoder

        return RecordDecoder(self, schema, columns)

    def encoder(self, schema: pa.Schema) -> Encoder:
        from .records import RecordEncoder

        return RecordEncoder(self, schema)


# --- partitioners and credentials ---------------------------------------------------


class Target(NamedTuple):
    """Where a task writes: the topic or stream, how many partitions it has, and which task asks."""

    name: str
    partitions: int
    task: int


class Partitioner(Plugin):
    """Chooses where a record goes; None leaves the choice to the target system."""

    kind = "partitioner"
    importable = True

    def assign(
        self, rows: pa.RecordBatch, keys: Sequence[bytes | None], target: Target
    ) -> Sequence[int | None] | None:
        """Return a partition number per row; override this where speed matters."""
        return [
            self.choose(row, key, target) for row, key in zip(rows.to_pylist(), keys, strict=True)
        ]

    def choose(self, row: Row, key: bytes | None, target: Target) -> int | None:
        """Return one row's partition number, from 0 to `target.partitions - 1`."""
        return None

    def assign_keys(self, rows: pa.RecordBatch, target: Target) -> Sequence[str] | None:
        """Return a partition key per row, for systems that hash a text (Kinesis)."""
        if type(self).choose_key is Partitioner.choose_key:
            return None
        return [self.choose_key(row, target) for row in rows.to_pylist()]

    def choose_key(self, row: Row, target: Target) -> str:
        """Return one row's partition key."""
        raise PluginError(f"partitioner '{self.identifier}' does not choose partition keys.")


@dataclasses.dataclass(frozen=True)
class Credentials:
    """What a provider found, and until when it holds; no expiry means forever."""

    values: Mapping[str, Secret]
    expires: datetime | None = None


class CredentialProvider(Plugin):
    """Finds secrets on the worker that needs them, so they never travel in options."""

    kind = "credentials"
    importable = True

    def fetch(self, scope: Mapping[str, str]) -> Credentials:
        """Return fresh credentials; `scope` is what the connector knows, such as 'region'."""
        raise NotImplementedError


# --- connectors -----------------------------------------------------------------------


class WatermarkEmit(Enum):
    """When a source would emit watermarks."""

    PERIODIC = "on-periodic"
    EVENT = "on-event"


class Connector(Plugin):
    """Moves rows between Spark and a system; override what it can do."""

    kind = "connector"

    property_version: int = option(
        "property-version",
        "Version of the option layout; only 1 exists.",
        default=1,
        check=lambda version: None if version == 1 else "must be 1",
    )
    watermark_emit: WatermarkEmit = option(
        "scan.watermark.emit.strategy",
        "When watermarks are emitted. Spark moves them once per micro-batch, whatever is set here.",
        default=WatermarkEmit.PERIODIC,
    )
    alignment_group: str | None = option(
        "scan.watermark.alignment.group",
        "Refused: Spark has no watermark alignment between sources.",
        default=None,
    )
    alignment_drift: timedelta | None = option(
        "scan.watermark.alignment.max-drift",
        "Refused: Spark has no watermark alignment between sources.",
        default=None,
    )
    alignment_interval: timedelta | None = option(
        "scan.watermark.alignment.update-interval",
        "Refused: Spark has no watermark alignment between sources.",
        default=None,
    )
    idle_timeout: timedelta | None = option(
        "scan.watermark.idle-timeout",
        "Accepted without effect: Spark's watermark waits for no silent partition. With "
        "a watermark per partition it would, and this is refused.",
        default=None,
        check=at_least(0),
    )

    def problems(self) -> Iterator[Problem | str]:
        if (self.alignment_group, self.alignment_drift, self.alignment_interval) != (None,) * 3:
            if self.alignment_group is None or self.alignment_drift is None:
                yield Problem(
                    "scan.watermark.alignment.group",
                    "must be set together with 'scan.watermark.alignment.max-drift'",
                )
            yield Problem(
                "scan.watermark.alignment.group",
                "Spark cannot align watermarks between sources; remove the "
                "'scan.watermark.alignment.*' options",
            )

    def metadata(self) -> Mapping[str, MetadataKey]:
        """The metadata columns this table offers, with those of its format under `value.`."""
        return {}

    def produces(self) -> frozenset[str]:
        """The row kinds a read yields."""
        return INSERT_ONLY

    def accepts(self) -> frozenset[str]:
        """The row kinds a write takes."""
        return INSERT_ONLY

    def needs_old_rows(self) -> bool:
        """Whether a write must be told each row as it was before it changed.

        So it is where changes are kept as they come, and each old row has to be taken back.
        """
        return False

    def bounded(self) -> bool:
        """Whether a read ends by itself."""
        return False

    def table_problems(self, table: Table, *, writing: bool) -> Iterator[Problem | str]:
        """Yield complaints about a table's columns and keys; called when a query is planned."""
        yield from ()

    def online_problems(self, table: Table, *, writing: bool) -> Iterator[Problem | str]:
        """Ask the system whether the table is there for us; `check --online` calls it.

        Where a connector does not override this, what can be read is taken to be there for writing.
        """
        if self.can("stream_reader"):
            self.stream_reader(table).initialOffset()
        yield from ()

    def stream_frame(self, load: Callable[[Table], DataFrame], table: Table) -> DataFrame:
        """A streaming read as a DataFrame; override it to add operators of Spark to the source.

        `load` gives the plain read of a table, whose `projection` says what it yields.
        """
        return load(table)

    def lanes(self, options: Mapping[str, str | Secret]) -> Sequence[Mapping[str, str | Secret]]:
        """The table's options once per part that is to have a watermark of its own.

        Spark keeps one watermark per streaming read and takes the least of a union's, so a table
        of several lanes is read as a union of them, each with its own watermark.
        """
        return (options,)

    def stream_updates(self) -> bool:
        """Whether those operators need Spark's update mode."""
        return False

    def with_old_rows(self) -> Mapping[str, str]:
        """Options that let a streaming read also tell each row as it was before it changed.

        Whoever aggregates rows that change sets them, to take the old rows back.
        """
        return {}

    def forgets_rows(self) -> bool:
        """Whether such a read may forget rows that it has told: they cannot be taken back."""
        return False

    def write_tasks(self) -> int | None:
        """How many tasks are to write; None: as many as there are."""
        return None

    def write_keys(self, table: Table) -> tuple[str, ...]:
        """The columns whose rows must be written in their order, by one task."""
        return table.primary_key

    def reader(self, table: Table) -> DataSourceReader:
        raise self._cannot("batch reads")

    def stream_reader(self, table: Table) -> DataSourceStreamReader:
        raise self._cannot("streaming reads")

    def writer(self, table: Table) -> DataSourceWriter:
        raise self._cannot("batch writes")

    def stream_writer(self, table: Table) -> DataSourceStreamWriter:
        raise self._cannot("streaming writes")

    @classmethod
    def can(cls, what: str) -> bool:
        """Whether it implements `reader`, `stream_reader`, `writer` or `stream_writer`."""
        return getattr(cls, what) is not getattr(Connector, what)

    def _cannot(self, what: str) -> PluginError:
        sides = {"reads": ("reader", "stream_reader"), "writes": ("writer", "stream_writer")}
        side = what.split()[-1]
        if not any(self.can(name) for name in sides[side]):
            other = "sink" if side == "reads" else "source"
            return PluginError(
                f"connector '{self.identifier}' can only be used as a {other}: "
                f"it does not support {side}."
            )
        return PluginError(f"connector '{self.identifier}' does not support {what}.")
