"""What a statement gives back: rows to look at, or a word that it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from .planner.queries import QueryPlan


_IN_A_NOTEBOOK = 100


@dataclass(frozen=True)
class Done:
    """A statement that changed something."""

    message: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((self.message, *self.notes))


@dataclass(frozen=True)
class Listing:
    """Rows the session itself knows: SHOW, DESCRIBE, SET."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]

    def __str__(self) -> str:
        from .texttable import text_table

        return text_table(self.columns, self.rows)

    def _repr_html_(self) -> str:
        from .texttable import html_table

        return html_table(self.columns, self.rows)


@dataclass(frozen=True)
class Text:
    """A text to read: EXPLAIN, SHOW CREATE TABLE."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Rows:
    """The result of a query that ends."""

    plan: QueryPlan = field(repr=False)

    @property
    def frame(self) -> DataFrame:
        return self.plan.frame

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    def collect(self) -> list[Any]:
        """Every row, as Spark's Row."""
        from .failures import spark_errors

        with spark_errors(self.plan.query):
            return self.frame.collect()

    def first(self, count: int) -> list[Any]:
        """The first rows, without computing more than that takes."""
        from .failures import spark_errors

        with spark_errors(self.plan.query):
            return self.frame.limit(count).collect()

    def __str__(self) -> str:
        from .texttable import text_table

        return text_table(self.columns, [tuple(row) for row in self.collect()])

    def _repr_html_(self) -> str:
        from .texttable import html_table

        return html_table(self.columns, [tuple(row) for row in self.first(_IN_A_NOTEBOOK)])
