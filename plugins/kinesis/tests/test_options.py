"""Every wrong option of a Kinesis table is named when the table is planned."""

from datetime import UTC, datetime, timedelta

import pytest
from streamcore import Column, Connector, OptionError, OptionWarning, Table
from streamcore.checks import check_table
from streamcore.options import declared
from streamcore.registry import installed
from streamcore.values import parse
from streamcore_kinesis.connector import Kinesis
from streamcore_kinesis.credentials import (
    AssumeRole,
    Auto,
    Basic,
    Custom,
    Profile,
    WebIdentityToken,
)
from streamcore_kinesis.legacy import KinesisLegacy
from streamcore_kinesis.settings import Backoff, Lifecycle

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


# --- what is there if nothing is said --------------------------------------------------

NOTHING, REQUIRED = "-", "required"

SERVICE = """
format                                          required
aws.endpoint                                    -
aws.trust.all.certificates                      -
aws.credentials.provider                        auto
"""
SINK = """
sink.partitioner                                -
sink.partitioner-field-delimiter                |
sink.http-client.max-concurrency                10000
sink.http-client.read-timeout                   360000
sink.http-client.protocol.version               HTTP2
aws.http-client.max-concurrency                 10000
aws.http-client.read-timeout                    360000
aws.http.protocol.version                       HTTP2
sink.batch.max-size                             500
sink.requests.max-inflight                      50
sink.requests.max-buffered                      10000
sink.flush-buffer.size                          5242880
sink.flush-buffer.timeout                       5000
sink.fail-on-error                              false
"""
SOURCE = """
stream.arn                                      required
aws.region                                      required
source.init.position                            LATEST
source.init.timestamp                           -
source.init.timestamp.format                    yyyy-MM-dd'T'HH:mm:ss.SSSXXX
source.shard.discovery.interval                 10s
source.reader.type                              POLLING
source.shard.get-records.max-record-count       10000
source.efo.consumer.name                        -
source.efo.lifecycle                            JOB_MANAGED
source.efo.subscription.timeout                 60s
source.efo.deregister.timeout                   10s
source.efo.describe.retry-strategy.attempts.max 100
source.efo.describe.retry-strategy.delay.min    2s
source.efo.describe.retry-strategy.delay.max    60s
source.reader.empty-records-fetch-interval      250ms
source.shard-assigner                           default
"""
LEGACY = """
stream                                          required
aws.region                                      -
scan.stream.initpos                             LATEST
scan.stream.initpos-timestamp                   -
scan.stream.initpos-timestamp-format            yyyy-MM-dd'T'HH:mm:ss.SSSXXX
scan.stream.recordpublisher                     POLLING
scan.stream.efo.consumername                    -
scan.stream.efo.registration                    LAZY
scan.stream.efo.http-client.max-concurrency     10000
scan.stream.efo.http-client.read-timeout        360000
scan.shard-assigner                             default
source.shard-assigner                           default
scan.stream.describe.maxretries                 50
scan.stream.describe.backoff.base               2000
scan.stream.describe.backoff.max                5000
scan.stream.describe.backoff.expconst           1.5
scan.list.shards.maxretries                     10
scan.list.shards.backoff.base                   1000
scan.list.shards.backoff.max                    5000
scan.list.shards.backoff.expconst               1.5
scan.stream.describestreamconsumer.maxretries   50
scan.stream.describestreamconsumer.backoff.base 2000
scan.stream.describestreamconsumer.backoff.max  5000
scan.stream.describestreamconsumer.backoff.expconst 1.5
scan.stream.registerstreamconsumer.maxretries   10
scan.stream.registerstreamconsumer.timeout      60
scan.stream.registerstreamconsumer.backoff.base 500
scan.stream.registerstreamconsumer.backoff.max  2000
scan.stream.registerstreamconsumer.backoff.expconst 1.5
scan.stream.deregisterstreamconsumer.maxretries 10
scan.stream.deregisterstreamconsumer.timeout    60
scan.stream.deregisterstreamconsumer.backoff.base 500
scan.stream.deregisterstreamconsumer.backoff.max 2000
scan.stream.deregisterstreamconsumer.backoff.expconst 1.5
scan.shard.subscribetoshard.maxretries          10
scan.shard.subscribetoshard.timeout             60
scan.shard.subscribetoshard.backoff.base        1000
scan.shard.subscribetoshard.backoff.max         2000
scan.shard.subscribetoshard.backoff.expconst    1.5
scan.shard.getrecords.maxrecordcount            10000
scan.shard.getrecords.maxretries                3
scan.shard.getrecords.backoff.base              300
scan.shard.getrecords.backoff.max               1000
scan.shard.getrecords.backoff.expconst          1.5
scan.shard.getrecords.intervalmillis            200
scan.shard.getiterator.maxretries               3
scan.shard.getiterator.backoff.base             300
scan.shard.getiterator.backoff.max              1000
scan.shard.getiterator.backoff.expconst         1.5
scan.shard.discovery.intervalmillis             10000
scan.shard.adaptivereads                        false
scan.shard.idle.interval                        -1
scan.watermark.sync.interval                    30000
scan.watermark.lookahead.millis                 0
scan.watermark.sync.queue.capacity              100
"""
ROLE = """
arn                                             required
sessionName                                     required
externalId                                      -
stsEndpoint                                     -
provider                                        auto
"""
TOKEN = """
webIdentityToken.file                           -
role.arn                                        -
role.sessionName                                -
role.stsEndpoint                                -
"""
TABLES = {
    Kinesis: SERVICE + SINK + SOURCE,
    KinesisLegacy: SERVICE + SINK + LEGACY,
    Auto: "basic.accesskeyid -\nbasic.secretkey -",
    Basic: "accesskeyid required\nsecretkey required",
    Profile: "path -\nname -",
    AssumeRole: ROLE,
    WebIdentityToken: TOKEN,
    Custom: "class required",
}
DEFAULTS = [
    (plugin, *line.split())
    for plugin, lines in TABLES.items()
    for line in lines.splitlines()
    if line
]
OURS = {
    "scan.deser.failure-handler",
    "scan.deser.failure-stream",
    "scan.parallelism",
    "source.deaggregation",
    "source.fail-on-data-loss",
    "source.slice.margin",
    "source.slice.max",
}


OPTIONS = {
    plugin: {key: each for each in declared(plugin) for key in (each.spec.key, *each.spec.also)}
    for plugin in TABLES
}


def test_every_option_is_documented_or_ours():
    known = {(plugin, key) for plugin, key, _ in DEFAULTS}
    found = {(plugin, key) for plugin, options in OPTIONS.items() for key in options}
    assert known <= found
    every_table = {each.spec.key for each in declared(Connector)}
    more = {key for _, key in found - known if not key.endswith("*")} - every_table
    assert more == OURS | {"value.format"}


@pytest.mark.parametrize(("plugin", "key", "expected"), DEFAULTS)
def test_every_option_has_the_default_its_documentation_promises(plugin, key, expected):
    found = OPTIONS[plugin][key]
    if expected in (NOTHING, REQUIRED):
        assert (found.required, found.default_text()) == (expected == REQUIRED, "")
    elif found.names_a_plugin:
        assert found.default == expected
    else:
        assert found.default == parse(found.hint, expected)


def test_what_is_said_reaches_the_source():
    given = {
        "source.reader.type": "EFO",
        "source.efo.consumer.name": "ours",
        "source.efo.lifecycle": "SELF_MANAGED",
        "source.efo.subscription.timeout": "7 s",
        "source.efo.deregister.timeout": "8 s",
        "source.efo.describe.retry-strategy.attempts.max": "9",
        "source.efo.describe.retry-strategy.delay.min": "10 ms",
        "source.efo.describe.retry-strategy.delay.max": "11 ms",
        "source.shard.discovery.interval": "12 s",
        "source.shard.get-records.max-record-count": "13",
        "source.reader.empty-records-fetch-interval": "14 s",
    }
    settings = build("kinesis", NEW | given).source_settings()
    own = settings.fan_out
    assert (own.name, own.lifecycle, own.removed) == ("ours", Lifecycle.SELF_MANAGED, False)
    waits = (own.silence, own.removal_timeout, settings.discovery, settings.pause)
    assert [each.total_seconds() for each in waits] == [7, 8, 12, 14]
    millisecond = timedelta(milliseconds=1)
    assert own.describing == Backoff(9, 10 * millisecond, 11 * millisecond)
    assert settings.limit == 13


def test_what_is_said_reaches_the_legacy_source():
    given = {
        "scan.shard.discovery.intervalmillis": "7000",
        "scan.shard.getrecords.maxrecordcount": "8",
        "scan.shard.getrecords.intervalmillis": "9000",
    }
    settings = build("kinesis-legacy", OLD | given).source_settings()
    found = (settings.discovery.total_seconds(), settings.limit, settings.pause.total_seconds())
    assert found == (7, 8, 9)


@pytest.mark.parametrize(("connector", "given"), [("kinesis", NEW), ("kinesis-legacy", OLD)])
@pytest.mark.parametrize("prefix", ["sink.http-client", "aws.http-client"])
def test_what_is_said_reaches_the_sink(connector, given, prefix):
    given = given | {
        f"{prefix}.max-concurrency": "3",
        f"{prefix}.read-timeout": "4000",
        "sink.partitioner-field-delimiter": "--",
        "sink.batch.max-size": "5",
        "sink.requests.max-inflight": "6",
        "sink.requests.max-buffered": "7",
        "sink.flush-buffer.size": "2000000",
        "sink.flush-buffer.timeout": "8",
        "sink.fail-on-error": "true",
        "aws.trust.all.certificates": "true",
    }
    settings = build(connector, given)._sink()
    assert settings.in_flight == 3  # a request takes a connection
    assert (settings.read_timeout.total_seconds(), settings.delimiter) == (4, "--")
    assert (settings.batch_size, settings.buffered, settings.flush_bytes) == (5, 7, 2_000_000)
    assert (settings.flush_after.microseconds, settings.fail_on_error) == (8000, True)
    assert not settings.endpoint.verify
    given[f"{prefix}.max-concurrency"] = "10000"
    assert build(connector, given)._sink().in_flight == 6


# --- what is wrong ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connector", "expected"),
    [("kinesis", {"stream.arn", "aws.region", "format"}), ("kinesis-legacy", {"stream", "format"})],
)
def test_all_required_options_are_told_at_once(connector, expected):
    missing = {each.split(":")[0] for each in problems(connector, {}) if "but missing" in each}
    assert missing == expected


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
            {"source.reader.type": "EFO", "source.efo.consumer.name": ""},
            "source.efo.consumer.name: required when 'source.reader.type' is 'EFO'",
        ),
        (
            {"source.shard.get-records.max-record-count": "0"},
            "source.shard.get-records.max-record-count: '0' must be between 1 and 10000",
        ),
        (
            {"source.shard.get-records.max-record-count": "10001"},
            "source.shard.get-records.max-record-count: '10001' must be between 1 and 10000",
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
            OLD | {"scan.shard.consumer.error.recoverable[0].class": "java.io.IOException"},
            "scan.shard.consumer.error.recoverable[0].class: unknown option; a list of exceptions "
            "is written as 'scan.shard.consumer.error.recoverable[0].exception'",
        ),
        (
            OLD | {"scan.stream.recordpublisher": "PUSH"},
            "scan.stream.recordpublisher: 'PUSH' is not one of POLLING, EFO",
        ),
        (
            OLD | {"scan.stream.efo.registration": "LATER"},
            "scan.stream.efo.registration: 'LATER' is not one of LAZY, EAGER, NONE",
        ),
        (
            OLD | {"scan.stream.recordpublisher": "EFO", "scan.stream.efo.registration": "EAGER"},
            "scan.stream.efo.consumername: required when 'scan.stream.efo.registration' is 'EAGER'",
        ),
        (
            OLD | {"scan.shard.getrecords.intervalmillis": "300000"},
            "scan.shard.getrecords.intervalmillis: '300000' must be between 0 and 299999",
        ),
        (
            OLD | {"sink.http-client.protocol.version": "HTTP3"},
            "sink.http-client.protocol.version: 'HTTP3' is not one of HTTP1_1, HTTP2",
        ),
    ],
)
def test_wrong_options_of_the_legacy_connector(given, expected):
    assert expected in problems("kinesis-legacy", given)


UNREADABLE = "' neither has the format {} nor is a number of seconds since 1970, such as "
AT = {"scan.stream.initpos": "AT_TIMESTAMP"}
WHEN, HOW = "scan.stream.initpos-timestamp", "scan.stream.initpos-timestamp-format"


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({}, f"{WHEN}: required when the initial position is 'AT_TIMESTAMP'"),
        ({WHEN: "bad"}, f"{WHEN}: 'bad" + UNREADABLE.format("yyyy-MM-dd'T'HH:mm:ss.SSSXXX")),
        ({WHEN: "-1.0"}, f"{WHEN}: '-1.0" + UNREADABLE.format("yyyy-MM-dd'T'HH:mm:ss.SSSXXX")),
        ({WHEN: "1a", HOW: "yyyy"}, f"{WHEN}: '1a" + UNREADABLE.format("yyyy")),
        ({WHEN: "2016", HOW: "InvalidPattern"}, f"{HOW}: 'I' is not a known part of a date pat"),
        ({WHEN: "9999999999"}, f"{WHEN}: '9999999999' lies in the future; use 'LATEST' to start"),
    ],
)
def test_a_wrong_start_is_refused_by_the_legacy_connector(extra, expected):
    (found,) = problems("kinesis-legacy", OLD | AT | extra)
    assert found.startswith(expected)


@pytest.mark.parametrize(
    "extra",
    [
        {WHEN: "2016-04-04T19:58:46.480-00:00"},
        {WHEN: "1459799926.480"},
        {WHEN: "20160404195846480", HOW: "yyyyMMddHHmmssSSS"},
    ],
)
def test_a_right_start_reaches_the_legacy_source(extra):
    settings = build("kinesis-legacy", OLD | AT | extra).source_settings()
    assert settings.timestamp == datetime(2016, 4, 4, 19, 58, 46, 480000, UTC)


NUMBERS = [
    each
    for each in declared(KinesisLegacy)
    if each.hint in (int, float) and each.spec.key.startswith("scan.")
]


def test_all_numbers_of_the_legacy_connector_are_numbers():
    assert len(NUMBERS) == 45
    assert set(problems("kinesis-legacy", OLD | {each.spec.key: "x" for each in NUMBERS})) == {
        f"{each.spec.key}: 'x' is not {'a whole number' if each.hint is int else 'a number'}"
        for each in NUMBERS
    }


def test_no_number_of_the_legacy_connector_is_negative():
    keys = [each.spec.key for each in NUMBERS]
    found = problems("kinesis-legacy", OLD | dict.fromkeys(keys, "-1"))
    keys.remove("scan.shard.idle.interval")  # where -1 is for never
    assert [each.partition(" must be ")[0] for each in found] == [f"{key}: '-1'" for key in keys]


@pytest.mark.parametrize("value", ["0", "10001"])
def test_a_read_of_a_legacy_shard_gives_between_one_and_ten_thousand_records(value):
    key = "scan.shard.getrecords.maxrecordcount"
    (found,) = problems("kinesis-legacy", OLD | {key: value})
    assert found == f"{key}: '{value}' must be between 1 and 10000"


@pytest.mark.parametrize(
    "given", [{"aws.region": "us-east-1"}, {"aws.endpoint": "http://there"}, {}]
)
def test_a_legacy_stream_is_found_by_its_region_or_its_endpoint(given):
    stream = {"stream": "orders", "format": "json"}
    if not given:
        assert problems("kinesis-legacy", stream) == [
            "aws.region: set it, or 'aws.endpoint', or both"
        ]
        return
    service = build("kinesis-legacy", stream | given).source_settings().endpoint
    assert (service.region, service.url) == (given.get("aws.region"), given.get("aws.endpoint"))


def test_a_consumer_that_exists_is_found_by_the_name_of_its_stream():
    arns = {name: f"{NEW['stream.arn']}/consumer/{name}:1" for name in ("orders", "others")}
    given = {f"scan.stream.efo.consumerarn.{name}": arn for name, arn in arns.items()}
    given |= {"scan.stream.recordpublisher": "EFO", "scan.stream.efo.registration": "NONE"}
    own = build("kinesis-legacy", OLD | given).source_settings().fan_out
    assert (own.arn, own.lifecycle) == (arns["orders"], Lifecycle.SELF_MANAGED)
    del given["scan.stream.efo.consumerarn.orders"]
    assert problems("kinesis-legacy", OLD | given) == [
        "scan.stream.efo.consumerarn.orders: required when 'scan.stream.efo.registration' is 'NONE'"
    ]


@pytest.mark.parametrize("prefix", ["scan.", ""])
def test_exceptions_to_be_tried_again_are_taken_with_a_warning(prefix):
    given = {
        f"{prefix}shard.consumer.error.recoverable[0].exception": "java.net.UnknownHostException",
        f"{prefix}shard.consumer.error.recoverable[1].exception": "com.example.Outer$Inner",
    }
    with pytest.warns(OptionWarning, match="recoverable' has no effect: passing faults are alwa"):
        build("kinesis-legacy", OLD | given)


@pytest.mark.parametrize(
    ("connector", "given", "extra"),
    [
        ("kinesis", NEW, {"source.shard-assigner": "uniform"}),
        ("kinesis", NEW, {"sink.http-client.protocol.version": "HTTP1_1"}),
        ("kinesis-legacy", OLD, {"scan.shard-assigner": "uniform"}),
        ("kinesis-legacy", OLD, {"source.shard-assigner": "ours"}),
        ("kinesis-legacy", OLD, {"scan.stream.efo.http-client.max-concurrency": "7"}),
        ("kinesis-legacy", OLD, {"scan.shard.adaptivereads": "true"}),
        ("kinesis-legacy", OLD, {"scan.shard.idle.interval": "1000"}),
        ("kinesis-legacy", OLD, {"scan.watermark.sync.interval": "1000"}),
        ("kinesis-legacy", OLD, {"scan.watermark.lookahead.millis": "1000"}),
        ("kinesis-legacy", OLD, {"scan.watermark.sync.queue.capacity": "7"}),
        ("kinesis-legacy", OLD, {"sink.http-client.protocol.version": "HTTP2"}),
    ],
)
def test_options_without_effect_are_taken(connector, given, extra):
    plain, said = build(connector, given), build(connector, given | extra)
    assert said.source_settings() == plain.source_settings()
    assert said._sink() == plain._sink()


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


RENAMED = [
    ("sink.producer.record-max-buffered-time", "sink.flush-buffer.timeout", "flush_after", 70, 80),
    ("sink.producer.collection-max-size", "sink.batch.max-size", "batch_size", 70, 80),
    ("sink.producer.collection-max-count", "sink.requests.max-inflight", "in_flight", 70, 80),
    ("sink.producer.fail-on-error", "sink.fail-on-error", "fail_on_error", True, False),
]


@pytest.mark.parametrize(("old", "new", "field", "first", "second"), RENAMED)
def test_keys_of_the_old_producer_still_work_with_a_warning(old, new, field, first, second):
    given = NEW | {old: str(first).lower()}
    kept = dict(given)
    with pytest.warns(OptionWarning, match=f"'{old}' is deprecated; write '{new}'"):
        plain = build("kinesis", given)
    with pytest.warns(OptionWarning, match=f"'{old}' is deprecated; write '{new}'"):
        outranked = build("kinesis", given | {new: str(second).lower()})
    assert (getattr(plain, field), getattr(outranked, field)) == (first, second)
    assert given == kept


def test_an_endpoint_of_the_table_outranks_that_of_the_old_producer():
    given = NEW | {
        "sink.producer.kinesis-endpoint": "example.com",
        "sink.producer.kinesis-port": "4567",
        "sink.producer.verify-certificate": "false",
        "aws.endpoint": "http://there",
    }
    kept = dict(given)
    assert build("kinesis", given).service("us-east-1").url == "http://there"
    assert given == kept


def test_an_unknown_key_of_the_old_producer_is_told_and_ignored():
    with pytest.warns(OptionWarning, match=r"^'sink.producer.thread-pool' is not known to this si"):
        found = build("kinesis", NEW | {"sink.producer.thread-pool": "7"})
    assert found._sink() == build("kinesis", NEW)._sink()


@pytest.mark.parametrize(
    ("given", "url", "verify"),
    [
        ({"kinesis-endpoint": "example.com"}, "https://example.com", True),
        (
            {"kinesis-endpoint": "example.com", "kinesis-port": "4567"},
            "https://example.com:4567",
            True,
        ),
        ({"kinesis-port": "4567"}, None, True),
        ({"verify-certificate": "FALSE"}, None, False),
        ({"verify-certificate": "true"}, None, True),
    ],
)
def test_the_old_producers_endpoint_and_certificates_are_translated(given, url, verify):
    given = {f"sink.producer.{key}": value for key, value in given.items()}
    service = build("kinesis", NEW | given).service("us-east-1")
    assert (service.url, service.verify) == (url, verify)


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
