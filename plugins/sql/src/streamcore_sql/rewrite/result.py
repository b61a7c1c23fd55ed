"""What the rewriter hands to the planner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..source import NOWHERE, Place
from ..statements import Option


@dataclass(frozen=True)
class TableRef:
    """A table the query reads: register it as the temporary view `view` before running the SQL.

    `columns` are those the query needs, in declared order; None means all of them, or unknown.
    `lookup` marks the right side of a join `FOR SYSTEM_TIME AS OF` the processing time: it is
    read as it is when a micro-batch runs, not as a stream.
    """

    name: tuple[str, ...]
    view: str
    options: tuple[Option, ...] = ()
    columns: tuple[str, ...] | None = None
    lookup: bool = False
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class DropDuplicates:
    """Keep the first row of each key; without keys, of each distinct row.

    `order` is the column Flink would order by: the row that comes first is kept here.
    """

    keys: tuple[str, ...] | None = None
    order: str | None = None


@dataclass(frozen=True)
class TemporalJoin:
    """Join each row with the version of `right` valid at the row's own `time`.

    The result has two struct columns named `left_alias` and `right_alias`.
    `keys` are pairs of left and right columns; `outer` keeps rows without a version.
    """

    left_alias: str
    right: TableRef
    right_alias: str
    keys: tuple[tuple[str, str], ...]
    time: str
    outer: bool = False
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Stage:
    """A step SQL cannot say: run `sql`, apply `operation`, register the result as `view`."""

    view: str
    sql: str
    operation: DropDuplicates | TemporalJoin


@dataclass(frozen=True)
class Window:
    """A window over time; lengths are in milliseconds.

    `processing_time` when the time column is not in the data, so there is no watermark.
    """

    kind: Literal["TUMBLE", "HOP", "SESSION", "CUMULATE"]
    time: str
    size: int
    slide: int | None = None
    offset: int = 0
    partition_by: tuple[str, ...] = ()
    processing_time: bool = False
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Aggregation:
    """One level of aggregation; `window` is the window it groups by, if any."""

    window: Window | None = None
    keys: tuple[str, ...] = ()
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Join:
    """A join, by its kind in capitals: INNER, LEFT, RIGHT, FULL, CROSS, SEMI, ANTI.

    `endless` when rows of two tables meet however far apart in time they are.
    """

    kind: str
    temporal: Literal["processing-time", "event-time"] | None = None
    endless: bool = field(default=False, compare=False)
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Note:
    """Where the result may differ from Flink's, and how."""

    text: str
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Rewritten:
    """A query for Spark: run `stages` in order, then `sql`."""

    sql: str
    stages: tuple[Stage, ...] = ()
    tables: tuple[TableRef, ...] = ()
    windows: tuple[Window, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()
    joins: tuple[Join, ...] = ()
    keeps_last: bool = False
    limited: bool = False
    sorted: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def mode(self) -> Literal["append", "update"]:
        """The output mode that tells the result as Flink does.

        An aggregation over an event-time window tells each result once, when the window closes;
        any other one tells a new result whenever it changes.
        """
        windows = [each.window for each in self.aggregations]
        final = all(w and not w.processing_time and w.kind != "CUMULATE" for w in windows)
        return "append" if final and not self.keeps_last else "update"
