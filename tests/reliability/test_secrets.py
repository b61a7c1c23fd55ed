"""Secrets planted in every sensitive option show up in no channel a job has."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import http.client
import json
import os
import pty
import re
import signal
import ssl
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from streamcore import Column, ConnectionFailed, Table
from streamcore.registry import installed
from streamcore.testing.ledger import scenario
from streamcore.testing.services import KinesisEmulator, SecureKafkaBroker, Sts
from streamcore.testing.services.certificates import Authority
from streamcore.testing.services.kafka import unique_name
from streamcore.testing.services.kinesis.address import ACCOUNT
from streamcore.testing.services.listening import family, listeners
from streamcore.testing.services.process import free_port
from streamcore_kafka import client

PROGRAM = str(Path(sys.executable).parent / "streamcore")
NAMES = (
    *("login", "wrong", "oauth", "keystore", "truststore", "private"),  # Kafka
    *("registry", "bearer", "certificate", "url"),  # a schema registry
    *("access", "aws", "external", "endpoint"),  # Kinesis
)
LISTENERS = "addresses listened on"
PLACES = ("applications", "environment", "sql?details=true", "jobs", "stages", "executors")


class Canaries:
    """Values that occur nowhere else, and every way in which one could be written."""

    def __init__(self, seed):
        self.values = {name: f"canary{name}{seed:08x}end" for name in NAMES}

    def of_key(self, text):
        """A private key cannot be made up: its second line, which no other has, is the canary."""
        self.values["private"] = text.splitlines()[2]
        return text

    def __getitem__(self, name):
        return self.values[name]

    def spellings(self):
        for name, value in self.values.items():
            yield name, value.encode()
            yield f"{name} in hex", value.encode().hex().encode()
            for lead in range(3):  # base64 of a longer text, whatever stands before
                encoded = base64.b64encode(b"x" * lead + value.encode())
                yield f"{name} in base64", encoded[4 if lead else 0 : -4]

    def found_in(self, data):
        return sorted({name for name, spelled in self.spellings() if spelled in data})


def login(user, password):
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{user}" password="{password}";'


def secured(broker, password):
    return {
        "properties.bootstrap.servers": broker.bootstrap_servers,
        "properties.security.protocol": "SASL_SSL",
        "properties.sasl.mechanism": "SCRAM-SHA-256",
        "properties.sasl.jaas.config": login("admin", password),
        "properties.ssl.truststore.type": "PEM",
        "properties.ssl.truststore.location": str(broker.trust),
        "properties.debug": "security,broker",
    }


def table(name, columns, **options):
    listed = ",\n  ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH (\n  {listed});\n"


def tables(broker, canaries, topics, registry):
    """Tables with a canary in each sensitive option, and in each URL."""
    identity = broker.authority.issue("client")
    kafka = {
        "connector": "kafka",
        **secured(broker, canaries["login"]),
        "properties.ssl.truststore.password": canaries["truststore"],
        "properties.ssl.keystore.type": "PEM",
        "properties.ssl.keystore.key": canaries.of_key(identity.key.read_text()),
        "properties.ssl.keystore.certificate.chain": identity.certificate.read_text(),
        "properties.ssl.key.password": canaries["keystore"],
        "scan.startup.mode": "earliest-offset",
    }
    dead = {
        "scan.deser.failure-handler": "dead-letter",
        "scan.deser.failure-topic": topics["dead"],
    }
    tokens = {
        "connector": "kafka",
        "topic": "t",
        "format": "json",
        "properties.bootstrap.servers": "127.0.0.1:1",
        "properties.sasl.mechanism": "OAUTHBEARER",
        "properties.security.protocol": "SASL_SSL",
        "properties.sasl.oauthbearer.client.id": "me",
        "properties.sasl.oauthbearer.client.secret": canaries["oauth"],
        "properties.sasl.oauthbearer.token.endpoint.url": (
            f"https://me:{canaries['url']}@127.0.0.1:1/token"
        ),
        "properties.sasl.oauthbearer.method": "oidc",
        "scan.startup.mode": "earliest-offset",
    }
    registered = {
        "topic": topics["framed"],
        "format": "avro-confluent",
        "avro-confluent.url": registry,
        "avro-confluent.ssl.keystore.location": str(identity.pem),
        "avro-confluent.ssl.keystore.password": canaries["certificate"],
    }
    info = {
        "avro-confluent.basic-auth.credentials-source": "USER_INFO",
        "avro-confluent.basic-auth.user-info": f"me:{canaries['registry']}",
    }
    bearer = {
        "avro-confluent.bearer-auth.credentials-source": "STATIC_TOKEN",
        "avro-confluent.bearer-auth.token": canaries["bearer"],
    }
    address = {
        "avro-confluent.basic-auth.credentials-source": "URL",
        "avro-confluent.url": registry.replace("//", f"//me:{canaries['url']}@"),
    }
    kinesis = {
        "connector": "kinesis",
        "format": "json",
        "stream.arn": "arn:aws:kinesis:us-east-1:123456789012:stream/s",
        "aws.region": "us-east-1",
        "aws.endpoint": f"http://me:{canaries['endpoint']}@127.0.0.1:1",
        "aws.credentials.provider": "BASIC",
        "aws.credentials.basic.accesskeyid": canaries["access"],
        "aws.credentials.basic.secretkey": canaries["aws"],
    }
    role = {
        **kinesis,
        "aws.credentials.provider": "ASSUME_ROLE",
        "aws.credentials.role.arn": "arn:aws:iam::123456789012:role/reader",
        "aws.credentials.role.sessionName": "reader",
        "aws.credentials.role.externalId": canaries["external"],
        "aws.credentials.role.stsEndpoint": f"http://me:{canaries['endpoint']}@127.0.0.1:1",
        "aws.credentials.role.provider": "BASIC",
        "aws.credentials.role.provider.basic.accesskeyid": canaries["access"],
        "aws.credentials.role.provider.basic.secretkey": canaries["aws"],
    }
    for key in ("accesskeyid", "secretkey"):
        del role[f"aws.credentials.basic.{key}"]
    options = {
        "orders": {**kafka, **dead, "topic": topics["in"], "format": "json"},
        "copies": {**kafka, "topic": topics["out"], "format": "json"},
        "with_tokens": tokens,
        "registered": {**kafka, **registered, **info},
        "with_bearer": {**kafka, **registered, **bearer},
        "addressed": {**kafka, **registered, **address},
        "streamed": kinesis,
        "with_role": role,
    }
    return {name: table(name, "id BIGINT", **given) for name, given in options.items()}


def script(made):
    """The tables, and statements that could tell of what is in them; the first need no Spark."""
    told = [f"SHOW CREATE TABLE {name};\nDESCRIBE {name};\n" for name in made]
    plans = [f"EXPLAIN SELECT * FROM {name};\n" for name in made]
    sinks = ("copies", "registered", "streamed")
    plans += [f"EXPLAIN INSERT INTO {name} SELECT id FROM orders;\n" for name in sinks]
    return "".join((*made.values(), *told, "SHOW TABLES;\n")), "".join(
        (*plans, "INSERT INTO copies SELECT id FROM orders;\n")
    )


@pytest.fixture(scope="module")
def secure():
    """A broker whose password is a canary."""
    canaries = Canaries(int(time.time()))
    with SecureKafkaBroker({"admin": canaries["login"]}, open_to_all=True) as broker:
        yield broker, canaries
        client._of_group.cache_clear()  # they write debug logs, more and more without their broker


def job(folder, text, *arguments, terminal=False, **environment):
    """Start a job; what it says goes to a file, by way of a terminal if there is to be one."""
    folder.mkdir()
    (folder / "job.sql").write_text(text)
    (folder / "events").mkdir()
    ui = free_port()
    settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(folder / "events"),
        "spark.eventLog.compress": "false",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui),
        "spark.log.level": "DEBUG",
    }
    sets = [word for pair in settings.items() for word in ("--set", "=".join(pair))]
    command = [PROGRAM, "run", "job.sql", "--verbose", *sets, *arguments]
    state = {"STREAMCORE_STATE": str(folder / "state"), "STREAMCORE_LOG": "DEBUG"}
    with (folder / "said.log").open("wb") as said:
        out = typed_into(folder / "said.log") if terminal else said.fileno()
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **state, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        if terminal:
            os.close(out)
    return process, ui


def typed_into(path):
    """A terminal wide enough to break no word, whose text goes to a file."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))

    def copy():
        with path.open("ab", buffering=0) as said, contextlib.suppress(OSError):
            while data := os.read(ours, 65536):  # fails when the last writer is gone
                said.write(data)
        os.close(ours)

    threading.Thread(target=copy, daemon=True).start()
    return theirs


@contextlib.contextmanager
def collector():
    """Where OpenTelemetry is exported to, and what arrived there; a registry that lets none in."""
    arrived = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self):
            arrived.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def do_GET(self):
            self.send_response(401)
            self.end_headers()
            self.wfile.write(b'{"error_code": 401, "message": "Unauthorized"}')

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", arrived
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def own_doors(folder):
    """What the job's own pages, its metrics and other commands tell of it."""
    said = (folder / "said.log").read_text(errors="replace")
    (metrics,) = set(re.findall(r"http://127\.0\.0\.1:\d+/metrics", said))
    (web,) = set(re.findall(r"page is at (http://127\.0\.0\.1:\d+)/", said))
    state = page(f"{web}/api/state")
    asked = quote(json.loads(state)["jobs"][0]["id"])
    shown = {"own metrics": page(metrics), "own state": state, "own page": page(f"{web}/")}
    shown |= {f"own {each}": page(f"{web}/api/{each}?job={asked}") for each in ("plan", "history")}
    environment = {**os.environ, "STREAMCORE_STATE": str(folder / "state")}
    for words in ("jobs", "jobs --format json", "lag job", "lag job --json"):
        told = subprocess.run(
            [PROGRAM, *words.split()], capture_output=True, env=environment, timeout=120
        )
        assert told.returncode == 0, told.stderr
        shown[f"own {words}"] = told.stdout + told.stderr
    return shown


def page(url):
    """What a server answers in its own time; nothing for a page that it does not have."""
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.read()
        except urllib.error.HTTPError:
            return b""
        except (OSError, http.client.HTTPException):
            assert time.monotonic() < deadline, f"{url} answers"
            time.sleep(0.5)


def pages(ui):
    """What Spark's web pages and its REST interface show."""
    root = f"http://127.0.0.1:{ui}"
    listed = page(f"{root}/api/v1/applications")
    assert listed, "the web pages answer"
    (application,) = json.loads(listed)
    at = f"{root}/api/v1/applications/{application['id']}"
    shown = {place: page(f"{at}/{place}") for place in PLACES}
    for place in ("environment/", "SQL/", "StreamingQuery/", "jobs/", "SQL/execution/?id=0"):
        shown[f"page {place}"] = page(f"{root}/{place}")
    assert shown["environment"], "the REST interface answers"
    return shown


def command_lines(leader):
    """Of the job, its JVM and its workers."""
    lines = {}
    for pid in family(leader):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines[f"command line {pid}"] = Path(f"/proc/{pid}/cmdline").read_bytes()
    return lines


def messages(broker, topic):
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.direct_servers, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(1, 20)
    consumer.close()
    return [repr((m.key(), m.value(), m.headers())).encode() for m in found]


def watch(broker, folder, process, ui, topics):
    """Let the job copy its rows, and look into every place while it runs."""
    deadline = time.monotonic() + 400
    while not messages(broker, topics["out"]):
        assert process.poll() is None, (folder / "said.log").read_text(errors="replace")[-3000:]
        assert time.monotonic() < deadline, "no row was copied"
    shown = {**pages(ui), **command_lines(process.pid), **own_doors(folder)}
    shown[LISTENERS] = " ".join(listeners(family(process.pid))).encode()
    shown |= {
        f"message of {name}": repr(messages(broker, topics[name])).encode() for name in topics
    }
    running = family(process.pid)
    os.kill(process.pid, signal.SIGINT)
    process.wait(120)
    while any(Path(f"/proc/{pid}").exists() for pid in running):  # Spark writes to the last
        assert time.monotonic() < deadline + 120, "the job's processes end with it"
        time.sleep(0.2)
    return shown | left_in(folder)


def left_in(folder):
    """The files of a job, by name, once Spark renames none of them any more."""
    for _ in range(100):
        try:
            files = [
                path for path in folder.rglob("*") if path.is_file() and path.name != "job.sql"
            ]
            return {str(path.relative_to(folder)): path.read_bytes() for path in files}
        except FileNotFoundError:
            time.sleep(0.1)
    raise AssertionError(f"files come and go in {folder}")


@contextlib.contextmanager
def ended(process):
    """Nothing of it is left, whatever becomes of the test."""
    try:
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def shown_by_a_run(broker, folder, text, topics, endpoint):
    """What a job with all that can be watched shows while it runs and when it has ended."""
    otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_METRIC_EXPORT_INTERVAL": "1000"}
    seen = ("--web", "0", "--metrics-port", "0", "--otel")
    process, ui = job(folder, text, *seen, terminal=True, **otel)
    with ended(process):
        return watch(broker, folder, process, ui, topics)


@pytest.fixture(scope="module")
def evidence(secure, tmp_path_factory):
    """Everything that a job, four failed ones and two commands showed, by place."""
    broker, canaries = secure
    home = tmp_path_factory.mktemp("secrets")
    names = ("in", "out", "dead", "framed")
    topics = {name: broker.create_topic(unique_name(name)) for name in names}
    producer = Producer({"bootstrap.servers": broker.direct_servers})
    for value in (b'{"id": 1}', b"not json", b'{"id": 2}'):
        producer.produce(topics["in"], value)
    producer.produce(topics["framed"], b"\0\0\0\0\1\2")  # its schema must be asked for
    assert producer.flush(30) == 0
    with collector() as (endpoint, arrived):
        made = tables(broker, canaries, topics, endpoint)
        told, run = script(made)
        shown = shown_by_a_run(broker, home / "good", told + run, topics, endpoint)
        wrong = {**secured(broker, canaries["wrong"]), "scan.startup.mode": "earliest-offset"}
        bad = table("t", "id BIGINT", connector="kafka", topic=topics["in"], format="json", **wrong)
        mistaken = table(
            "t", "id BIGINT", connector="kafka", **{"sasl.password": canaries["wrong"]}
        )
        others = {
            "refused": f"{bad} SELECT * FROM t;",
            "mistaken": f"{mistaken} SELECT * FROM t;",
            "told": told,
            "unregistered": "".join(made.values()) + "INSERT INTO copies SELECT id FROM addressed;",
            "unstreamed": "".join(made.values()) + "INSERT INTO copies SELECT id FROM streamed;",
        }
        for name, statements in others.items():
            process, _ = job(home / name, statements, "--once", "--json")
            with ended(process):
                assert (process.wait(400) == 0) == (name == "told")
            shown[name] = (home / name / "said.log").read_bytes()
            shown |= {f"{name}: {place}": data for place, data in left_in(home / name).items()}
    shown["own otel"] = b"".join(arrived)
    for words in (["list-plugins"], ["describe", "connector", "kafka"]):
        shown[words[0]] = subprocess.run([PROGRAM, *words], capture_output=True).stdout
    return shown


@scenario(37, small={"canaries": len(NAMES)}, full={"canaries": len(NAMES)})
def test_no_canary_is_seen_in_any_channel(secure, evidence, scale):
    _, canaries = secure
    channels = " ".join(evidence)
    for needed in ("said.log", "events/", "offsets/0", "environment", "command line", "dead"):
        assert needed in channels, f"{needed} was looked into"
    assert b"Authentication failed" in evidence["refused"]
    assert b"schema registry 'http://127.0.0.1:" in evidence["unregistered"]
    assert b"nothing answers at http://***@127.0.0.1:1" in evidence["unstreamed"]
    shown = evidence["said.log"]
    assert shown.count(b"'properties.ssl.keystore.key' = '***'") >= 5, "the key was to be shown"
    assert shown.count(b"http://***@127.0.0.1:") >= 4, "URLs with a login were to be shown"
    assert b"CREATE TABLE" in evidence["said.log"]
    assert b"\x1b[" in evidence["said.log"], "it was a terminal"
    assert b"job.copies" in evidence["own otel"]
    assert b"streamcore_numRecordsIn_total" in evidence["own metrics"]
    assert b"INSERT INTO" in evidence["own plan"]
    assert [place for place, data in evidence.items() if place[:3] == "own" and not data] == []
    assert "error" in told_in_json(evidence["refused"]) & told_in_json(evidence["mistaken"])
    assert {"done", "text", "row"} <= told_in_json(evidence["told"])
    events = b"".join(data for place, data in evidence.items() if place.startswith("events/"))
    assert b"SparkListenerEnvironmentUpdate" in events, "the event log can be read"
    leaks = {place: hits for place, data in evidence.items() if (hits := canaries.found_in(data))}
    assert leaks == {}
    scale.measured["places"] = str(len(evidence))


def told_in_json(said):
    lines = [line for line in said.splitlines() if line.startswith(b'{"time": ')]
    return {json.loads(line)["event"] for line in lines}


@scenario(40, small={"jobs": 1}, full={"jobs": 1})
def test_a_job_listens_on_loopback_alone(evidence, scale):
    """Services of the sandbox are looked at in the same way where they are tested."""
    addresses = evidence[LISTENERS].decode().split()
    assert addresses
    assert [each for each in addresses if not each.startswith(("127.", "[::1]", "::1"))] == []
    scale.measured["listeners"] = str(len(addresses))


def test_a_canary_is_found_however_it_is_written():
    canaries = Canaries(1)
    value = canaries["login"].encode()
    for before in (b"", b"a", b"ab", b"abc"):
        assert canaries.found_in(base64.b64encode(before + value + b"tail"))
    assert canaries.found_in(b"x" + value.hex().encode())
    assert canaries.found_in(b"x" + value + b"y") == ["login"]
    assert canaries.found_in(b"nothing here") == []


def set_password(broker, user, password):
    admin = broker.admin()
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    change = UserScramCredentialUpsertion(user, scram, password.encode())
    for future in admin.alter_user_scram_credentials([change]).values():
        future.result()


class Running:
    """A query that writes batch after batch, and is started anew after it was refused."""

    def __init__(self, writer, scale):
        self._writer, self._scale = writer, scale
        self._batch = self._run = 0

    def step(self):
        self._writer.write(self._batch, 5, run=f"run-{self._run}")
        self._batch += 1

    def refused(self, match):
        """Its next batch fails soon; what is told of that."""
        began = time.monotonic()
        with pytest.raises(ConnectionFailed, match=match) as refused:
            self.step()
        assert time.monotonic() - began < self._scale.bound(60)
        self._run += 1
        return str(refused.value)

    def through_rotations(self):
        """Yield the number of each rotation in its time, with batches in between."""
        began = time.monotonic()
        for rotation in range(1, self._scale.rotations + 1):
            due = began + 60 * self._scale.minutes * rotation / self._scale.rotations
            self.step()
            while (left := due - time.monotonic()) > 0:
                time.sleep(min(left, 10))
                self.step()
            yield rotation
        self.step()
        self._writer.verify(self._scale.seed)


@scenario(35, small={"rotations": 1, "minutes": 0}, full={"rotations": 20, "minutes": 30})
def test_a_password_that_was_changed_is_an_error_until_the_new_one_is_given(
    secure, a_writer, scale
):
    """Every transaction logs in anew, so a change is noticed with the next one."""
    broker, _ = secure
    old = "first"
    set_password(broker, "rotating", old)
    login_of = {**secured(broker, ""), "properties.delivery.timeout.ms": "30000"}
    del login_of["properties.debug"]

    def options(password):
        return {**login_of, "properties.sasl.jaas.config": login("rotating", password)}

    writer = a_writer(broker, **options(old))
    running = Running(writer, scale)
    for rotation in running.through_rotations():
        new = f"password-{rotation}"
        set_password(broker, "rotating", new)
        assert old not in running.refused("[Aa]uthentication")
        writer.options |= options(new)
        old = new


def present(broker, identity):
    """Let a running broker show another certificate from now on."""
    name = "listener.name.sasl_ssl.ssl.keystore.location"
    entry = ConfigEntry(name, str(identity.pem), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin = broker.admin()
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
    host, _, port = broker.bootstrap_servers.rpartition(":")
    own, end, _ = identity.certificate.read_text().partition("-----END CERTIFICATE-----")
    wanted = ssl.PEM_cert_to_DER_cert(own + end)
    deadline, in_a_row = time.monotonic() + 60, 0
    while in_a_row < 10:  # its threads take connections in turn, and learn of it one by one
        shown = ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))
        in_a_row = in_a_row + 1 if shown == wanted else 0
        assert time.monotonic() < deadline, "the broker shows its new certificate"


@scenario(
    35,
    small={"rotations": 1, "minutes": 0},
    full={"rotations": 20, "minutes": 30},
    always=False,
)
def test_a_certificate_of_another_authority_is_an_error_until_that_one_is_trusted(
    secure, a_writer, tmp_path, scale
):
    broker, canaries = secure
    options = {**secured(broker, canaries["login"]), "properties.delivery.timeout.ms": "30000"}
    del options["properties.debug"]
    writer = a_writer(broker, **options)
    running = Running(writer, scale)
    try:
        for rotation in running.through_rotations():
            authority = Authority(tmp_path / str(rotation))
            present(broker, authority.issue("broker"))
            assert "properties.ssl.truststore.location" in running.refused("certificate")
            writer.options["properties.ssl.truststore.location"] = str(authority.trust)
    finally:
        present(broker, broker.authority.issue("broker"))


class Door(ThreadingHTTPServer):
    """Before STS and Kinesis: sessions end after some seconds, and then nobody gets in with them.

    Real ones last a quarter of an hour at least, and the emulator takes any.
    """

    daemon_threads = True

    def __init__(self, sts, kinesis, seconds):
        super().__init__(("127.0.0.1", 0), _Doorkeeper)
        self.sts, self.kinesis, self.seconds = sts, kinesis, seconds
        self.gives, self.ends, self.turned_away = True, {}, 0
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *details):
        self.shutdown()
        super().__exit__(*details)


class _Doorkeeper(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        door, body = self.server, self.rfile.read(int(self.headers["Content-Length"]))
        if "X-Amz-Target" not in self.headers:
            return self._answer(*self._session(body))
        if door.ends.get(self.headers["X-Amz-Security-Token"], 0) < time.time():
            door.turned_away += 1
            return self._answer(400, b'{"__type": "ExpiredTokenException", "message": "Over."}')
        return self._answer(*self._asked(door.kinesis, body))

    def _session(self, body):
        if not self.server.gives:
            code = b"<Code>AccessDenied</Code><Message>The role is not for you.</Message>"
            return 403, b"<ErrorResponse><Error>" + code + b"</Error></ErrorResponse>"
        status, told = self._asked(self.server.sts, body)
        ends = time.time() + self.server.seconds
        (token,) = re.findall(rb"<SessionToken>(.*?)</SessionToken>", told)
        self.server.ends[token.decode()] = ends
        moment = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
        said = b"<Expiration>" + moment + b"</Expiration>"
        return status, re.sub(rb"<Expiration>.*?</Expiration>", said, told)

    def _asked(self, url, body):
        ours = {"host", "content-length", "connection", "accept-encoding"}
        headers = {key: text for key, text in self.headers.items() if key.lower() not in ours}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def _answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Streaming:
    """A query that writes rows to a stream and reads them back, without Spark around it."""

    TABLE = Table((Column("n", "BIGINT"),), "t")

    def __init__(self, options):
        connector = installed().build("connector", "kinesis", options)
        self._writer = connector.writer(self.TABLE)
        self._reader = connector.stream_reader(self.TABLE)
        self._at = self._plain(self._reader.initialOffset())
        self.written, self.rows = 0, []

    @staticmethod
    def _plain(offset):
        return json.loads(json.dumps(offset))

    def write(self, count=5):
        numbers = list(range(self.written, self.written + count))
        self._writer.write(iter([pa.RecordBatch.from_pydict({"n": numbers})]))
        self.written += count

    def read(self):
        end = self._plain(self._reader.latestOffset(self._at, None))
        if end != self._at:
            batches = [
                batch
                for task in self._reader.partitions(self._at, end)
                for batch in self._reader.read(task)
            ]
            self.rows += [row["n"] for batch in batches for row in batch.to_pylist()]
            self._at = end

    def read_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read()
            time.sleep(1)

    def read_all(self):
        deadline = time.monotonic() + 60
        while len(self.rows) < self.written:
            assert time.monotonic() < deadline, f"{len(self.rows)} of {self.written} rows"
            self.read()
            time.sleep(0.2)


@scenario(
    35,
    small={"minutes": 1, "seconds": 30},
    full={"minutes": 30, "seconds": 60},
    always=False,
)
def test_sessions_of_a_minute_are_renewed_in_time_and_told_when_they_are_not_given(scale):
    role = "arn:aws:iam::123456789012:role/reader"
    with (
        Sts() as sts,
        KinesisEmulator() as emulator,
        Door(sts.endpoint_url, emulator.endpoint_url, scale.seconds) as door,
    ):
        stream = unique_name("sessions")
        emulator.create_stream(stream, 1)
        region = emulator.client_kwargs["region_name"]
        query = Streaming(
            {
                "stream.arn": f"arn:aws:kinesis:{region}:{ACCOUNT}:stream/{stream}",
                "aws.region": region,
                "aws.endpoint": door.url,
                "aws.credentials.provider": "ASSUME_ROLE",
                "aws.credentials.role.arn": role,
                "aws.credentials.role.sessionName": "reader",
                "aws.credentials.role.stsEndpoint": door.url,
                "aws.credentials.role.provider.basic.accesskeyid": "id",
                "aws.credentials.role.provider.basic.secretkey": "secret",
                "format": "json",
                "source.init.position": "TRIM_HORIZON",
            }
        )
        end = time.monotonic() + 60 * scale.minutes
        while time.monotonic() < end:
            query.write()
            query.read()
            time.sleep(3)
        query.read_all()
        lives = 60 * scale.minutes / scale.seconds
        assert lives <= len(door.ends) <= 3 * lives + 3
        assert door.turned_away == 0
        scale.measured["sessions"] = str(len(door.ends))

        door.gives = False
        with pytest.raises(ConnectionFailed) as refused:
            query.read_for(scale.seconds + scale.bound(60))
        assert f"role '{role}' could not be assumed: " in str(refused.value)
        assert "AccessDenied" in str(refused.value)
        door.gives = True
        query.write()
        query.read_all()
        assert query.rows == list(range(query.written))
        scale.measured["rows"] = str(query.written)
