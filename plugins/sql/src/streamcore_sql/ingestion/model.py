"""A job as its file describes it, checked as far as the file alone allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from streamcore import Table

from .document import Node
from .routing import Route, Selector, TableId


class Behavior(Enum):
    """What to do when rows bring columns or types that a table did not have."""

    EXCEPTION = "exception"
    EVOLVE = "evolve"
    TRY_EVOLVE = "try_evolve"
    LENIENT = "lenient"
    IGNORE = "ignore"


class RouteMode(Enum):
    """Whether a table goes along every route that is for it, or the first."""

    ALL_MATCH = "ALL_MATCH"
    FIRST_MATCH = "FIRST_MATCH"


class RuntimeMode(Enum):
    """Whether a job goes on, or ends with what is there now."""

    STREAMING = "STREAMING"
    BATCH = "BATCH"


class Converter(Enum):
    """What `converter-after-transform` makes of rows."""

    SOFT_DELETE = "SOFT_DELETE"


class ChangeType(Enum):
    """The changes of a schema that `include.schema.changes` and `exclude...` name."""

    ADD_COLUMN = "add.column"
    ALTER_TYPE = "alter.column.type"
    CREATE_TABLE = "create.table"
    DROP_COLUMN = "drop.column"
    DROP_TABLE = "drop.table"
    RENAME_COLUMN = "rename.column"
    TRUNCATE_TABLE = "truncate.table"


@dataclass(frozen=True)
class DeclaredTable:
    """Tables of the source, and their columns if the file declares them."""

    selector: Selector
    table: Table | None
    node: Node


@dataclass(frozen=True)
class End:
    """The source or the sink: a connector and its options."""

    type: str
    name: str
    node: Node
    options: Mapping[str, str]
    nodes: Mapping[str, Node]
    """Where each option stands."""

    @property
    def secrets(self) -> frozenset[str]:
        """The options whose values came from `${secret_values...}`."""
        return frozenset(key for key, node in self.nodes.items() if node.secret)


@dataclass(frozen=True)
class Source(End):
    """Where rows come from."""

    tables: tuple[DeclaredTable, ...] = ()
    unread: bool = False
    """Whether some entry of `tables` is wrong, so that what is missing there says nothing."""

    def declared(self, table: TableId) -> Table | None:
        """The columns the file declares for a table."""
        found = (each.table for each in self.tables if each.selector.match(table))
        return next((each for each in found if each is not None), None)

    def wants(self, table: TableId) -> bool:
        """Whether the job reads this table at all."""
        return not self.tables or any(each.selector.match(table) for each in self.tables)

    @property
    def names(self) -> list[TableId]:
        """The tables that the file names in full."""
        return [TableId.of(name) for each in self.tables for name in each.selector.literals]

    @property
    def is_closed(self) -> bool:
        """Whether no table can come that the file does not name in full."""
        return bool(self.tables) and all(each.selector.is_literal for each in self.tables)


@dataclass(frozen=True)
class Sink(End):
    """Where rows go to."""

    table_headers: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)
    """The topic of a table, where `sink.tableId-to-topic.mapping` says so."""
    refused: frozenset[ChangeType] = frozenset()


@dataclass(frozen=True)
class RouteRule:
    """A route and where it is written."""

    route: Route
    node: Node


@dataclass(frozen=True)
class Transform:
    """What happens to the rows of some tables on their way."""

    source: Selector
    node: Node
    projection: Node | None = None
    filter: Node | None = None
    primary_key: tuple[str, ...] = ()
    partition_keys: tuple[str, ...] = ()
    soft_delete: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether rows pass as they are."""
        return self.projection is None and self.filter is None and not self.soft_delete


@dataclass(frozen=True)
class Function:
    """A Python function under the name that expressions call it by."""

    name: str
    target: str
    node: Node


@dataclass(frozen=True)
class Pipeline:
    """Settings of the whole job."""

    name: str = ""
    parallelism: int | None = None
    time_zone: str = ""
    behavior: Behavior = Behavior.LENIENT
    route_mode: RouteMode = RouteMode.ALL_MATCH
    runtime_mode: RuntimeMode = RuntimeMode.STREAMING
    functions: tuple[Function, ...] = ()


@dataclass(frozen=True)
class Job:
    """A whole job file."""

    source: Source
    sink: Sink
    routes: tuple[RouteRule, ...]
    transforms: tuple[Transform, ...]
    pipeline: Pipeline
    notes: Sequence[str] = ()

    def transform_of(self, table: TableId) -> Transform | None:
        """The first transform that is for a table; no other counts."""
        return next((each for each in self.transforms if each.source.match(table)), None)
