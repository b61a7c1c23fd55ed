"""What is said in a query, by whichever process of it, is told with the ids of that query."""

import json
import signal
import subprocess
import sys
import time

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from streamcore.testing.services.kafka import unique_name

TABLE = """
CREATE TABLE {name} (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{topic}',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'json',
  'scan.startup.mode' = 'specific-offsets',
  'scan.startup.specific-offsets' = 'partition:0,offset:999',
  'scan.fail-on-data-loss' = 'false', 'scan.topic-partition-discovery.interval' = '1 s');
"""
SINKS = """
CREATE TABLE left_hole (id BIGINT) WITH ('connector' = 'blackhole');
CREATE TABLE right_hole (id BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO left_hole SELECT id FROM lefts;
INSERT INTO right_hole SELECT id FROM rights;
"""
JOBS = {"both.left_hole", "both.right_hole"}
WORDS = {
    None: ": offset 999 is past the end, reading starts at 0",
    0: " was read up to offset 1 and was deleted; going on with what is left",
}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def until(condition, process, told, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, told.read_text()
        assert time.monotonic() < deadline, told.read_text()
        time.sleep(0.3)


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_words_of_two_queries_say_whose_they_are_and_of_which_batch(
    kafka, tmp_path, monkeypatch, flags
):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path / "state"))
    topics = {name: kafka.create_topic(unique_name(name)) for name in ("lefts", "rights")}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for topic in topics.values():
        producer.produce(topic, b'{"id":1}')
    producer.flush()
    tables = (
        TABLE.format(name=name, topic=topic, servers=kafka.bootstrap_servers)
        for name, topic in topics.items()
    )
    (tmp_path / "both.sql").write_text("".join(tables) + SINKS)
    command = [sys.executable, "-m", "streamcore.cli", "run", str(tmp_path / "both.sql"), *flags]
    out, err = tmp_path / "out", tmp_path / "err"
    log = tmp_path / "state" / "logs" / "both.jsonl"
    with out.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr)
    try:
        until(lambda: {x["job"] for x in lines(log) if x["event"] == "batch"} == JOBS, process, err)
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        for gone in admin.delete_topics(list(topics.values())).values():
            gone.result(30)
        until(lambda: len([x for x in lines(log) if x["event"] == "log"]) == 4, process, err)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)

    told = lines(log)
    queries = {each["job"]: each["query"] for each in told if each["event"] == "started"}
    assert len(set(queries.values())) == 2
    words = {
        (f"both.{side}_hole", batch, f"topic '{topics[f'{side}s']}' partition 0{text}")
        for side in ("left", "right")
        for batch, text in WORDS.items()
    }
    said = [each for each in told if each["event"] == "log"]
    assert {(each["job"], each["batch"], each["text"]) for each in said} == words
    assert all(each["query"] == queries[each["job"]] for each in said)
    assert {(each["level"], each["logger"]) for each in said} == {("warning", "streamcore.kafka")}
    assert "partition 0" not in log.with_suffix(".log").read_text()
    if flags:
        noted = [each for each in lines(out) if each["event"] == "note"]
        assert {(each["job"], each["batch"], each["text"]) for each in noted} == words
        assert all(each["query"] == queries[each["job"]] for each in noted)
    else:
        noted = {line for line in err.read_text().splitlines() if line.startswith("note: ")}
        begins = {None: "", 0: ", batch 0"}
        assert noted == {f"note: {job}{begins[batch]}: {text}" for job, batch, text in words}


SPARKS_WORDS = "Using Spark's default log4j profile"
JOB = """
source:
  type: kafka
  topic: {topic}
  properties.bootstrap.servers: {servers}
  scan.startup.mode: earliest-offset
  scan.fail-on-data-loss: false
  value.format: debezium-json
  tables: shop.orders
sink:
  type: upsert-kafka
  properties.bootstrap.servers: {servers}
route:
  - source-table: shop.orders
    sink-table: {topic}.out
"""


def test_words_of_a_yaml_job_and_of_its_tasks_reach_the_user_with_their_ids(
    kafka, tmp_path, monkeypatch
):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path / "state"))
    topic = kafka.create_topic(unique_name("changes"))
    kafka.create_topic(f"{topic}.out")
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(10):
        source = {"db": "shop", "table": "orders" if number else "others"}
        change = {"op": "c", "after": {"id": number}, "source": source}
        producer.produce(topic, json.dumps(change), json.dumps({"id": number}))
    producer.flush()
    file = tmp_path / "orders.yaml"
    file.write_text(JOB.format(topic=topic, servers=kafka.bootstrap_servers))
    command = [sys.executable, "-m", "streamcore.cli", "run", str(file), "--once"]
    log = tmp_path / "state" / "logs" / "orders.jsonl"
    left_out = "rows of 'shop.others' are left out: 'source.tables' does not name them"
    gone = (
        f"topic '{topic}' partition 0: offsets 0 to 5 are gone, the log begins at offset 6; "
        "going on without them"
    )

    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"note: orders.tables, batch 0: {left_out}\n" in done.stderr
    assert SPARKS_WORDS not in done.stderr
    assert SPARKS_WORDS in log.with_suffix(".log").read_text()
    (checkpoint,) = (tmp_path / "state" / "jobs" / "orders").iterdir()
    (checkpoint / "commits" / "0").unlink()  # as if it had died before the end of its batch
    (checkpoint / "commits" / ".0.crc").unlink(missing_ok=True)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition(topic, 0, 6)]).values():
        deleted.result(30)

    command.insert(command.index("run"), "--verbose")
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert SPARKS_WORDS in done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    (noted,) = [each for each in events if each["event"] == "note" and each["text"] == gone]
    told = lines(log)
    (query,) = {each["query"] for each in told if each["event"] == "started"}
    assert (noted["job"], noted["query"], noted["batch"]) == ("orders.tables", query, 0)
    said = {each["text"]: each for each in told if each["event"] == "log"}
    assert set(said) >= {left_out, gone}  # beside them, producers may tell of a broker that starts
    for each in said.values():
        assert (each["job"], each["query"], each["batch"]) == ("orders.tables", query, 0)
        assert each["level"] == "warning"
