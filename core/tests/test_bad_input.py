"""What a user reads for each mistake that any connector's table can contain: the exact text."""

import types

import pytest
from streamcore import (
    Connector,
    Format,
    OptionError,
    PluginError,
    Table,
    at_least,
    hookimpl,
    option,
)
from streamcore.registry import Provider, Registry
from streamcore.spark.carrier import unpack

DESCRIBE = "Run 'streamcore describe connector stream' to see every option."


class Json(Format):
    """A format."""

    identifier = "json"

    depth: int = option("depth", "How deep it looks.", default=3)

    def problems(self):
        if self.depth > 9:
            raise RecursionError("too deep")
        yield from ()


class Stream(Connector):
    """A connector that reads and writes."""

    identifier = "stream"

    servers: str = option("servers", "Where it is.")
    topic: str = option("topic", "What it is called.")
    format: Format = option("format", "How values are encoded.", also=("value.format",))
    parallelism: int | None = option(
        "scan.parallelism", "How many tasks read.", default=None, check=at_least(1)
    )

    def reader(self, table):
        return None

    def writer(self, table):
        return None


class Tap(Connector):
    """A connector that only reads, and only in batches."""

    identifier = "tap"

    def reader(self, table):
        return None


class Drain(Connector):
    """A connector that only writes."""

    identifier = "drain"

    def writer(self, table):
        return None


GOOD = {"servers": "h:1", "topic": "t", "format": "json"}


@pytest.fixture(scope="module")
def registry():
    plugin = types.ModuleType("acme")
    plugin.register_formats = hookimpl(lambda: [Json])
    plugin.register_connectors = hookimpl(lambda: [Stream, Tap, Drain])
    return Registry([Provider("acme", "1.0", "acme", lambda: plugin)])


def said(registry, **given):
    options = {**GOOD, **{key.replace("__", "."): text for key, text in given.items()}}
    with pytest.raises((OptionError, PluginError)) as error:
        registry.build("connector", "stream", {k: v for k, v in options.items() if v is not None})
    return str(error.value)


def test_g1_no_connector():
    with pytest.raises(OptionError) as error:
        unpack({"topic": "t"})
    assert str(error.value) == (
        "the table has 1 problem:\n"
        "  connector: required but missing; it names the plugin to use, such as 'kafka'\n"
        "Run 'streamcore list-plugins --kind connector' to see which are installed."
    )


def test_g2_unknown_connector(registry):
    with pytest.raises(PluginError) as error:
        registry.build("connector", "streem", {})
    assert str(error.value) == (
        "no connector called 'streem'.\nDid you mean 'stream'?\nInstalled: drain, stream, tap"
    )


def test_g3_a_connector_that_lacks_one_side():
    table = Table(())
    with pytest.raises(PluginError) as error:
        Tap().writer(table)
    assert str(error.value) == (
        "connector 'tap' can only be used as a source: it does not support writes."
    )
    with pytest.raises(PluginError) as error:
        Drain().stream_reader(table)
    assert str(error.value) == (
        "connector 'drain' can only be used as a sink: it does not support reads."
    )
    with pytest.raises(PluginError) as error:
        Tap().stream_reader(table)
    assert str(error.value) == "connector 'tap' does not support streaming reads."


def test_g4_required_options_missing(registry):
    assert said(registry, servers=None, topic=None) == (
        "connector 'stream' has 2 problems:\n"
        "  servers: required but missing (Where it is)\n"
        "  topic: required but missing (What it is called)\n" + DESCRIBE
    )


def test_g5_unknown_options(registry):
    assert said(registry, topics="t", json__dept="1") == (
        "connector 'stream' has 2 problems:\n"
        "  json.dept: unknown option; did you mean 'json.depth'?\n"
        "  topics: unknown option; did you mean 'topic'?\n"
        "Supported options: format, json.depth, property-version, scan.parallelism, "
        "scan.watermark.alignment.group, scan.watermark.alignment.max-drift, "
        "scan.watermark.alignment.update-interval, scan.watermark.emit.strategy, "
        "scan.watermark.idle-timeout, servers, topic, value.format\n" + DESCRIBE
    )


def test_g6_bad_values(registry):
    assert said(
        registry,
        json__depth="deep",
        scan__watermark__emit__strategy="never",
        **{"scan.watermark.idle-timeout": "long", "property-version": "2"},
    ) == (
        "connector 'stream' has 4 problems:\n"
        "  json.depth: 'deep' is not a whole number\n"
        "  property-version: '2' must be 1\n"
        "  scan.watermark.emit.strategy: 'never' is not one of on-periodic, on-event\n"
        "  scan.watermark.idle-timeout: 'long' is not a duration such as '10 s' or '5 min'\n"
        + DESCRIBE
    )


def test_g7_unknown_format(registry):
    assert said(registry, format="jsn") == (
        "connector 'stream' has 1 problem:\n"
        "  format: no format called 'jsn'. Did you mean 'json'? Installed: json\n" + DESCRIBE
    )


def test_g7_a_known_format_that_is_not_installed(registry):
    assert said(registry, format=None, value__format="avro") == (
        "connector 'stream' has 1 problem:\n"
        "  value.format: no format called 'avro'. Install it: pip install streamcore-formats. "
        "Installed: json\n" + DESCRIBE
    )


def test_g8_neither_spelling_of_a_required_format(registry):
    assert said(registry, format=None) == (
        "connector 'stream' has 1 problem:\n"
        "  format: required but missing, or as 'value.format' (How values are encoded)\n" + DESCRIBE
    )


def test_g9_a_format_that_cannot_be_set_up(registry):
    assert said(registry, format=None, value__format="json", value__json__depth="10") == (
        "connector 'stream' has 1 problem:\n"
        "  value.json.*: format 'json' could not be set up: RecursionError: too deep\n" + DESCRIBE
    )


@pytest.mark.parametrize(
    ("given", "together"),
    [
        ({"scan.watermark.alignment.group": "g"}, True),
        ({"scan.watermark.alignment.max-drift": "1 s"}, True),
        ({"scan.watermark.alignment.update-interval": "1 s"}, True),
        (
            {"scan.watermark.alignment.group": "g", "scan.watermark.alignment.max-drift": "1 s"},
            False,
        ),
    ],
)
def test_g10_watermark_alignment(registry, given, together):
    pair = (
        "  scan.watermark.alignment.group: "
        "must be set together with 'scan.watermark.alignment.max-drift'\n"
    )
    count = "2 problems" if together else "1 problem"
    assert said(registry, **given) == (
        f"connector 'stream' has {count}:\n"
        + (pair if together else "")
        + "  scan.watermark.alignment.group: Spark cannot align watermarks between sources; "
        "remove the 'scan.watermark.alignment.*' options\n" + DESCRIBE
    )


@pytest.mark.parametrize("text", ["0", "-3"])
def test_g11_parallelism_below_one(registry, text):
    assert said(registry, **{"scan.parallelism": text}) == (
        f"connector 'stream' has 1 problem:\n"
        f"  scan.parallelism: '{text}' must be at least 1\n" + DESCRIBE
    )
