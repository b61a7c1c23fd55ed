"""The connector `datagen`: a table of made-up rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from streamcore import Connector, PluginError, Problem, Table, at_least, option

from .field_rules import FieldRule, column_problems, rule_problems, rules_of

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader


class Datagen(Connector):
    """Makes rows up: random values or sequences, at a steady rate or until a row count."""

    identifier = "datagen"

    rows_per_second: int = option(
        "rows-per-second", "Rows made each second.", default=10_000, check=at_least(1)
    )
    number_of_rows: int | None = option(
        "number-of-rows",
        "Rows made in all; without it, and without sequences, the table never ends.",
        default=None,
        check=at_least(0),
    )
    parallelism: int | None = option(
        "scan.parallelism",
        "Tasks that make rows; one for every 10,000 rows by default, at most one per core.",
        default=None,
        check=at_least(1),
    )
    fields: Mapping[str, str] = option(
        "fields.*",
        """How a column is made: `kind` (random, sequence), `min`, `max`, `max-past` (timestamps),
        `length`, `var-len`, `start` and `end` (sequences), `null-rate`.""",
        example="'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '9'",
    )

    def problems(self) -> Iterator[Problem | str]:
        yield from super().problems()
        yield from rule_problems(self.fields)

    def table_problems(self, table: Table, *, writing: bool) -> Iterator[Problem | str]:
        yield from column_problems(self.rules(), table.physical)

    def rules(self) -> dict[str, FieldRule]:
        """The rules by column."""
        return rules_of(self.fields)

    def total(self) -> int | None:
        """How many rows the table has; None: it never ends."""
        counts = [self.number_of_rows, *(rule.rows for rule in self.rules().values())]
        return min((count for count in counts if count is not None), default=None)

    def bounded(self) -> bool:
        return self.total() is not None

    def reader(self, table: Table) -> DataSourceReader:
        if not self.bounded():
            raise PluginError(
                "a 'datagen' table without 'number-of-rows' never ends: read it as a stream."
            )
        from .datagen_source import DatagenReader

        return DatagenReader(self, table)

    def stream_reader(self, table: Table) -> DataSourceStreamReader:
        from .datagen_source import DatagenStreamReader

        return DatagenStreamReader(self, table)
