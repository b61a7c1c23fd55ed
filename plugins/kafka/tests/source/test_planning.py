"""How batches are limited and shared out: functions of numbers alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from streamcore_kafka.planning import admit, plan, task_count
from streamcore_kafka.progress import Partition, Range

PARTITIONS = st.builds(Partition, st.sampled_from("ab"), st.integers(0, 5))
BACKLOGS = st.dictionaries(PARTITIONS, st.integers(1, 10**9), min_size=1)


@given(BACKLOGS, st.integers(1, 10**9))
def test_a_limit_is_used_up_exactly_and_no_partition_gets_more_than_it_has(backlog, limit):
    shares = admit(backlog, limit)
    assert sum(shares.values()) == min(limit, sum(backlog.values()))
    assert all(0 <= shares[each] <= backlog[each] for each in backlog)


@given(BACKLOGS, st.integers(12, 10**9))
def test_a_small_partition_is_never_starved_by_large_ones(backlog, limit):
    assert all(admit(backlog, limit).values())


def test_a_limit_is_shared_by_what_waits():
    backlog = {Partition("t", 0): 900, Partition("t", 1): 100}
    assert admit(backlog, 500) == {Partition("t", 0): 450, Partition("t", 1): 50}


RANGES = st.dictionaries(
    PARTITIONS, st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)), min_size=1
).map(lambda found: [Range(*at, start, start + size) for at, (start, size) in found.items()])


@given(RANGES, st.integers(1, 9), st.booleans())
def test_a_plan_covers_every_offset_once(ranges, tasks, split):
    shares = plan(ranges, tasks, split)
    assert 1 <= len(shares) <= tasks
    for whole in ranges:
        pieces = sorted(r for share in shares for r in share if r.partition == whole.partition)
        assert [piece.start for piece in pieces] == [
            whole.start,
            *(piece.end for piece in pieces[:-1]),
        ]
        assert pieces[-1].end == whole.end
        assert len(pieces) == 1 or split


@given(RANGES, st.integers(1, 9), st.booleans())
def test_a_plan_does_not_depend_on_the_order_of_its_input(ranges, tasks, split):
    assert plan(ranges, tasks, split) == plan(ranges[::-1], tasks, split)


def test_partitions_are_dealt_out_evenly():
    sizes = [100, 60, 50, 40, 30, 20]
    ranges = [Range("t", at, 0, size) for at, size in enumerate(sizes)]
    loads = [sum(r.size for r in share) for share in plan(ranges, 2, split=False)]
    assert loads == [160, 140]


def test_a_long_range_is_cut_only_where_order_may_be_given_up():
    long, short = Range("t", 0, 0, 900), Range("t", 1, 0, 100)
    assert plan([long, short], 2, split=False) == [(long,), (short,)]
    cut = plan([long, short], 4, split=True)
    assert sorted(sum(r.size for r in share) for share in cut) == [225, 225, 225, 325]


def test_pieces_that_meet_in_one_task_are_one_range_again():
    shares = plan([Range("t", 0, 0, 260), Range("t", 1, 0, 740)], 4, split=True)
    assert (Range("t", 0, 0, 260),) in shares


def test_tasks_are_as_many_as_pay_off():
    assert task_count(rows=40, partitions=4, cores=8, parallelism=None) == 1
    assert task_count(rows=0, partitions=0, cores=8, parallelism=None) == 1
    assert task_count(rows=60_000, partitions=4, cores=8, parallelism=None) == 3
    assert task_count(rows=900_000, partitions=4, cores=2, parallelism=None) == 2
    assert task_count(rows=12_000_000, partitions=4, cores=2, parallelism=None) == 4
    assert task_count(rows=12_000_000, partitions=1, cores=8, parallelism=None) == 1
    assert task_count(rows=12_000_000, partitions=1, cores=8, parallelism=6) == 6
    assert task_count(rows=40, partitions=1, cores=8, parallelism=6) == 1
