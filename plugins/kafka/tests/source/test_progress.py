"""What the offset log keeps is enough to plan a batch again, and equal for equal progress."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from streamcore_kafka.progress import Partition, Progress, Range

PARTITIONS = st.builds(Partition, st.sampled_from(["a", "b-c"]), st.integers(0, 20))
POSITIONS = st.dictionaries(PARTITIONS, st.integers(0, 2**62))
PROGRESS = st.builds(
    Progress,
    POSITIONS,
    since=POSITIONS,
    until=POSITIONS,
    ids=st.dictionaries(st.sampled_from(["a", "b-c"]), st.text(min_size=1)),
    tasks=st.integers(1, 99),
    split=st.booleans(),
)


@given(PROGRESS)
def test_progress_survives_spark(progress):
    assert Progress.from_json(json.loads(json.dumps(progress.to_json()))) == progress


@given(PROGRESS)
def test_equal_progress_has_equal_text(progress):
    shuffled = Progress(
        dict(reversed(list(progress.positions.items()))),
        progress.since,
        progress.until,
        dict(reversed(list(progress.ids.items()))),
        progress.tasks,
        progress.split,
    )
    assert json.dumps(shuffled.to_json()) == json.dumps(progress.to_json())


def test_the_text_reads_well():
    progress = Progress({Partition("t", 10): 7, Partition("t", 2): 5}, ids={"t": "x"}, tasks=2)
    text = '{"offsets": {"t": {"2": 5, "10": 7}}, "ids": {"t": "x"}, "split": false, "tasks": 2}'
    assert json.dumps(progress.to_json()) == text


def test_a_batch_starts_where_the_one_before_ended_unless_its_end_knows_better():
    before = Progress({Partition("t", 0): 5, Partition("t", 1): 5, Partition("t", 2): 9})
    after = Progress(
        {Partition("t", 0): 8, Partition("t", 1): 5, Partition("t", 2): 3, Partition("u", 0): 4},
        since={Partition("u", 0): 2, Partition("t", 2): 1},
    )
    assert after.ranges_since(before) == [
        Range("t", 0, 5, 8),
        Range("t", 2, 1, 3),
        Range("u", 0, 2, 4),
    ]


def test_a_partition_whose_end_went_back_has_nothing_to_read():
    before, after = Progress({Partition("t", 0): 5}), Progress({Partition("t", 0): 3})
    assert after.ranges_since(before) == []


def test_a_batch_that_ends_where_it_starts_is_empty_whatever_came_before():
    progress = Progress({Partition("t", 0): 5}, since={Partition("t", 0): 1})
    assert progress.ranges_since(progress) == []
