"""Options of an upsert table: what is refused is refused by name, with the reason."""

import pytest
from streamcore import Column, OptionError, OptionWarning, Table
from streamcore.registry import installed
from streamcore.testing import ConnectorContract
from streamcore_kafka.offsets import Startup

GIVEN = {
    "topic": "t",
    "properties.bootstrap.servers": "127.0.0.1:9092",
    "key.format": "json",
    "value.format": "json",
}


def build(**extra):
    return installed().build("connector", "upsert-kafka", GIVEN | extra)


class TestUpsertKafka(ConnectorContract):
    plugin = build()
    table = Table((Column("id", "BIGINT", nullable=False), Column("name", "STRING")), "t", ("id",))


def test_reading_starts_at_the_beginning():
    assert build().startup is Startup.EARLIEST


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (
            {"format": "json"},
            "format: 'json' is not an option of 'upsert-kafka': set 'key.format' and "
            "'value.format'",
        ),
        (
            {"key.fields": "a"},
            "key.fields: 'a' is not an option of 'upsert-kafka': the columns of the PRIMARY KEY "
            "are the key",
        ),
        (
            {"sink.partitioner": "fixed"},
            "sink.partitioner: 'fixed' is not an option of 'upsert-kafka': rows of one key must "
            "stay in one partition",
        ),
        (
            {"sink.semantic": "exactly-once"},
            "sink.semantic: 'exactly-once' is not an option of 'upsert-kafka': write "
            "'sink.delivery-guarantee'",
        ),
        (
            {"scan.startup.mode": "latest-offset"},
            "scan.startup.mode: 'latest-offset' misses rows that are older and gives an incomplete "
            "table; set 'scan.startup.incomplete-is-fine' to 'true' if that is meant",
        ),
        (
            {"sink.buffer-flush.max-rows": "10"},
            "sink.buffer-flush.max-rows: this and 'sink.buffer-flush.interval' must be set "
            "together, both greater than 0",
        ),
        (
            {"value.format": "debezium-json"},
            "value.format: 'debezium-json' carries updates and deletes itself; 'upsert-kafka' "
            "needs an insert-only format, or use connector 'kafka' for this topic",
        ),
        (
            {"sink.delivery-guarantee": "exactly-once"},
            "sink.transactional-id-prefix: required when 'sink.delivery-guarantee' is "
            "'exactly-once'",
        ),
        (
            {"properties.partitioner": "random"},
            "properties.partitioner: 'random' is not one of murmur2, murmur2_random: rows of one "
            "key must stay in the partition that every other client looks for them in",
        ),
        (
            {"changelog.normalize.ttl": "1 h"},
            "changelog.normalize.ttl: has no effect without 'changelog.normalize'; set that to "
            "'true', or remove this",
        ),
        (
            {"scan.bounded.mode": "specific-offsets"},
            "scan.bounded.specific-offsets: required when 'scan.bounded.mode' is "
            "'specific-offsets'",
        ),
    ],
)
def test_refusals(extra, expected):
    with pytest.raises(OptionError) as caught:
        build(**extra)
    assert expected in [str(problem) for problem in caught.value.problems]


def test_a_plain_streaming_read_cannot_be_normalised():
    connector = build(**{"changelog.normalize": "true"})
    table = Table((Column("id", "BIGINT", nullable=False), Column("name", "STRING")), "t", ("id",))
    with pytest.raises(OptionError) as caught:
        connector.stream_reader(table)
    assert (
        "changelog.normalize: needs state, which a plain read has not; call "
        "streamcore.spark.changes.read_changes(spark, options, schema), and write its result in "
        "update mode"
    ) in str(caught.value)


def test_both_formats_are_required():
    with pytest.raises(OptionError) as caught:
        installed().build(
            "connector", "upsert-kafka", {"topic": "t", "properties.bootstrap.servers": "h:1"}
        )
    keys = {problem.key for problem in caught.value.problems}
    assert {"key.format", "value.format"} <= keys


def test_another_start_works_once_it_is_acknowledged():
    chosen = build(
        **{"scan.startup.mode": "latest-offset", "scan.startup.incomplete-is-fine": "true"}
    )
    assert chosen.startup is Startup.LATEST


def test_keys_of_the_managed_service_are_checked_and_warned_about():
    with pytest.warns(OptionWarning, match="this client only writes to topics that exist"):
        build(**{"aliyun.kafka.regionId": "cn-hangzhou"})
    with (
        pytest.raises(OptionError, match="'moon' is not a region such as 'cn-hangzhou'"),
        pytest.warns(OptionWarning),
    ):
        build(**{"aliyun.kafka.regionId": "moon"})
