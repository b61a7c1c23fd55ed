"""Hostile YAML, SQL and options are refused when they are read; nothing is opened or run."""

from __future__ import annotations

import contextlib
import sys
import time

import pytest
from streamcore import StreamcoreError
from streamcore.registry import installed
from streamcore.testing.ledger import scenario
from streamcore_sql import Session
from streamcore_sql.ingestion.planning import prepare_job
from streamcore_sql.rewrite import rewrite

# --- what an attempt would do ---------------------------------------------------------------

WATCHED = ("socket.connect", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
OPENED = ("/etc/", "evil", "169.254")
_seen: list[str] | None = None


def _watch(event, arguments):
    if _seen is None:
        return
    bait = event == "open" and any(each in str(arguments[0]) for each in OPENED)
    if (event in WATCHED or bait) and not _is_of_another_test():
        _seen.append(f"{event} {arguments!r:.200}")


def _is_of_another_test():
    """Whether a Spark or a proxy does this, in a thread that outlived the test it served."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(("py4j.", "streamcore.testing.")):
            return True
        frame = frame.f_back
    return False


sys.addaudithook(_watch)  # cannot be taken back, so it is silent unless asked


@contextlib.contextmanager
def watched():
    """Everything that was opened, connected to or run meanwhile."""
    global _seen
    _seen = seen = []
    try:
        yield seen
    finally:
        _seen = None


# --- options --------------------------------------------------------------------------------

KAFKA = {"properties.bootstrap.servers": "127.0.0.1:1", "topic": "t", "format": "json"}
SASL = {**KAFKA, "properties.security.protocol": "SASL_SSL"}
KINESIS = {
    "stream.arn": "arn:aws:kinesis:us-east-1:123456789012:stream/s",
    "aws.region": "us-east-1",
    "format": "json",
}
CODE = {  # settings that load or run something, by name
    "plugin.library.paths": "evil.so",
    "ssl.engine.location": "evil.so",
    "ssl.engine.id": "dynamic",
    "sasl.kerberos.kinit.cmd": "touch evil",
    "ssl.engine.factory.class": "evil.Factory",
    "security.providers": "evil.Provider",
    "sasl.login.callback.handler.class": "evil.Handler",
    "sasl.client.callback.handler.class": "evil.Handler",
    "sasl.login.class": "evil.Login",
    "ssl.providers": "evil",
    "opaque": "1",
    "config.providers": "file",
}
MODULE = "com.sun.security.auth.module."
LOGINS = (
    f'{MODULE}JndiLoginModule required user.provider.url="ldap://169.254.1.1/evil";',
    f'{MODULE}LdapLoginModule required userProvider="ldap://169.254.1.1/evil";',
    f'{MODULE}KeyStoreLoginModule required keyStoreURL="file:/etc/passwd";',
    f"{MODULE}Krb5LoginModule required;",
    "evil.Module required;",
    "org.apache.kafka.common.security.plain.PlainLoginModule required username=a password=b; "
    f"{MODULE}JndiLoginModule required;",
)
URLS = (
    "file:///etc/passwd",
    "ftp://127.0.0.1/evil",
    "jar:file:/etc/evil.jar!/x",
    "http://169.254.169.254/latest/meta-data",
    "http://2852039166/latest",
    "https://[fe80::1]/evil",
    "data:text/plain,evil",
)
CLASSES = ("os.system", "subprocess.Popen", "builtins.eval", "../evil.py", "pickle.loads")
NAMES = ("../etc/passwd", "a/b", "..", "a b", "x" * 300)
OIDC = {
    "properties.sasl.mechanism": "OAUTHBEARER",
    "properties.sasl.oauthbearer.method": "oidc",
    "properties.sasl.oauthbearer.client.id": "a",
    "properties.sasl.oauthbearer.client.secret": "b",
}


def option_cases():
    for key, value in CODE.items():
        yield f"kafka {key}", "kafka", {**KAFKA, f"properties.{key}": value}
    for login in LOGINS:
        plain = {"properties.sasl.mechanism": "PLAIN", "properties.sasl.jaas.config": login}
        yield f"login {login:.60}", "kafka", {**SASL, **plain}
    for url in URLS:
        token = {**OIDC, "properties.sasl.oauthbearer.token.endpoint.url": url}
        registry = {"format": "avro-confluent", "avro-confluent.url": url}
        yield f"token {url}", "kafka", {**SASL, **token}
        yield f"registry {url}", "kafka", {**KAFKA, **registry}
        yield f"endpoint {url}", "kinesis", {**KINESIS, "aws.endpoint": url}
    for name in CLASSES:
        yield f"partitioner {name}", "kafka", {**KAFKA, "sink.partitioner": name}
        yield f"credentials {name}", "kafka", {**KAFKA, "credentials.provider": name}
        message = {"format": "protobuf", "protobuf.message-class-name": name}
        yield f"message {name}", "kafka", {**KAFKA, **message}
    dead = {"scan.deser.failure-handler": "dead-letter"}
    for name in NAMES:
        yield f"topic {name:.20}", "kafka", {**KAFKA, "topic": name}
        failure = {**dead, "scan.deser.failure-topic": name}
        yield f"dead letters {name:.20}", "kafka", {**KAFKA, **failure}


# --- texts ----------------------------------------------------------------------------------

JOB = """
source:
  type: kafka
  properties.bootstrap.servers: 127.0.0.1:1
  topic: {topic}
  value.format: debezium-json
  tables: shop.orders
sink:
  type: kafka
  properties.bootstrap.servers: 127.0.0.1:1
"""
YAML = {
    "a call": "a: !!python/object/apply:os.system ['touch evil']",
    "an object": "a: !!python/object:subprocess.Popen {args: [touch, evil]}",
    "a name": "a: !!python/name:os.system ''",
    "a module": "a: !!python/module:evil ''",
    "a new object": "a: !!python/object/new:os.system ['touch evil']",
    "a tag of one's own": "a: !evil x",
    "depth": "[" * 100_000,
    "deep maps": "{a: " * 20_000,
    "aliases": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"l{n}: &l{n} [{', '.join(['*a' if n == 0 else f'*l{n - 1}'] * 9)}]\n" for n in range(9)
    ),
    "itself": "&a [*a]",
    "a list": "- a\n- b",
    "a number": "42",
    "bytes": "\x00\x01\x02",
    "two documents": "a: 1\n---\nb: 2",
    "a merge bomb": "a: &a {b: 1}\nc: {" + ", ".join(["<<: *a"] * 5000) + "}",
}
SQL = {
    "parentheses": "SELECT " + "(" * 1_000 + "1" + ")" * 1_000,
    "nested types": "CREATE TABLE t (a " + "ARRAY<" * 20_000 + "INT" + ">" * 20_000 + ") WITH ()",
    "arrays behind a type": "CREATE TABLE t (a INT" + " ARRAY" * 20_000 + ") WITH ()",
    "open quote": "SELECT '" + "x" * 1_000_000,
    "open comment": "/* " * 50_000,
    "a function from a jar": "CREATE FUNCTION f AS 'evil.F' USING JAR 'file:///etc/evil.jar'",
    "a jar": "ADD JAR 'file:///etc/evil.jar'",
    "a database above": "CREATE DATABASE `../escape`",
}


CONTAINED = {  # names that are accepted, and must stay inside the catalog's folder
    "a folder above": "CREATE TABLE `../../escape` (a INT) WITH ('connector' = 'blackhole')",
    "a path of folders": "CREATE TABLE `a/../../escape` (a INT) WITH ('connector' = 'blackhole')",
    "a NUL": "CREATE TABLE `a\x00b` (a INT) WITH ('connector' = 'blackhole')",
}


def refuse_option(connector, options):
    installed().build("connector", connector, options)


def refuse_yaml(folder, text):
    prepare_job(Session(name="job", dry=True), text, "job.yaml", lambda: None, dry=True)


def refuse_sql(folder, text):
    session = Session(name="job", catalog=folder / "catalog")
    if text.startswith("SELECT"):  # a query is only planned, which needs no Spark
        (statement,) = session.parse(text)
        rewrite(statement.query, lookup=lambda parts: None)
    else:
        session.execute(text)


def cases(folder):
    for name, connector, options in option_cases():
        yield name, lambda c=connector, o=options: refuse_option(c, o)
    for name, text in YAML.items():
        yield f"YAML: {name}", lambda t=text: refuse_yaml(folder, t)
    for name, text in SQL.items():
        yield f"SQL: {name}", lambda t=text: refuse_sql(folder, t)


@scenario(38, small={"cases": 60}, full={"cases": 60})
def test_hostile_input_is_refused_where_it_is_read(tmp_path, monkeypatch, scale):
    monkeypatch.chdir(tmp_path)
    tried, trouble = 0, {}
    for name, attempt in cases(tmp_path):
        tried += 1
        began = time.monotonic()
        with watched() as seen:
            try:
                attempt()
                trouble[name] = "was accepted"
            except StreamcoreError as error:
                if len(str(error)) > 2000:
                    trouble[name] = f"said {len(str(error))} characters"
            except BaseException as error:
                trouble[name] = f"broke: {error!r:.200}"
        if seen:
            trouble[name] = f"touched {seen[:3]}"
        if time.monotonic() - began > 20:
            trouble[name] = f"took {time.monotonic() - began:.0f} s"
    assert trouble == {}
    for text in CONTAINED.values():
        Session(name="job", catalog=tmp_path / "catalog").execute(text)
    kept = sorted(tmp_path.rglob("*.sql"))
    assert len(kept) == len(CONTAINED)
    assert {path.parent for path in kept} == {tmp_path / "catalog" / "default_database"}
    assert list(tmp_path.parent.rglob("evil*")) == []
    assert tried >= scale.cases
    scale.measured["cases"] = str(tried)


def test_the_watch_sees_what_is_opened_and_run(tmp_path):
    import subprocess

    with watched() as seen:
        (tmp_path / "evil").write_text("x")
        subprocess.run(["true"], check=True)
    assert {each.split()[0] for each in seen} >= {"open", "subprocess.Popen"}
    with watched() as seen, pytest.raises(FileNotFoundError):
        (tmp_path / "harmless").read_text()
    assert seen == []
