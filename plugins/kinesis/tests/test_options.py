"""Every wrong option of a Kinesis table is named when the table is planned."""

from datetime import timedelta

import pytest
from streamcore import Column, OptionError, OptionWarning, Table
from streamcore.checks import check_table
from streamcore.registry import installed
from streamcore_kinesis.settings import Backoff

NEW = {
    "stream.arn": "arn:aws:kinesis:us-east-1:123456789012:stream/orders",
    "aws.region": "us-east-1",
    "format": "json",
}
OLD = {"stream": "orders", "aws.region": "us-east-1", "format": "json"}
TABLE = Table((Column("id", "BIGINT"), Column("at", "TIMESTAMP(3)")), "t")


def build(connector, given):
    return installed().build("connector", connector, given)


def problems(connector, given):
    with pytest.raises(OptionError) as caught:
        build(connector, given)
    return [str(problem) for problem in caught.value.problems]


def test_the_defaults_are_the_documented_ones():
    settings = build("kinesis", NEW).source_settings()
    assert settings.position.value == "LATEST"
    assert settings.stream == {"StreamARN": NEW["stream.arn"]}
    assert (settings.limit, settings.fan_out, settings.fail_on_data_loss) == (10000, None, True)
    old = build("kinesis-legacy", OLD).source_settings()
    assert old.stream == {"StreamName": "orders"}
    assert old.unpack


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (
            {"stream.arn": "orders"},
            "stream.arn: 'orders' does not have the form "
            "arn:aws:kinesis:REGION:ACCOUNT:stream/NAME",
        ),
        (
            {"aws.region": "mars-1"},
            "aws.region: 'mars-1' is not an AWS region such as 'us-east-1', 'eu-central-1' or "
            "'us-gov-west-1'",
        ),
        (
            {"aws.region": "eu-west-1"},
            "aws.region: 'eu-west-1' is not the region of 'stream.arn', 'us-east-1'",
        ),
        (
            {"aws.trust.all.certificates": "maybe"},
            "aws.trust.all.certificates: 'maybe' is not true or false",
        ),
        (
            {"aws.endpoint": "localhost:4567"},
            "aws.endpoint: 'localhost:4567' is not a URL such as "
            "'https://kinesis.us-east-1.amazonaws.com'",
        ),
        (
            {"source.init.position": "AT_TIMESTAMP"},
            "source.init.timestamp: required when the initial position is 'AT_TIMESTAMP'",
        ),
        (
            {"source.init.position": "AT_TIMESTAMP", "source.init.timestamp": "soon"},
            "source.init.timestamp: 'soon' neither has the format yyyy-MM-dd'T'HH:mm:ss.SSSXXX nor "
            "is a number of seconds since 1970, such as '2016-04-04T19:58:46.480-00:00' or "
            "'1459799926.480'",
        ),
        (
            {"source.reader.type": "EFO"},
            "source.efo.consumer.name: required when 'source.reader.type' is 'EFO'",
        ),
        (
            {"source.init.timestamp.format": "yyyy-MM-MM"},
            "source.init.timestamp.format: 'MM' repeats another part of the date pattern",
        ),
        (
            {"sink.producer.kinesis-endpoint": "169.254.169.254"},
            "sink.producer.kinesis-endpoint: 'https://169.254.169.254' is a link-local address, "
            "refused",
        ),
        (
            {"sink.producer.kinesis-endpoint": "example.com", "sink.producer.kinesis-port": "x"},
            "sink.producer.kinesis-endpoint: 'https://example.com:x' is not a URL: Port could not "
            "be cast to integer value as 'x'",
        ),
        (
            {"source.efo.consumer.name": "not ok"},
            "source.efo.consumer.name: 'not ok' is not 1 to 128 of letters, digits, '_', '.' "
            "and '-'",
        ),
        (
            {"sink.batch.max-size": "0"},
            "sink.batch.max-size: '0' must be between 1 and 500",
        ),
        (
            {"sink.requests.max-buffered": "500"},
            "sink.requests.max-buffered: '500' must be greater than 'sink.batch.max-size', "
            "which is 500",
        ),
        (
            {"sink.flush-buffer.size": "1000"},
            "sink.flush-buffer.size: '1000' must be between 1048576 and 10485760",
        ),
        (
            {"scan.deser.failure-handler": "dead-letter"},
            "scan.deser.failure-stream: required when 'scan.deser.failure-handler' is "
            "'dead-letter'",
        ),
    ],
)
def test_wrong_options_of_kinesis(extra, expected):
    assert expected in problems("kinesis", NEW | extra)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"stream": "s", "format": "json"},
            "aws.region: set it, or 'aws.endpoint', or both",
        ),
        (
            OLD | {"scan.stream.initpos": "NOWHERE"},
            "scan.stream.initpos: 'NOWHERE' is not one of LATEST, TRIM_HORIZON, AT_TIMESTAMP",
        ),
        (
            OLD | {"scan.stream.recordpublisher": "EFO"},
            "scan.stream.efo.consumername: required when 'scan.stream.efo.registration' is 'LAZY'",
        ),
        (
            OLD | {"scan.stream.recordpublisher": "EFO", "scan.stream.efo.registration": "NONE"},
            "scan.stream.efo.consumerarn.orders: required when 'scan.stream.efo.registration' is "
            "'NONE'",
        ),
        (
            OLD | {"stream": ""},
            "stream: '' is not 1 to 128 of letters, digits, '_', '.' and '-'",
        ),
        (
            OLD | {"stream": "my orders"},
            "stream: 'my orders' is not 1 to 128 of letters, digits, '_', '.' and '-'",
        ),
        (
            OLD
            | {
                "scan.stream.recordpublisher": "EFO",
                "scan.stream.efo.consumername": "not ok!",
            },
            "scan.stream.efo.consumername: 'not ok!' is not 1 to 128 of letters, digits, '_', '.' "
            "and '-'",
        ),
        (
            OLD
            | {
                "scan.stream.recordpublisher": "EFO",
                "scan.stream.efo.registration": "NONE",
                "scan.stream.efo.consumerarn.orders": "junk",
            },
            "scan.stream.efo.consumerarn.orders: 'junk' does not have the form "
            "arn:aws:kinesis:REGION:ACCOUNT:stream/NAME/consumer/NAME:NUMBER",
        ),
        (
            OLD | {"scan.shard.consumer.error.recoverable[0].exception": "no class"},
            "scan.shard.consumer.error.recoverable[0].exception: 'no class' is not the name of a "
            "Java class such as 'com.amazonaws.SdkClientException'",
        ),
        (
            OLD | {"shard.consumer.error.recoverable[1].exception": "java.io.IOException"},
            "scan.shard.consumer.error.recoverable: the list counts from [0] without gaps",
        ),
        (
            OLD | {"scan.shard.getrecords.maxretries": "-1"},
            "scan.shard.getrecords.maxretries: '-1' must be at least 0",
        ),
        (
            OLD | {"scan.shard.getrecords.intervalmillis": "300000"},
            "scan.shard.getrecords.intervalmillis: '300000' must be between 0 and 299999",
        ),
        (
            OLD | {"scan.shard.getiterator.backoff.expconst": "x"},
            "scan.shard.getiterator.backoff.expconst: 'x' is not a number",
        ),
        (
            OLD | {"sink.http-client.protocol.version": "HTTP3"},
            "sink.http-client.protocol.version: 'HTTP3' is not one of HTTP1_1, HTTP2",
        ),
    ],
)
def test_wrong_options_of_the_legacy_connector(given, expected):
    assert expected in problems("kinesis-legacy", given)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        (
            {"aws.credentials.provider": "MAGIC"},
            "aws.credentials.provider: no credentials called 'MAGIC'.",
        ),
        (
            {"aws.credentials.provider": "BASIC"},
            "aws.credentials.basic.accesskeyid: required but missing (Access key id)",
        ),
        (
            {"aws.credentials.provider": "CUSTOM"},
            "aws.credentials.custom.class: required but missing",
        ),
        (
            {"aws.credentials.provider": "CUSTOM", "aws.credentials.custom.class": "no.Such"},
            "aws.credentials.custom.class: could not find and load class 'no.Such': ",
        ),
        (
            {
                "aws.credentials.provider": "CUSTOM",
                "aws.credentials.custom.class": "json.JSONDecoder",
            },
            "aws.credentials.custom.class: class 'json.JSONDecoder' is not a streamcore "
            "CredentialProvider",
        ),
        (
            {
                "aws.credentials.provider": "ASSUME_ROLE",
                "aws.credentials.role.stsEndpoint": "localhost:5000",
            },
            "aws.credentials.role.stsEndpoint: 'localhost:5000' is not a URL such as 'https://sts.",
        ),
        (
            {
                "aws.credentials.provider": "WEB_IDENTITY_TOKEN",
                "aws.credentials.role.stsEndpoint": "http://169.254.169.254",
            },
            "aws.credentials.role.stsEndpoint: 'http://169.254.169.254' is a link-local address",
        ),
        (
            {"aws.credentials.provider": "ASSUME_ROLE"},
            "aws.credentials.role.arn: required but missing (ARN of the role to assume)",
        ),
    ],
)
def test_wrong_credentials(extra, expected):
    assert any(found.startswith(expected) for found in problems("kinesis", NEW | extra))


BOTH = [
    (
        {"aws.region": "x"},
        "aws.region: 'x' is not an AWS region such as 'us-east-1', 'eu-central-1' or "
        "'us-gov-west-1'",
    ),
    ({"aws.trust.all.certificates": "1"}, "aws.trust.all.certificates: '1' is not true or false"),
    (
        {"aws.credentials.provider": "BASIC", "aws.credentials.basic.accesskeyid": "k"},
        "aws.credentials.basic.secretkey: required but missing (Secret access key)",
    ),
    (
        {"aws.credentials.basic.accesskeyid": "k"},
        "aws.credentials.basic.secretkey: required with 'aws.credentials.basic.accesskeyid'",
    ),
    (
        {"aws.credentials.basic.secretkey": "k"},
        "aws.credentials.basic.accesskeyid: required with 'aws.credentials.basic.secretkey'",
    ),
    (
        {
            "aws.credentials.provider": "ASSUME_ROLE",
            "aws.credentials.role.arn": "arn:aws:iam::123456789012:role/reader",
            "aws.credentials.role.sessionName": "us",
            "aws.credentials.role.externalId": "x",
        },
        "aws.credentials.role.externalId: must have 2 to 1224 characters",
    ),
    (
        {"sink.partitioner": "no.Such"},
        "sink.partitioner: could not find and load class 'no.Such': ModuleNotFoundError: No module "
        "named 'no'",
    ),
    (
        {"sink.partitioner": "json.JSONDecoder"},
        "sink.partitioner: class 'json.JSONDecoder' is not a streamcore Partitioner",
    ),
    (
        {"sink.http-client.max-concurrency": "-1"},
        "sink.http-client.max-concurrency: '-1' must be at least 0",
    ),
    (
        {"aws.http-client.read-timeout": "soon"},
        "aws.http-client.read-timeout: 'soon' is not a whole number",
    ),
    (
        {"aws.http.protocol.version": "HTTP3"},
        "aws.http.protocol.version: 'HTTP3' is not one of HTTP1_1, HTTP2",
    ),
    ({"sink.batch.max-size": "501"}, "sink.batch.max-size: '501' must be between 1 and 500"),
    (
        {"sink.flush-buffer.size": "10485761"},
        "sink.flush-buffer.size: '10485761' must be between 1048576 and 10485760",
    ),
    ({"sink.flush-buffer.timeout": "0"}, "sink.flush-buffer.timeout: '0' must be at least 1"),
    ({"sink.requests.max-inflight": "0"}, "sink.requests.max-inflight: '0' must be at least 1"),
    ({"sink.requests.max-buffered": "0"}, "sink.requests.max-buffered: '0' must be at least 1"),
    ({"sink.fail-on-error": "si"}, "sink.fail-on-error: 'si' is not true or false"),
    ({"bogus": "1"}, "bogus: unknown option"),
]


@pytest.mark.parametrize(("connector", "given"), [("kinesis", NEW), ("kinesis-legacy", OLD)])
@pytest.mark.parametrize(("extra", "expected"), BOTH)
def test_wrong_options_of_both_connectors(connector, given, extra, expected):
    assert expected in problems(connector, given | extra)


def test_what_is_wrong_together_is_told_with_what_is_wrong_alone():
    given = NEW | {
        "source.init.position": "AT_TIMESTAMP",
        "source.init.timestamp": "soon",
        "sink.batch.max-size": "many",
        "source.reader.type": "EFO",
    }
    found = [problem.split(":")[0] for problem in problems("kinesis", given)]
    assert found == ["sink.batch.max-size", "source.init.timestamp", "source.efo.consumer.name"]


def test_unknown_options_are_named_with_the_nearest_one():
    found = problems("kinesis", NEW | {"source.init.positon": "LATEST"})
    assert "source.init.positon: unknown option; did you mean 'source.init.position'?" in found


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        ("sink.producer.record-max-buffered-time", "7000", "flush_after"),
        ("sink.producer.collection-max-size", "70", "batch_size"),
        ("sink.producer.collection-max-count", "70", "in_flight"),
    ],
)
def test_keys_of_the_old_producer_still_work_with_a_warning(old, value, new):
    with pytest.warns(OptionWarning, match=f"'{old}' is deprecated"):
        assert getattr(build("kinesis", NEW | {old: value}), new) == int(value)


def test_the_old_producers_endpoint_and_certificates_are_translated():
    given = {
        "sink.producer.kinesis-endpoint": "example.com",
        "sink.producer.kinesis-port": "4567",
        "sink.producer.verify-certificate": "FALSE",
    }
    service = build("kinesis", NEW | given).service("us-east-1")
    assert (service.url, service.verify) == ("https://example.com:4567", False)


def test_certificates_are_checked_where_the_table_says_so_whatever_old_keys_say():
    old = {"sink.producer.verify-certificate": "false"}
    checked = NEW | old | {"aws.trust.all.certificates": "false"}
    assert build("kinesis", checked).service("us-east-1").verify
    assert build("kinesis", NEW).service("us-east-1").verify
    with pytest.warns(OptionWarning, match="'maybe', neither true nor false, and has no effect"):
        unclear = build("kinesis", NEW | {"sink.producer.verify-certificate": "maybe"})
    assert unclear.service("us-east-1").verify


def test_every_call_of_the_legacy_connector_has_retries_and_pauses_of_its_own():
    calls = (
        "scan.list.shards",
        "scan.stream.describe",
        "scan.shard.getiterator",
        "scan.shard.getrecords",
        "scan.stream.describestreamconsumer",
        "scan.stream.registerstreamconsumer",
        "scan.stream.deregisterstreamconsumer",
        "scan.shard.subscribetoshard",
    )
    given = {"scan.stream.recordpublisher": "EFO", "scan.stream.efo.consumername": "ours"}
    for n, call in enumerate(calls, 1):
        parts = {"maxretries": n, "backoff.base": n, "backoff.max": n * 10, "backoff.expconst": n}
        given |= {f"{call}.{part}": str(value) for part, value in parts.items()}
    given |= {
        "scan.stream.registerstreamconsumer.timeout": "7",
        "scan.stream.deregisterstreamconsumer.timeout": "8",
        "scan.stream.efo.http-client.read-timeout": "9000",
    }
    settings = build("kinesis-legacy", OLD | given).source_settings()
    own = settings.fan_out
    found = [settings.listing, settings.describing, settings.positioning, settings.retries]
    found += [own.describing, own.registering, own.removing, own.subscribing]
    millisecond = timedelta(milliseconds=1)
    assert found == [Backoff(n + 1, n * millisecond, n * 10 * millisecond, n) for n in range(1, 9)]
    waits = (own.active_timeout, own.removal_timeout, own.silence)
    assert [each.total_seconds() for each in waits] == [7, 8, 9]


def test_a_partitioner_and_partitioned_by_exclude_each_other():
    table = Table(TABLE.columns, "t", partition_keys=("id",))
    with pytest.raises(OptionError, match="cannot be set on a table that is PARTITIONED BY"):
        check_table(build("kinesis", NEW | {"sink.partitioner": "fixed"}), table, writing=True)


def test_an_unknown_metadata_key_lists_those_there_are():
    table = Table((*TABLE.columns, Column("x", "STRING", metadata="offset", virtual=True)), "t")
    with pytest.raises(OptionError, match="'kinesis' offers partition-key, row-kind, sequence-num"):
        check_table(build("kinesis", NEW), table, writing=False)


def test_secrets_never_show():
    given = NEW | {
        "aws.credentials.provider": "BASIC",
        "aws.credentials.basic.accesskeyid": "AKIACANARY",
        "aws.credentials.basic.secretkey": "canary-secret",
    }
    shown = repr(build("kinesis", given))
    assert "AKIACANARY" not in shown
    assert "canary-secret" not in shown
