"""Logging in to a guarded broker, in Java's words and in the C library's, and being turned away."""

from __future__ import annotations

import base64
import json
import logging
import subprocess
import threading
import time
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from streamcore import ConnectionFailed, CredentialProvider, Credentials, OptionError, Secret
from streamcore.registry import installed
from streamcore.spark.task import Task
from streamcore.testing.services import SecureKafkaBroker
from streamcore.testing.services.certificates import STORE_PASSWORD, Authority
from streamcore.testing.services.process import free_port
from streamcore_kafka.client import check_properties, partitions_of
from streamcore_kafka.client_keys import PROVIDER
from streamcore_kafka.explain import Report, sentence
from streamcore_kafka.messages import Messages
from streamcore_kafka.sender import Sender
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


def unverified(broker):
    return (
        f"the certificate of Kafka broker {broker.bootstrap_servers} cannot be verified: an "
        "authority signed it that we do not trust, or it was made for another host. Check "
        "'properties.ssl.truststore.location' or 'properties.ssl.ca.location', and the hosts in "
        "'properties.bootstrap.servers'."
    )


def test_an_authority_we_do_not_trust_is_said_at_once(broker, topic, tmp_path):
    other = str(Authority(tmp_path).trust)
    properties = over_tls(broker, sasl_jaas_config=jaas(PLAIN), ssl_truststore_location=other)
    assert refusal(properties, topic) == unverified(broker)


def test_a_certificate_for_another_host_is_said_at_once():
    with SecureKafkaBroker(server_host="elsewhere.invalid") as broker:
        properties = over_tls(broker, sasl_jaas_config=jaas(PLAIN))
        assert refusal(properties, "any") == unverified(broker)
        unchecked = {**properties, "ssl.endpoint.identification.algorithm": ""}  # Java's "none"
        broker.create_topic("any")
        write(unchecked, "any")


def test_a_missing_client_certificate_is_said_at_once(broker, topic):
    bare = {
        "bootstrap.servers": broker.servers("SSL"),
        "security.protocol": "SSL",
        "ssl.ca.location": str(broker.trust),
    }
    told = refusal(bare, topic)
    assert "did not accept our certificate" in told
    assert "'properties.ssl.keystore.location'" in told


FAST = {"socket.connection.setup.timeout.ms": "3000"}


def test_a_port_that_wants_tls_and_gets_none_is_said_in_time(broker, topic):
    told = refusal({"bootstrap.servers": broker.bootstrap_servers, **FAST}, topic)
    assert told == (
        f"Kafka broker {broker.bootstrap_servers} closed the connection before it answered. "
        "Check 'properties.security.protocol': the port may want TLS or a login."
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


def test_a_transactional_id_we_may_not_use_is_said_at_once(broker, topic):
    broker.grant("alice", "DESCRIBE", "WRITE", "READ", topic=topic)
    options = {
        f"properties.{key}": value.reveal() if isinstance(value, Secret) else value
        for key, value in alice(broker).items()
    }
    options |= {"topic": topic, "format": "json", "sink.delivery-guarantee": "exactly-once"}
    options |= {"sink.transactional-id-prefix": "alices"}
    kafka = installed().build("connector", "kafka", options)
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
