"""Reaching a registry: options, credentials, TLS, outages, and answers nobody asked for."""

import base64
import gzip
import json
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from streamcore import ConnectionFailed, OptionError, RecordError, Secret
from streamcore.testing import decode, encode
from streamcore.testing.codec import build
from streamcore.testing.ledger import scenario
from streamcore.testing.services.registry import SchemaRegistry
from streamcore.types import arrow_schema
from streamcore_formats.avro import client
from streamcore_formats.avro.confluent import AvroConfluent
from streamcore_formats.avro.settings import Settings

SCHEMA = arrow_schema({"a": "INT"})
ROWS = [{"a": 1}, {"a": None}]


def write(url, subject, **options):
    return encode("avro-confluent", SCHEMA, ROWS, {"url": url, "subject": subject, **options})


def read(url, messages, **options):
    rows = decode("avro-confluent", SCHEMA, messages, {"url": url, **options})
    return [row for _, row in rows]


# --- options ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "trouble"),
    [
        ({}, "url: required but missing"),
        ({"url": "localhost:8081"}, "url: 'localhost:8081' is not a URL that starts with http"),
        ({"url": "file:///etc/passwd"}, "url: 'file:///etc/passwd' is not a URL"),
        ({"url": "http://a,mock://b"}, "url: 'mock://b' is not a URL"),
        ({"url": "http://a:b"}, "url: 'http://a:b' is not a URL"),
        ({"url": "http://u:p@a"}, "url: has a password in it; move it to 'basic-auth.user-info'"),
        (
            {"url": "http://u:p@a", "basic-auth.user-info": "u:p"},
            "url: name and password are also in 'basic-auth.user-info'",
        ),
        (
            {"url": "http://a", "basic-auth.user-info": "u"},
            "user-info: write it as 'name:password'",
        ),
        (
            {"url": "http://a", "basic-auth.credentials-source": "USER_INFO"},
            "basic-auth.user-info: required with USER_INFO",
        ),
        (
            {"url": "http://a", "basic-auth.credentials-source": "SASL_INHERIT"},
            "'SASL_INHERIT' needs Java; write 'basic-auth.user-info' instead",
        ),
        (
            {"url": "http://a", "basic-auth.credentials-source": "FILE"},
            "'FILE' is not one of USER_INFO, URL",
        ),
        (
            {"url": "http://a", "bearer-auth.credentials-source": "STATIC_TOKEN"},
            "bearer-auth.token: required with STATIC_TOKEN",
        ),
        (
            {"url": "http://a", "bearer-auth.credentials-source": "CUSTOM"},
            "'CUSTOM' is not one of STATIC_TOKEN, OAUTHBEARER",
        ),
        (
            {"url": "http://a", "bearer-auth.credentials-source": "OAUTHBEARER"},
            "properties.bearer.auth.issuer.endpoint.url: required with OAUTHBEARER",
        ),
        (
            {"url": "http://a", "bearer-auth.token": "t", "basic-auth.user-info": "u:p"},
            "basic and bearer authentication cannot both be set",
        ),
        (
            {"url": "http://a", "ssl.truststore.location": "/etc/trust.jks"},
            "'/etc/trust.jks' is a Java keystore; convert it to PEM once: keytool -exportcert -rfc",
        ),
        (
            {"url": "http://a", "ssl.keystore.location": "me.p12"},
            "'me.p12' is a Java keystore; convert it to PEM once: keytool -importkeystore",
        ),
        (
            {"url": "http://a", "ssl.keystore.password": "p"},
            "ssl.keystore.password: has no 'ssl.keystore.location' to open",
        ),
        (
            {"url": "http://a", "properties.bearer.auth.custom.provider.function": "os.system"},
            "properties.bearer.auth.custom.provider.function: unknown to the registry's client",
        ),
        ({"url": "http://a", "properties.timeout": "soon"}, "'soon' is not a number"),
        ({"url": "http://a", "properties.proxy": "socks5://x"}, "'socks5://x' is not a URL"),
        ({"url": "http://a", "schema": "{"}, "schema: not JSON"),
        ({"url": "http://a", "usl": "x"}, "usl: unknown option; did you mean 'url'?"),
    ],
)
def test_options_are_checked_before_anything_is_asked(options, trouble):
    with pytest.raises(OptionError) as error:
        decode("avro-confluent", SCHEMA, [], options)
    assert trouble in str(error.value)


def test_older_keys_are_understood(schema_registry, subject):
    options = {"schema-registry.url": schema_registry.url, "schema-registry.subject": subject}
    messages = encode("avro-confluent", SCHEMA, ROWS, options)
    assert decode("avro-confluent", SCHEMA, messages, options) == [("+I", row) for row in ROWS]


def test_settings_reach_the_client_in_its_own_words():
    plugin = AvroConfluent(
        url="https://a,https://b",
        keystore="me.pem",
        keystore_password=Secret("pk"),
        truststore="ca.pem",
        user_info=Secret("u:p"),
        properties={
            "timeout": "2.5",
            "proxy": "http://p",
            "schema.registry.ssl.truststore.location": "other.pem",
        },
    )
    settings = plugin.settings()
    assert settings.revealed() == {
        "url": "https://a,https://b",
        "basic.auth.user.info": "u:p",
        "proxy": "http://p",
        "ssl.ca.location": "ca.pem",
        "ssl.certificate.location": "me.pem",
        "ssl.key.password": "pk",
        "timeout": 2.5,
    }
    assert "pk" not in repr(settings)
    assert "u:p" not in repr(plugin)


def test_without_credentials_the_client_gets_none():
    assert AvroConfluent(url="http://a").settings() == Settings("http://a")


# --- credentials --------------------------------------------------------------------------


def locked(expected):
    def answer(handler):
        if handler.headers.get("Authorization") == expected:
            return None
        return 401, {}, json.dumps({"error_code": 401, "message": "Unauthorized"}).encode()

    return answer


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ({"basic-auth.user-info": "ann:s:3cret"}, basic("ann:s:3cret")),
        (
            {"basic-auth.credentials-source": "USER_INFO", "basic-auth.user-info": "ann:x"},
            basic("ann:x"),
        ),
        ({"properties.basic.auth.user.info": "ann:y"}, basic("ann:y")),
        ({"bearer-auth.token": "t0k3n"}, "Bearer t0k3n"),
        (
            {"bearer-auth.credentials-source": "STATIC_TOKEN", "bearer-auth.token": "t"},
            "Bearer t",
        ),
    ],
)
def test_credentials_open_the_gate(gate, subject, options, header):
    gate.answer = locked(header)
    assert read(gate.url, write(gate.url, subject, **options), **options) == ROWS
    assert {sent for _, _, sent in gate.requests} == {header}


def test_credentials_may_be_part_of_the_url(gate, subject):
    gate.answer = locked(basic("ann:pw"))
    url = gate.url.replace("://", "://ann:pw@")
    messages = write(url, subject, **{"basic-auth.credentials-source": "URL"})
    assert len(messages) == 2


def test_wrong_credentials_fail_at_once_and_are_not_shown(gate, subject):
    gate.answer = locked("Bearer right")
    start = time.monotonic()
    with pytest.raises(ConnectionFailed) as error:
        write(gate.url, subject, **{"basic-auth.user-info": "ann:wr0ng"})
    assert time.monotonic() - start < 5
    assert "HTTP status 401" in str(error.value)
    assert "Check 'basic-auth.user-info'" in str(error.value)
    assert "wr0ng" not in str(error.value)


def test_a_redirect_is_not_followed_and_gets_no_credentials(gate, schema_registry, subject):
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0.5)
        target = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/"
        gate.answer = lambda handler: (307, {"Location": target}, b"")
        with pytest.raises(ConnectionFailed, match="It redirects elsewhere, which is not followed"):
            write(gate.url, subject, **{"bearer-auth.token": "t"})
        with pytest.raises(TimeoutError):
            elsewhere.accept()


# --- TLS ----------------------------------------------------------------------------------


def test_tls_with_certificates_on_both_sides(tls_gate, subject):
    me = tls_gate.authority.issue("me")
    options = {
        "ssl.truststore.location": str(tls_gate.authority.trust),
        "ssl.keystore.location": str(me.pem),
    }
    assert read(tls_gate.url, write(tls_gate.url, subject, **options), **options) == ROWS


def test_an_unknown_authority_is_an_error_with_advice(tls_gate, subject):
    with pytest.raises(ConnectionFailed) as error:
        write(tls_gate.url, subject)
    assert "CERTIFICATE_VERIFY_FAILED" in str(error.value)
    assert "'ssl.truststore.location'" in str(error.value)


def test_a_file_that_is_no_certificate_is_named_as_the_cause(tls_gate, subject, tmp_path):
    path = tmp_path / "ca.pem"
    path.write_text("not a certificate")
    with pytest.raises(ConnectionFailed, match="its client cannot be set up"):
        write(tls_gate.url, subject, **{"ssl.truststore.location": str(path)})


# --- outages ------------------------------------------------------------------------------


def test_a_registry_that_is_away_for_a_moment_is_waited_for(gate, subject, impatient):
    failures = iter([503, 500, 429])

    def answer(handler):
        status = next(failures, None)
        return status and (status, {}, b'{"error_code":50001,"message":"starting"}')

    gate.answer = answer
    assert read(gate.url, write(gate.url, subject)) == ROWS


def test_an_outage_fails_the_batch_instead_of_rejecting_messages(gate, subject, impatient):
    messages = write(gate.url, subject)
    client._registries.clear()
    gate.answer = lambda handler: (503, {}, b"")
    with pytest.raises(ConnectionFailed) as error:
        read(gate.url, messages)
    assert f"schema registry '{gate.url}' did not answer for " in str(error.value)
    assert "(HTTP status 503). Check that it runs, that 'url' is right" in str(error.value)


def test_nobody_listening_is_an_outage_too(subject, impatient):
    with pytest.raises(ConnectionFailed, match=r"did not answer for \d s \(Connect"):
        write("http://127.0.0.1:9", subject)


def test_the_next_url_is_tried(gate, subject):
    urls = f"http://127.0.0.1:9, {gate.url}"
    assert read(urls, write(urls, subject)) == ROWS


def test_a_registry_that_restarts_is_waited_for():
    with SchemaRegistry() as own:
        assert len(write(own.url, "before")) == 2
        restart = threading.Thread(target=own.restart)
        restart.start()
        time.sleep(0.5)
        messages = write(own.url, "after")
        restart.join()
        client._registries.clear()
        assert read(own.url, messages) == ROWS


def said(handler, *headers):
    """The head of an answer; its body is up to the caller."""
    handler.send_response(200)
    for name, value in headers:
        handler.send_header(name, value)
    handler.end_headers()


class Troubles:
    """What may become of a registry, by name: how it answers then, and what is told of that."""

    def __init__(self, elsewhere, megabytes):
        self.over, self.taken, self._megabytes = threading.Event(), 0, megabytes
        target = f"{elsewhere.url}/schemas"
        self.all = {
            "starts": (lambda _: (503, {}, b""), r"did not answer for \d+ s \(HTTP status 503\)"),
            "is gone": (self.hang_up, r"did not answer for \d+ s \(ConnectError"),
            "hangs up": (self.hang_up, r"did not answer for \d+ s \(\w+(Error|Disconnect)"),
            "is silent": (self.silence, r"did not answer for \d+ s \(ReadTimeout"),
            "drips": (self.drip, r"took more than \d+ s to send one answer"),
            "floods": (self.flood, "sent more than 16 MiB in one answer"),
            "redirects": (
                lambda _: (307, {"Location": target}, b""),
                "It redirects elsewhere, which is not followed",
            ),
            "is a page": (lambda _: (200, {}, b"<html>login</html>"), "did not answer in JSON"),
            "lies": (
                lambda _: (200, {}, b'{"schema":"{\\"type\\":\\"nonsense\\"}"}'),
                r"schema id \d+: the schema: unknown type 'nonsense'",
            ),
        }

    def hang_up(self, handler):
        raise ConnectionAbortedError

    def silence(self, handler):
        self.over.wait(300)
        raise ConnectionAbortedError

    def drip(self, handler):
        said(handler, ("Content-Length", "100000"))
        while not self.over.wait(0.1):
            handler.wfile.write(b" ")
        raise ConnectionAbortedError

    def flood(self, handler):
        said(handler, ("Content-Length", str(self._megabytes << 20)))
        for _ in range(self._megabytes):
            handler.wfile.write(b" " * (1 << 20))
            self.taken += 1
        raise ConnectionAbortedError


@scenario(
    27,
    small={"messages": 1_000, "megabytes": 20},
    full={"messages": 100_000, "megabytes": 200},
)
def test_known_schemas_flow_and_others_are_refused_whatever_becomes_of_the_registry(
    gates, schema_registry, subject, scale, monkeypatch
):
    options = {"bearer-auth.token": "t0k3n-of-ours"}
    if not scale.soak:
        monkeypatch.setattr(client, "PATIENCE", 1.0)
        monkeypatch.setattr(client, "_LONGEST_ANSWER", 1.0)
        options["properties.timeout"] = "0.5"
    rows = [{"a": number} for number in range(scale.messages)]
    at = {"url": schema_registry.url, "subject": subject}
    known = encode("avro-confluent", SCHEMA, rows, at)
    newer = arrow_schema({"b": "BIGINT", "a": "INT"})
    late = encode("avro-confluent", newer, [{"b": 1, "a": 2}], {**at, "subject": f"{subject}-2"})

    def flow(gate):
        """Every task has a decoder of its own; what is known is known to the process."""
        for first in range(0, scale.messages, 5_000):
            decoder = build("avro-confluent", {"url": gate.url, **options}).decoder(SCHEMA)
            decoded = decoder.decode(known[first : first + 5_000])
            assert not decoded.rejected
            assert decoded.rows.to_pylist() == rows[first : first + 5_000]

    def refused(gate):
        began = time.monotonic()
        with pytest.raises((ConnectionFailed, RecordError)) as error:
            read(gate.url, late, **options)
        return time.monotonic() - began, error

    elsewhere = gates()
    troubles = Troubles(elsewhere, scale.megabytes)
    met = {name: gates() for name in troubles.all}
    for name, gate in met.items():
        assert read(gate.url, known[:1], **options) == rows[:1]
        gate.answer, _ = troubles.all[name]
    met["is gone"].shutdown()
    met["is gone"].server_close()
    with ThreadPoolExecutor(len(met)) as asking:
        asked = {name: asking.submit(refused, gate) for name, gate in met.items()}
        for gate in met.values():
            flow(gate)
        waited_for = {name for name, each in asked.items() if not each.done()}
        refusals = {name: each.result() for name, each in asked.items()}
    troubles.over.set()

    for name, (seconds, error) in refusals.items():
        told = str(error.value)
        assert seconds < scale.bound(60), name
        assert re.search(troubles.all[name][1], told), told
        assert met[name].url in told or error.type is RecordError, told
        assert "t0k3n" not in told
    assert elsewhere.requests == []
    if scale.soak:
        assert troubles.taken < 40, "megabytes in the buffers of sockets included"
        assert {"starts", "is gone", "is silent"} <= waited_for, "known schemas waited for others"
    for gate in (met["starts"], met["is silent"], met["redirects"], met["floods"]):
        gate.answer = lambda _: None
        assert read(gate.url, late, **options) == [{"a": 2}]
    scale.measured["slowest refusal"] = f"{max(s for s, _ in refusals.values()):.0f} s"


# --- asking no more than needed -----------------------------------------------------------


def test_each_id_and_each_schema_is_asked_for_once(gate, subject):
    messages = write(gate.url, subject)
    for _ in range(3):
        write(gate.url, subject)
        read(gate.url, messages * 10)
    asked = [path.partition("?")[0] for _, path, _ in gate.requests]
    identifier = int.from_bytes(messages[0][1:5], "big")
    assert asked == [f"/subjects/{subject}/versions", f"/schemas/ids/{identifier}"]


def test_an_unknown_id_is_asked_for_once_in_a_while(gate, monkeypatch):
    decoder = AvroConfluent(url=gate.url).decoder(SCHEMA)
    message = b"\x00\x7f\x00\x00\x01\x00"
    for _ in range(3):
        assert len(decoder.decode([message, message]).rejected) == 2
    assert len(gate.requests) == 1
    monkeypatch.setattr(client, "_FORGET_UNKNOWN", 0.0)
    decoder.decode([message])
    assert len(gate.requests) > 1


def test_a_known_schema_is_at_hand_while_another_is_asked_for(gate, schema_registry, subject):
    messages = write(gate.url, subject)
    assert read(gate.url, messages) == ROWS
    options = {"url": schema_registry.url, "subject": f"{subject}-2"}
    others = encode("avro-confluent", arrow_schema({"b": "INT", "a": "INT"}), [{"a": 3}], options)
    asked, go_on = threading.Event(), threading.Event()
    waited = []

    def answer(handler):
        asked.set()
        waited.append(go_on.wait(5))

    gate.answer = answer
    with ThreadPoolExecutor(1) as other:
        found = other.submit(read, gate.url, others)
        assert asked.wait(30)
        assert read(gate.url, messages) == ROWS
        go_on.set()
        assert found.result() == [{"a": 3}]
    assert waited == [True]


# --- answers nobody asked for -------------------------------------------------------------


def test_incompatible_changes_are_shown_in_full(schema_registry, subject):
    encode("avro-confluent", SCHEMA, ROWS, {"url": schema_registry.url, "subject": subject})
    request = urllib.request.Request(
        f"{schema_registry.url}/config/{subject}",
        b'{"compatibility":"FULL"}',
        {"Content-Type": "application/json"},
        method="PUT",
    )
    urllib.request.urlopen(request).close()
    changed = arrow_schema({"a": "STRING", "b": "INT NOT NULL"})
    options = {"url": schema_registry.url, "subject": subject}
    with pytest.raises(ConnectionFailed) as error:
        encode("avro-confluent", changed, [{"a": "x", "b": 1}], options)
    text = str(error.value)
    assert f"refused this schema for subject '{subject}'" in text
    assert "/fields/0/type" in text
    assert '"name":"b","type":"int"' in text
    assert "relax the subject's compatibility level" in text


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        ((200, {}, b"<html>login</html>"), "did not answer in JSON"),
        ((404, {}, b"<html>no such page</html>"), "HTTP status 404"),
        ((200, {}, b"[" * (17 << 20)), "sent more than 16 MiB in one answer"),
        (
            (200, {"Content-Encoding": "gzip"}, gzip.compress(b'{"schema":"int"}')),
            "sent a compressed answer, though asked not to",
        ),
    ],
)
def test_answers_of_something_else_fail_the_batch(gate, answer, trouble):
    gate.answer = lambda handler: answer
    with pytest.raises(ConnectionFailed) as error:
        read(gate.url, [b"\x00\x00\x00\x00\x01\x00"])
    assert trouble in str(error.value)


def test_a_registered_schema_that_is_none_rejects_its_messages(gate):
    gate.answer = lambda handler: (200, {}, b'{"schema":"{\\"type\\":\\"nonsense\\"}"}')
    decoder = AvroConfluent(url=gate.url).decoder(SCHEMA)
    [rejected] = decoder.decode([b"\x00\x00\x00\x00\x07\x00"]).rejected
    assert rejected.reason == "schema id 7: the schema: unknown type 'nonsense'"


def test_the_decoder_and_encoder_travel_to_workers_unused(schema_registry, subject):
    plugin = AvroConfluent(
        url=schema_registry.url,
        subject=subject,
        user_info=Secret("a:b"),
        properties={"timeout": "9"},
    )
    again = pickle.loads(pickle.dumps(plugin))
    assert again == plugin
    batch = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)
    assert len(again.encoder(SCHEMA).encode(batch)) == 2


def test_a_forked_worker_asks_for_itself(gate, subject):
    messages = write(gate.url, subject)
    assert read(gate.url, messages) == ROWS
    before = len(gate.requests)
    child = os.fork()
    if child == 0:
        os._exit(0 if read(gate.url, messages) == ROWS else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(gate.requests) == before + 1


def test_naming_the_formats_imports_no_client():
    check = (
        "import sys, streamcore_formats as f; f.register_formats();"
        "heavy = {'pyarrow', 'pyruhvro', 'confluent_kafka', 'google.protobuf', 'msgspec'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
