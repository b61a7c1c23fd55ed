"""Keys, values and metadata of records as columns of a table."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from confluent_kafka import Producer
from streamcore import Column

HEADERS = [("a", b"1"), ("b", None), ("a", b"2")]
AT = datetime(2024, 5, 1, 10, 0, 0, 123000, UTC)
MILLIS = int(AT.timestamp() * 1000)


@pytest.fixture
def one_record(kafka, kafka_topic, produce):
    topic = kafka_topic(partitions=2)
    produce(topic, [{"id": 0}], 1)
    more = {"key": b'{"k": 5}', "headers": HEADERS, "timestamp": MILLIS}
    produce(topic, [{"id": 7, "name": "x"}], 1, **more)
    return topic


def test_every_metadata_column_between_physical_ones(scan, one_record):
    columns = (
        Column("timestamp-type", "STRING", False, "timestamp-type"),
        Column("name", "STRING"),
        Column("t", "STRING", False, "topic"),
        Column("p", "INT", False, "partition"),
        Column("h", "MAP<STRING, BYTES>", False, "headers"),
        Column("l", "ARRAY<ROW<`key` STRING, `value` BYTES>>", False, "header-list"),
        Column("id", "BIGINT"),
        Column("e", "INT", True, "leader-epoch"),
        Column("o", "BIGINT", False, "offset"),
        Column("ts", "TIMESTAMP_LTZ(3)", False, "timestamp"),
    )
    first, second = scan(one_record, columns=columns)
    assert second == (
        "CreateTime",
        "x",
        one_record,
        1,
        {"a": b"2", "b": None},
        [{"key": "a", "value": b"1"}, {"key": "b", "value": None}, {"key": "a", "value": b"2"}],
        7,
        0,
        1,
        AT,
    )
    assert first[4:6] == ({}, [])


def test_metadata_in_other_types_than_its_own(scan, one_record):
    columns = (
        Column("p", "STRING", True, "partition"),
        Column("b", "BIGINT", True, "partition"),
        Column("ts", "TIMESTAMP(3)", True, "timestamp"),
        Column("o", "INT", True, "offset"),
    )
    assert scan(one_record, columns=columns)[1] == ("1", 1, AT.replace(tzinfo=None), 1)


def test_a_broker_may_set_the_time(scan, produce, kafka_topic):
    topic = kafka_topic(config={"message.timestamp.type": "LogAppendTime"})
    produce(topic, [{"id": 1}], timestamp=5)
    columns = (
        Column("kind", "STRING", True, "timestamp-type"),
        Column("ts", "TIMESTAMP_LTZ(3)", True, "timestamp"),
    )
    ((kind, at),) = scan(topic, columns=columns)
    assert kind == "LogAppendTime"
    assert at.year >= 2024


KEYED = {
    "key.format": "json",
    "key.fields": "k_user_id;k_event_id",
    "key.fields-prefix": "k_",
    "value.fields-include": "EXCEPT_KEY",
}


@pytest.fixture
def keyed(kafka, kafka_topic):
    """Writes pairs of key and value: `keyed([(key, value)]) -> topic`."""

    def write(pairs):
        topic = kafka_topic()
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for pair in pairs:
            key, value = (None if part is None else json.dumps(part).encode() for part in pair)
            producer.produce(topic, value, key)
        assert producer.flush(20) == 0
        return topic

    return write


def test_key_columns_have_a_prefix_an_order_and_types_of_their_own(scan, keyed):
    topic = keyed([({"user_id": 1, "event_id": 100}, {"name": "jack", "user_id": "u1"})])
    columns = (
        Column("k_event_id", "BIGINT"),
        Column("user_id", "STRING"),
        Column("name", "STRING"),
        Column("k_user_id", "BIGINT"),
    )
    assert scan(topic, KEYED, columns) == [(100, "u1", "jack", 1)]


def test_a_column_in_key_and_value_is_the_values(scan, keyed):
    topic = keyed([({"id": 1}, {"id": 2, "name": "value"})])
    given = {"key.format": "json", "key.fields": "id"}
    assert scan(topic, given) == [(2, "value")]


def test_one_message_can_be_many_rows_each_with_its_key(scan, keyed):
    topic = keyed([({"id": 9}, [{"name": "a"}, {"name": "b"}])])
    given = {"key.format": "json", "key.fields": "id", "value.fields-include": "EXCEPT_KEY"}
    assert scan(topic, given) == [(9, "a"), (9, "b")]


def test_values_may_be_in_another_format_than_keys_under_either_name(scan, produce, kafka_topic):
    topic = kafka_topic()
    produce(topic, [b"7|x"], key=b'{"k": 5}')
    given = {
        "format": None,
        "value.format": "csv",
        "value.csv.field-delimiter": "|",
        "key.format": "json",
        "key.fields": "k",
        "value.fields-include": "EXCEPT_KEY",
    }
    columns = (Column("k", "BIGINT"), Column("id", "BIGINT"), Column("name", "STRING"))
    assert scan(topic, given, columns) == [(5, 7, "x")]


def test_raw_values_keep_their_nulls(scan, produce, kafka_topic):
    topic = kafka_topic()
    produce(topic, [b"a", None, b"c"])
    assert scan(topic, {"format": "raw"}, (Column("v", "STRING"),)) == [("a",), (None,), ("c",)]


def test_a_changelog_gives_kinds_and_the_formats_own_metadata(scan, produce, kafka_topic):
    topic = kafka_topic()
    source = {"table": "people", "db": "shop", "ts_ms": 1}
    row = {"id": 1, "name": "a"}
    produce(
        topic,
        [
            {"before": None, "after": row, "op": "c", "source": source},
            {"before": row, "after": {**row, "name": "b"}, "op": "u", "source": source},
            {"before": {**row, "name": "b"}, "after": None, "op": "d", "source": source},
            None,
        ],
    )
    columns = (
        Column("_row_kind", "STRING", True, "row-kind"),
        Column("name", "STRING"),
        Column("source_table", "STRING", True, "value.source.table"),
        Column("o", "BIGINT", True, "offset"),
    )
    assert scan(topic, {"format": "debezium-json"}, columns) == [
        ("+I", "a", "people", 0),
        ("-U", "a", "people", 1),
        ("+U", "b", "people", 1),
        ("-D", "b", "people", 2),
    ]


def test_a_record_without_a_key_has_null_key_columns(scan, keyed):
    topic = keyed([(None, {"name": "x"}), ({"id": 1}, {"name": "y"})])
    given = {"key.format": "json", "key.fields": "id", "value.fields-include": "EXCEPT_KEY"}
    assert scan(topic, given) == [(None, "x"), (1, "y")]
