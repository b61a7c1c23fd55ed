"""Binary formats through Spark, a real broker and a real registry, also while schemas change."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql.types import StructType
from streamcore.spark.types import carried, spark_type
from streamcore.table import ROW_KIND, Column

ORDERS = (Column("id", "BIGINT"), Column("item", "STRING"), Column("price", "DECIMAL(10, 2)"))
MOMENTS = (Column("seconds", "BIGINT"), Column("nanos", "INT"))
KIND = Column(ROW_KIND, "STRING", True, "row-kind")


def spark_schema(columns):
    schema = StructType()
    for column in columns:
        schema.add(column.name, spark_type(column.field), True, carried(column))
    return schema


@pytest.fixture
def write(spark, options):
    """Writes rows as a batch: `write(topic, columns, rows, {option: value})`."""

    def rows(topic, columns, values, more):
        frame = spark.createDataFrame(values, spark_schema(columns)).coalesce(1)
        given = {"connector": "kafka", **options(topic, more)}
        frame.write.format("streamcore").options(**given).mode("append").save()

    return rows


@pytest.fixture
def registry(schema_registry):
    return SchemaRegistryClient({"url": schema_registry.url})


def test_avro_and_protobuf_come_back_as_they_were_written(write, stream, kafka_topic):
    orders, moments = kafka_topic(), kafka_topic()
    write(orders, ORDERS[:2], [(1, "pen"), (2, None)], {"format": "avro"})
    assert stream(orders, {"format": "avro"}, spark_schema(ORDERS[:2]), "avro").rows == [
        (1, "pen"),
        (2, None),
    ]
    protobuf = {
        "format": "protobuf",
        "protobuf.message-class-name": "google.protobuf.timestamp_pb2.Timestamp",
    }
    write(moments, MOMENTS, [(5, 7), (2**40, None)], protobuf)
    read = stream(moments, protobuf, spark_schema(MOMENTS), "protobuf").rows
    assert read == [(5, 7), (2**40, 0)]  # a proto3 number is never NULL


def test_what_is_written_is_registered_under_the_topic(
    write, stream, kafka_topic, schema_registry, registry
):
    topic = kafka_topic()
    framed = {"format": "avro-confluent", "avro-confluent.url": schema_registry.url}
    write(topic, ORDERS[:2], [(1, "pen")], framed)
    write(topic, ORDERS[:2], [(2, "ink")], framed)
    assert registry.get_versions(f"{topic}-value") == [1]
    assert stream(topic, framed, spark_schema(ORDERS[:2])).rows == [(1, "pen"), (2, "ink")]


def test_changes_are_written_and_read_with_their_kinds(
    write, stream, kafka_topic, schema_registry, registry
):
    topic = kafka_topic()
    name = "debezium-avro-confluent"
    framed = {"format": name, f"{name}.url": schema_registry.url}
    rows = [(1, "pen", "+I"), (1, "pen", "-U"), (1, "ink", "+U"), (1, "ink", "-D")]
    write(topic, (*ORDERS[:2], KIND), rows, framed)
    assert registry.get_versions(f"{topic}-value") == [1]
    kinds = ["+I", "-D", "+I", "-D"]  # an update is written as a delete and an insert
    read = stream(topic, framed, spark_schema((*ORDERS[:2], KIND))).rows
    assert read == [(*row[:2], kind) for row, kind in zip(rows, kinds, strict=True)]


def order(**fields):
    members = [{"name": name, **field} for name, field in fields.items()]
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": members}


OPTIONAL = {"type": ["null", "string"], "default": None}
FIRST = order(id={"type": "int"}, item={"type": "string"})
WITH_A_NOTE = order(id={"type": "int"}, item={"type": "string"}, note=OPTIONAL)
WITHOUT_ITEM = order(note=OPTIONAL, id={"type": "long"})


def around(row):
    """Debezium's envelope of a row, with something of its own."""
    value = {**row, "name": "Value"}
    sides = {"before": {"type": ["null", value]}, "after": {"type": ["null", "shop.Value"]}}
    envelope = order(op={"type": "string"}, ts_ms={"type": "long"})
    members = [{"name": name, **field, "default": None} for name, field in sides.items()]
    return {**envelope, "name": "Envelope", "fields": members + envelope["fields"]}


@pytest.mark.parametrize("changes", [False, True])
def test_a_schema_may_gain_lose_and_widen_columns_in_mid_stream(
    stream, produce, kafka_topic, schema_registry, registry, changes
):
    topic = kafka_topic()
    name = "debezium-avro-confluent" if changes else "avro-confluent"

    def message(schema, row):
        schema = around(schema) if changes else schema
        datum = {"before": None, "after": row, "op": "c", "ts_ms": 1} if changes else row
        number = registry.register_schema(f"{topic}-value", Schema(json.dumps(schema), "AVRO"))
        out = io.BytesIO(b"\x00" + number.to_bytes(4, "big"))
        out.seek(5)
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema), datum)
        return out.getvalue()

    columns = (Column("id", "BIGINT"), Column("item", "STRING"), Column("note", "STRING"))
    given = {"format": name, f"{name}.url": schema_registry.url}
    old = message(FIRST, {"id": 1, "item": "pen"})
    new = message(WITH_A_NOTE, {"id": 2, "item": "ink", "note": "blue"})
    produce(topic, [old, new, old])
    checkpoint = "changes" if changes else "inserts"
    seen = stream(topic, given, spark_schema(columns), checkpoint).rows
    assert seen == [(1, "pen", None), (2, "ink", "blue"), (1, "pen", None)]
    produce(topic, [message(WITHOUT_ITEM, {"note": None, "id": 2**40}), new])
    later = stream(topic, given, spark_schema(columns), checkpoint).rows
    assert later == [(2**40, None, None), (2, "ink", "blue")]
