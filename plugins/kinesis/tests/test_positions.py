"""Parents are read before children, and a batch is planned alike however often."""

import pytest
from streamcore import Column, PluginError, Table
from streamcore.registry import installed
from streamcore_kinesis.positions import (
    END,
    TRIM,
    Shard,
    Slice,
    at_record,
    at_time,
    next_frontier,
    plan,
    roots,
)


def shard(name, *parents, closed=False):
    return Shard(name, parents, 0, 1, closed)


SPLIT = [shard("p", closed=True), shard("a", "p"), shard("b", "p")]
MERGED = [shard("a", closed=True), shard("b", closed=True), shard("m", "a", "b")]


def test_shards_without_parents_come_first():
    assert [s.name for s in roots(SPLIT)] == ["p"]


def test_shards_whose_parents_have_expired_come_first_too():
    assert [s.name for s in roots([shard("a", "gone"), shard("b", "gone")])] == ["a", "b"]


def test_children_wait_while_their_parent_is_read():
    assert next_frontier({"p": at_time(5)}, SPLIT) == {"p": at_time(5)}


def test_children_start_when_their_parent_has_ended_and_take_its_place():
    assert next_frontier({"p": END}, SPLIT) == {"a": TRIM, "b": TRIM}


def test_a_merged_shard_waits_for_both_parents():
    half = {"a": END, "b": at_time(5)}
    assert next_frontier(half, MERGED) == half
    assert next_frontier({"a": END, "b": END}, MERGED) == {"m": TRIM}


def test_an_ended_shard_stays_until_its_children_are_listed():
    assert next_frontier({"p": END}, [shard("p", closed=True)]) == {"p": END}


def test_ancestors_are_never_read_again():
    listed = [shard("g", closed=True), shard("p", "g", closed=True), shard("a", "p")]
    assert next_frontier({"a": at_time(9)}, listed) == {"a": at_time(9)}


def test_descendants_of_shards_that_expired_while_stopped_start_over():
    listed = [shard("y", "x"), shard("z", "x")]
    found = next_frontier({"w": END}, listed)
    assert found == {"y": TRIM, "z": TRIM}


@pytest.mark.parametrize(
    ("stop", "sequence", "arrival", "inside"),
    [
        (at_record("10", 5), "9", 99, True),
        (at_record("10", 5), "10", 1, False),
        (at_record("9", 5), "10", 1, False),
        (at_time(100), "1", 99, True),
        (at_time(100), "1", 100, False),
        (END, "1", 10**12, True),
    ],
)
def test_a_slice_knows_which_records_it_holds(stop, sequence, arrival, inside):
    assert Slice("s", TRIM, stop, 0, 1).holds(sequence, arrival) is inside


def test_planning_is_a_pure_function_of_slices_and_tasks():
    slices = [Slice(f"s{n:03}", TRIM, END, 0, 1) for n in range(10)]
    assert plan(slices, 3) == plan(list(reversed(slices)), 3)
    assert sorted(len(group) for group in plan(slices, 3)) == [3, 3, 4]
    assert plan([], 3) == []


def test_a_thousand_shards_are_planned_quickly():
    import time

    listed = [shard(f"shard-{n:06}") for n in range(1000)]
    frontier = {s.name: at_time(1) for s in listed}
    before = time.process_time()
    assert next_frontier(frontier, listed) == frontier
    plan([Slice(s.name, TRIM, END, 0, 1) for s in listed], 8)
    assert time.process_time() - before < 2  # generous: the benchmark asks for half a second


def test_offsets_of_a_later_version_are_refused():
    given = {
        "stream.arn": "arn:aws:kinesis:us-east-1:123456789012:stream/orders",
        "aws.region": "us-east-1",
        "format": "json",
    }
    table = Table((Column("n", "BIGINT"),), "t")
    reader = installed().build("connector", "kinesis", given).stream_reader(table)
    ours, later = ({"version": version, "shards": {}} for version in (1, 2))
    for act in (
        lambda: reader.latestOffset(later, None),
        lambda: reader.partitions(later, ours),
        lambda: reader.partitions(ours, later),
    ):
        with pytest.raises(
            PluginError,
            match="^the checkpoint holds offsets of version 2, and this streamcore-kinesis reads "
            "them up to version 1. Install the version that wrote them, or start with a new check",
        ):
            act()
