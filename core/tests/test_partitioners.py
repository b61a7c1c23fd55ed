"""Core's own partitioners, and the easy door for those of others."""

from collections import Counter
from zlib import crc32

import pyarrow as pa
import pytest
from streamcore import Partitioner, PluginError, Target, option
from streamcore.filling import build
from streamcore.partitioners import Default, Fixed, RoundRobin

ROWS = pa.RecordBatch.from_pylist([{"id": n, "tenant": f"t{n % 3}"} for n in range(100)])
KEYS = [b"k%d" % n for n in range(100)]


def test_default_leaves_the_choice_to_the_client():
    assert Default().assign(ROWS, KEYS, Target("t", 4, 0)) is None
    assert Default().assign_keys(ROWS, Target("s", 4, 0)) is None


@pytest.mark.parametrize(("task", "partition"), [(0, 0), (1, 1), (5, 1)])
def test_fixed_keeps_a_task_on_one_partition(task, partition):
    assert Fixed().assign(ROWS, KEYS, Target("t", 4, task)) == [partition] * 100
    assert set(Fixed().assign_keys(ROWS, Target("t", 4, task))) == {str(task)}


def test_round_robin_deals_rows_out_evenly_and_tasks_start_apart():
    picks = RoundRobin().assign(ROWS, KEYS, Target("t", 4, 3))
    assert picks[:5] == [3, 0, 1, 2, 3]
    assert Counter(picks) == {0: 25, 1: 25, 2: 25, 3: 25}
    assert RoundRobin().assign(ROWS, KEYS, Target("t", 1, 9)) == [0] * 100


class ByTenant(Partitioner):
    """Keeps a tenant's rows together."""

    identifier = "by-tenant"

    column: str = option("column", "The tenant's column.", default="tenant")

    def choose(self, row, key, target):
        return crc32(row[self.column].encode()) % target.partitions

    def choose_key(self, row, target):
        return row[self.column]


def test_a_partitioner_needs_to_know_one_row_only():
    picks = ByTenant().assign(ROWS, KEYS, Target("t", 7, 0))
    assert len(picks) == 100
    assert len(set(picks)) <= 3
    assert all(0 <= pick < 7 for pick in picks)
    assert ByTenant().assign_keys(ROWS, Target("s", 7, 0))[:3] == ["t0", "t1", "t2"]


def test_a_partitioner_without_keys_leaves_them_to_the_connector():
    class Numbers(Partitioner):
        """Chooses numbers only."""

        identifier = "numbers"

    assert Numbers().assign_keys(ROWS, Target("s", 2, 0)) is None
    with pytest.raises(PluginError, match="partitioner 'numbers' does not choose partition keys"):
        Numbers().choose_key({}, Target("s", 2, 0))


def test_options_of_a_partitioner_are_read_by_its_identifier():
    assert build(ByTenant, {"column": "org"}, None).column == "org"
