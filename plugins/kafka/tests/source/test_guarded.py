"""Reading from a broker that asks who we are, and being turned away."""

from __future__ import annotations

import time

import pytest
from streamcore import Column, ConnectionFailed, Table
from streamcore.testing.services import SecureKafkaBroker
from streamcore_kafka import consumers
from streamcore_kafka.fetching import Fetcher
from streamcore_kafka.progress import Range


@pytest.fixture(scope="module")
def guarded():
    with SecureKafkaBroker() as broker:
        yield broker
        consumers.close_all()


@pytest.fixture
def login(guarded):
    """Options of a table on the guarded broker: `login(user, password)`."""

    def options(user="admin", password="admin-secret"):
        return {
            "properties.bootstrap.servers": guarded.bootstrap_servers,
            "properties.security.protocol": "SASL_SSL",
            "properties.sasl.mechanism": "SCRAM-SHA-512",
            "properties.sasl.jaas.config": "org.apache.kafka.common.security.scram."
            f"ScramLoginModule required username='{user}' password='{password}';",
            "properties.ssl.truststore.type": "PEM",
            "properties.ssl.truststore.location": str(guarded.trust),
        }

    return options


def filled(guarded, produce, people, name):
    topic = guarded.create_topic(name)
    produce(topic, people(3), settings={"bootstrap.servers": guarded.direct_servers})
    return topic


def test_records_are_read_over_tls_with_a_login(guarded, login, scan, produce, people, rows_of):
    topic = filled(guarded, produce, people, "over-tls")
    assert scan(topic, login()) == rows_of(3)


def test_a_wrong_password_is_said_at_once_on_the_driver_and_in_a_task(guarded, login, scan, table):
    wrong = login(password="guessed")
    for attempt in (
        lambda: scan("over-tls", wrong),
        lambda: list(Fetcher(table("over-tls", wrong), [Range("over-tls", 0, 0, 3)]).chunks()),
    ):
        began = time.monotonic()
        with pytest.raises(ConnectionFailed, match="refused the login.*sasl.jaas.config") as told:
            attempt()
        assert time.monotonic() - began < 10
        assert "guessed" not in str(told.value)


def test_a_reader_needs_no_right_but_to_read_the_topic(
    guarded, login, drive, scan, produce, people, rows_of
):
    topic = filled(guarded, produce, people, "alices")
    alice = login("alice", "alice-secret")
    with pytest.raises(ConnectionFailed, match="does not allow our user to use the topic"):
        scan(topic, alice)
    guarded.grant("alice", "READ", "DESCRIBE", topic=topic, group="hers")
    assert scan(topic, alice) == rows_of(3)  # no group is named, so no right to one is needed


def test_a_group_we_may_not_use_stops_no_query_that_starts_elsewhere(
    guarded, login, drive, produce, people, rows_of, caplog
):
    topic = filled(guarded, produce, people, "alices-too")
    guarded.grant("alice", "READ", "DESCRIBE", topic=topic, group="hers")
    given = {**login("alice", "alice-secret"), "properties.group.id": "not-hers"}
    query = drive(topic, given)
    assert query.batch() == rows_of(3)
    assert query.batch() == []
    query.reader._driver.group.settle(10)
    told = query.reader.reportLatestOffset()["group"]
    assert (told["commits"], told["failed-commits"], told["id"]) == (0, 1, "not-hers")
    assert "offsets of group 'not-hers' were not committed" in caplog.text
    with pytest.raises(ConnectionFailed, match="does not allow our user to use the consumer group"):
        drive(topic, {**given, "scan.startup.mode": "group-offsets"})


def test_what_we_may_not_do_is_known_before_a_job_starts(guarded, login, table, produce, people):
    topic = filled(guarded, produce, people, "asked-first")
    alice = table(topic, login("alice", "alice-secret"))
    columns = Table((Column("id", "BIGINT"),), "t")
    (told,) = alice.online_problems(columns, writing=False)
    assert "does not allow our user to use the topic" in told
    guarded.grant("alice", "READ", "DESCRIBE", topic=topic, group="hers")
    assert list(alice.online_problems(columns, writing=False)) == []
    assert list(alice.online_problems(columns, writing=True)) == [
        f"topic '{topic}': we may not write it; ask for an ACL that allows WRITE"
    ]
    admin = table(topic, login())
    assert list(admin.online_problems(columns, writing=True)) == []
    (missing,) = table("nowhere", login()).online_problems(columns, writing=True)
    assert missing.startswith("topic 'nowhere' does not exist")
