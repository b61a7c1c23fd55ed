"""A session runs on Spark Connect: tables, queries, jobs, live rows, functions."""

import json
import subprocess
import sys

import pytest

CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from streamcore_sql import Session

url, servers, views, counts, copies, folder = sys.argv[1:]
sys.path.insert(0, folder)
with open(f"{folder}/greetings.py", "w") as module:
    module.write("def greet(n: int) -> str:\\n    return f'hello {n}'\\n")
session = Session(
    SparkSession.builder.remote(url).getOrCreate(), once=True, checkpoint=f"{folder}/checkpoint"
)
session.execute(f'''
CREATE TABLE numbers (id BIGINT, twice AS id * 2) WITH ('connector' = 'datagen',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '9');
CREATE TABLE views (id BIGINT, region STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'topic' = '{views}', 'properties.bootstrap.servers' = '{servers}',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE copies (id BIGINT) WITH (
  'connector' = 'kafka', 'topic' = '{copies}', 'properties.bootstrap.servers' = '{servers}',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset');
CREATE TABLE counts (region STRING, n BIGINT, PRIMARY KEY (region) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{counts}', 'key.format' = 'json',
  'value.format' = 'json', 'properties.bootstrap.servers' = '{servers}');
CREATE FUNCTION greet AS 'greetings.greet' LANGUAGE PYTHON;
''')
seen = {}
seen["frame"] = session.table("numbers").count()
small = session.execute("SELECT twice FROM numbers WHERE id < 3")
seen["rows"] = [tuple(row) for row in small.collect()]
seen["greeted"] = session.execute("SELECT greet(id) FROM numbers WHERE id = 7").collect()[0][0]
filled = session.execute('''INSERT INTO views SELECT id, IF(id < 4, 'eu', 'us'),
  TIMESTAMPADD(SECOND, id, TIMESTAMP '2024-01-01 00:00:00') FROM numbers''')
seen["filled"] = filled.wait(120)
seen["copied"] = session.execute("INSERT INTO copies SELECT id FROM views").wait(120)
seen["copies"] = session.execute("SELECT COUNT(*), SUM(id) FROM copies").collect()[0]
seen["counted"] = session.execute(
  "INSERT INTO counts SELECT region, COUNT(DISTINCT id) FROM views GROUP BY region").wait(120)
live = session.execute("SELECT region, COUNT(*) FROM views GROUP BY region")
seen["live"] = sorted(change.row for change in live)
total = session.execute("SELECT SUM(n), COUNT(*) FROM counts")
seen["total"] = [change.row for change in total][-1]
windows = session.execute('''SELECT window_start, COUNT(*) FROM TABLE(
  TUMBLE(TABLE views, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY window_start, window_end''')
seen["windows"] = [row[1] for _, row in windows]
print(json.dumps(seen))
"""


@pytest.mark.timeout(500)
def test_a_session_does_through_spark_connect_what_it_does_elsewhere(
    spark_connect, kafka, kafka_topic, tmp_path
):
    topics = [kafka_topic() for _ in range(3)]
    given = [spark_connect.url, kafka.bootstrap_servers, *topics, str(tmp_path)]
    client = subprocess.run(
        [sys.executable, "-c", CLIENT, *given],
        env=spark_connect.environment,
        capture_output=True,
        text=True,
        timeout=450,
    )
    assert client.returncode == 0, client.stderr
    assert json.loads(client.stdout) == {
        "frame": 9,
        "rows": [[2], [4]],
        "greeted": "hello 7",
        "filled": True,
        "copied": True,
        "copies": [9, 45],
        "counted": True,
        "live": [["eu", 3], ["us", 6]],
        "total": [9, 2],
        "windows": [4],
    }
