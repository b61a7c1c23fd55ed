"""What a job is: its tables with their options, its plan and where it keeps its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .scrubbing import SECRETS, Options

if TYPE_CHECKING:
    from ..planner.inserts import InsertPlan
    from ..planner.sources import Scan
    from ..running import Launch


@dataclass(frozen=True)
class TableAbout:
    """One side of a job; `options` are fit to be shown."""

    table: str
    side: str
    connector: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class About:
    """A job as it was planned."""

    tables: Sequence[TableAbout] = ()
    checkpoint: str | None = None
    plan: Callable[[], str] = field(default=lambda: "")


def table_about(name: str, side: str, connector: str, options: Options) -> TableAbout:
    """A table with its secrets hidden."""
    return TableAbout(name, side, connector, SECRETS.options(options))


def about_inserts(
    scans: Iterable[Scan], plans: Sequence[InsertPlan], launch: Launch | None = None
) -> About:
    """What is known of INSERTs that run as one query."""
    from ..explain import insert_text

    bounds = [("source", scan.bound) for scan in scans]
    bounds += [("sink", plan.sink) for plan in plans]
    tables = {
        (bound.table.name, side): table_about(
            bound.table.name, side, bound.connector.identifier, bound.options
        )
        for side, bound in bounds
    }

    def text() -> str:
        return "\n\n".join(SECRETS.scrub(insert_text(plan, details=False)) for plan in plans)

    return About(tuple(tables.values()), launch.checkpoint if launch else None, text)
