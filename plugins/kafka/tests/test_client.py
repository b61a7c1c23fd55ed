"""Clients without a broker: their defaults, and the sentences their failures become."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from streamcore import ConnectionFailed, CredentialProvider, Credentials, OptionError, Secret
from streamcore.registry import installed
from streamcore.spark.task import Task
from streamcore_kafka import client, tickets
from streamcore_kafka.connector import Kafka
from streamcore_kafka.explain import Report, sentence
from streamcore_kafka.hearing import Heard, hearing
from streamcore_kafka.properties import Role
from streamcore_kafka.transactions import Transaction

SERVERS = {"bootstrap.servers": "one:9092,two:9092"}


def config(role, **properties):
    given = {key.replace("__", "."): value for key, value in properties.items()}
    return client._config({**SERVERS, **given}, role, {})


def test_defaults_are_javas_where_the_library_differs():
    assert config(Role.CONSUMER)["isolation.level"] == "read_uncommitted"
    assert config(Role.CONSUMER)["enable.auto.commit"] == "false"
    writing = config(Role.PRODUCER)
    assert writing["partitioner"] == "murmur2_random"
    assert writing["delivery.timeout.ms"] == "120000"
    assert writing["message.max.bytes"] == "1048576"
    assert client._may_be_idempotent(writing)


@pytest.mark.parametrize(
    ("setting", "idempotent"),
    [
        ({"acks": "all"}, True),
        ({"acks": "-1"}, True),
        ({"acks": "1"}, False),
        ({"retries": "0"}, False),
        ({"max.in.flight.requests.per.connection": "5"}, True),
        ({"max.in.flight.requests.per.connection": "6"}, False),
    ],
)
def test_idempotence_gives_way_to_settings_that_rule_it_out(setting, idempotent):
    assert client._may_be_idempotent(config(Role.PRODUCER, **setting)) is idempotent


def test_what_the_user_sets_wins_over_every_default():
    assert config(Role.CONSUMER, isolation__level="read_committed")["isolation.level"] == (
        "read_committed"
    )
    writing = config(Role.PRODUCER, message__timeout__ms="5", partitioner="random")
    assert writing["message.timeout.ms"] == "5"
    assert "delivery.timeout.ms" not in writing
    assert writing["partitioner"] == "random"


def test_a_setting_the_library_refuses_is_named_when_the_client_is_made():
    with pytest.raises(OptionError) as refused:
        client.producer({**SERVERS, "security.protocol": "SSL", "ssl.ca.location": "/nowhere.pem"})
    (problem,) = refused.value.problems
    assert problem.key == "properties.ssl.ca.location"


def test_kerberos_is_refused_with_the_librarys_reason():
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}
    with pytest.raises(OptionError, match="No provider for SASL mechanism GSSAPI"):
        client.producer({**SERVERS, **login})


def test_importing_the_plugin_imports_no_client():
    script = "import sys, streamcore_kafka; print('confluent_kafka' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_a_consumer_without_a_group_does_not_bring_the_process_down():
    made = client.consumer({**SERVERS, "group.id": ""}, log_level=0)
    made.close()


class Vault(CredentialProvider):
    """Stands for a provider of somebody's own."""

    identifier = "vault"

    def fetch(self, scope):
        return Credentials({"username": Secret("app"), "password": Secret(scope["servers"])})


def test_every_client_of_a_table_gets_the_login_of_its_provider():
    json = installed().build("format", "json", {})
    login = {**SERVERS, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    kafka = Kafka(servers="x", properties=login, topic=("t",), format=json, credentials=Vault())
    kafka = pickle.loads(pickle.dumps(kafka))
    for role in Role:
        found = client._config(kafka.properties, role, {})
        assert (found["sasl.username"], found["sasl.password"]) == (
            Secret("app"),
            Secret(SERVERS["bootstrap.servers"]),
        )


# --- sentences ---------------------------------------------------------------------------------


def said(name, text="", heard=(), **properties):
    given = {key.replace("__", "."): value for key, value in properties.items()}
    return sentence(Report(name, text), heard, {**SERVERS, **given})


def test_a_url_in_what_the_client_says_is_told_without_its_login():
    told = said("_FAIL", "Failed to retrieve a token from 'https://me:hunter2@host/token'")
    assert "'https://***@host/token'" in told


def test_the_cause_a_client_reported_is_preferred_to_its_silence():
    heard = [
        Report("_TRANSPORT", "sasl_ssl://one:9092/bootstrap: Connect to ipv4#1 failed: refused"),
        Report("_AUTHENTICATION", "sasl_ssl://one:9092/bootstrap: SASL authentication error: no"),
        Report("_ALL_BROKERS_DOWN", "2/2 brokers are down"),
    ]
    assert said("_TIMED_OUT", "Local: Timed out", heard, sasl__username="alice") == (
        "Kafka broker one:9092 refused the login: SASL authentication error: no. "
        "Check 'properties.sasl.username' and 'properties.sasl.password'."
    )


def test_an_error_that_says_enough_is_not_blamed_on_older_reports():
    heard = [Report("_AUTHENTICATION", "one:9092/1: no")]
    assert said("TOPIC_AUTHORIZATION_FAILED", "Broker: denied", heard, sasl__username="al") == (
        "Kafka broker one:9092,two:9092 does not allow user 'al' to use the topic: Broker: denied. "
        "Have the right granted (ACL)."
    )


def test_secrets_do_not_get_into_sentences_or_logs(caplog):
    given = {**SERVERS, "sasl.password": Secret("hunter22")}
    error = KafkaError(KafkaError._FAIL, "login with hunter22 failed")
    assert str(client.explain(error, given)) == (
        "Kafka broker one:9092,two:9092: login with *** failed."
    )
    with caplog.at_level(logging.DEBUG):
        Heard(given).log(logging.ERROR, "%s [%s] %s", "FAIL", "client-1", "hunter22 was refused")
    assert caplog.messages == ["FAIL [client-1] *** was refused"]


def test_a_log_line_is_not_repeated_while_a_client_reconnects(caplog):
    heard = Heard(SERVERS)
    with caplog.at_level(logging.DEBUG):
        for millis in range(5):
            line = f"one:9092/1: Connect failed (after {millis}ms in state CONNECT)"
            heard.log(logging.ERROR, "%s [%s] %s", "FAIL", "client-1", line)
    assert len(caplog.messages) == 1
    assert len(heard.recently()) == 5


def test_reports_are_kept_apart_by_configuration():
    hearing(SERVERS).error(KafkaError(KafkaError._AUTHENTICATION, "one:9092/1: no"))
    assert client.is_refused(SERVERS)
    assert not client.is_refused({**SERVERS, "sasl.password": Secret("other")})
    assert isinstance(client.explain(KafkaError(KafkaError._TIMED_OUT), SERVERS), ConnectionFailed)


class Sealed(CredentialProvider):
    """Fails, at once or after its first answer."""

    identifier = "sealed"

    def __init__(self, *answers):
        object.__setattr__(self, "answers", list(answers))

    def fetch(self, scope):
        if not self.answers:
            raise RuntimeError("the vault is sealed.")
        return self.answers.pop()


LOGIN = {**SERVERS, "security.protocol": "SASL_PLAINTEXT"}
KEY = Credentials({"access_key": Secret("hush-hush")})


@pytest.mark.parametrize("make", [client.consumer, client.producer, client.admin])
@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "PLAIN"])
def test_a_credential_provider_that_fails_is_named_with_its_reason(make, mechanism):
    properties = {**LOGIN, "sasl.mechanism": mechanism, "credentials.provider": Sealed()}
    with pytest.raises(ConnectionFailed) as failed:
        make(properties)
    assert str(failed.value) == "credential provider 'sealed' failed: the vault is sealed."
    assert isinstance(failed.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("mechanism", "missing"), [("OAUTHBEARER", "token"), ("SCRAM-SHA-256", "username")]
)
def test_a_credential_provider_without_the_right_value_is_told_which_it_is(mechanism, missing):
    properties = {**LOGIN, "sasl.mechanism": mechanism, "credentials.provider": Sealed(KEY)}
    with pytest.raises(ConnectionFailed) as failed:
        client.consumer(properties)
    assert str(failed.value) == (
        f"credential provider 'sealed' gave no '{missing}', which {mechanism} needs, "
        "but 'access_key'."
    )


def test_a_token_that_cannot_be_renewed_is_explained_later_on():
    token = Credentials({"token": Secret("first")})
    properties = {**LOGIN, "sasl.mechanism": "OAUTHBEARER", "credentials.provider": Sealed(token)}
    renew = client._config(properties, Role.CONSUMER, {})["oauth_cb"]
    assert renew("")[0] == "first"
    with pytest.raises(ConnectionFailed):
        renew("")
    untold = "Failed to acquire SASL OAUTHBEARER token: OAuth callback raised exception"
    hearing(properties).error(KafkaError(KafkaError._AUTHENTICATION, untold))
    told = client.explain(KafkaError(KafkaError._TIMED_OUT, "no answer"), properties)
    assert str(told) == (
        "no login for Kafka broker one:9092,two:9092: credential provider 'sealed' failed: "
        "the vault is sealed."
    )


def test_a_broker_that_does_not_list_its_limit_for_transactions_is_believed_later(monkeypatch):
    class Listing:
        def list_topics(self, timeout):
            return SimpleNamespace(brokers={1: "one"})

        def describe_configs(self, resources, request_timeout):
            return {resources[0]: SimpleNamespace(result=lambda: {"log.dir": "/"})}

        def poll(self, timeout):
            return 0

    monkeypatch.setattr(tickets, "admin", lambda settings: Listing())
    assert tickets.transaction_timeout({**SERVERS, "client.id": "unlisted"}) == tickets.TIMEOUT


def test_a_transaction_never_waits_longer_for_a_message_than_it_lasts():
    properties = {**SERVERS, "message.timeout.ms": "1000000"}
    ticket = tickets.Ticket("p", "orders", 900_000, None, "w", 0, False)
    Transaction(properties, ticket, Task(0, 0, "", None))._sender()


@pytest.mark.parametrize("passing", ["FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "_TIMED_OUT"])
def test_a_broker_that_takes_over_from_another_is_asked_again(passing):
    answers = [KafkaException(KafkaError(getattr(KafkaError, passing))), "an offset"]

    def ask(_):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    listening, own = SimpleNamespace(poll=lambda _: None), {"bootstrap.servers": f"{passing}:9092"}
    assert client.patiently(listening, own, ask) == "an offset"


def test_what_is_tried_again_is_no_trouble_yet(caplog):
    heard = Heard({})
    with caplog.at_level(logging.INFO, "streamcore.kafka"):
        heard.log(logging.ERROR, "%s %s", "GETPID", "Coordinator load in progress: retrying")
        heard.log(logging.ERROR, "%s %s", "FAIL", "Connect failed")
    assert [record.levelname for record in caplog.records] == ["INFO", "ERROR"]
