"""What holds for every partitioner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ...api import Partitioner, Target
from ...types import arrow_schema
from ..strategies import rows
from .plugin import PluginContract

LONGEST_KEY = 256  # characters, the limit of Kinesis


class PartitionerContract(PluginContract):
    """Tests for a partitioner.

    class TestByTenant(PartitionerContract):
        plugin = ByTenant()
        columns = {"tenant": "STRING"}
    """

    plugin: ClassVar[Partitioner]
    columns: ClassVar[Mapping[str, str]] = {"id": "BIGINT", "name": "STRING"}
    """The columns of the rows it is given."""
    examples: ClassVar[int] = 50
    """How many batches of rows each test tries."""

    def test_it_chooses_existing_partitions_only(self) -> None:
        @settings(max_examples=self.examples, deadline=None, database=None)
        @given(self._rows(), st.integers(1, 70), st.integers(0, 20))
        def check(batch: tuple[pa.RecordBatch, list[Any]], count: int, task: int) -> None:
            picks = self.plugin.assign(*batch, Target("target", count, task))
            if picks is not None:
                assert len(picks) == batch[0].num_rows
                assert all(pick is None or 0 <= pick < count for pick in picks)

        check()

    def test_it_chooses_usable_partition_keys(self) -> None:
        @settings(max_examples=self.examples, deadline=None, database=None)
        @given(self._rows(), st.integers(1, 70), st.integers(0, 20))
        def check(batch: tuple[pa.RecordBatch, list[Any]], count: int, task: int) -> None:
            keys = self.plugin.assign_keys(batch[0], Target("target", count, task))
            if keys is not None:
                assert len(keys) == batch[0].num_rows
                assert all(isinstance(key, str) and 0 < len(key) <= LONGEST_KEY for key in keys)

        check()

    def _rows(self) -> st.SearchStrategy[tuple[pa.RecordBatch, list[Any]]]:
        schema = arrow_schema(self.columns)
        pair = st.tuples(rows(schema), st.one_of(st.none(), st.binary(max_size=20)))
        return st.lists(pair, max_size=10).map(
            lambda pairs: (
                pa.RecordBatch.from_pylist([row for row, _ in pairs], schema=schema),
                [key for _, key in pairs],
            )
        )
