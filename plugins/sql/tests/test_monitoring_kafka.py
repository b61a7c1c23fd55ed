"""The figures of a real job on a real broker: from the handle, to scrapers, on its page."""

import json
import os
import time
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as parse_plain
from streamcore.cli import main
from streamcore.testing.services.kafka import unique_name
from streamcore_sql import Session
from streamcore_sql.commands.job_options import source_options
from streamcore_sql.commands.options import session_options
from streamcore_sql.ingestion.planning import prepare_job
from streamcore_sql.monitoring import jobfiles
from streamcore_sql.monitoring.about import table_about
from streamcore_sql.monitoring.events import Events
from streamcore_sql.monitoring.scrubbing import SECRETS
from streamcore_sql.monitoring.serving import Request
from streamcore_sql.monitoring.surfaces import Surfaces
from streamcore_sql.monitoring.web import Page

CANARY = "canary-hunter2-secret"
GOOD = [b'{"id":%d}' % n for n in range(40)]
BAD = [b"{", b"[", b"{"]


def until(condition, seconds=200):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.2)
    return False


@pytest.fixture(scope="module")
def topic(kafka):
    topic = kafka.create_topic(unique_name("orders"), 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in GOOD + BAD:
        producer.produce(topic, value)
    producer.flush()
    return topic


@pytest.fixture(scope="module")
def script(kafka, topic, tmp_path_factory):
    target = kafka.create_topic(unique_name("copies"))
    letters = kafka.create_topic(unique_name("letters"))
    where = f"'connector'='kafka', 'properties.bootstrap.servers'='{kafka.bootstrap_servers}'"
    script = tmp_path_factory.mktemp("scripts") / "orders.sql"
    script.write_text(
        f"""
        CREATE TABLE orders (id BIGINT) WITH ({where}, 'topic'='{topic}', 'format'='json',
          'scan.startup.mode'='earliest-offset', 'properties.group.id'='{topic}-group',
          'properties.client.id'='${{secret_values.pw}}', 'scan.max-rows-per-batch'='20',
          'scan.deser.failure-handler'='dead-letter', 'scan.deser.failure-topic'='{letters}');
        CREATE TABLE copies (id BIGINT) WITH ({where}, 'topic'='{target}', 'format'='json',
          'sink.delivery-guarantee'='exactly-once', 'sink.transactional-id-prefix'='{target}');
        INSERT INTO copies SELECT id FROM orders;
        """
    )
    return script


@pytest.fixture(scope="module")
def session(spark, script, tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    session = Session(spark, name="orders", checkpoint=str(folder), secrets={"pw": CANARY})
    session.execute(script.read_text())
    yield session
    session.stop()


@pytest.fixture(scope="module")
def job(session):
    """A job that has read everything there is."""
    (job,) = session.jobs
    assert until(lambda: job.metrics().source("orders").get("numRecordsIn") == 43), job.error
    assert until(lambda: job.metrics().source("orders").get("pendingRecords") == 0), job.error
    assert until(lambda: job.query.status["message"].startswith("Waiting")), job.query.status
    return job


@pytest.fixture
def surfaces(session, job, script, tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    ports = {"metrics": "0", "web": "0"}
    surfaces = Surfaces("orders", script.name, lambda: session.jobs, **ports, path=str(script))
    with surfaces.shown(print, print):
        surfaces.look(session.jobs)
        yield surfaces
        surfaces.ended(0)


def get(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode(), answer.headers


def test_the_handle_tells_every_figure_of_source_and_sink(job, topic):
    found = job.metrics()
    source, sink = found.source("orders"), found.sink("copies")
    assert source["numBytesIn"] == len(b"".join(GOOD + BAD))
    assert source["numRecordsInPerSecond"] > 0
    assert source["numBytesInPerSecond"] > 0
    assert 0 <= source["currentFetchEventTimeLag"] <= source["currentEmitEventTimeLag"] < 900_000
    assert source["sourceIdleTime"] >= 0
    assert source["numRecordsDeadLettered"] == 3
    assert source["numRecordsSkipped"] == 0
    assert source["numFailedCommits"] == 0
    lags = {(lag.topic, lag.place, lag.rows) for lag in source.lags}
    assert lags == {(topic, "0", 0), (topic, "1", 0)}
    assert sink["numRecordsOut"] == 40
    assert sink["numBytesOut"] == len(b"".join(GOOD))
    assert sink["currentSendTime"] > 0
    assert 2 <= sink["numTransactions"] <= 6
    assert sink["numRetries"] == 0
    assert found["numBatches"] >= 2
    assert {"addBatch", "latestOffset"} <= set(found.phases)
    assert len(job.monitor.notes()) == 3


def test_a_table_that_a_query_reads_twice_is_counted_twice(spark, kafka, topic):
    session = Session(spark)
    session.execute(
        f"""
        CREATE TABLE orders (id BIGINT) WITH ('connector'='kafka', 'topic'='{topic}',
          'scan.bounded.mode'='latest-offset',
          'properties.bootstrap.servers'='{kafka.bootstrap_servers}', 'format'='json',
          'scan.startup.mode'='earliest-offset', 'json.ignore-parse-errors'='true');
        CREATE TABLE nowhere (id BIGINT) WITH ('connector'='blackhole');
        """
    )
    job = session.execute(
        "INSERT INTO nowhere SELECT a.id FROM orders AS a JOIN orders AS b ON a.id = b.id"
    )
    assert job.wait(200), job.error
    assert until(lambda: job.metrics().source("orders").get("numRecordsIn") == 2 * 43, 20)


def test_changes_are_counted_at_both_ends_of_upsert_tables(spark, kafka, tmp_path):
    source, target = (kafka.create_topic(unique_name(name)) for name in ("users", "totals"))
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for n in range(10):
        producer.produce(source, b'{"k":%d,"n":%d}' % (n, n), b'{"k":%d}' % n)
    producer.produce(source, None, b'{"k":3}')
    producer.flush()
    session = Session(spark, checkpoint=str(tmp_path), once=True)
    for name, topic in (("users", source), ("totals", target)):
        session.execute(
            f"CREATE TABLE {name} (k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ("
            f"'connector'='upsert-kafka', 'topic'='{topic}', 'key.format'='json', "
            f"'value.format'='json', "
            f"'properties.bootstrap.servers'='{kafka.bootstrap_servers}')"
        )
    job = session.execute("INSERT INTO totals SELECT k, n FROM users")
    assert until(lambda: job.metrics().sink().get("numRecordsOut") == 11), job.metrics()
    users, totals = job.metrics().source("users"), job.metrics().sink("totals")
    assert (users["numRecordsIn"], users["numRecordsIgnored"]) == (11, 0)
    assert (users.connector, totals.connector) == ("upsert-kafka", "upsert-kafka")
    assert users["currentEmitEventTimeLag"] >= users["currentFetchEventTimeLag"] >= 0
    assert totals["currentSendTime"] > 0
    assert totals["numBytesOut"] == users["numBytesIn"]


YAML = r"""
source:
  type: kafka
  name: changes
  topic: ${source}
  properties.bootstrap.servers: ${brokers}
  properties.client.id: ${secret_values.pw}
  scan.startup.mode: earliest-offset
  value.format: debezium-json
sink:
  type: upsert-kafka
  properties.bootstrap.servers: ${brokers}
route:
  - source-table: shop.(\.*)
    sink-table: ${source}.$1
"""


def test_a_job_file_is_seen_as_well(spark, kafka, tmp_path):
    source = kafka.create_topic(unique_name("shop"))
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for table in ("orders", "items"):
        kafka.create_topic(f"{source}.{table}")
        for n in range(6):
            told = {"before": None, "after": {"id": n}, "op": "c"}
            value = json.dumps({**told, "source": {"db": "shop", "table": table}})
            producer.produce(source, value, json.dumps({"id": n}))
    producer.flush()
    given = {"brokers": kafka.bootstrap_servers, "source": source}
    folder, secrets = str(tmp_path), {"pw": CANARY}
    session = Session(spark, checkpoint=folder, once=True, variables=given, secrets=secrets)
    job = session.start(prepare_job(session, YAML, "job.yaml", lambda: None))
    assert job.wait(200)
    found = job.metrics()
    assert until(lambda: job.metrics().sink().get("numRecordsOut") == 12), found
    assert found.source("changes")["numRecordsIn"] == 12
    assert found.source("changes")["pendingRecords"] == 0
    assert found.sink().connector == "upsert-kafka"
    assert "shop" in job.monitor.about.plan()
    assert CANARY not in repr((job.monitor.about, job.monitor.about.plan()))

    def answered(path):
        page = Page("job", lambda: session.jobs, Events(None))
        return json.loads(page.routes[path](Request({"job": job.id}, {})).body)

    state = answered("/api/state")
    assert CANARY not in json.dumps(state)
    (shown,) = state["jobs"]
    assert (shown["verdict"], shown["lag"], shown["error"]) == ("finished", "none", None)
    assert shown["checkpoint"].startswith(folder)
    read, written = shown["tables"]
    assert (read["table"], read["side"], read["connector"]) == ("changes", "source", "kafka")
    asked = {"topic": source, "scan.startup.mode": "earliest-offset", "properties.client.id": "***"}
    assert asked.items() <= read["options"].items()
    assert read["options"]["table-changes.envelope"] == "debezium-json"
    assert (written["table"], written["side"]) == ("sink", "sink")
    assert written["connector"] == "upsert-kafka"
    assert written["options"]["properties.bootstrap.servers"] == kafka.bootstrap_servers
    figures = {each["side"]: each for each in shown["metrics"]["tables"]}
    assert figures["source"]["numRecordsIn"] == figures["sink"]["numRecordsOut"] == 12
    assert [each["topic"] for each in figures["source"]["lag"]] == [source]
    plan = answered("/api/plan")["plan"]
    assert "one query reads 'kafka'" in plan
    assert f"shop.(\\.*) -> {source}.$1" in plan
    assert "== Physical Plan ==" in plan
    assert CANARY not in plan


def test_a_scraper_finds_them_valid_in_both_of_its_texts(surfaces):
    url = surfaces.urls["metrics"]
    text, headers = get(url, Accept="application/openmetrics-text; version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    (read,) = families["streamcore_numRecordsIn"].samples
    assert (read.name, read.value) == ("streamcore_numRecordsIn_total", 43)
    assert read.labels == {"job": "orders.copies", "table": "orders", "connector": "kafka"}
    lags = families["streamcore_lag_records"].samples
    assert {sample.labels["partition"] for sample in lags} == {"0", "1"}
    assert families["streamcore_numTransactions"].samples[0].value >= 2
    (commits,) = families["streamcore_numCommits"].samples
    assert commits.name == "streamcore_numCommits_total"
    assert commits.value >= 2
    assert commits.labels == read.labels
    assert families["streamcore_numFailedCommits"].samples[0].value == 0
    phases = {s.labels["phase"] for s in families["streamcore_batch_phase_seconds"].samples}
    assert "addBatch" in phases
    plain, headers = get(url)
    assert headers["Content-Type"].startswith("text/plain")
    assert len(list(parse_plain(plain))) >= len(families)


class Assets(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found += [value for name, value in attributes if name in ("src", "href")]


def test_the_page_brings_everything_itself(surfaces):
    url = surfaces.urls["web"]
    page, headers = get(f"{url}/")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assets = Assets()
    assets.feed(page)
    assert assets.found == ["data:,", "page.css", "page.js"]
    for name in assets.found[1:]:
        body, _ = get(f"{url}/{name}")
        assert "http://" not in body.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in body


def test_the_page_is_told_of_jobs_tables_plan_and_dead_letters(surfaces, topic):
    url = surfaces.urls["web"]
    state = json.loads(get(f"{url}/api/state")[0])
    (job,) = state["jobs"]
    assert job["verdict"] == "up to date"
    assert [(each["table"], each["side"]) for each in job["tables"]] == [
        ("orders", "source"),
        ("copies", "sink"),
    ]
    assert job["tables"][0]["options"]["topic"] == topic
    letters = [each for each in state["troubles"] if each["event"] == "let go"]
    assert [each["table"] for each in letters if "offset" in each["text"]] == ["orders"] * 3
    assert all(each["time"] for each in letters)
    assert {"kafka", "json"} <= {each["identifier"] for each in state["plugins"]}
    points = json.loads(get(f"{url}/api/history?job={job['id']}")[0])["points"]
    assert points
    assert len(points[0]) == 6
    plan = json.loads(get(f"{url}/api/plan?job={job['id']}")[0])["plan"]
    assert "INSERT INTO copies" in plan
    assert "== Physical Plan ==" in plan


def test_a_page_elsewhere_cannot_read_it_through_its_own_name(surfaces):
    url = surfaces.urls["web"]
    port = url.rpartition(":")[2]
    assert get(f"{url}/api/state", Host=f"localhost:{port}")
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(f"{url}/api/state", Host=host)
        assert refused.value.code == 421


def test_no_secret_gets_out_by_any_door(surfaces, session, tmp_path):
    url = surfaces.urls["web"]
    (job,) = session.jobs
    said = [get(f"{url}{path}")[0] for path in ("/api/state", "/metrics", "/")]
    said.append(get(f"{url}/api/plan?job={job.id}")[0])
    said += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    said += [repr(job.metrics()), repr(job.monitor.about), repr(job.monitor.notes())]
    assert len(said) >= 9
    assert not [text for text in said if CANARY in text]
    assert '"properties.client.id": "***"' in said[0]


def test_other_processes_see_the_job_its_lag_and_its_log(surfaces, session, tmp_path, capfd):
    (job,) = session.jobs
    (known,) = jobfiles.every()
    assert (known.name, known.pid, known.state) == ("orders", os.getpid(), "running")
    assert main(["jobs"]) == 0
    assert "orders" in capfd.readouterr().out
    assert main(["jobs", "--format", "json"]) == 0
    (listed,) = json.loads(capfd.readouterr().out)
    place = SECRETS.scrub(job.monitor.about.checkpoint)  # others here may have secrets like it
    assert listed["queries"][0]["checkpoint"] == place
    secrets = tmp_path / "secrets.env"
    secrets.write_text(f"pw={CANARY}\n")
    for given, whose in (
        ([], "by its own progress as of its last batch, "),
        ([f"--secrets={secrets}"], "by its group's offsets now\n"),
    ):
        assert main(["lag", "orders", *given]) == 0
        told = capfd.readouterr()
        assert f"job 'orders' is running; {whose}" in told.err
        assert ("'properties.client.id' holds one" in told.err) == (not given)
        assert told.err.endswith("0 records in all\n")
        assert len(told.out.splitlines()) == 3
    lines = [json.loads(line) for line in Path(known.log).read_text().splitlines()]
    told = [line for line in lines if line["event"] != "log"]  # any logger of ours may speak here
    batches = int(job.metrics()["batchId"]) + 1
    assert [line["event"] for line in told] == ["started", *["batch"] * batches], lines
    assert {line["query"] for line in told} == {job.monitor.id}
    assert [line["batch"] for line in told[1:]] == list(range(batches))
    assert sum(line["rows"] for line in told[1:]) == len(GOOD)


GROUPS = {
    "shop.sql": """
CREATE TABLE orders (id BIGINT) WITH ('connector'='kafka', 'topic'='${topic}', 'format'='json',
  'properties.bootstrap.servers'='${brokers}', 'properties.group.id'='${secret_values.group}');
CREATE TABLE copies WITH ('connector'='blackhole') AS SELECT id FROM orders;
INSERT INTO copies SELECT id FROM orders;
""",
    "shop.yaml": """
source:
  type: kafka
  name: orders
  topic: ${topic}
  properties.bootstrap.servers: ${brokers}
  properties.group.id: ${secret_values.group}
  value.format: debezium-json
sink:
  type: upsert-kafka
  properties.bootstrap.servers: ${brokers}
""",
}


@pytest.mark.parametrize("file", GROUPS)
def test_the_group_of_a_job_tells_its_lag_with_the_secrets_it_ran_with(
    kafka, topic, tmp_path, monkeypatch, capfd, file
):
    """Its group is the secret: whoever asks with what is kept of it asks for another group."""
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    script, secrets = tmp_path / file, tmp_path / "secrets.env"
    script.write_text(GROUPS[file])
    group = unique_name("a-secret-group")
    secrets.write_text(f"group={group}\n")
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    done = [TopicPartition(topic, partition, 1) for partition in (0, 1)]
    consumer.commit(offsets=done, asynchronous=False)
    consumer.close()
    given = [f"--var=topic={topic}", f"--var=brokers={kafka.bootstrap_servers}"]
    options = source_options(str(script), given_by([*given, f"--secrets={secrets}"]))["orders"]
    run = jobfiles.begin("shop", file, str(script))
    about = table_about("orders", "source", "kafka", options)
    assert about.options["properties.group.id"] == "***"
    table = {**vars(about), "lag": [{"topic": topic, "place": "0", "rows": 3}]}
    run.queries = [{"job": "shop.copies", "tables": [table]}]
    run.end("finished")

    assert main(["lag", "shop", *given, "--secrets", str(secrets), "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert sum(each["rows"] for each in told["lag"]) == 43 - 2
    assert {each["topic"] for each in told["lag"]} == {topic}
    assert main(["lag", "shop", *given, "--secrets", str(secrets)]) == 0
    assert "job 'shop' is finished; by its group's offsets now\n" in capfd.readouterr().err
    assert main(["lag", "shop", *given, "--json"]) == 0
    told = capfd.readouterr()
    assert [each["rows"] for each in json.loads(told.out)["lag"]] == [3]
    assert "the group of 'orders' cannot be asked: a secret is kept nowhere" in told.err
    assert group not in told.out + told.err


def given_by(arguments):
    """What the options of a command give."""
    found = []

    @click.command()
    @session_options
    def command(given, output):
        found.append(given)

    command(arguments, standalone_mode=False)
    return found[0]


def test_the_group_of_a_declared_table_tells_its_lag(kafka, topic, tmp_path, capfd):
    declared = (
        f"CREATE TABLE orders (id BIGINT) WITH ('connector'='kafka', 'topic'='{topic}', "
        f"'properties.bootstrap.servers'='{kafka.bootstrap_servers}', 'format'='json', "
        f"'properties.group.id'='{topic}-nobody')"
    )
    Session(catalog=tmp_path).execute(declared)
    assert main(["lag", "orders", "--catalog", str(tmp_path), "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert sum(each["rows"] for each in told["lag"]) == 43
