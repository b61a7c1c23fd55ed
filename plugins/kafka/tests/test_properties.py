"""`properties.*` in Java's words and in the C library's: translated, checked, refused."""

from __future__ import annotations

import ctypes
import re
import warnings
from pathlib import Path

import confluent_kafka
import pytest
from streamcore import OptionWarning, Secret
from streamcore_kafka import client_keys
from streamcore_kafka.client import check_properties as check_with_library
from streamcore_kafka.client import producer
from streamcore_kafka.jaas import JaasError, parse_jaas
from streamcore_kafka.properties import (
    Role,
    check_properties,
    client_id,
    secrets_of,
    translated,
)

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def problems(**properties):
    given = {key.replace("__", "."): value for key, value in properties.items()}
    return [str(problem) for problem in check_properties(given)]


def settings(role=Role.PRODUCER, **properties):
    given = {key.replace("__", "."): value for key, value in properties.items()}
    found = translated(given, role)
    found.pop("client.id")
    return found


# --- known, unknown, refused --------------------------------------------------------------------


def library_keys():
    """Every setting the C library lists, asked from the library itself."""
    (path,) = Path(confluent_kafka.__file__).parent.parent.glob("confluent_kafka.libs/librdkafka*")
    library, system = ctypes.CDLL(str(path)), ctypes.CDLL(None)
    stream = ctypes.c_char_p()
    size = ctypes.c_size_t()
    system.open_memstream.restype = ctypes.c_void_p
    file = ctypes.c_void_p(system.open_memstream(ctypes.byref(stream), ctypes.byref(size)))
    library.rd_kafka_conf_properties_show(file)
    system.fclose(file)
    listed = [line.split("|") for line in (stream.value or b"").decode().splitlines()]
    return {
        row[0].strip(): row[1].strip()
        for row in listed
        if len(row) > 5 and "see dedicated API" not in row[-1] and "." in row[0]
    }


def test_every_setting_of_the_installed_library_is_known_or_refused():
    ignored = {
        "auto.commit.enable",
        "builtin.features",
        "consume.callback.max.messages",
        "delivery.report.only.error",
        "group.protocol.type",
        "internal.termination.signal",
        "log.queue",
        "metadata.broker.list",
        "offset.store.sync.interval.ms",
        "produce.offset.report",
        "queuing.strategy",
        "share.acknowledgement.mode",
    }
    unknown = library_keys().keys() - client_keys.KNOWN - client_keys.REFUSED.keys() - ignored
    assert unknown == set()


def test_settings_are_for_the_clients_the_library_says():
    roles = {"P": client_keys.PRODUCER, "C": client_keys.CONSUMER, "*": client_keys.ANY_CLIENT}
    listed = library_keys()
    for letter, ours in roles.items():
        assert {key for key in ours if listed.get(key, letter) not in (letter, "*")} == set()


def test_an_unknown_setting_is_named_with_its_prefix_and_a_suggestion():
    assert problems(linger__mss="5", fetch__min__byte="1") == [
        "properties.fetch.min.byte: the Kafka client has no such setting; "
        "did you mean 'properties.fetch.min.bytes'?",
        "properties.linger.mss: the Kafka client has no such setting; "
        "did you mean 'properties.linger.ms'?",
    ]


@pytest.mark.parametrize("key", sorted(client_keys.REFUSED))
def test_settings_that_load_or_run_something_are_refused_by_name(key):
    (problem,) = check_properties({key: "/tmp/evil.so"})
    assert problem.key == f"properties.{key}"
    assert problem.trouble.startswith(
        ("refused, because it ", "refused, because S", "set for each")
    )


def test_settings_of_java_alone_are_dropped_with_one_warning():
    given = {"max.poll.records": "100", "key.serializer": "org.example.S", "linger.ms": "5"}
    with pytest.warns(OptionWarning) as told:
        assert list(check_properties(given)) == []
    assert [str(warning.message) for warning in told] == [
        "'properties.key.serializer', 'properties.max.poll.records': of Java's client only; "
        "without effect"
    ]
    assert settings(max__poll__records="100", linger__ms="5") == {"linger.ms": "5"}


def test_nothing_is_warned_about_without_a_reason():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert problems(bootstrap__servers="a:1", acks="all", group__id="g") == []


def test_values_are_judged_by_the_library_and_named_as_they_were_written():
    def told(**properties):
        given = {key.replace("__", "."): value for key, value in properties.items()}
        return [str(problem) for problem in check_with_library(given)]

    assert told(linger__ms="soon") == [
        "properties.linger.ms: 'soon' is not a value the Kafka client takes"
    ]
    assert told(linger__ms="-1") == ["properties.linger.ms: '-1' is not between 0 and 900000"]
    assert told(isolation__level="dirty") == [
        "properties.isolation.level: 'dirty' is not a value the Kafka client takes"
    ]
    assert sorted(told(enable__idempotence="yes", compression__type="zip")) == [
        "properties.compression.type: 'zip' is not a value the Kafka client takes",
        "properties.enable.idempotence: 'yes' is not a value the Kafka client takes",
    ]
    assert told(acks="1", enable__idempotence="true") == [
        "properties.enable.idempotence: 'acks' must be set to 'all' when 'enable.idempotence' is "
        "true"
    ]


# --- Java's words ------------------------------------------------------------------------------


def test_java_names_become_the_librarys():
    assert settings(max__request__size="5", send__buffer__bytes="-1", buffer__memory="2048") == {
        "message.max.bytes": "5",
        "socket.send.buffer.bytes": "0",
        "queue.buffering.max.kbytes": "2",
    }
    assert settings(Role.CONSUMER, fetch__max__wait__ms="7", auto__offset__reset="none") == {
        "fetch.wait.max.ms": "7",
        "auto.offset.reset": "error",
    }
    assert settings(ssl__endpoint__identification__algorithm="") == {
        "ssl.endpoint.identification.algorithm": "none"
    }


def test_each_client_gets_only_its_own_settings():
    given = {"group__id": "g", "linger__ms": "1", "client__rack": "r"}
    assert settings(Role.CONSUMER, **given) == {"group.id": "g", "client.rack": "r"}
    assert settings(Role.PRODUCER, **given) == {"linger.ms": "1", "client.rack": "r"}
    assert settings(Role.ADMIN, **given) == {"client.rack": "r"}


def test_client_ids_begin_with_what_the_user_chose():
    assert client_id({}) == "streamcore"
    assert client_id({"client.id": "mine"}, "consumer") == "mine"
    assert client_id({"client.id.prefix": "team", "client.id": "mine"}) == "team"
    names = [translated({"client.id.prefix": "team"}, role)["client.id"] for role in Role]
    assert names == ["team-consumer", "team-producer", "team-enumerator-admin-client"]


def test_an_idempotent_producer_is_the_default_unless_settings_rule_it_out():
    servers = {"bootstrap.servers": ""}
    for rule in ({"acks": "1"}, {"retries": "0"}, {"max.in.flight": "10"}):
        assert producer({**servers, **rule}, log_level=0) is not None
    assert producer(servers, log_level=0) is not None


@pytest.mark.parametrize(
    "text",
    [
        f'{PLAIN} required username="al ice" password="se;c=\\"ret";',
        f"{PLAIN} required username='al ice' password='se;c=\"ret';",
        f'  {PLAIN}   REQUIRED\n username = "al ice"\n password="se;c=\\"ret"  ; ',
        f'org.apache.flink.kafka.shaded.{PLAIN} required username="al ice" password="se;c=\\"ret"',
    ],
)
def test_login_strings_are_read_however_they_are_quoted(text):
    login = parse_jaas(text)
    assert login.mechanisms == ("PLAIN",)
    assert login.settings() == {"sasl.username": "al ice", "sasl.password": Secret('se;c="ret')}


def test_login_strings_with_escaped_quotes_are_read_as_sql_examples_write_them():
    login = parse_jaas(f'{PLAIN} required username=\\"alice\\" password=\\"pass\\";')
    assert login.settings() == {"sasl.username": "alice", "sasl.password": Secret("pass")}


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (
            "com.sun.security.auth.module.JndiLoginModule required x=1;",
            "names 'com.sun.security.auth.module.JndiLoginModule', which is refused; only Kafka's "
            "own PlainLoginModule, ScramLoginModule, OAuthBearerLoginModule are accepted",
        ),
        (
            f"evil.{PLAIN} required username=a password=b;",
            f"names 'evil.{PLAIN}', which is refused; only Kafka's own PlainLoginModule, "
            "ScramLoginModule, OAuthBearerLoginModule are accepted",
        ),
        (
            "com.sun.security.auth.module.Krb5LoginModule required;",
            "names 'com.sun.security.auth.module.Krb5LoginModule', but Kerberos needs system "
            "libraries the client comes without; use SCRAM, OAUTHBEARER or a client certificate",
        ),
        (f"{PLAIN} maybe;", "has 'maybe' where 'required' was expected"),
        (f'{PLAIN} required username="a";', "gives no password"),
        (
            f'{PLAIN} required username="a" password="b"; {PLAIN} required;',
            'cannot be read behind its first options; write each as name="value", one module only',
        ),
        ("", 'does not look like \'<module> required username="..." password="...";\''),
    ],
)
def test_login_strings_that_cannot_be_used_say_why(text, trouble):
    with pytest.raises(JaasError) as refused:
        parse_jaas(text)
    assert str(refused.value) == trouble


# --- security that would not be -------------------------------------------------------------------


def test_login_settings_that_would_have_no_effect_are_an_error():
    assert problems(sasl__mechanism="PLAIN", sasl__username="a") == [
        "properties.sasl.mechanism: has no effect, because 'properties.security.protocol' is "
        "'PLAINTEXT'; set it to SASL_PLAINTEXT or SASL_SSL"
    ]
    assert problems(ssl__ca__location="ca.pem", security__protocol="SASL_PLAINTEXT") == [
        "properties.sasl.mechanism: required with 'SASL_PLAINTEXT'; one of PLAIN, SCRAM-SHA-256, "
        "SCRAM-SHA-512, OAUTHBEARER, GSSAPI",
        "properties.ssl.ca.location: has no effect, because 'properties.security.protocol' is "
        "'SASL_PLAINTEXT'; set it to SSL or SASL_SSL",
    ]


def test_a_login_string_must_fit_the_mechanism():
    login = Secret(f'{PLAIN} required username="a" password="b";')
    given = {"security__protocol": "SASL_SSL", "sasl__jaas__config": login}
    assert problems(**given, sasl__mechanism="SCRAM-SHA-256") == [
        "properties.sasl.mechanism: 'SCRAM-SHA-256' does not fit 'properties.sasl.jaas.config' "
        "(PLAIN)"
    ]
    assert problems(**given) == []


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://idp/token", "https://", "http://169.254.169.254/token"]
)
def test_token_addresses_that_are_no_token_service_are_refused(url):
    given = {"security__protocol": "SASL_SSL", "sasl__mechanism": "OAUTHBEARER"}
    (problem,) = problems(**given, sasl__oauthbearer__token__endpoint__url=url)
    assert problem.startswith(f"properties.sasl.oauthbearer.token.endpoint.url: '{url}' is ")


def test_java_code_is_refused_wherever_it_is_named():
    given = {"security__protocol": "SASL_SSL", "sasl__mechanism": "OAUTHBEARER"}
    assert problems(**given, sasl__login__callback__handler__class="com.example.Handler") == [
        "properties.sasl.login.callback.handler.class: 'com.example.Handler' is Java code, and "
        "there is no Java here; remove it, and have tokens fetched by a credential provider"
    ]


def test_unknown_protocols_and_mechanisms_are_named():
    assert problems(security__protocol="TLS") == [
        "properties.security.protocol: 'TLS' is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"
    ]
    assert problems(security__protocol="sasl_ssl", sasl__mechanism="MD5") == [
        "properties.sasl.mechanism: 'MD5' is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, "
        "OAUTHBEARER, GSSAPI"
    ]


def test_keys_and_certificates_go_together():
    given = {"security__protocol": "SSL", "ssl__keystore__type": "PEM"}
    assert problems(**given, ssl__keystore__key=Secret("k")) == [
        "properties.ssl.keystore.key: 'properties.ssl.keystore.key' and "
        "'properties.ssl.keystore.certificate.chain' must be set together"
    ]
    assert problems(security__protocol="SSL", ssl__truststore__type="BKS") == [
        "properties.ssl.truststore.type: 'BKS' is not one of PKCS12, PEM"
    ]


def test_passwords_stay_secret_until_the_client_is_made():
    login = Secret(f'{PLAIN} required username="alice" password="s3cr3t";')
    given = {"security.protocol": "SASL_SSL", "sasl.jaas.config": login}
    found = translated(given, Role.PRODUCER)
    assert "s3cr3t" not in repr(found)
    assert found["sasl.password"] == Secret("s3cr3t")
    assert secrets_of(given) == {"s3cr3t", login.reveal()}


def test_every_sensitive_setting_of_the_library_is_hidden():
    from streamcore.values import is_sensitive

    words = re.compile(r"password|secret|passphrase|\.key\.pem")
    shown = [key for key in client_keys.KNOWN if words.search(key) and not is_sensitive(key)]
    assert shown == []
