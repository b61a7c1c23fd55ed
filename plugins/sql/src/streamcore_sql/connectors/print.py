"""The connector `print`: shows every row."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from streamcore import Connector, Table, at_least, option
from streamcore.table import ALL_CHANGES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter


class Print(Connector):
    """Shows every row: on your terminal in a SQL session, in the tasks' logs elsewhere."""

    identifier = "print"

    label: str = option(
        "print-identifier", "Put before every row, followed by `>`; nothing by default.", default=""
    )
    standard_error: bool = option(
        "standard-error", "Print to standard error instead of standard output.", default=False
    )
    parallelism: int | None = option(
        "sink.parallelism",
        "Accepted without effect: the rows of a batch are printed by as many tasks as made them.",
        default=None,
        check=at_least(1),
    )

    def accepts(self) -> frozenset[str]:
        return ALL_CHANGES

    def deliver(self, rows: pa.Table) -> None:
        """Print rows in this process; a SQL session hands over each batch here."""
        from .row_text import lines

        stream = sys.stderr if self.standard_error else sys.stdout
        for batch in rows.to_batches():
            stream.writelines(f"{line}\n" for line in lines(batch, self.label))
        stream.flush()

    def writer(self, table: Table) -> DataSourceWriter:
        from .print_writers import PrintWriter

        return PrintWriter(self)

    def stream_writer(self, table: Table) -> DataSourceStreamWriter:
        from .print_writers import PrintStreamWriter

        return PrintStreamWriter(self)
