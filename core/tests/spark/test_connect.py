"""The data source works for a client of Spark Connect as it does in a classic session."""

import json
import subprocess
import sys

import pytest

CLIENT = """
import json, sys
from pyspark.sql import SparkSession

url, servers, topic, copy, folder = sys.argv[1:]
spark = SparkSession.builder.remote(url).getOrCreate()
options = {
    "connector": "kafka", "format": "json", "properties.bootstrap.servers": servers,
    "scan.startup.mode": "earliest-offset",
}
schema = "id BIGINT, name STRING"

rows = spark.createDataFrame([(n, f"name {n}") for n in range(100)], schema)
rows.write.format("streamcore").options(topic=topic, **options).mode("append").save()

stream = spark.readStream.format("streamcore").options(topic=topic, **options).schema(schema).load()
writer = stream.where("id % 2 = 0").writeStream.format("streamcore").options(topic=copy, **options)
query = writer.option("checkpointLocation", folder).trigger(availableNow=True).start()
query.awaitTermination(120)

bounded = {**options, "topic": copy, "scan.bounded.mode": "latest-offset"}
found = spark.read.format("streamcore").options(**bounded).schema(schema).load().collect()
print(json.dumps(sorted(tuple(row) for row in found)))
"""


@pytest.mark.timeout(300)
def test_a_connect_client_writes_streams_and_reads_a_topic(
    spark_connect, kafka, kafka_topic, tmp_path
):
    given = [
        spark_connect.url,
        kafka.bootstrap_servers,
        kafka_topic(2),
        kafka_topic(2),
        str(tmp_path),
    ]
    client = subprocess.run(
        [sys.executable, "-c", CLIENT, *given],
        env=spark_connect.environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert client.returncode == 0, client.stderr
    assert json.loads(client.stdout) == [[n, f"name {n}"] for n in range(0, 100, 2)]
