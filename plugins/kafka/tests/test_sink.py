"""Rows written through Spark to a real broker, read back by a plain client."""

from __future__ import annotations

import json
import weakref
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql.functions import udf
from streamcore import Column, Table
from streamcore.reports import Collector
from streamcore.spark.carrier import pack
from streamcore_kafka.sender import KEPT, Sender

ID = Column("id", "BIGINT")


def options(kafka, topic, **more):
    base = {
        "connector": "kafka",
        "properties.bootstrap.servers": kafka.bootstrap_servers,
        "topic": topic,
        "format": "json",
    }
    return {**base, **more}


def write(frame, given, table=None):
    frame.write.format("streamcore").options(**pack(given, table)).mode("append").save()


def start(frame, given, place: Path):
    return (
        frame.writeStream.format("streamcore")
        .options(**pack(given))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )


@pytest.fixture
def numbers(spark, tmp_path):
    """A stream of the numbers 0 to 99."""
    spark.range(100).write.parquet(str(tmp_path / "numbers"))
    return spark.readStream.schema("id BIGINT").parquet(str(tmp_path / "numbers"))


def ids(messages):
    return sorted(json.loads(message.value())["id"] for message in messages)


def test_a_batch_of_rows_becomes_messages(spark, kafka, kafka_topic, records):
    topic = kafka_topic(3)
    rows = spark.range(1000).selectExpr("id", "concat('n', id) AS name")
    collector = Collector()
    try:
        table = Table((ID, Column("name", "STRING")), "numbers", reports=collector.address)
        write(rows, options(kafka, topic), table)
        counted = collector.totals("numbers", "sink")
    finally:
        collector.close()
    messages = records(topic)
    assert ids(messages) == list(range(1000))
    assert {json.loads(m.value())["name"] for m in messages} == {f"n{n}" for n in range(1000)}
    assert counted["rows"] == 1000
    assert counted["bytes"] == sum(len(message.value()) for message in messages)


def test_a_stream_of_rows_becomes_messages_with_keys(
    numbers, kafka, kafka_topic, records, tmp_path
):
    topic = kafka_topic(2)
    keyed = {"key.format": "json", "key.fields": "id", "sink.delivery-guarantee": "none"}
    start(numbers, options(kafka, topic, **keyed), tmp_path).awaitTermination(60)
    messages = records(topic)
    assert ids(messages) == list(range(100))
    assert all(message.key() == message.value() for message in messages)


def test_rows_choose_topic_headers_and_timestamp(spark, kafka, kafka_topic, records):
    first, second = kafka_topic(), kafka_topic()
    columns = (
        Column("headers", "MAP<STRING, BYTES>", metadata="headers"),
        ID,
        Column("to", "STRING", metadata="topic"),
        Column("at", "TIMESTAMP(3)", metadata="timestamp"),
        Column("offset", "BIGINT", metadata="offset", virtual=True),
    )
    rows = spark.sql(f"""
        SELECT map('a', CAST('x' AS BINARY), 'none', NULL) AS headers, 1L AS id, '{first}' AS to,
               TIMESTAMP_NTZ '2024-05-06 07:08:09.123' AS at
        UNION ALL SELECT NULL, 2L, '{second}', NULL
    """)
    write(rows, options(kafka, f"{first};{second}"), Table(columns))
    (one,), (two,) = records(first), records(second)
    assert (one.value(), two.value()) == (b'{"id":1}', b'{"id":2}')
    assert sorted(one.headers()) == [("a", b"x"), ("none", None)]
    assert one.timestamp() == (1, 1714979289123)
    assert two.headers() is None
    assert two.timestamp()[1] > one.timestamp()[1]


def test_rows_choose_a_topic_that_matches_a_pattern(spark, kafka, kafka_topic, records):
    first, second = kafka_topic(), kafka_topic()
    pattern = {"topic-pattern": "test_rows_choose_a_topic_that.*"}
    given = options(kafka, "", **pattern)
    del given["topic"]
    rows = spark.createDataFrame([(1, first), (2, second)], "id BIGINT, to STRING")
    write(rows, given, Table((ID, Column("to", "STRING", metadata="topic"))))
    assert (ids(records(first)), ids(records(second))) == ([1], [2])


def test_header_lists_keep_their_order(spark, kafka, kafka_topic, records):
    topic = kafka_topic()
    kind = "ARRAY<ROW<`key` STRING, `value` BYTES>>"
    columns = (ID, Column("headers", kind, metadata="header-list"))
    given = [("b", b"1"), ("a", b"2"), ("b", None), None, (None, b"3")]
    schema = "id BIGINT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    rows = spark.createDataFrame([(1, given)], schema)
    write(rows, options(kafka, topic), Table(columns))
    (message,) = records(topic)
    assert message.headers() == [("b", b"1"), ("a", b"2"), ("b", None)]


def test_a_missing_topic_fails_the_write_with_one_sentence(spark, kafka):
    with pytest.raises(Exception, match="does not know the topic: 'no-such-topic'") as failed:
        write(spark.range(1), options(kafka, "no-such-topic"))
    assert "Create it, or check 'topic'." in str(failed.value)


def test_all_topics_that_are_missing_are_named_at_once(spark, kafka, kafka_topic):
    there = kafka_topic()
    given = options(kafka, f"{there};gone-1;gone-2")
    rows = spark.createDataFrame(
        [(1, there), (2, "gone-2"), (3, "gone-1")], "id BIGINT, to STRING"
    ).coalesce(1)
    with pytest.raises(Exception, match="does not know the topics: 'gone-1', 'gone-2'") as failed:
        write(rows, given, Table((ID, Column("to", "STRING", metadata="topic"))))
    assert "Create them, or check 'topic'." in str(failed.value)


def test_a_topic_is_created_where_the_user_allows_it(spark, kafka, records):
    from streamcore.testing.services.kafka import unique_name

    topic = unique_name("created")
    allowed = {"properties.allow.auto.create.topics": "true"}
    write(spark.range(3), options(kafka, topic, **allowed))
    assert ids(records(topic)) == [0, 1, 2]


# --- exactly once ------------------------------------------------------------------------------


def once(kafka, topic):
    exactly = {"sink.delivery-guarantee": "exactly-once"}
    return options(kafka, topic, **exactly, **{"sink.transactional-id-prefix": f"p-{topic}"})


def forget_the_last_batch(place: Path):
    """Have Spark repeat a batch, as if it had been killed before it noted the end."""
    commits = sorted((place / "checkpoint" / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
    commits[-1].unlink()
    (place / "checkpoint" / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)


def test_a_repeated_batch_is_written_once(numbers, kafka, kafka_topic, records, tmp_path):
    topic = kafka_topic(2)
    for _ in range(2):
        query = start(numbers.repartition(3), once(kafka, topic), tmp_path)
        assert query.awaitTermination(60)
        forget_the_last_batch(tmp_path)
    assert ids(records(topic)) == list(range(100))


def test_a_batch_that_failed_half_way_is_completed(
    spark, numbers, kafka, kafka_topic, records, tmp_path
):
    topic, obstacle = kafka_topic(2), tmp_path / "obstacle"
    obstacle.touch()

    def trip(number):
        from pyspark import TaskContext

        if TaskContext.get().partitionId() == 3 and obstacle.exists():
            raise RuntimeError("tripped")
        return number

    tripped = udf(trip, "BIGINT", useArrow=False)
    tripping = numbers.repartition(4).select(tripped("id").alias("id"))
    with pytest.raises(Exception, match="tripped"):
        start(tripping, once(kafka, topic), tmp_path).awaitTermination(60)
    written = ids(records(topic))
    assert 0 < len(written) < 100
    obstacle.unlink()
    assert start(tripping, once(kafka, topic), tmp_path).awaitTermination(60)
    assert ids(records(topic)) == list(range(100))


def test_a_batch_without_rows_leaves_its_marker(
    spark, numbers, kafka, kafka_topic, records, tmp_path
):
    topic = kafka_topic()
    start(numbers.where("id >= 100"), once(kafka, topic), tmp_path).awaitTermination(60)
    spark.range(100, 103).write.mode("append").parquet(str(tmp_path / "numbers"))
    start(numbers.where("id >= 100"), once(kafka, topic), tmp_path).awaitTermination(60)
    assert ids(records(topic)) == [100, 101, 102]


def test_batches_written_by_foreach_batch_are_written_once(
    numbers, kafka, kafka_topic, records, tmp_path
):
    topic = kafka_topic(2)
    given = once(kafka, topic)

    def by_hand(frame, number):
        write(frame, given)

    for _ in range(2):
        query = (
            numbers.writeStream.foreachBatch(by_hand)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)
        forget_the_last_batch(tmp_path)
    assert ids(records(topic)) == list(range(100))


def test_a_batch_job_is_written_once_per_run(spark, kafka, kafka_topic, records):
    topic = kafka_topic(2)
    for _ in range(2):
        write(spark.range(50), once(kafka, topic))
    assert Counter(ids(records(topic))) == Counter(dict.fromkeys(range(50), 2))


def test_a_prefix_used_by_another_query_stops_the_older_one(
    spark, numbers, kafka, kafka_topic, tmp_path
):
    topic = kafka_topic()
    start(numbers, once(kafka, topic), tmp_path / "one").awaitTermination(60)
    start(numbers, once(kafka, topic), tmp_path / "two").awaitTermination(60)
    spark.range(100, 110).write.mode("append").parquet(str(tmp_path / "numbers"))
    with pytest.raises(Exception, match="give every query a prefix of its own"):
        start(numbers, once(kafka, topic), tmp_path / "one").awaitTermination(60)


def test_producers_are_kept_for_later_tasks_and_never_more_than_a_few(kafka):
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    with Sender.borrowed(properties) as first:
        pass
    with Sender.borrowed(properties) as again:
        assert again is first
    for number in range(KEPT + 3):
        with Sender.borrowed(properties, **{"client.id": f"client-{number}"}) as last:
            pass
    gone = weakref.ref(first)
    del first, again
    assert gone() is None, "the longest unused one was let go, without waiting for a collector"
    with Sender.borrowed(properties, **{"client.id": f"client-{KEPT + 2}"}) as kept:
        assert kept is last
