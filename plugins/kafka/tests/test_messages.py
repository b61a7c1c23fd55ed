"""Rows into messages without a broker: topics, partitions, timestamps, headers, kinds."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from streamcore import Column, OptionError, Partitioner, RecordError, Table
from streamcore.registry import installed
from streamcore_kafka.messages import MessageEncoder, check_routing

ID = Column("id", "BIGINT")
TOPIC = Column("target", "STRING", metadata="topic")


def connector(**options):
    named = {key.replace("__", "."): value for key, value in options.items()}
    base = {"properties.bootstrap.servers": "nobody:1", "format": "json"}
    return installed().build("connector", "kafka", {**base, "topic": "orders", **named})


def encode(kafka, columns, rows, partitions=4, task=0):
    table = Table(tuple(columns))
    schema = pa.schema([column.field.with_nullable(True) for column in columns])
    encoder = MessageEncoder(kafka, table, task, lambda topic: range(partitions))
    return encoder.encode(pa.RecordBatch.from_pylist(rows, schema=schema))


def test_a_row_without_a_key_format_has_no_key():
    messages = encode(connector(), [ID], [{"id": 1}, {"id": None}])
    assert list(messages.values) == [b'{"id":1}', b'{"id":null}']
    assert (messages.keys, messages.topic) == (None, "orders")
    assert messages.partitions is messages.timestamps is messages.headers is None


def test_the_key_has_its_columns_in_the_order_listed_and_without_their_prefix():
    kafka = connector(
        key__format="json",
        key__fields="k_b;k_a",
        **{"key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY"},
    )
    columns = [Column("k_a", "INT"), Column("x", "INT"), Column("k_b", "STRING")]
    messages = encode(kafka, columns, [{"k_a": 1, "x": 2, "k_b": "three"}])
    assert list(messages.keys) == [b'{"b":"three","a":1}']
    assert list(messages.values) == [b'{"x":2}']


def test_key_columns_stay_in_the_value_unless_told_otherwise():
    kafka = connector(key__format="json", key__fields="id")
    messages = encode(kafka, [ID, Column("x", "INT")], [{"id": 1, "x": 2}])
    assert list(messages.keys) == [b'{"id":1}']
    assert list(messages.values) == [b'{"id":1,"x":2}']


# --- which topic ---------------------------------------------------------------------------------


def test_each_row_picks_one_of_the_listed_topics():
    rows = [{"id": 1, "target": "b"}, {"id": 2, "target": "a"}]
    messages = encode(connector(topic="a;b"), [ID, TOPIC], rows)
    assert messages.topic == ["b", "a"]
    assert list(messages.values) == [b'{"id":1}', b'{"id":2}']


def test_each_row_picks_a_topic_that_matches_the_pattern():
    kafka = connector(topic="", **{"topic-pattern": "orders-\\Q.\\E[a-z]+"})
    messages = encode(kafka, [ID, TOPIC], [{"id": 1, "target": "orders-.eu"}])
    assert messages.topic == ["orders-.eu"]


@pytest.mark.parametrize(
    ("options", "target", "trouble"),
    [
        ({"topic": "a;b"}, None, "row 0: topic: expected a single topic but none set"),
        ({"topic": "a;b"}, "c", "topic: expected one of [a, b] but was 'c'"),
        (
            {"topic": "", "topic-pattern": "orders-.*"},
            "new-orders-eu",
            "topic: expected a match of 'orders-.*' but was 'new-orders-eu'",
        ),
    ],
)
def test_a_topic_that_is_not_allowed_fails_with_what_is(options, target, trouble):
    with pytest.raises(RecordError) as refused:
        encode(connector(**options), [ID, TOPIC], [{"id": 1, "target": target}])
    assert str(refused.value) == trouble


def test_several_topics_need_a_column_that_names_one():
    with pytest.raises(OptionError) as refused:
        check_routing(connector(topic="a;b"), Table((ID,), "clicks"))
    assert refused.value.problems[0].key == "topic"
    assert str(refused.value).endswith(
        "topic: allows several topics, so rows must name theirs: declare a column METADATA FROM "
        "'topic'"
    )
    check_routing(connector(topic="a;a"), Table((ID,)))


def test_a_topic_listed_twice_is_one_topic_whatever_the_row_says():
    messages = encode(connector(topic="a;a"), [ID, TOPIC], [{"id": 1, "target": "elsewhere"}])
    assert messages.topic == "a"


# --- timestamps and headers -----------------------------------------------------------------------


def test_timestamps_are_the_rows_own_and_the_clients_where_they_are_null():
    column = Column("at", "TIMESTAMP_LTZ(3)", metadata="timestamp")
    rows = [
        {"id": 1, "at": datetime(2024, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)},
        {"id": 2, "at": None},
        {"id": 3, "at": datetime(1970, 1, 1, tzinfo=UTC)},
    ]
    assert encode(connector(), [ID, column], rows).timestamps == [1714979289123, 0, 1]


def test_a_timestamp_may_be_a_text_with_its_zone_and_another_text_is_refused():
    column = Column("at", "STRING", metadata="timestamp")
    row = {"id": 1, "at": "2024-05-06 07:08:09.123Z"}
    assert encode(connector(), [ID, column], [row]).timestamps == [1714979289123]
    for text in ("yesterday", "2024-05-06 07:08:09.123"):
        with pytest.raises(RecordError, match=f"column 'at', metadata 'timestamp': .*'{text}'"):
            encode(connector(), [ID, column], [row | {"at": text}])


def test_a_timestamp_before_1970_is_refused():
    column = Column("at", "TIMESTAMP_LTZ(3)", metadata="timestamp")
    rows = [{"id": 1, "at": None}, {"id": 2, "at": datetime(1969, 12, 31, tzinfo=UTC)}]
    with pytest.raises(RecordError, match=r"row 1: timestamp: 1969-12-31 .* is before 1970"):
        encode(connector(), [ID, column], rows)


def test_a_timestamp_may_be_declared_as_another_type():
    column = Column("at", "TIMESTAMP(3)", metadata="timestamp")
    messages = encode(connector(), [ID, column], [{"id": 1, "at": datetime(2024, 1, 1)}])
    assert messages.timestamps == [1704067200000]


def test_header_maps_keep_null_values_and_lose_null_maps():
    column = Column("h", "MAP<STRING, BYTES>", metadata="headers")
    rows = [{"id": 1, "h": [("a", b"1"), ("b", None)]}, {"id": 2, "h": None}, {"id": 3, "h": []}]
    assert encode(connector(), [ID, column], rows).headers == [[("a", b"1"), ("b", None)], None, []]


def test_header_lists_keep_order_and_duplicates_and_drop_null_entries_and_keys():
    column = Column("h", "ARRAY<ROW<`key` STRING, `value` BYTES>>", metadata="header-list")
    entries = [
        {"key": "b", "value": b"1"},
        None,
        {"key": None, "value": b"2"},
        {"key": "b", "value": None},
    ]
    rows = [{"id": 1, "h": entries}, {"id": 2, "h": None}]
    assert encode(connector(), [ID, column], rows).headers == [[("b", b"1"), ("b", None)], []]


# --- partitions --------------------------------------------------------------------------------


def test_fixed_sends_a_task_to_one_partition():
    kafka = connector(**{"sink.partitioner": "fixed"})
    rows = [{"id": 1}, {"id": 2}]
    placed = [encode(kafka, [ID], rows, partitions=3, task=task).partitions for task in range(5)]
    assert placed == [[0, 0], [1, 1], [2, 2], [0, 0], [1, 1]]


def test_partitions_are_taken_from_the_sorted_ids():
    kafka = connector(**{"sink.partitioner": "fixed"})
    table = Table((ID,))
    encoder = MessageEncoder(kafka, table, 1, lambda topic: (3, 7))
    rows = pa.RecordBatch.from_pylist([{"id": 1}], schema=table.physical)
    assert encoder.encode(rows).partitions == [7]


def test_round_robin_deals_rows_out_evenly():
    kafka = connector(**{"sink.partitioner": "round-robin"})
    placed = encode(kafka, [ID], [{"id": n} for n in range(6)], partitions=3).partitions
    assert placed == [0, 1, 2, 0, 1, 2]


class ByRow(Partitioner):
    """Goes by a column's value, and leaves nulls to the client."""

    identifier = "by-row"

    def choose(self, row, key, target):
        assert target.name in ("orders", "a", "b")
        return row["id"]


class Strange(Partitioner):
    """Has no partition but nine."""

    identifier = "strange"

    def choose(self, row, key, target):
        return -9 if row["id"] else 9


def with_partitioner(kind, **options):
    kafka = connector(**options)
    object.__setattr__(kafka, "partitioner", kind())
    return kafka


def test_a_partitioner_of_ones_own_sees_each_row():
    rows = [{"id": 2}, {"id": None}, {"id": 0}]
    assert encode(with_partitioner(ByRow), [ID], rows).partitions == [2, -1, 0]


def test_a_partitioner_of_ones_own_is_asked_for_each_topic_apart():
    kafka = with_partitioner(ByRow, topic="a;b")
    rows = [{"id": 2, "target": "b"}, {"id": 1, "target": "a"}, {"id": 0, "target": "b"}]
    assert encode(kafka, [ID, TOPIC], rows).partitions == [2, 1, 0]


@pytest.mark.parametrize(("row", "wrong"), [(0, 9), (1, -9)])
def test_a_partition_that_does_not_exist_is_refused(row, wrong):
    with pytest.raises(RecordError) as refused:
        encode(with_partitioner(Strange), [ID], [{"id": row}])
    assert str(refused.value) == (
        f"partitioner 'strange' chose partition {wrong} of topic 'orders', which has 4; "
        "choose 0 to 3"
    )


# --- bad input of the sink's options --------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "trouble"),
    [
        (
            {"sink.partitioner": "round-robin", "key.format": "json", "key.fields": "id"},
            "sink.partitioner: 'round-robin' works only without 'key.fields'",
        ),
        (
            {"sink.delivery-guarantee": "exactly-once"},
            "sink.transactional-id-prefix: required when 'sink.delivery-guarantee' is "
            "'exactly-once'",
        ),
        (
            {"sink.semantic": "exactly-once"},
            "sink.transactional-id-prefix: required when 'sink.semantic' is 'exactly-once'",
        ),
        (
            {"sink.transactional-id-prefix": "é" * 32_001},
            "sink.transactional-id-prefix: has 64002 bytes; 64000 are allowed",
        ),
        (
            {"sink.delivery-guarantee": "twice"},
            "sink.delivery-guarantee: 'twice' is not one of none, at-least-once, exactly-once",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::streamcore.OptionWarning")
def test_sink_options_that_do_not_fit_are_named(options, trouble):
    with pytest.raises(OptionError) as refused:
        connector(**options)
    assert trouble in [str(problem) for problem in refused.value.problems]


@pytest.mark.parametrize("name", ["", "abc", "no.such.module.Partitioner", "builtins.dict"])
def test_a_partitioner_that_cannot_be_had_is_named(name):
    with pytest.raises(OptionError) as refused:
        connector(**{"sink.partitioner": name})
    assert any(problem.key == "sink.partitioner" for problem in refused.value.problems)


@pytest.mark.filterwarnings("ignore::streamcore.OptionWarning")
def test_the_deprecated_semantic_wins():
    kafka = connector(**{"sink.semantic": "none", "sink.delivery-guarantee": "at-least-once"})
    assert kafka.guarantee.value == "none"
