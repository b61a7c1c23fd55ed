"""Logging in to a guarded broker, in Java's words and in the C library's, and being turned away."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import random
import socket
import ssl
import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from confluent_kafka import Producer
from cryptography.hazmat.primitives import serialization
from streamcore import (
    Column,
    ConnectionFailed,
    CredentialProvider,
    Credentials,
    OptionError,
    Secret,
    Table,
)
from streamcore.registry import installed
from streamcore.spark.task import Task
from streamcore.testing.ledger import scenario
from streamcore.testing.services import SecureKafkaBroker
from streamcore.testing.services.certificates import STORE_PASSWORD, Authority
from streamcore.testing.services.kafka import unique_name
from streamcore.testing.services.process import free_port
from streamcore_kafka.client import check_properties, partitions_of
from streamcore_kafka.client_keys import PROVIDER
from streamcore_kafka.explain import Report, sentence
from streamcore_kafka.messages import Messages
from streamcore_kafka.sender import Sender
from streamcore_kafka.source import KafkaStreamReader
from streamcore_kafka.tickets import Ticket
from streamcore_kafka.transactions import Transaction

KAFKA = "org.apache.kafka.common.security"
BEARER = "sasl_ssl.oauthbearer.sasl.jaas.config"


@pytest.fixture(scope="module")
def broker():
    tokens = {
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,"
        "OAUTHBEARER",
        f"listener.name.{BEARER}": f"{KAFKA}.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker";',
    }
    with SecureKafkaBroker(properties=tokens) as broker:
        yield broker


@pytest.fixture(scope="module")
def topic(broker):
    return broker.create_topic("guarded")


def secret(properties):
    """The same properties as a table gets them: what must be hidden is."""
    hidden = ("password", "jaas", "keystore.key", "secret")
    return {
        key: Secret(value) if any(word in key for word in hidden) else value
        for key, value in properties.items()
    }


def jaas(module, user="admin", password="admin-secret", quote='"'):
    name = f"{KAFKA}.{module}"
    return f"{name} required username={quote}{user}{quote} password={quote}{password}{quote};"


def over_tls(broker, **properties):
    return secret(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(broker.trust),
            **{key.replace("_", "."): value for key, value in properties.items()},
        }
    )


def write(properties, topic):
    """What every writer does: look for the topic, send, wait."""
    assert list(check_properties(properties)) == []
    partitions_of(topic, properties)
    with Sender.borrowed(properties) as sender:
        sender.send(Messages([b"a row"], None, topic))


def refusal(properties, topic, error=ConnectionFailed, within=15.0):
    began = time.monotonic()
    with pytest.raises(error) as refused:
        write(properties, topic)
    assert time.monotonic() - began < within
    return str(refused.value)


# --- ways in --------------------------------------------------------------------------------


PLAIN, SCRAM = "plain.PlainLoginModule", "scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("mechanism", "login"),
    [
        ("PLAIN", jaas(PLAIN)),
        ("PLAIN", jaas(PLAIN, quote='\\"')),
        ("PLAIN", jaas(PLAIN, quote="'")),
        ("PLAIN", "kafkashaded." + jaas(PLAIN)),
        ("SCRAM-SHA-256", jaas(SCRAM)),
        ("SCRAM-SHA-512", jaas(SCRAM, quote='\\"').rstrip(";")),
        ("", jaas(PLAIN)),
    ],
)
def test_java_login_strings_log_in(broker, topic, mechanism, login):
    named = {"sasl_mechanism": mechanism} if mechanism else {}
    write(over_tls(broker, sasl_jaas_config=login, **named), topic)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_log_in(broker, topic, mechanism):
    login = {"sasl_username": "admin", "sasl_password": "admin-secret"}
    write(over_tls(broker, sasl_mechanism=mechanism, **login), topic)


def test_a_password_may_go_unencrypted_where_the_broker_lets_it(broker, topic):
    plain = {
        "bootstrap.servers": broker.servers("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas(PLAIN),
    }
    write(secret(plain), topic)


def keytool(*arguments):
    password = ("-storepass", STORE_PASSWORD, "-noprompt")
    subprocess.run(["keytool", *arguments, *password], check=True, capture_output=True)


def test_authorities_are_trusted_from_any_store(broker, topic, tmp_path):
    java, old = tmp_path / "truststore.p12", tmp_path / "truststore.jks"
    imported = ("-importcert", "-alias", "ca", "-file", str(broker.trust))
    keytool(*imported, "-keystore", str(java), "-storetype", "PKCS12")
    keytool(*imported, "-keystore", str(old), "-storetype", "PKCS12")  # what newer JDKs write
    stores = [
        {"ssl.truststore.location": str(broker.trust)},
        {"ssl.truststore.certificates": broker.trust.read_text(), "ssl.truststore.type": "PEM"},
        {"ssl.ca.location": str(broker.trust)},
        *(
            {"ssl.truststore.location": str(path), "ssl.truststore.password": STORE_PASSWORD}
            for path in (broker.authority.trust_pkcs12, java, old)
        ),
    ]
    for store in stores:
        login = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas(PLAIN)}
        address = {"bootstrap.servers": broker.bootstrap_servers, "security.protocol": "SASL_SSL"}
        write(secret({**address, **login, **store}), topic)


def test_certificates_log_in_from_any_store(broker, topic):
    shown = broker.certificate("admin")
    pem, chain, key = (path.read_text() for path in (shown.pem, shown.certificate, shown.key))
    assert pem
    stores = [
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(shown.pem)},
        {"ssl.keystore.location": str(shown.pkcs12), "ssl.keystore.password": STORE_PASSWORD},
        {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": chain,
            "ssl.keystore.key": key,
        },
        {"ssl.certificate.location": str(shown.certificate), "ssl.key.location": str(shown.key)},
    ]
    for store in stores:
        address = {"bootstrap.servers": broker.servers("SSL"), "security.protocol": "SSL"}
        write(secret({**address, "ssl.ca.location": str(broker.trust), **store}), topic)


def unsigned_token(user, seconds=600):
    def part(content):
        return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()

    now = time.time()
    claims = {"sub": user, "iat": now, "exp": now + seconds, "scope": "kafka"}
    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}."


class Tokens(CredentialProvider):
    """Hands out tokens the test broker accepts."""

    identifier = "test-tokens"

    def fetch(self, scope):
        assert scope["service"] == "kafka"
        return Credentials(
            {"token": Secret(unsigned_token("admin"))}, datetime.now(UTC) + timedelta(minutes=10)
        )


class Passwords(CredentialProvider):
    """Fetches a user and a password."""

    identifier = "test-passwords"

    def fetch(self, scope):
        return Credentials({"username": Secret("admin"), "password": Secret("admin-secret")})


def test_tokens_come_from_a_credential_provider(broker, topic):
    write({**over_tls(broker, sasl_mechanism="OAUTHBEARER"), PROVIDER: Tokens()}, topic)


def test_passwords_come_from_a_credential_provider(broker, topic):
    write({**over_tls(broker, sasl_mechanism="SCRAM-SHA-512"), PROVIDER: Passwords()}, topic)


def test_tokens_come_from_an_identity_provider(broker, topic):
    asked = []

    class TokenEndpoint(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            asked.append(self.headers["Authorization"])
            body = json.dumps({"access_token": unsigned_token("admin"), "expires_in": 600})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments):
            pass

    server = HTTPServer(("127.0.0.1", 0), TokenEndpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    login = (
        f'{KAFKA}.oauthbearer.OAuthBearerLoginModule required clientId="job" clientSecret="s3cr3t";'
    )
    try:
        properties = over_tls(
            broker,
            sasl_mechanism="OAUTHBEARER",
            sasl_jaas_config=login,
            sasl_oauthbearer_token_endpoint_url=f"http://127.0.0.1:{server.server_port}/token",
        )
        write(properties, topic)
    finally:
        server.shutdown()
    assert base64.b64decode(asked[1].removeprefix("Basic ")) == b"job:s3cr3t"


# --- turned away ------------------------------------------------------------------------------


def test_a_wrong_password_is_said_at_once(broker, topic, caplog):
    caplog.set_level(logging.DEBUG)
    login = jaas(SCRAM, password="wr0ng-pass")
    told = refusal(over_tls(broker, sasl_mechanism="SCRAM-SHA-512", sasl_jaas_config=login), topic)
    assert told == (
        f"Kafka broker {broker.bootstrap_servers} refused the login: SASL authentication error: "
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-512. "
        "Check the user and password in 'properties.sasl.jaas.config'."
    )
    assert "wr0ng-pass" not in caplog.text + told


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_the_most_talkative_client_does_not_tell_the_password(broker, topic, caplog, mechanism):
    caplog.set_level(logging.DEBUG)
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    login = {"sasl_mechanism": mechanism, "sasl_jaas_config": jaas(module), "debug": "all"}
    write(over_tls(broker, **login), topic)
    assert "SaslHandshake" in caplog.text
    secret = b"admin-secret"
    for hidden in (secret, base64.b64encode(secret), b"\0admin\0" + secret):
        assert hidden.decode() not in caplog.text


def test_a_mechanism_the_broker_lacks_is_said_at_once(broker, topic):
    plain = {
        "bootstrap.servers": broker.servers("SASL_PLAINTEXT"),
        "security.protocol": "SASL_PLAINTEXT",
    }
    told = refusal({**plain, "sasl.mechanism": "OAUTHBEARER", PROVIDER: Tokens()}, topic)
    assert "refused the login" in told or "does not offer this way to log in" in told
    assert "'properties.sasl" in told


def unverified(address, why):
    return f"the certificate of Kafka broker {address} cannot be verified: {why}"


UNTRUSTED = (
    "an authority signed it that we do not trust. Check 'properties.ssl.truststore.location' or "
    "'properties.ssl.ca.location'."
)
EXPIRED = "it has expired, or is not valid yet. Have it renewed, or this machine's clock set."
ELSEWHERE = "it was made for another host. Check the hosts in 'properties.bootstrap.servers'."


def test_an_authority_we_do_not_trust_is_said_at_once(broker, topic, tmp_path):
    other = str(Authority(tmp_path, "another authority").trust)
    properties = over_tls(broker, sasl_jaas_config=jaas(PLAIN), ssl_truststore_location=other)
    assert refusal(properties, topic) == unverified(broker.bootstrap_servers, UNTRUSTED)


def test_certificates_are_verified_unless_that_is_switched_off(broker, topic):
    """By default those count as authorities that this machine trusts; ours is none of them."""
    properties = over_tls(broker, sasl_jaas_config=jaas(PLAIN))
    for key in ("ssl.truststore.type", "ssl.truststore.location"):
        del properties[key]
    assert refusal(properties, topic) == unverified(broker.bootstrap_servers, UNTRUSTED)
    write({**properties, "enable.ssl.certificate.verification": "false"}, topic)


def test_a_certificate_for_another_host_is_said_at_once():
    with SecureKafkaBroker(server_host="elsewhere.invalid") as broker:
        properties = over_tls(broker, sasl_jaas_config=jaas(PLAIN))
        assert refusal(properties, "any") == unverified(broker.bootstrap_servers, ELSEWHERE)
        unchecked = {**properties, "ssl.endpoint.identification.algorithm": ""}  # Java's "none"
        broker.create_topic("any")
        write(unchecked, "any")


@contextlib.contextmanager
def shown(identity):
    """The address of something that shows this certificate, and never gets to speak Kafka."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            with contextlib.suppress(OSError):  # closed at the end
                while True:
                    with server.accept()[0] as caller, contextlib.suppress(OSError):
                        context.wrap_socket(caller, server_side=True).recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_an_expired_certificate_of_the_broker_is_said_at_once(tmp_path):
    authority = Authority(tmp_path)
    with shown(authority.issue("broker", days=-1)) as address:
        properties = {
            "bootstrap.servers": address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(authority.trust),
        }
        assert refusal(properties, "any") == unverified(address, EXPIRED)


def with_certificate(broker, store):
    """Properties for the port that lets in by certificate, with the one of this store if any."""
    properties = {
        "bootstrap.servers": broker.servers("SSL"),
        "security.protocol": "SSL",
        "ssl.ca.location": str(broker.trust),
    }
    return secret({**properties, **store})


def test_a_client_certificate_that_is_not_accepted_is_said_at_once(broker, topic, tmp_path):
    stranger = Authority(tmp_path, "another authority").issue("admin")
    late = broker.authority.issue("late", days=-1)
    pem = [
        {"ssl.certificate.location": str(each.certificate), "ssl.key.location": str(each.key)}
        for each in (stranger, late)
    ]
    for store in ({}, *pem):
        told = refusal(with_certificate(broker, store), topic)
        assert told.startswith(
            f"Kafka broker {broker.servers('SSL')} did not accept our certificate: "
        )
        assert told.endswith(
            "Check 'properties.ssl.keystore.location' or 'properties.ssl.certificate.location'."
        )


@pytest.mark.parametrize(
    "alert",
    [
        "tlsv1 alert unknown ca",
        "sslv3 alert bad certificate",
        "sslv3 alert certificate unknown",
        "sslv3 alert certificate expired",
        "tlsv13 alert certificate required",
    ],
)
def test_our_certificate_is_named_whatever_a_broker_has_against_it(alert):
    said = f"ssl://b:1/bootstrap: SSL handshake failed: error:0A000412:SSL routines::{alert}"
    report = Report("_TRANSPORT", said)
    assert report.refuses
    told = sentence(report, [], {"bootstrap.servers": "b:1"})
    assert told.startswith("Kafka broker b:1 did not accept our certificate: ")


def test_all_that_may_be_wrong_with_a_certificate_is_told_where_no_second_look_is_possible():
    said = "ssl://127.0.0.1:1/bootstrap: error:0A000086:SSL routines::certificate verify failed"
    told = sentence(Report("_SSL", said), [], {"bootstrap.servers": "127.0.0.1:1"})
    assert told == unverified(
        "127.0.0.1:1",
        "an authority signed it that we do not trust, or it has expired, or is not valid yet, or "
        "it was made for another host. Check 'properties.ssl.truststore.location' or "
        "'properties.ssl.ca.location'. Have it renewed, or this machine's clock set. Check the "
        "hosts in 'properties.bootstrap.servers'.",
    )


def locked(identity, directory):
    """The key of an identity behind a password, alone and with its certificates."""
    key = serialization.load_pem_private_key(identity.key.read_bytes(), None)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"open-sesame"),
    )
    alone, store = directory / "locked.key", directory / "locked.pem"
    alone.write_bytes(text)
    store.write_bytes(text + identity.certificate.read_bytes())
    return alone, store


def test_a_key_or_a_store_that_cannot_be_opened_is_said_at_once(broker, topic, tmp_path):
    admin, bob = broker.certificate("admin"), broker.certificate("bob")
    key, store = locked(admin, tmp_path)
    junk, gone = tmp_path / "junk.pem", tmp_path / "gone.pem"
    junk.write_text("no certificate")
    apart = {"ssl.certificate.location": str(admin.certificate)}
    password = "properties.ssl.key.password"
    cases = [
        (
            {**apart, "ssl.key.location": str(key)},
            f"properties.ssl.key.location: the key in '{key}' is encrypted; set '{password}'",
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)},
            f"properties.ssl.keystore.location: the key in '{store}' is encrypted; set "
            f"'{password}'",
        ),
        (
            {**apart, "ssl.key.location": str(key), "ssl.key.password": "guessed"},
            f"properties.ssl.key.location: the key cannot be opened with '{password}'; '{key}' has "
            "another one",
        ),
        (
            {**apart, "ssl.key.location": str(bob.key)},
            "properties.ssl.key.location: the key is not the one of the certificate",
        ),
        (
            {"ssl.keystore.location": str(admin.pkcs12), "ssl.keystore.password": "guessed"},
            f"properties.ssl.keystore.location: '{admin.pkcs12}' cannot be opened with "
            "'properties.ssl.keystore.password'",
        ),
        (
            {"ssl.ca.location": str(junk)},
            f"properties.ssl.ca.location: '{junk}' holds no certificate in PEM",
        ),
        (
            {"ssl.ca.location": str(gone)},
            f"properties.ssl.ca.location: '{gone}' cannot be read on this machine",
        ),
    ]
    for given, told in cases:
        assert told in refusal(with_certificate(broker, given), topic, OptionError)
    opened = {**apart, "ssl.key.location": str(key), "ssl.key.password": "open-sesame"}
    write(with_certificate(broker, opened), topic)


FAST = {"socket.connection.setup.timeout.ms": "3000"}


def test_a_port_that_wants_tls_and_gets_none_is_said_in_time(broker, topic):
    told = refusal({"bootstrap.servers": broker.bootstrap_servers, **FAST}, topic)
    assert told == (
        f"Kafka broker {broker.bootstrap_servers} closed the connection before it answered. "
        "Check 'properties.security.protocol': the port may want TLS or a login."
    )


def test_a_port_that_wants_a_login_and_gets_none_is_said_in_time(broker, topic):
    unnamed = {**over_tls(broker, security_protocol="SSL"), **FAST}
    assert refusal(unnamed, topic) == (
        f"Kafka broker {broker.bootstrap_servers} closed the connection before it answered. "
        "Check 'properties.security.protocol': the port may want TLS or a login."
    )


def test_a_port_that_gets_a_login_and_wants_none_is_said_at_once(broker, topic):
    named = {
        "bootstrap.servers": broker.direct_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas(PLAIN),
    }
    told = refusal(secret(named), topic)
    assert told.startswith(
        f"Kafka broker {broker.direct_servers} does not offer this way to log in: "
    )


def test_a_port_that_gets_tls_and_wants_none_is_said_in_time(broker, topic):
    plain = {"bootstrap.servers": broker.direct_servers, "security.protocol": "SSL", **FAST}
    told = refusal(plain, topic)
    assert told.startswith(f"no TLS connection to Kafka broker {broker.direct_servers}: ")
    assert told.endswith("Check that the port speaks TLS, and 'properties.security.protocol'.")


def test_a_broker_that_is_not_there_is_said_in_time(topic):
    address = f"127.0.0.1:{free_port()}"
    told = refusal({"bootstrap.servers": address, **FAST}, topic)
    assert told == (
        f"Kafka broker {address} does not answer: Connect to ipv4#{address} failed: Connection "
        "refused. Check 'properties.bootstrap.servers', that the broker is up, and that it can be "
        "reached from here."
    )


def test_a_host_without_an_address_is_said_in_time(topic):
    told = refusal({"bootstrap.servers": "no-such-host.invalid:9092", **FAST}, topic)
    assert told.startswith("Kafka broker no-such-host.invalid:9092 has no address: ")
    assert told.endswith("Check 'properties.bootstrap.servers'.")


def test_a_missing_topic_is_said_at_once_and_not_created(broker):
    login = {"bootstrap.servers": broker.direct_servers}
    told = refusal(login, "no-such-topic", within=5.0)
    assert told == (
        f"Kafka broker {broker.direct_servers} does not know the topic: 'no-such-topic'. "
        "Create it, or check 'topic'."
    )
    assert "no-such-topic" not in broker.admin().list_topics(timeout=10).topics


def table_of(properties, **options):
    """The connector of a table with these properties."""
    plain = {
        f"properties.{key}": value.reveal() if isinstance(value, Secret) else value
        for key, value in properties.items()
    }
    return installed().build("connector", "kafka", {**plain, "format": "json", **options})


def alice(broker):
    login = jaas(SCRAM, "alice", "alice-secret")
    return over_tls(broker, sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=login)


def test_a_topic_we_may_not_write_is_said_at_once(broker):
    broker.create_topic("readable")
    broker.create_topic("writable")
    broker.grant("alice", "DESCRIBE", topic="readable")
    told = refusal(alice(broker), "readable")
    assert told.removeprefix("topic 'readable': ") == (
        f"Kafka broker {broker.bootstrap_servers} does not allow our user to write: neither WRITE "
        "on a topic nor IDEMPOTENT_WRITE on the cluster is granted. Have the right granted (ACL)."
    )
    broker.grant("alice", "WRITE", topic="writable")
    assert refusal(alice(broker), "readable") == (
        f"topic 'readable': Kafka broker {broker.bootstrap_servers} does not allow our user to use "
        "the topic: Broker: Topic authorization failed. Have the right granted (ACL)."
    )


@pytest.mark.parametrize("name", ["_FATAL", "CLUSTER_AUTHORIZATION_FAILED"])
def test_a_right_to_write_that_lacks_is_named_whichever_error_comes_first(name):
    said = "Failed to acquire idempotence PID from broker b: Broker: Cluster authorization failed"
    told = sentence(Report(name, said), [], {"bootstrap.servers": "b:1"})
    assert "does not allow our user to write: neither WRITE on a topic nor" in told


@scenario(28, small={"records": 200}, full={"records": 2_000}, always=False)
def test_dead_letters_we_may_not_write_end_the_query_and_arrive_once_we_may(broker, records, scale):
    dice = random.Random(scale.seed)
    source, letters, other = (
        broker.create_topic(unique_name(each)) for each in ("source", "letters", "other")
    )
    user = unique_name("reader")
    broker.set_password(user, "secret-of-reader")
    broker.grant(user, "READ", "DESCRIBE", topic=source)
    values = [
        b'{"id": %d}' % number if dice.random() < 0.5 else b"{no json %d" % number
        for number in range(scale.records)
    ]
    producer = Producer({"bootstrap.servers": broker.direct_servers})
    for value in values:
        producer.produce(source, value)
    assert producer.flush(60) == 0
    login = jaas(SCRAM, user, "secret-of-reader")
    properties = over_tls(broker, sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=login)
    reader = KafkaStreamReader(
        table_of(
            properties,
            topic=source,
            **{
                "scan.startup.mode": "earliest-offset",
                "scan.deser.failure-handler": "dead-letter",
                "scan.deser.failure-topic": letters,
            },
        ),
        Table((Column("id", "BIGINT"),), "t"),
    )
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())

    def read():
        tasks = reader.partitions(start, end)
        batches = [batch for task in tasks for batch in reader.read(task)]
        return [row["id"] for batch in batches for row in batch.to_pylist()]

    def arrived():
        found = records(letters, servers=broker.direct_servers)
        return [(int(dict(each.headers())["streamcore.offset"]), each.value()) for each in found]

    def soon(attempt, done):
        """A right is known to a broker a moment after it was given or taken."""
        deadline = time.monotonic() + 30
        while not done(found := attempt()):
            assert time.monotonic() < deadline, found
        return found

    def outcome():
        began = time.monotonic()
        try:
            return read()
        except ConnectionFailed as error:
            assert time.monotonic() - began < scale.bound(60)
            return str(error)

    def refused(cause):
        told = soon(outcome, lambda told: cause in told)
        assert told.startswith(f"dead letters cannot be written to topic '{letters}': ")

    bad = [(at, value) for at, value in enumerate(values) if value.startswith(b"{no")]
    refused("does not allow our user to use the topic: ")
    broker.grant(user, "DESCRIBE", topic=letters)
    refused("neither WRITE on a topic nor IDEMPOTENT_WRITE on the cluster is granted")
    broker.grant(user, "WRITE", topic=other)
    refused("Topic authorization failed")
    assert arrived() == []
    broker.grant(user, "WRITE", topic=letters)
    rows = soon(outcome, lambda found: isinstance(found, list))
    assert rows == [at for at in range(scale.records) if (at, values[at]) not in bad]
    assert arrived() == bad
    if scale.soak:
        broker.deny(user, "WRITE", topic=letters)
        refused("Topic authorization failed")
        before = arrived()
        refused("Topic authorization failed")
        assert arrived() == before
    scale.measured["letters"] = str(len(bad))


def test_a_transactional_id_we_may_not_use_is_said_at_once(broker, topic):
    broker.grant("alice", "DESCRIBE", "WRITE", "READ", topic=topic)
    exactly = {
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": "alices",
    }
    kafka = table_of(alice(broker), topic=topic, **exactly)
    transaction = Transaction(kafka.properties, Ticket.issue(kafka), Task(0, 0, "query", 0, "run"))
    with pytest.raises(ConnectionFailed) as refused:
        transaction.write([Messages([b"a row"], None, topic)])
    assert "does not allow our user to use the transactional id" in str(refused.value)


def test_a_java_keystore_gets_the_line_that_converts_it(broker, tmp_path):
    store = tmp_path / "truststore.jks"
    imported = ("-importcert", "-alias", "ca", "-file", str(broker.trust))
    keytool(*imported, "-keystore", str(store), "-storetype", "JKS")
    properties = over_tls(broker, ssl_truststore_location=str(store), sasl_jaas_config=jaas(PLAIN))
    (problem,) = check_properties({**properties, "ssl.truststore.type": "JKS"})
    assert str(problem) == (
        f"properties.ssl.truststore.location: '{store}' is a Java keystore (JKS), which only Java "
        f"can read; convert it once: keytool -importkeystore -srckeystore {store} -destkeystore "
        f"{tmp_path}/truststore.p12 -deststoretype PKCS12, then set this to "
        f"'{tmp_path}/truststore.p12' and 'properties.ssl.truststore.type' to 'PKCS12'"
    )


def test_a_wrong_store_password_is_said(broker, topic):
    properties = over_tls(
        broker,
        ssl_truststore_location=str(broker.authority.trust_pkcs12),
        ssl_truststore_password="wrong",
        sasl_jaas_config=jaas(PLAIN),
    )
    told = refusal(properties, topic, OptionError)
    assert "cannot be opened with 'properties.ssl.truststore.password'" in told
