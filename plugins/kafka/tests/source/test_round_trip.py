"""What this connector writes, it reads back, in every format and with every kind of column."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from streamcore.spark.types import carried, spark_type
from streamcore.table import Column

FORMATS = ["json", "csv", "avro"]


def schema_of(columns):
    schema = StructType()
    for column in columns:
        schema.add(column.name, spark_type(column.field), True, carried(column))
    return schema


@pytest.fixture
def write(spark, options):
    """Writes rows as a batch: `write(topic, columns, rows, {option: value})`."""

    def rows(topic, columns, values, more=()):
        frame = spark.createDataFrame(values, schema_of(columns))
        given = {"connector": "kafka", **options(topic, more)}
        frame.write.format("streamcore").options(**given).mode("append").save()

    return rows


@pytest.fixture
def load(spark, options):
    """Reads a batch as a DataFrame: `load(topic, columns, {option: value})`."""

    def frame(topic, columns, more=()):
        given = {"connector": "kafka", **options(topic, more)}
        return spark.read.format("streamcore").options(**given).schema(schema_of(columns)).load()

    return frame


def plain(rows):
    """Rows as tuples, with bytes as Python knows them."""

    def value(each):
        if isinstance(each, bytearray):
            return bytes(each)
        if isinstance(each, dict):
            return {key: value(item) for key, item in each.items()}
        if isinstance(each, list | tuple):
            return [value(item) for item in each]
        return each

    return [tuple(value(each) for each in row) for row in rows]


TYPED = (
    Column("id", "INT"),
    Column("price", "DECIMAL(38, 18)"),
    Column("day", "DATE"),
    Column("at", "TIMESTAMP(3)"),
    Column("name", "STRING"),
    Column("ok", "BOOLEAN"),
    Column("ratio", "DOUBLE"),
)


@pytest.mark.parametrize("form", FORMATS)
def test_values_of_every_type_come_back_and_fall_into_windows(
    write, load, spark, options, kafka_topic, tmp_path, form
):
    topic = kafka_topic(partitions=2)
    start = datetime(2024, 5, 1, 10)
    rows = [
        (
            at,
            Decimal(f"{at}.2500"),
            date(2024, 5, 1 + at),
            start + timedelta(seconds=at * 2, milliseconds=at),
            f"name {at}",
            at % 2 == 0,
            at / 4,
        )
        for at in range(6)
    ]
    write(topic, TYPED, rows, {"format": form})
    assert sorted(plain(load(topic, TYPED, {"format": form}).collect())) == rows
    given = {"connector": "kafka", **options(topic, {"format": form})}
    frame = spark.readStream.format("streamcore").options(**given).schema(schema_of(TYPED)).load()
    query = (
        frame.withColumn("rowtime", F.to_timestamp("at"))
        .withWatermark("rowtime", "0 seconds")
        .groupBy(F.window("rowtime", "5 seconds"))
        .agg(F.sum("price").alias("total"), F.count("*").alias("rows"))
        .writeStream.format("memory")
        .queryName(f"windows_{form}")
        .outputMode("append")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(120)
    found = spark.table(f"windows_{form}").orderBy("window").collect()
    closed = [(row.window.start.second, float(row.total), row.rows) for row in found]
    assert closed == [(0, 3.75, 3), (5, 7.5, 2)]  # the window of the last row is still open


def test_rows_choose_their_topic_from_a_list_or_by_a_pattern(write, load, kafka, kafka_topic):
    first = kafka_topic()
    second = kafka.create_topic(f"{first}-second")
    columns = (Column("topic", "STRING", True, "topic"), Column("id", "INT"))
    rows = [(first, 1), (second, 2), (first, 3)]
    write(f"{first};{second}", columns, rows)
    write(None, columns, [(second, 4)], {"topic-pattern": f"{first}.*"})
    everything = load(f"{first};{second}", columns).collect()
    assert sorted(plain(everything)) == sorted([*rows, (second, 4)])
    assert sorted(plain(load(first, columns[1:]).collect())) == [(1,), (3,)]
    assert sorted(plain(load(second, columns[1:]).collect())) == [(2,), (4,)]


MAP = Column("h", "MAP<STRING, BYTES>", True, "headers")
LIST = Column("h", "ARRAY<ROW<`key` STRING, `value` BYTES>>", True, "header-list")


def test_headers_and_timestamps_are_written_and_read_in_either_shape(write, load, kafka_topic):
    topic = kafka_topic()
    at = datetime(2024, 5, 1, 10, 0, 0, 123000)
    moment = Column("at", "TIMESTAMP(3)", True, "timestamp")
    number = Column("id", "INT")
    write(topic, (number, MAP, moment), [(1, {"a": b"1", "n": None}, at)])
    write(topic, (number, MAP, moment), [(2, None, at)])
    pairs = [("a", b"1"), ("a", b"2"), ("n", None), (None, b"lost"), None]
    write(topic, (number, LIST, moment), [(3, pairs, at)])
    write(topic, (number, LIST, moment), [(4, None, None)])
    as_map = dict(plain(load(topic, (number, MAP)).collect()))
    assert as_map == {1: {"a": b"1", "n": None}, 2: {}, 3: {"a": b"2", "n": None}, 4: {}}
    as_list = dict(plain(load(topic, (number, LIST)).collect()))
    assert as_list[3] == [["a", b"1"], ["a", b"2"], ["n", None]]
    assert sorted(as_list[1]) == [["a", b"1"], ["n", None]]
    assert as_list[2] == as_list[4] == []
    times = dict(plain(load(topic, (number, moment)).collect()))
    assert times[1] == times[3] == at
    assert times[4].year >= 2024


@pytest.mark.parametrize("form", FORMATS)
def test_keys_with_a_prefix_and_part_of_the_value_come_back(write, load, kafka_topic, form):
    topic = kafka_topic()
    columns = (
        Column("k_user_id", "BIGINT"),
        Column("name", "STRING"),
        Column("k_event_id", "BIGINT"),
        Column("user_id", "INT"),
        Column("payload", "STRING"),
    )
    given = {
        "format": form,
        "key.format": form,
        "key.fields": "k_event_id; k_user_id",
        "key.fields-prefix": "k_",
        "value.fields-include": "EXCEPT_KEY",
    }
    rows = [(1, "name 1", 100, 41, "payload 1"), (2, "name 2", 101, 42, "payload 2")]
    write(topic, columns, rows, given)
    assert sorted(plain(load(topic, columns, given).collect())) == rows
    full = {"format": form, "key.format": form, "key.fields": "k_event_id; k_user_id"}
    other = kafka_topic()
    write(other, columns, rows, full)
    assert sorted(plain(load(other, columns, full).collect())) == rows
    assert sorted(plain(load(other, columns, {"format": form}).collect())) == rows
