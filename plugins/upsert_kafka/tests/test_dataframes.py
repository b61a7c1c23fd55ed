"""Upsert tables without SQL: as plain DataFrames, and in YAML jobs."""

import json

from confluent_kafka import Producer
from pyspark.sql.types import IntegerType, StringType, StructType
from streamcore import Column
from streamcore.spark.types import carried
from streamcore_sql import Session
from streamcore_sql.ingestion.planning import prepare_job

SCHEMA = (
    StructType()
    .add("id", IntegerType(), True, carried(Column("id", "INT", nullable=False), 0))
    .add("v", StringType())
)


def test_rows_are_written_and_read_as_plain_dataframes(spark, kafka, kafka_topic):
    options = {
        "connector": "upsert-kafka",
        "topic": kafka_topic(2),
        "properties.bootstrap.servers": kafka.bootstrap_servers,
        "key.format": "json",
        "value.format": "json",
    }

    def write(frame):
        frame.write.format("streamcore").options(**options).mode("append").save()

    write(spark.createDataFrame([(1, "a"), (2, "b")], SCHEMA))
    kinds = StructType([*SCHEMA.fields]).add("_row_kind", StringType())
    write(spark.createDataFrame([(1, "c", "+U"), (2, None, "-D"), (3, "d", "+I")], kinds))
    rows = spark.read.format("streamcore").options(**options).schema(SCHEMA).load()
    assert sorted(map(tuple, rows.collect())) == [(1, "c"), (3, "d")]


JOB = """
source:
  type: upsert-kafka
  topic: ${source}
  properties.bootstrap.servers: ${brokers}
  key.format: json
  value.format: json
  changelog.normalize: true
  tables:
    - name: ${source}
      columns: id INT, v STRING, n INT, PRIMARY KEY (id) NOT ENFORCED
sink:
  type: kafka
  topic: ${target}
  properties.bootstrap.servers: ${brokers}
  value.format: debezium-json
transform:
  - source-table: ${source}
    filter: n > 2
"""


def test_a_yaml_job_reads_a_full_changelog(spark, kafka, upsert_table, tmp_path):
    target = upsert_table(1)
    source = upsert_table(1).topic
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for rows in (
        [(1, "a", 5), (2, "b", 5), (3, "c", 1), (4, "d", 5)],
        [(1, "x", 5), (2, "y", 1), (3, "z", 5), (4, None, None)],
    ):
        for number, v, n in rows:
            value = v and json.dumps({"id": number, "v": v, "n": n}).encode()
            producer.produce(source, value, json.dumps({"id": number}).encode())
        producer.flush()
        session = Session(
            spark,
            name="job",
            checkpoint=str(tmp_path),
            once=True,
            variables={
                "brokers": kafka.bootstrap_servers,
                "source": source,
                "target": target.topic,
            },
        )
        assert session.start(prepare_job(session, JOB, "job.yaml", lambda: None)).wait(300)
    told = {}
    for _, value in target.messages():
        row = value["after"] or value["before"]
        told.setdefault(row["id"], []).append((value["op"], row["v"]))
    assert told == {
        1: [("c", "a"), ("u", "x")],
        2: [("c", "b"), ("d", "b")],
        3: [("c", "z")],
        4: [("c", "d"), ("d", "d")],
    }
