"""What a script can say: one frozen dataclass per statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .cursor import SqlText
from .lexer import name_literal
from .source import NOWHERE, Place
from .typename import TypeName


@dataclass(frozen=True)
class Part:
    """Anything in a script that remembers its place; places never make two things differ."""

    place: Place = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Statement(Part):
    """One statement; `place.text` is how the user wrote it."""


# --- pieces ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Name(Part):
    """`[[catalog.]database.]name`, or a single column."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)

    @property
    def last(self) -> str:
        return self.parts[-1]

    def sql(self) -> str:
        return ".".join(map(name_literal, self.parts))


@dataclass(frozen=True)
class Option(Part):
    """`'key' = 'value'`; `secret` when the value came from a secret variable."""

    key: str
    value: str = field(repr=False)
    secret: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class PhysicalColumn(Part):
    """A column of the data itself."""

    name: str
    type: TypeName
    comment: str | None = None


@dataclass(frozen=True)
class MetadataColumn(Part):
    """A column the connector or format knows; `key` is the metadata key, the name by default."""

    name: str
    type: TypeName
    key: str
    virtual: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class ComputedColumn(Part):
    """A column computed from others when the table is read."""

    name: str
    expression: SqlText
    comment: str | None = None


Column = PhysicalColumn | MetadataColumn | ComputedColumn


@dataclass(frozen=True)
class Watermark(Part):
    """`WATERMARK FOR column AS expression`."""

    column: Name
    expression: SqlText


@dataclass(frozen=True)
class PrimaryKey(Part):
    """`[CONSTRAINT name] PRIMARY KEY (columns) NOT ENFORCED`."""

    columns: tuple[Name, ...]
    name: str | None = None


@dataclass(frozen=True)
class Distribution(Part):
    """`DISTRIBUTED [BY [HASH|RANGE] (columns)] [INTO n BUCKETS]`."""

    columns: tuple[Name, ...] = ()
    kind: Literal["HASH", "RANGE"] | None = None
    buckets: int | None = None


@dataclass(frozen=True)
class LikeRule(Part):
    """`INCLUDING OPTIONS` and its kin."""

    action: Literal["INCLUDING", "EXCLUDING", "OVERWRITING"]
    feature: str


@dataclass(frozen=True)
class Like(Part):
    """`LIKE table (rules)`."""

    table: Name
    rules: tuple[LikeRule, ...] = ()


# --- definitions -------------------------------------------------------------------------


@dataclass(frozen=True)
class CreateTable(Statement):
    """`CREATE TABLE`, also `LIKE` another one and `AS` a query."""

    name: Name
    columns: tuple[Column, ...] = ()
    watermark: Watermark | None = None
    primary_key: PrimaryKey | None = None
    comment: str | None = None
    distribution: Distribution | None = None
    partitioned_by: tuple[Name, ...] = ()
    options: tuple[Option, ...] = ()
    like: Like | None = None
    query: SqlText | None = None
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """`CREATE VIEW`."""

    name: Name
    query: SqlText
    columns: tuple[Name, ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class CreateFunction(Statement):
    """`CREATE FUNCTION name AS 'module.function' LANGUAGE PYTHON`."""

    name: Name
    target: str
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """`DROP TABLE|VIEW|FUNCTION`."""

    kind: Literal["TABLE", "VIEW", "FUNCTION"]
    name: Name
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True)
class SetOptions(Part):
    """`SET ('key' = 'value', ...)`."""

    options: tuple[Option, ...]


@dataclass(frozen=True)
class ResetOptions(Part):
    """`RESET ('key', ...)`."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class RenameTable(Part):
    """`RENAME TO name`."""

    name: Name


@dataclass(frozen=True)
class RenameColumn(Part):
    """`RENAME old TO new`."""

    old: Name
    new: str


@dataclass(frozen=True)
class Placement(Part):
    """Where a column goes: first, after another, or (both empty) at the end or where it was."""

    column: Column
    first: bool = False
    after: str | None = None


@dataclass(frozen=True)
class PutColumns(Part):
    """`ADD` or `MODIFY` columns, a watermark, a primary key."""

    modify: bool
    columns: tuple[Placement, ...] = ()
    watermark: Watermark | None = None
    primary_key: PrimaryKey | None = None


@dataclass(frozen=True)
class DropParts(Part):
    """`DROP` columns, the watermark, or the primary key."""

    columns: tuple[Name, ...] = ()
    watermark: bool = False
    primary_key: bool = False
    constraint: str | None = None


Alteration = SetOptions | ResetOptions | RenameTable | RenameColumn | PutColumns | DropParts


@dataclass(frozen=True)
class AlterTable(Statement):
    """`ALTER TABLE`."""

    name: Name
    action: Alteration
    if_exists: bool = False


# --- data --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Select(Statement):
    """A query whose rows are shown: SELECT, WITH ... SELECT or VALUES."""

    query: SqlText


@dataclass(frozen=True)
class PartitionValue(Part):
    """`key = literal` of `PARTITION (...)`."""

    key: str
    value: SqlText


@dataclass(frozen=True)
class Insert(Statement):
    """`INSERT INTO|OVERWRITE`; `options` are those of a hint behind the table's name."""

    table: Name
    query: SqlText
    columns: tuple[Name, ...] = ()
    partition: tuple[PartitionValue, ...] = ()
    options: tuple[Option, ...] = ()
    overwrite: bool = False
    on_conflict: Literal["NOTHING", "ERROR", "DEDUPLICATE"] | None = None


@dataclass(frozen=True)
class StatementSet(Statement):
    """`EXECUTE STATEMENT SET BEGIN insert; ... END`."""

    inserts: tuple[Insert, ...]


# --- the session -------------------------------------------------------------------------


@dataclass(frozen=True)
class Show(Statement):
    """`SHOW what`; `what` is one of parser `SHOWN`, such as `TABLES` or `CREATE TABLE`."""

    what: str
    name: Name | None = None
    like: str | None = None
    not_like: bool = False


@dataclass(frozen=True)
class Describe(Statement):
    """`DESCRIBE [EXTENDED] table`."""

    name: Name
    extended: bool = False


@dataclass(frozen=True)
class Explain(Statement):
    """`EXPLAIN [PLAN FOR | details] statement`."""

    statement: Statement
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Set(Statement):
    """`SET 'key' = 'value'`; without a key it lists the settings."""

    option: Option | None = None


@dataclass(frozen=True)
class Reset(Statement):
    """`RESET ['key']`; without a key it resets all of them."""

    key: str | None = None


@dataclass(frozen=True)
class Use(Statement):
    """`USE [CATALOG] name`."""

    name: Name
    catalog: bool = False


@dataclass(frozen=True)
class StopJob(Statement):
    """`STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN]`."""

    job: str
    savepoint: bool = False
    drain: bool = False


def needs_spark(statement: Statement) -> bool:
    """Whether a statement is planned by Spark; all others only change or show the session."""
    if isinstance(statement, CreateTable):
        return statement.query is not None
    return isinstance(statement, (Select, Insert, StatementSet, Explain))
