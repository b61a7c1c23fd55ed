"""What is shown of jobs holds no secret, names nothing that is not there, and harms nobody."""

import gc
import gzip
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families as prometheus_families
from streamcore import ConnectionFailed, PluginError, Secret, reports
from streamcore.cli import main
from streamcore.reports import Report
from streamcore_sql.commands.options import Given
from streamcore_sql.display import view
from streamcore_sql.jobs import StreamJob
from streamcore_sql.monitoring import jobfiles, openmetrics
from streamcore_sql.monitoring.about import About, table_about
from streamcore_sql.monitoring.events import Events
from streamcore_sql.monitoring.history import POINTS
from streamcore_sql.monitoring.lags import Lag
from streamcore_sql.monitoring.metrics import (
    COUNTERS,
    JOB,
    SINK,
    SOURCE,
    STATUSES,
    Metrics,
    TableMetrics,
)
from streamcore_sql.monitoring.openmetrics import JobsCollector
from streamcore_sql.monitoring.scrubbing import SECRETS, Secrets
from streamcore_sql.monitoring.serving import CannotServe, Request, Server, address
from streamcore_sql.monitoring.surfaces import Surfaces
from streamcore_sql.monitoring.web import Page
from streamcore_sql.progress import Progress

HISTORY = "/api/history"
DASHBOARD = Path(__file__).parents[3] / "docs" / "grafana-dashboard.json"


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    return tmp_path


# --- secrets ---------------------------------------------------------------------------------


def test_what_an_option_hides_is_hidden_wherever_it_turns_up():
    secrets = Secrets(["from-the-user"])
    jaas = "PlainLoginModule required username='me' password='deep-inside';"
    shown = secrets.options(
        {
            "topic": "orders",
            "properties.sasl.password": "hunter2hunter2",
            "properties.sasl.jaas.config": jaas,
            "client": Secret("told-by-type"),
            "comment": "says from-the-user aloud",
            "url": "http://me:in-a-url@host:8081",
        }
    )
    assert shown["url"] == "http://***@host:8081"
    assert shown["topic"] == "orders"
    assert shown["comment"] == "says *** aloud"
    hidden = ("hunter2hunter2", "deep-inside", "told-by-type", "from-the-user", "in-a-url")
    said = secrets.clean({"a": [f"x{each}y" for each in hidden], "b": (hidden[1],)})
    assert not [each for each in hidden if each in repr((shown, said))]


def test_a_password_that_is_a_common_word_does_not_rename_a_job():
    secrets = Secrets(["kafka"])
    said = secrets.clean({"name": "kafka-orders", "error": "kafka refused", "kafka": 1})
    assert said == {"name": "kafka-orders", "error": "*** refused", "kafka": 1}


def test_a_short_password_is_looked_for_as_a_word():
    said = Secrets(["test", "longer-one"]).scrub("user:test@host, /tmp/latest, xlonger-onex")
    assert said == "user:***@host, /tmp/latest, x***x"


def test_the_log_and_the_file_of_a_run_hold_no_secret(state):
    SECRETS.learn(["canary-of-the-log"])
    events = Events(state / "logs" / "job.jsonl")
    events.tell("failed", level="error", text="login canary-of-the-log refused")
    run = jobfiles.begin("job", "job.sql")
    run.queries = [{"error": "canary-of-the-log"}]
    run.end("failed", "canary-of-the-log")
    said = [path.read_text() for path in state.rglob("*") if path.is_file()]
    assert len(said) == 2
    assert not [text for text in [*said, repr(events.troubles)] if "canary-of-the-log" in text]
    assert all("***" in text for text in said)
    assert {path.stat().st_mode & 0o77 for path in state.rglob("*.json*")} == {0}


# --- metrics ---------------------------------------------------------------------------------


def known_in_full(name="j", table="t"):
    """A job of which every figure is known."""
    lags = (Lag(table, "0", 1, 2),)
    source = TableMetrics(table, "source", "kafka", dict.fromkeys(SOURCE, 1), lags)
    sink = TableMetrics(table, "sink", "kafka", dict.fromkeys(SINK, 1))
    own = {**dict.fromkeys(JOB, 1), "catchUpSeconds": float("inf")}
    return Metrics(name, "running", "q", own, {"addBatch": 1}, (source, sink))


def every_sample():
    """The names of a scrape in which every figure is known."""
    found = JobsCollector(lambda: [known_in_full()]).collect()
    return {sample.name for family in found for sample in family.samples}


PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize("accept", ["application/openmetrics-text; version=1.0.0", PROMETHEUS_3])
def test_a_whole_scrape_is_valid_openmetrics_whatever_tables_are_called(accept):
    hostile = 'a "table"\\ of\nmine'
    jobs = [known_in_full("one", hostile), known_in_full("two")]
    answer = openmetrics.scrape(JobsCollector(lambda: jobs))(Request({}, {"Accept": accept}))
    assert answer.kind.startswith("application/openmetrics-text")
    text = answer.body.decode()
    assert text.endswith("\n# EOF\n")
    families = {each.name: each for each in openmetrics_families(text)}  # strict: raises if odd
    samples = {sample.name for family in families.values() for sample in family.samples}
    assert samples == every_sample()
    for figure in {**JOB, **SOURCE, **SINK}:
        family = families[openmetrics.sample_name(figure)]
        assert family.type == ("counter" if figure in COUNTERS else "gauge")
        assert {s.name for s in family.samples} == {
            family.name + ("_total" if family.type == "counter" else "")
        }
    tables = {each.labels["table"] for each in families["streamcore_numRecordsIn"].samples}
    assert tables == {hostile, "t"}
    units = {name: each.unit for name, each in families.items() if each.unit}
    assert set(units.values()) == {"seconds", "bytes"}
    assert units.keys() == {name for name in families if name.endswith(("_seconds", "_bytes"))}
    (never, _) = families["streamcore_catch_up_seconds"].samples
    assert never.value == float("inf")


def test_a_whole_scrape_is_valid_in_the_older_text():
    answer = openmetrics.scrape(JobsCollector(lambda: [known_in_full()]))(Request({}, {}))
    families = list(prometheus_families(answer.body.decode()))
    assert {s.name for family in families for s in family.samples} == every_sample()


def test_every_metric_of_the_dashboard_exists():
    dashboard = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked.append(dashboard["templating"]["list"][1]["query"]["query"])
    names = {name for text in asked for name in re.findall(r"streamcore_\w+", text)}
    assert len(names) > 25
    assert names <= every_sample()


def test_the_names_of_the_seed_are_the_names_of_the_scrape():
    seed = {"numRecordsIn", "numBytesIn", "numRecordsOut", "numBytesOut"}
    gauges = {f"{name}PerSecond" for name in seed} | {"pendingRecords", "currentSendTime"}
    gauges |= {"currentEmitEventTimeLag", "currentFetchEventTimeLag", "sourceIdleTime"}
    expected = {f"streamcore_{name}_total" for name in seed}
    assert expected | {openmetrics.sample_name(name) for name in gauges} <= every_sample()


def test_nothing_is_told_of_what_is_not_known():
    found = JobsCollector(lambda: [Metrics("j", "running")]).collect()
    assert {s.name for family in found for s in family.samples} == {"streamcore_job"}


@pytest.fixture
def otlp(monkeypatch):
    """Where an exporter sends to: what arrived, read with the protocol's own messages."""
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service

    arrived = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            request = service.ExportMetricsServiceRequest.FromString(body)
            arrived.append((self.path, self.headers, body, request))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(service.ExportMetricsServiceResponse().SerializeToString())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc")
    yield arrived
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_opentelemetry_collector_is_told_names_values_and_attributes(otlp):
    from streamcore_sql.monitoring.otel import provide

    lags = (Lag("t", "0", 7), Lag("", "shard-1", seconds=1.5))
    source = TableMetrics("t", "source", "kafka", {"numRecordsIn": 43}, lags)
    sink = TableMetrics("o", "sink", "print", {"numRecordsOut": 41})
    job = Metrics("j", "running", "q", {"batchTime": 200.5}, {"addBatch": 150}, (source, sink))
    provide("orders", lambda: [job]).shutdown()
    ((path, headers, _, request),) = otlp
    assert path == "/v1/metrics"
    assert headers["Content-Type"] == "application/x-protobuf"
    assert headers["Authorization"] == "Basic abc"
    (told,) = request.resource_metrics
    assert attributes(told.resource)["service.name"] == "streamcore.orders"
    (scope,) = told.scope_metrics
    found = {metric.name: metric for metric in scope.metrics}
    whole = {"job": "j", "query": "q"}
    read = found.pop("streamcore.numrecordsin").sum
    assert read.is_monotonic
    assert points(read) == [(43, {**whole, "table": "t", "side": "source", "connector": "kafka"})]
    written = found.pop("streamcore.numrecordsout").sum
    assert points(written) == [(41, {**whole, "table": "o", "side": "sink", "connector": "print"})]
    assert points(found.pop("streamcore.batchtime").gauge) == [(200.5, whole)]
    lag = found.pop("streamcore.lag")
    assert lag.unit == "{record}"
    place = {"job": "j", "table": "t", "topic": "t", "partition": "0"}
    assert points(lag.gauge) == [(7, place)]
    late = found.pop("streamcore.lag.seconds")
    place = {"job": "j", "table": "t", "topic": "", "partition": "shard-1"}
    assert (late.unit, points(late.gauge)) == ("s", [(1.5, place)])
    states = points(found.pop("streamcore.job").gauge)
    assert states == [(float(each == "running"), {**whole, "status": each}) for each in STATUSES]
    phases = found.pop("streamcore.batch.phase")
    assert (phases.unit, points(phases.gauge)) == ("ms", [(150, {**whole, "phase": "addBatch"})])
    assert found == {}


@pytest.mark.parametrize(
    "missing",
    ["opentelemetry.sdk.metrics", "opentelemetry.exporter.otlp.proto.http.metric_exporter"],
)
def test_an_export_without_its_packages_says_what_to_install(state, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    surfaces = Surfaces("orders", "orders.sql", list, otel=True)
    with pytest.raises(PluginError) as caught:
        surfaces.open(print)
    assert str(caught.value) == "--otel needs OpenTelemetry: pip install 'streamcore-sql[otel]'"


def attributes(told):
    return {each.key: each.value.string_value for each in told.attributes}


def points(data):
    return [
        (getattr(point, point.WhichOneof("value")), attributes(point)) for point in data.data_points
    ]


# --- a day's run -----------------------------------------------------------------------------


class Day:
    """A clock that runs as fast as it is asked, and a query with a batch every half a minute."""

    isActive, id, _jsq = True, "query-of-a-day", None

    def __init__(self):
        self.now, self.batch = 1.8e9, -1

    @property
    def lastProgress(self):
        return SimpleNamespace(json=json.dumps(self.progress(self.batch)))

    @property
    def recentProgress(self):
        return [self.lastProgress]

    def progress(self, batch):
        ends = {str(place): 1000 * batch for place in range(24)}
        return {
            "timestamp": str(self.now),
            "batchId": batch,
            "numInputRows": 24000,
            "durationMs": {"triggerExecution": 900, "addBatch": 800},
            "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
            "stateOperators": [],
            "sources": [
                {
                    "numInputRows": 24000,
                    "endOffset": {"offsets": {"t": ends}},
                    "latestOffset": {"offsets": {"t": dict.fromkeys(ends, 1000 * batch + 7)}},
                }
            ],
            "sink": {"numOutputRows": 24000},
        }


def test_a_days_run_keeps_what_an_hour_needs(state, monkeypatch):
    day = Day()
    clock = SimpleNamespace(time=lambda: day.now, monotonic=lambda: day.now)
    monkeypatch.setattr("streamcore_sql.monitoring.monitor.time", clock)
    tables = (table_about("t", "source", "kafka", {}), table_about("o", "sink", "kafka", {}))
    job = StreamJob("day", day, About(tables))
    collector, events = reports.listen(), Events(state / "day.jsonl")
    token, held = collector.address.partition("/")[2], []
    for day.batch in range(2880):
        day.now += 30
        for task in range(2):
            notes = [f"t@0:{day.batch}: {'x' * 300}"]
            told = Report("t", "source", day.id, day.batch, task, {"records": 12000}, {}, notes)
            collector._take(json.dumps({"token": token, **asdict(told)}).encode())
        events.look([job])
        events.tell("log", level="warning", text="y" * 300)
        if day.batch in (1000, 2879):
            gc.collect()
            held.append(sys.getallocatedblocks())
    assert job.metrics().source("t")["numRecordsIn"] == 2880 * 24000
    assert held[1] - held[0] < 1879  # less than one small object per batch
    page = Page("day", lambda: [job], events)
    answers = [page.routes[path](Request({"job": job.id}, {})) for path in ("/api/state", HISTORY)]
    assert len(json.loads(answers[1].body)["points"]) == POINTS
    assert sum(len(answer.body) for answer in answers) < 300_000


def test_many_dead_letters_and_warnings_leave_errors_where_they_are(monkeypatch):
    collector, events, jobs = reports.listen(), Events(None), []
    notes = [f"t@0:{number}: bad" for number in range(60)]
    for number, name in enumerate(("later", "earlier")):
        query = Day()
        query.id, query.batch = f"query-of-letters-{name}", 3
        jobs.append(StreamJob(name, query, About()))
        clock = SimpleNamespace(time=lambda at=1.8e9 - number: at)
        monkeypatch.setattr("streamcore.reports.time", clock)
        report = Report("t", "source", query.id, 3, 0, {"dead-lettered": 60}, {}, notes)
        collector._take(json.dumps({"token": collector._token, **asdict(report)}).encode())
        jobs[-1].monitor.sample(now=True)
    events.tell("failed", level="error", text="no broker", job="job", batch=2)
    for number in range(70):
        events.tell("log", level="warning", text=f"warning {number}", time="2020-01-01T00:00:00Z")
    answer = Page("job", lambda: jobs, events).routes["/api/state"](Request({}, {}))
    told = json.loads(answer.body)["troubles"]
    assert [each["time"] for each in told] == sorted((each["time"] for each in told), reverse=True)
    (error,) = [each for each in told if each["level"] == "error"]
    assert (error["text"], error["job"], error["batch"]) == ("no broker", "job", 2)
    letters = [each for each in told if each["event"] == "let go"]
    assert [each["text"] for each in letters] == notes[:9:-1]
    assert {(each["job"], each["table"], each["batch"]) for each in letters} == {("later", "t", 3)}
    assert {each["time"] for each in letters} == {"2027-01-15T08:00:00Z"}
    warnings = [each["text"] for each in told if each["event"] == "log"]
    assert warnings == [f"warning {number}" for number in range(69, 19, -1)]


# --- places ----------------------------------------------------------------------------------


def test_a_port_alone_is_one_on_loopback():
    assert address("9100") == ("127.0.0.1", 9100)
    assert address("0.0.0.0:9100") == ("0.0.0.0", 9100)
    assert address("[::1]:1") == ("::1", 1)
    for wrong in ("job.sql", "99999", "host:", ""):
        with pytest.raises(ValueError, match="neither a port nor HOST:PORT"):
            address(wrong)


def test_a_port_that_is_taken_is_named():
    server = Server(("127.0.0.1", 0), {}, "--web")
    try:
        with pytest.raises(CannotServe, match=f"--web: cannot listen on 127.0.0.1:{server.port}"):
            Server(("127.0.0.1", server.port), {}, "--web")
    finally:
        server.close()


def test_the_view_fits_the_terminal():
    from rich.console import Console

    looks = [
        Progress(f"job{n}", "running", 3, 10, rate_in=5.0, lag_rows=7, batch_seconds=1.0)
        for n in range(3)
    ]
    console = Console(width=100, height=40, record=True, file=io.StringIO())
    console.print(view(looks, 40))
    assert "lag       7 behind" in console.export_text()
    console.print(view(looks, 5))
    assert len(console.export_text().splitlines()) == 3


def test_the_view_tells_how_late_each_topic_or_shard_is():
    from rich.console import Console

    topics = Progress(
        "one",
        "running",
        lag_rows=12,
        lag_by_topic={"a": 4_200_000, "b": 5},
        lag_seconds_by_topic={"a": 720.0},
        catch_up_seconds_by_topic={"a": float("inf")},
    )
    shards = Progress(
        "two", "running", lag_seconds=90, lag_seconds_by_topic={"shard-1": 3.0, "shard-2": 90.0}
    )
    console = Console(width=100, height=40, record=True, file=io.StringIO())
    console.print(view([topics, shards], 40))
    shown = console.export_text()
    lines = [line.strip() for line in shown.splitlines()]
    assert "a: 4.2 M (12 min) behind, never at this rate" in lines
    assert lines[lines.index("shard-2: 90 s behind") + 1] == "shard-1: 3.0 s behind"
    many = Progress("many", "running", lag_rows=9, lag_by_topic={f"t{n}": n for n in range(7)})
    console.print(view([many], 40))
    told = [line.strip() for line in console.export_text().splitlines()]
    assert told[-5:] == [*(f"t{n}: {n} behind" for n in (6, 5, 4, 3)), "... and 3 more"]
    console.print(view([many], 7))
    assert len(console.export_text().splitlines()) == 1


def test_a_word_of_one_job_is_told_with_its_ids_beside_others(state):
    events = Events(state / "log.jsonl")
    jobs = [StreamJob(name, Day(), About()) for name in ("one", "two")]
    for job in jobs:
        job.monitor.id = f"id of {job.name}"
    noted = []
    with events.hear_loggers(lambda: jobs, lambda text, ids: noted.append((text, ids))):
        extra = {"job": "two", "batch": 7}
        logging.getLogger("streamcore.ingestion").warning("careful", extra=extra)
        logging.getLogger("streamcore.other").warning("whose?")
    first, second = (json.loads(line) for line in events.path.read_text().splitlines())
    own = {"job": "two", "query": "id of two", "batch": 7}
    nobodys = dict.fromkeys(("job", "query", "batch"))
    assert {name: first[name] for name in own} == own
    assert {name: second[name] for name in nobodys} == nobodys
    assert noted == [("careful", own), ("whose?", nobodys)]


# --- runs of other processes -----------------------------------------------------------------

SLEEPER = """
import signal, sys, time
from streamcore_sql.monitoring import jobfiles
run = jobfiles.begin("sleeper", "sleeper.sql")
def ended(*_):
    run.end("stopped")
    sys.exit(0)
signal.signal(signal.SIGTERM, ended)
print("ready", flush=True)
time.sleep(120)
"""


@pytest.fixture
def sleeper(state):
    process = subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    yield process
    if process.poll() is None:
        process.kill()
    process.wait(30)
    process.stdout.close()


@pytest.mark.parametrize(
    ("folders", "told"),
    [
        (["/a/job/one", "/a/job/two"], "/a/job"),
        (["s3://bucket/x"], "s3://bucket/x"),
        (["hdfs://host:8020/a/one", "hdfs://host:8020/a/two"], "hdfs://host:8020/a"),
        (["/a/one", "s3://bucket/two"], "/a/one, s3://bucket/two"),
        (["s3://one/a", "s3://two/a"], "s3://one/a, s3://two/a"),
    ],
)
def test_jobs_tell_where_checkpoints_are_wherever_that_is(state, capfd, folders, told):
    run = jobfiles.begin("far", "far.sql")
    run.queries = [{"job": "far.x", "checkpoint": each, "tables": []} for each in folders]
    run.end("finished")
    assert main(["jobs"]) == 0
    line = next(line for line in capfd.readouterr().out.splitlines() if line.startswith("far"))
    assert line.rstrip().endswith(told)


KAFKA = {
    "connector": "kafka",
    "topic": "orders",
    "format": "json",
    "properties.bootstrap.servers": "localhost:9092",
    "properties.group.id": "readers",
}


OWN = (
    "job 'shop' is finished; by its own progress as of its last batch, 0 s ago\n3 records in all\n"
)


@pytest.mark.parametrize(
    ("options", "rows", "told"),
    [
        (KAFKA, [7], "job 'shop' is finished; by its group's offsets now\n7 records in all\n"),
        (
            {**KAFKA, "properties.sasl.password": "***"},
            [3],
            "the group of 'orders' cannot be asked: a secret is kept nowhere, "
            "'properties.sasl.password' holds one, and job 'shop' was not run from a file; "
            "declare the table in a folder, and ask for its lag with --catalog DIR\n" + OWN,
        ),
        (
            {**KAFKA, "topic": "away"},
            [3],
            "the group of 'orders' cannot be asked: nobody is there\n" + OWN,
        ),
    ],
)
def test_the_lag_of_a_job_is_that_of_its_group_where_it_can_be_asked(
    state, capfd, monkeypatch, options, rows, told
):
    def group_lag(kafka):
        if kafka.topic == ("away",):
            raise ConnectionFailed("nobody is there")
        yield kafka.topic[0], 0, 7

    monkeypatch.setattr("streamcore_kafka.connector.Kafka.group_lag", group_lag)
    run = jobfiles.begin("shop", "shop.sql")
    table = {"table": "orders", "side": "source", "connector": "kafka", "options": options}
    table["lag"] = [{"topic": "orders", "place": "0", "rows": 3}]
    run.queries = [{"job": "shop.x", "tables": [table, {"table": "sink", "side": "sink"}]}]
    run.end("finished")
    assert main(["lag", "shop"]) == 0
    assert re.sub(r"\d+ s ago", "0 s ago", capfd.readouterr().err) == told
    assert main(["lag", "shop", "--json"]) == 0
    assert [each["rows"] for each in json.loads(capfd.readouterr().out)["lag"]] == rows


SECRET = "a secret is kept nowhere, 'properties.client.id' holds one, and "
REPEAT = "; pass --secrets, --var, --env-file and --catalog as 'streamcore run' got them\n"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (None, "cannot read '{path}': No such file or directory"),
        (
            "CREATE TABLE orders (id BIGINT) WITH ('x' = '${secret_values.pw}')",
            "shop.sql, line 1, column 46: variable 'secret_values.pw' is not defined",
        ),
        ("SET 'a' = 'b'", "'{path}' does not have it"),
    ],
    ids=["gone", "secret", "changed"],
)
def test_a_lag_that_needs_secrets_says_what_to_pass(state, capfd, script, reason):
    path = state / "shop.sql"
    if script is not None:
        path.write_text(script)
    run = jobfiles.begin("shop", "shop.sql", str(path))
    options = {**KAFKA, "properties.client.id": "***"}
    table = {"table": "orders", "side": "source", "connector": "kafka", "options": options}
    table["lag"] = [{"topic": "orders", "place": "0", "rows": 3}]
    run.queries = [{"job": "shop.x", "tables": [table]}]
    run.end("finished")
    assert main(["lag", "shop"]) == 0
    told = re.sub(r"\d+ s ago", "0 s ago", capfd.readouterr().err)
    asked = "the group of 'orders' cannot be asked: "
    assert told == asked + SECRET + reason.format(path=path) + REPEAT + OWN


def test_the_log_of_spark_stays_in_its_folder(state, monkeypatch):
    seen = []

    @contextmanager
    def quiet(log):
        seen.append(log)
        yield

    monkeypatch.setattr("streamcore_sql.quiet.quiet_start", quiet)
    given = Given(None, None, (), (), (), (), None, verbose=False)
    given.start_spark(SimpleNamespace(spark=None), "../../../x")
    assert seen == [state / "logs" / "..%2F..%2F..%2Fx.log"]


def test_jobs_are_listed_with_pid_batch_lag_and_the_first_line_of_an_error(state, capfd):
    running = jobfiles.begin("busy", "busy.sql")
    tables = [{"table": "t", "side": "source", "pendingRecords": each} for each in (1200, 300)]
    running.queries = [
        {"job": "busy.x", "batchId": 12.0, "tables": tables, "checkpoint": "/c/busy"},
        {"job": "busy.y", "batchId": 3.0, "tables": [], "checkpoint": "/c/busy"},
    ]
    running.write()
    failed = jobfiles.begin("broken", "broken.sql")
    failed.queries = [{"job": "broken.x", "batchId": 7, "tables": [], "error": "no broker\nat all"}]
    failed.end("failed")
    assert main(["jobs"]) == 0
    head, *lines = capfd.readouterr().out.splitlines()
    starts = [head.index(name) for name in head.split()]
    ends = [*starts[1:], None]
    rows = [[line[a:b].strip() for a, b in zip(starts, ends, strict=True)] for line in lines]
    started = [row.pop(3) for row in rows]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", each) for each in started)
    assert head.split()[-4:] == ["BATCH", "LAG", "CHECKPOINT", "ERROR"]
    assert sorted(rows) == [
        ["broken", "failed", "", "7", "", "", "no broker"],
        ["busy", "running", str(os.getpid()), "12,3", "1.5 k", "/c/busy", ""],
    ]


def test_a_job_is_stopped_by_its_name(sleeper, capfd):
    assert jobfiles.find("sleeper").alive
    assert main(["stop", "sleeper"]) == 0
    assert "job 'sleeper' stopped" in capfd.readouterr().out
    assert sleeper.wait(30) == 0
    assert jobfiles.find("sleeper").state == "stopped"
    assert main(["stop", "sleeper"]) == 1
    assert "does not run: it stopped at" in capfd.readouterr().err


def test_another_process_that_has_got_the_pid_is_left_alone(sleeper, capfd):
    run = jobfiles.find("sleeper")
    run.born = "1"
    run.write()
    assert run.state == "died"
    assert main(["stop", "sleeper"]) == 1
    assert "does not run" in capfd.readouterr().err
    assert sleeper.poll() is None


def test_a_name_that_runs_elsewhere_is_not_overwritten(sleeper):
    mine = jobfiles.begin("sleeper", "mine.sql")
    assert mine.name == f"sleeper-{os.getpid()}"
    assert jobfiles.find("sleeper").pid == sleeper.pid


def test_a_run_of_long_ago_is_forgotten(state):
    jobfiles.begin("old", "old.sql").end("finished")
    os.utime(state / "runs" / "old.json", (0, 0))
    jobfiles.begin("new", "new.sql")
    assert [job.name for job in jobfiles.every()] == ["new"]


def test_what_is_no_file_of_ours_is_passed_over(state, capfd):
    run = jobfiles.begin("good/name", "s.sql")
    for name, text in (("half.json", '{"name": "x"'), ("list.json", "[]"), ("odd.json", "{}")):
        (state / "runs" / name).write_text(text)
    assert [job.name for job in jobfiles.every()] == ["good/name"]
    run.end("finished")
    assert main(["jobs", "--json"]) == 0
    (listed,) = json.loads(capfd.readouterr().out)
    assert (listed["name"], listed["state"]) == ("good/name", "finished")
    assert main(["stop", "god/name"]) == 2
    assert "no job 'god/name' has run on this machine" in capfd.readouterr().err
    assert main(["lag", "nope"]) == 2
    assert "--catalog DIR" in capfd.readouterr().err


def test_a_catalog_that_is_not_there_is_told_apart_from_an_empty_one(state, capfd):
    assert main(["lag", "orders", "--catalog", f"{state}/nope"]) == 2
    told = capfd.readouterr().err
    assert told == (
        f"streamcore: --catalog: there is no folder '{state}/nope'\n"
        "Run 'streamcore lag --help' to see what it takes.\n"
    )


# --- documents -------------------------------------------------------------------------------

PAGE = DASHBOARD.with_name("monitoring.md")


@pytest.mark.parametrize(("side", "figures"), [("source", SOURCE), ("sink", SINK), ("job", JOB)])
def test_the_page_documents_every_figure(side, figures):
    part = PAGE.read_text().split(f"<!-- {side} -->")[1].split(f"<!-- /{side} -->")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.*) \|$", part, re.M)
    assert {name: doc for name, doc, _ in rows} == figures
    for name, _, scraped in rows:
        expected = openmetrics.sample_name(name)
        assert scraped in (f"`{expected}`", "counter", "")
        assert (f"{expected}_total" if scraped == "counter" else expected) in every_sample()
