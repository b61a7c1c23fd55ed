"""Secrets planted in every sensitive option show up in no channel a job has."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from streamcore import ConnectionFailed
from streamcore.testing.ledger import scenario
from streamcore.testing.services import SecureKafkaBroker
from streamcore.testing.services.kafka import unique_name
from streamcore.testing.services.listening import family, listeners
from streamcore.testing.services.process import free_port

PROGRAM = str(Path(sys.executable).parent / "streamcore")
NAMES = ("login", "registry", "token", "aws", "store", "oauth", "wrong")
LISTENERS = "addresses listened on"
PLACES = ("applications", "environment", "sql?details=true", "jobs", "stages", "executors")


class Canaries:
    """Values that occur nowhere else, and every way in which one could be written."""

    def __init__(self, seed):
        self.values = {name: f"canary{name}{seed:08x}end" for name in NAMES}

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


def script(broker, canaries, topics):
    """Tables with a canary in each sensitive option, and statements that could tell of it."""
    kafka = {"connector": "kafka", "format": "json", **secured(broker, canaries["login"])}
    reading = {
        "scan.startup.mode": "earliest-offset",
        "scan.deser.failure-handler": "dead-letter",
        "scan.deser.failure-topic": topics["dead"],
    }
    arn = "arn:aws:kinesis:us-east-1:123456789012:stream/s"
    confluent = {
        "connector": "kafka",
        "topic": "t",
        "properties.bootstrap.servers": "127.0.0.1:1",
        "properties.ssl.key.password": canaries["store"],
        "properties.sasl.mechanism": "OAUTHBEARER",
        "properties.security.protocol": "SASL_SSL",
        "properties.sasl.oauthbearer.client.id": "me",
        "properties.sasl.oauthbearer.client.secret": canaries["oauth"],
        "properties.sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
        "properties.sasl.oauthbearer.method": "oidc",
        "format": "avro-confluent",
        "avro-confluent.url": "http://127.0.0.1:1",
        "avro-confluent.basic-auth.credentials-source": "USER_INFO",
        "avro-confluent.basic-auth.user-info": f"me:{canaries['registry']}",
    }
    kinesis = {
        "connector": "kinesis",
        "format": "json",
        "stream.arn": arn,
        "aws.region": "us-east-1",
        "aws.credentials.basic.accesskeyid": "AKIAEXAMPLE",
        "aws.credentials.basic.secretkey": canaries["aws"],
        "aws.credentials.basic.sessiontoken": canaries["token"],
    }
    del confluent["properties.ssl.key.password"]
    return (
        table("orders", "id BIGINT", topic=topics["in"], **kafka, **reading)
        + table("copies", "id BIGINT", topic=topics["out"], **kafka)
        + table("registered", "id BIGINT", **confluent)
        + table("streamed", "id BIGINT", **kinesis)
        + "".join(
            f"SHOW CREATE TABLE {name};\nDESCRIBE {name};\n"
            for name in ("orders", "copies", "registered", "streamed")
        )
        + "EXPLAIN SELECT * FROM orders;\nSHOW TABLES;\n"
        + "EXPLAIN INSERT INTO copies SELECT id FROM orders;\n"
        + "INSERT INTO copies SELECT id FROM orders;\n"
    )


@pytest.fixture(scope="module")
def secure():
    """A broker whose password is a canary."""
    canaries = Canaries(int(time.time()))
    with SecureKafkaBroker({"admin": canaries["login"]}, open_to_all=True) as broker:
        yield broker, canaries


def job(folder, text, *arguments):
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
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **state},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process, ui


def page(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read()
    except (urllib.error.URLError, TimeoutError):
        return b""


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
    found = consumer.consume(10, 20)[:1]
    consumer.close()
    return [repr((m.key(), m.value(), m.headers())).encode() for m in found]


def watch(broker, folder, process, ui, topics):
    """Let the job copy its rows, and look into every place while it runs."""
    deadline = time.monotonic() + 400
    while not messages(broker, topics["out"]):
        assert process.poll() is None, (folder / "said.log").read_text(errors="replace")[-3000:]
        assert time.monotonic() < deadline, "no row was copied"
    shown = {**pages(ui), **command_lines(process.pid)}
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
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "job.sql"]
    shown |= {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return shown


@pytest.fixture(scope="module")
def evidence(secure, tmp_path_factory):
    """Everything that a job, two failed ones and two commands showed, by place."""
    broker, canaries = secure
    home = tmp_path_factory.mktemp("secrets")
    topics = {name: broker.create_topic(unique_name(name)) for name in ("in", "out", "dead")}
    producer = Producer({"bootstrap.servers": broker.direct_servers})
    for value in (b'{"id": 1}', b"not json", b'{"id": 2}'):
        producer.produce(topics["in"], value)
    assert producer.flush(30) == 0
    process, ui = job(home / "good", script(broker, canaries, topics))
    try:
        shown = watch(broker, home / "good", process, ui, topics)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
    wrong = secured(broker, canaries["wrong"])
    bad = table("t", "id BIGINT", connector="kafka", topic=topics["in"], format="json", **wrong)
    mistaken = table("u", "id BIGINT", connector="kafka", **{"sasl.password": canaries["wrong"]})
    failing = {
        name: job(home / name, f"{text} SELECT * FROM {text.split()[2]};", "--once")[0]
        for name, text in {"refused": bad, "mistaken": mistaken}.items()
    }
    for name, process in failing.items():
        assert process.wait(400) != 0
        shown[name] = (home / name / "said.log").read_bytes()
    for words in (["list-plugins"], ["describe", "connector", "kafka"]):
        shown[words[0]] = subprocess.run([PROGRAM, *words], capture_output=True).stdout
    return shown


@scenario(37, small={"canaries": len(NAMES)}, full={"canaries": len(NAMES)})
def test_no_canary_is_seen_in_any_channel(secure, evidence, scale):
    _, canaries = secure
    channels = " ".join(evidence)
    for needed in ("said.log", "events/", "offsets/0", "environment", "command line", "dead"):
        assert needed in channels, f"{needed} was looked into"
    assert b"authentication" in evidence["refused"].lower()
    assert b"CREATE TABLE" in evidence["said.log"]
    events = b"".join(data for place, data in evidence.items() if place.startswith("events/"))
    assert b"SparkListenerEnvironmentUpdate" in events, "the event log can be read"
    leaks = {place: hits for place, data in evidence.items() if (hits := canaries.found_in(data))}
    assert leaks == {}
    scale.measured["places"] = str(len(evidence))


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


@scenario(35, small={"rotations": 1}, full={"rotations": 20})
def test_a_password_that_was_changed_is_an_error_until_the_new_one_is_given(
    secure, a_writer, scale
):
    """Every transaction logs in anew, so a change is noticed with the next one."""
    broker, _ = secure
    old = "first"
    set_password(broker, "rotating", old)
    login_of = {**secured(broker, ""), "properties.delivery.timeout.ms": "30000"}

    def options(password):
        return {**login_of, "properties.sasl.jaas.config": login("rotating", password)}

    writer = a_writer(broker, **options(old))
    writer.write(0, 5)
    for rotation in range(1, scale.rotations + 1):
        new = f"password-{rotation}"
        set_password(broker, "rotating", new)
        with pytest.raises(ConnectionFailed, match="[Aa]uthentication") as refused:
            writer.write(rotation, 5, run=f"run-{rotation}")
        assert old not in str(refused.value)
        writer.options |= options(new)
        writer.write(rotation, 5, run=f"run-{rotation}-again")
        old = new
    writer.verify(scale.seed)
