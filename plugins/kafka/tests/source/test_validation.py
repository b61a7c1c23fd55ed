"""Everything that can be wrong with a Kafka table before a broker is asked, word for word."""

from __future__ import annotations

from typing import ClassVar

import pytest
from streamcore import Column, Format, MetadataKey, OptionError, OptionWarning, Table
from streamcore.checks import check_table
from streamcore.registry import installed
from streamcore_kafka.connector import Kafka
from streamcore_kafka.discovery import reads_committed
from streamcore_kafka.offsets import Startup

GOOD = {
    "properties.bootstrap.servers": "broker:9092",
    "topic": "orders",
    "format": "json",
    "scan.startup.mode": "earliest-offset",
}
TABLE = Table((Column("id", "BIGINT"), Column("name", "STRING"), Column("k_id", "BIGINT")), "t")


def build(given):
    options = {key: value for key, value in {**GOOD, **given}.items() if value is not None}
    return installed().build("connector", "kafka", options)


def complaints(given):
    with pytest.raises(OptionError) as caught:
        build(given)
    return [str(problem) for problem in caught.value.problems]


def table_complaints(given, table=TABLE, *, writing=False):
    with pytest.raises(OptionError) as caught:
        check_table(build(given), table, writing=writing)
    return [str(problem) for problem in caught.value.problems]


def test_a_good_table_has_no_problem():
    for writing in (False, True):
        check_table(build({}), TABLE, writing=writing)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"topic-pattern": "o.*"},
            "topic: 'topic' and 'topic-pattern' cannot both be set; keep one",
        ),
        ({"topic": None}, "topic: either 'topic' or 'topic-pattern' must be set"),
        ({"topic": ""}, "topic: either 'topic' or 'topic-pattern' must be set"),
        (
            {"topic": None, "topic-pattern": "o("},
            "topic-pattern: 'o(' is not a regular expression: "
            "missing ), unterminated subpattern at position 1",
        ),
        (
            {"topic": "a;;b"},
            "topic: '' is not a topic name; use 1 to 249 letters, digits, '.', '_' and '-'",
        ),
        ({"scan.partitions": "0;x"}, "scan.partitions: 'x' is not the number of a partition"),
        ({"scan.partitions": "4/4"}, "scan.partitions: '4/4' is not the number of a partition"),
        (
            {"scan.watermark.lanes": "2"},
            "scan.watermark.lanes: has an effect only with 'scan.watermark.per-partition' = "
            "'true'; set it",
        ),
        (
            {
                "topic": "a;b",
                "scan.watermark.per-partition": "true",
                "scan.watermark.lanes": "2",
            },
            "scan.watermark.lanes: is for all partitions of one topic; set one 'topic', "
            "no 'scan.partitions'",
        ),
        ({"scan.partitions": "²"}, "scan.partitions: '²' is not the number of a partition"),
        (
            {"properties.bootstrap.servers": " "},
            "properties.bootstrap.servers: is empty; write host:port,host:port",
        ),
        (
            {"properties.group.id": "g", "properties.commit.offsets.on.checkpoint": "maybe"},
            "properties.commit.offsets.on.checkpoint: 'maybe' is not one of true, false",
        ),
        (
            {"properties.group.id": "g", "properties.Group.Id": "h"},
            "properties.group.id: given twice, also as 'properties.Group.Id'; set one",
        ),
        (
            {"properties.delivery.timeout.ms": "10"},
            "properties.delivery.timeout.ms: must be greater than 'properties.linger.ms', "
            "which is 50 unless set",
        ),
        (
            {"properties.request.timeout.ms": "400000"},
            "properties.request.timeout.ms: '400000' is not between 10 and 300000",
        ),
        (
            {"scan.startup.mode": "timestamp"},
            "scan.startup.timestamp-millis: required when 'scan.startup.mode' is 'timestamp'",
        ),
        (
            {"scan.startup.mode": "specific-offsets"},
            "scan.startup.specific-offsets: required when 'scan.startup.mode' is "
            "'specific-offsets'",
        ),
        (
            {
                "topic": "a;b",
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": "partition:0,offset:1",
            },
            "scan.startup.specific-offsets: lists the partitions of one topic; "
            "set exactly one 'topic'",
        ),
        (
            {
                "topic": None,
                "topic-pattern": "a|b",
                "scan.bounded.mode": "specific-offsets",
                "scan.bounded.specific-offsets": "partition:0,offset:1",
            },
            "scan.bounded.specific-offsets: lists the partitions of one topic; "
            "set exactly one 'topic'",
        ),
        (
            {"scan.startup.specific-offsets": "partition:0, offset:1"},
            "scan.startup.specific-offsets: 'partition:0, offset:1' does not look like "
            "'partition:0,offset:42;partition:1,offset:300'",
        ),
        (
            {"scan.bounded.specific-offsets": "0:1"},
            "scan.bounded.specific-offsets: '0:1' does not look like "
            "'partition:0,offset:42;partition:1,offset:300'",
        ),
        (
            {"scan.bounded.mode": "timestamp"},
            "scan.bounded.timestamp-millis: required when 'scan.bounded.mode' is 'timestamp'",
        ),
        (
            {"scan.bounded.mode": "specific-offsets"},
            "scan.bounded.specific-offsets: required when 'scan.bounded.mode' is "
            "'specific-offsets'",
        ),
        (
            {
                "scan.startup.mode": "group-offsets",
                "properties.group.id": "g",
                "properties.auto.offset.reset": "smallest",
            },
            "properties.auto.offset.reset: 'smallest' is not one of earliest, latest, none",
        ),
        (
            {"properties.enable.auto.commit": "true"},
            "properties.group.id: required when 'properties.enable.auto.commit' is 'true'",
        ),
        (
            {"properties.commit.offsets.on.checkpoint": "true"},
            "properties.group.id: required when 'properties.commit.offsets.on.checkpoint' "
            "is 'true'",
        ),
        (
            {
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": "partition:4,offset:-3",
            },
            "properties.group.id: required because 'scan.startup.specific-offsets' takes "
            "partition 4 from the group (-3)",
        ),
        (
            {
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": "partition:4,offset:-5",
            },
            "scan.startup.specific-offsets: -5 of partition 4 is no offset; "
            "write 0 or more, or one of -1, -2, -3",
        ),
        (
            {
                "scan.bounded.mode": "specific-offsets",
                "scan.bounded.specific-offsets": "partition:4,offset:-2",
            },
            "scan.bounded.specific-offsets: -2 of partition 4 is no offset; "
            "write 0 or more, or one of -1, -3",
        ),
        ({"scan.parallelism": "0"}, "scan.parallelism: '0' must be at least 1"),
        ({"sink.parallelism": "-1"}, "sink.parallelism: '-1' must be at least 1"),
        ({"scan.max-rows-per-batch": "0"}, "scan.max-rows-per-batch: '0' must be at least 1"),
        (
            {"scan.startup.mode": "earliest"},
            "scan.startup.mode: 'earliest' is not one of earliest-offset, latest-offset, "
            "group-offsets, timestamp, specific-offsets",
        ),
        (
            {"scan.startup.timestamp-millis": "yesterday"},
            "scan.startup.timestamp-millis: 'yesterday' is not a whole number",
        ),
        (
            {"scan.topic-partition-discovery.interval": "-5 s"},
            "scan.topic-partition-discovery.interval: '-5 s' is not a duration such as "
            "'10 s' or '5 min'",
        ),
        (
            {"scan.deser.failure-handler": "dead-letter"},
            "scan.deser.failure-topic: required when 'scan.deser.failure-handler' is 'dead-letter'",
        ),
        (
            {"scan.deser.failure-handler": "dead-letter", "scan.deser.failure-topic": "orders"},
            "scan.deser.failure-topic: 'orders' is read by this table; "
            "choose another for dead letters",
        ),
        (
            {
                "topic": None,
                "topic-pattern": r"\Qorders.\E.*",
                "scan.deser.failure-handler": "dead-letter",
                "scan.deser.failure-topic": "orders.dlq",
            },
            "scan.deser.failure-topic: 'orders.dlq' is read by this table; "
            "choose another for dead letters",
        ),
        (
            {"topic": None, "topic-pattern": "orders-[0-9&&[^7]]"},
            "topic-pattern: 'orders-[0-9&&[^7]]': '&&' inside of '[…]' is known to Java alone; "
            "list the characters",
        ),
        (
            {"scan.watermark.per-partition": "true", "scan.watermark.idle-timeout": "1 min"},
            "scan.watermark.idle-timeout: Spark cannot let an idle partition go; remove this, or "
            "'scan.watermark.per-partition', without which idle partitions hold nothing back",
        ),
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
            {
                "sink.delivery-guarantee": "exactly-once",
                "sink.transactional-id-prefix": "ä" * 32_001,
            },
            "sink.transactional-id-prefix: has 64002 bytes; 64000 are allowed",
        ),
        (
            {"sink.delivery-guarantee": "once"},
            "sink.delivery-guarantee: 'once' is not one of none, at-least-once, exactly-once",
        ),
    ],
)
def test_options_that_do_not_go_together(given, problem):
    assert complaints(given) == [problem]


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("acks", "0", "'all'"),
        ("enable.idempotence", "false", "'true'"),
        ("max.in.flight.requests.per.connection", "10", "1 to 5"),
        ("retries", "0", "1 or more"),
    ],
)
def test_settings_that_rule_out_exactly_once_are_refused_when_planned(key, value, wanted):
    once = {"sink.delivery-guarantee": "exactly-once", "sink.transactional-id-prefix": "p"}
    assert complaints({**once, f"properties.{key}": value}) == [
        f"properties.{key}: '{value}' does not go with 'exactly-once'; "
        f"set it to {wanted}, or remove it"
    ]
    build({f"properties.{key}": value})
    build({**once, "properties.acks": "ALL", "properties.retries": "10"})


def test_settings_mean_the_same_in_any_case():
    kafka = build({"properties.Isolation.Level": "read_committed", "properties.Group.Id": "g"})
    assert reads_committed(kafka.properties)
    assert kafka.group == "g"


def test_the_deprecated_guarantee_warns_wins_and_needs_a_prefix_too():
    with pytest.warns(OptionWarning, match="write 'sink.delivery-guarantee'"):
        assert complaints({"sink.semantic": "exactly-once"}) == [
            "sink.transactional-id-prefix: required when 'sink.semantic' is 'exactly-once'"
        ]
    with pytest.warns(OptionWarning):
        kafka = build({"sink.semantic": "none", "sink.delivery-guarantee": "at-least-once"})
    assert kafka.guarantee.value == "none"
    assert complaints({"sink.semantic": "maybe"}) == [
        "sink.semantic: 'maybe' is not one of none, at-least-once, exactly-once"
    ]


@pytest.mark.parametrize("name", ["abc", ""])
def test_an_unknown_partitioner_names_those_there_are(name):
    (problem,) = complaints({"sink.partitioner": name})
    assert problem.startswith(f"sink.partitioner: no partitioner called '{name}'. ")
    assert "Installed: default, fixed, " in problem


def test_a_partitioner_class_must_exist_and_be_one():
    (missing,) = complaints({"sink.partitioner": "no.such.Thing"})
    assert missing.startswith("sink.partitioner: could not find and load class 'no.such.Thing'")
    (other,) = complaints({"sink.partitioner": "collections.OrderedDict"})
    assert other.startswith(
        "sink.partitioner: class 'collections.OrderedDict' is not a streamcore Partitioner"
    )


def test_all_problems_are_reported_at_once():
    found = complaints(
        {
            "topic": None,
            "scan.startup.mode": "timestamp",
            "scan.deser.failure-handler": "dead-letter",
        }
    )
    assert len(found) == 3


def test_companions_of_another_mode_are_ignored():
    build(
        {
            "scan.startup.timestamp-millis": "5",
            "scan.bounded.specific-offsets": "partition:0,offset:3",
        }
    )


def test_a_group_is_needed_only_to_read():
    without = {"scan.startup.mode": None, "scan.bounded.mode": "group-offsets"}
    assert table_complaints(without) == [
        "properties.group.id: required when 'scan.startup.mode' is 'group-offsets', which is the "
        "default; set it, or start elsewhere, such as at 'earliest-offset'",
        "properties.group.id: required when 'scan.bounded.mode' is 'group-offsets'",
    ]
    check_table(build(without), TABLE, writing=True)


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        (
            {"key.fields": "id"},
            ["key.fields: can only be declared together with 'key.format'"],
        ),
        ({"key.format": "json"}, ["key.format: needs one or more 'key.fields'"]),
        (
            {"key.format": "json", "key.fields": "nope"},
            [
                "key.fields: 'nope' is not a physical column of the table; "
                "choose from id, name, k_id"
            ],
        ),
        (
            {
                "key.format": "json",
                "key.fields": "k_id;id",
                "key.fields-prefix": "k_",
                "value.fields-include": "EXCEPT_KEY",
            },
            [
                "key.fields-prefix: every field in 'key.fields' must start with 'k_', "
                "but 'id' does not"
            ],
        ),
        (
            {"key.format": "json", "key.fields": "k_id", "key.fields-prefix": "k_"},
            [
                "key.fields-prefix: is not allowed while 'value.fields-include' is 'ALL'; "
                "set it to 'EXCEPT_KEY' so that key and value columns do not overlap"
            ],
        ),
    ],
)
@pytest.mark.parametrize("writing", [False, True])
def test_keys_that_the_columns_cannot_give(given, problems, writing):
    assert table_complaints(given, writing=writing) == problems


def test_a_prefix_without_a_key_has_no_effect():
    given = {"key.fields-prefix": "k_", "value.fields-include": "EXCEPT_KEY"}
    check_table(build(given), TABLE, writing=False)


@pytest.mark.parametrize("writing", [False, True])
def test_an_insert_only_table_cannot_keep_a_primary_key(writing):
    table = Table(TABLE.columns, "t", primary_key=("id",))
    assert table_complaints({}, table, writing=writing) == [
        "PRIMARY KEY: format 'json' only appends rows, so this table cannot keep a key unique; "
        "remove the key, or use connector 'upsert-kafka'"
    ]


def test_a_topic_is_not_written_by_partitions_of_columns():
    table = Table(TABLE.columns, "t", partition_keys=("id",))
    assert table_complaints({}, table, writing=True) == [
        "PARTITIONED BY: Kafka chooses a row's partition by its key or 'sink.partitioner', not by "
        "columns; remove it"
    ]
    check_table(build({}), table, writing=False)


class Changes(Format):
    """Stands for any format that carries updates and deletes."""

    identifier = "changes"
    changelog = True
    metadata_keys: ClassVar = {"source.table": MetadataKey("STRING", "Table of the change.")}


def changing(**more):
    given = {"servers": "broker:9092", "topic": ("orders",), "startup": Startup.EARLIEST}
    return Kafka(format=Changes(), **given, **more)


def test_a_changelog_may_have_a_primary_key_and_says_what_it_carries():
    table = Table(TABLE.columns, "t", primary_key=("id",))
    for writing in (False, True):
        check_table(changing(), table, writing=writing)
    assert changing().produces() == changing().accepts() == {"+I", "-U", "+U", "-D"}
    assert build({}).produces() == build({}).accepts() == {"+I"}


def test_a_changelog_is_no_key():
    kafka = changing(key_format=Changes(), key_fields=("id",))
    with pytest.raises(OptionError, match="'changes' carries updates and deletes; a key needs"):
        check_table(kafka, TABLE, writing=False)


def test_metadata_of_the_format_is_offered_under_value():
    key = changing().metadata()["value.source.table"]
    assert (key.type, key.writable) == ("STRING", False)


def metadata_table(*columns):
    return Table((Column("id", "BIGINT"), *(Column(*column) for column in columns)), "t")


def test_headers_cannot_be_written_twice():
    both = metadata_table(
        ("h", "MAP<STRING, BYTES>", True, "headers"),
        ("l", "ARRAY<ROW<`key` STRING, `value` BYTES>>", True, "header-list"),
    )
    assert table_complaints({}, both, writing=True) == [
        "l: metadata 'headers' and 'header-list' cannot both be written; "
        "declare one of them VIRTUAL"
    ]
    check_table(build({}), both, writing=False)


def test_one_topic_is_not_chosen_by_rows_but_several_are():
    table = metadata_table(("t", "STRING", True, "topic"))
    assert table_complaints({}, table, writing=True) == [
        "t: metadata key 'topic' cannot be written "
        "(writable: header-list, headers, row-kind, timestamp); declare the column VIRTUAL"
    ]
    check_table(build({"topic": "a;b"}), table, writing=True)
    check_table(build({"topic": None, "topic-pattern": "a.*"}), table, writing=True)


def test_metadata_may_be_declared_as_any_type_it_can_be_cast_to():
    fine = metadata_table(
        ("p", "STRING", True, "partition"),
        ("q", "BIGINT", True, "partition"),
        ("s", "TIMESTAMP(3)", True, "timestamp"),
        ("o", "INT", True, "offset"),
    )
    check_table(build({}), fine, writing=False)
    odd = metadata_table(("s", "BOOLEAN", True, "headers"), ("x", "INT", True, "nope"))
    assert table_complaints({}, odd) == [
        "s: metadata key 'headers' is MAP<STRING, BYTES>, which cannot be cast to BOOLEAN",
        "x: metadata key 'nope' does not exist; 'kafka' offers header-list, headers, "
        "leader-epoch, offset, partition, row-kind, timestamp, timestamp-type, topic",
    ]


def test_a_subject_is_needed_where_topics_are_many():
    registry = {"format": "avro-confluent", "avro-confluent.url": "http://registry:8081"}
    check_table(build(registry), TABLE, writing=True)
    check_table(build({**registry, "topic": "a;b"}), TABLE, writing=False)
    topics = Table((*TABLE.columns, Column("to", "STRING", True, "topic")), "t")
    assert table_complaints({**registry, "topic": "a;b"}, topics, writing=True) == [
        "avro-confluent.subject: required for writing, such as '<topic>-value'"
    ]
