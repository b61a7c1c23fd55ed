"""From the options of a table to a configured plugin: what is read, and what is said."""

import warnings
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum

import pytest
from streamcore import (
    ByteSize,
    Connector,
    Format,
    OptionError,
    OptionWarning,
    Partitioner,
    PluginError,
    Problem,
    Secret,
    at_least,
    between,
    option,
)
from streamcore.filling import build
from streamcore.options import declared


class Startup(Enum):
    EARLIEST = "earliest-offset"
    LATEST = "latest-offset"


class Plain(Format):
    """A format with options of its own."""

    identifier = "plain"

    width: int = option("width", "How wide.", default=80, check=at_least(1))
    strict: bool = option("fail-on-missing", "Whether a hole is an error.", default=False)


class Fragile(Format):
    """A format whose set-up fails."""

    identifier = "fragile"

    token: Secret | None = option("token", "A token.", default=None)

    def __post_init__(self):
        raise ValueError(f"no such thing as {self.token.reveal() if self.token else 'luck'}")


class ByColumn(Partitioner):
    """Partitions by a column."""

    identifier = "by-column"

    column: str = option("column", "Which column.")


class Toy(Connector):
    """A connector with one option of each type."""

    identifier = "toy"

    servers: str = option("properties.servers", "Where it is.")
    topic: tuple[str, ...] = option("topic", "What to read.", default=())
    pattern: str | None = option("topic-pattern", "What else to read.", default=None)
    startup: Startup = option("scan.startup.mode", "Where to start.", default=Startup.LATEST)
    every: timedelta = option("scan.every", "An interval.", default=timedelta(seconds=10))
    size: ByteSize = option("sink.size", "A size.", default=ByteSize(1024))
    ratio: float = option("ratio", "A ratio.", default=0.5, check=between(0, 1))
    parallelism: int | None = option(
        "scan.parallelism", "How many tasks.", default=None, check=at_least(1)
    )
    initial: str = option("scan.stream.initPos", "A key in camel case.", default="LATEST")
    timeout: timedelta = option(
        "sink.timeout",
        "How long to wait.",
        default=timedelta(seconds=3),
        check=at_least(1),
        fallback=("properties.timeout",),
        was=("timeout",),
    )
    password: Secret | None = option("password", "A secret.", default=None)
    format: Format = option("format", "How values are encoded.", also=("value.format",))
    key_format: Format | None = option("key.format", "How keys are encoded.", default=None)
    partitioner: Partitioner | None = option("sink.partitioner", "Who decides.", default=None)
    properties: Mapping[str, str] = option("properties.*", "Passed on as they are.")

    def problems(self):
        yield from super().problems()
        if bool(self.topic) == bool(self.pattern):
            yield "set exactly one of 'topic' and 'topic-pattern'"
        if self.startup is Startup.EARLIEST and self.pattern:
            yield Problem("scan.startup.mode", "'earliest-offset' needs 'topic'")


class Late(Toy):
    """A connector that looks at a wrong option only after it has looked at others."""

    identifier = "late"

    def problems(self):
        if not self.topic:
            yield Problem("topic", "say which")
        if self.timeout > timedelta(hours=1):
            yield Problem("sink.timeout", "too long")
        yield "never reached while the timeout is wrong"


class Nesting(Connector):
    """A connector whose plugin sits below its own key."""

    identifier = "nesting"

    provider: ByColumn = option("aws.provider", "Who decides.", below=True)


PLUGINS = {plugin.identifier: plugin for plugin in (Plain, Fragile, ByColumn)}
GOOD = {"properties.servers": "h:1", "topic": "t", "format": "plain"}


def find(kind, name):
    if name in PLUGINS:
        return PLUGINS[name]
    raise PluginError(f"no {kind} called '{name}'.\nInstalled: {', '.join(sorted(PLUGINS))}")


def toy(**given):
    options = {**GOOD, **{key.replace("__", "."): text for key, text in given.items()}}
    return build(Toy, {key: text for key, text in options.items() if text is not None}, find)


def complaints(cls, given):
    with pytest.raises(OptionError) as error:
        build(cls, given, find)
    return [str(problem) for problem in error.value.problems]


def test_every_type_is_read():
    got = build(
        Toy,
        {
            **GOOD,
            "topic": "a; 'b;c'",
            "scan.startup.mode": "Earliest-Offset",
            "scan.every": "PT5M",
            "sink.size": "64 kb",
            "ratio": "0.25",
            "scan.parallelism": "3",
            "password": "hunter2",
            "properties.client.id": "me",
        },
        find,
    )
    assert got.topic == ("a", "b;c")
    assert got.startup is Startup.EARLIEST
    assert got.every == timedelta(minutes=5)
    assert got.size == 65536
    assert got.ratio == 0.25
    assert got.parallelism == 3
    assert got.password == Secret("hunter2")
    assert got.properties == {"servers": "h:1", "client.id": "me"}


def test_values_of_python_are_read_as_they_are_written_in_sql():
    got = build(Plain, {"width": 7, "fail-on-missing": True}, find)
    assert (got.width, got.strict) == (7, True)
    got = toy(ratio=0.25)
    assert got.ratio == 0.25
    assert complaints(Plain, {"width": False}) == complaints(Plain, {"width": "false"})


def test_what_is_absent_takes_its_default():
    got = toy()
    assert (got.startup, got.size, got.parallelism) == (Startup.LATEST, 1024, None)
    assert got.format == Plain(width=80, strict=False)


def test_keys_are_found_however_spark_has_changed_their_case():
    assert toy(**{"scan.stream.initpos": "TRIM"}).initial == "TRIM"
    assert toy(**{"SCAN.Stream.INITPOS": "TRIM"}).initial == "TRIM"


def test_a_key_given_in_two_cases_is_refused():
    assert complaints(Toy, {**GOOD, "Topic": "x"}) == [
        "topic: given twice, also as 'Topic'; set one"
    ]


def test_a_synonym_works_and_moves_the_options_of_the_plugin_it_names():
    got = toy(format=None, value__format="plain", **{"value.plain.width": "7"})
    assert got.format.width == 7


def test_two_synonyms_must_agree():
    assert toy(**{"value.format": "plain"}).format == Plain()
    assert complaints(Toy, {**GOOD, "value.format": "fragile"})[0] == (
        "format: 'format' and 'value.format' mean the same; set one"
    )


def test_a_fallback_key_is_read_only_when_the_main_one_is_absent():
    assert toy(**{"properties.timeout": "9 s"}).timeout == timedelta(seconds=9)
    both = toy(**{"properties.timeout": "9 s", "sink.timeout": "4 s"})
    assert both.timeout == timedelta(seconds=4)


def test_a_deprecated_key_works_with_a_warning():
    with pytest.warns(OptionWarning, match=r"^'timeout' is deprecated; write 'sink.timeout'$"):
        assert toy(timeout="9 s").timeout == timedelta(seconds=9)


def test_current_keys_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert toy(**{"sink.timeout": "9 s"}).timeout == timedelta(seconds=9)


def test_nested_plugins_read_their_options_beside_the_key_that_names_them():
    got = toy(
        **{
            "plain.width": "1",
            "key.format": "plain",
            "key.plain.width": "2",
            "sink.partitioner": "by-column",
            "sink.by-column.column": "tenant",
        }
    )
    assert (got.format.width, got.key_format.width) == (1, 2)
    assert got.partitioner == ByColumn(column="tenant")


def test_a_nested_plugin_can_read_its_options_below_its_own_key():
    got = build(Nesting, {"aws.provider": "by-column", "aws.provider.by-column.column": "c"}, find)
    assert got.provider == ByColumn(column="c")


def test_a_nested_plugin_without_a_prefix_of_its_own_shares_its_parents_space():
    class Bare(Partitioner):
        """Reads its options without a prefix."""

        identifier = "bare"
        option_prefix = ""
        region: str = option("region", "Where.")

    class Holder(Connector):
        """Holds it."""

        identifier = "holder"
        provider: Partitioner = option("aws.provider", "Who.", default="bare")

    assert build(Holder, {"aws.region": "r"}, lambda *_: Bare).provider == Bare(region="r")


def test_options_that_are_wrong_together_are_told_with_those_that_are_wrong_alone():
    given = {"properties.servers": "h:1", "format": "plain", "sink.timeout": "soon"}
    found = complaints(Late, given)
    assert found[0].startswith("sink.timeout: 'soon' is not")
    assert found[1:] == ["topic: say which"]


def test_all_problems_come_in_one_error_with_exact_text():
    with pytest.raises(OptionError) as error:
        build(
            Toy,
            {
                "scan.startup.mode": "earliest",
                "scan.every": "soon",
                "sink.size": "huge",
                "scan.parallelism": "0",
                "ratio": "2",
                "sink.timeout": "10 ms",
                "key.format": "plian",
                "sink.partitioner": "by-column",
                "topic": "'a",
                "topic-patern": "a.*",
            },
            find,
        )
    text = str(error.value).splitlines()
    assert text[:-2] == [
        "connector 'toy' has 12 problems:",
        "  properties.servers: required but missing (Where it is)",
        "  topic: ''a' is not a list separated by ';'",
        "  scan.startup.mode: 'earliest' is not one of earliest-offset, latest-offset",
        "  scan.every: 'soon' is not a duration such as '10 s' or '5 min'",
        "  sink.size: 'huge' is not a size such as '64 kb' or '5 mb'",
        "  ratio: '2' must be between 0 and 1",
        "  scan.parallelism: '0' must be at least 1",
        "  sink.timeout: '10 ms' must be at least 1 s",
        "  format: required but missing, or as 'value.format' (How values are encoded)",
        "  key.format: no format called 'plian'. Installed: by-column, fragile, plain",
        "  sink.by-column.column: required but missing (Which column)",
        "  topic-patern: unknown option; did you mean 'topic-pattern'?",
    ]
    assert text[-1] == "Run 'streamcore describe connector toy' to see every option."


def test_an_unknown_option_lists_the_supported_ones_sorted():
    with pytest.raises(OptionError) as error:
        build(Nesting, {"aws.provider": "plain", "nothing-like-it": "1"}, find)
    assert str(error.value) == (
        "connector 'nesting' has 1 problem:\n"
        "  nothing-like-it: unknown option\n"
        "Supported options: aws.provider, aws.provider.plain.fail-on-missing, "
        "aws.provider.plain.width, property-version, scan.watermark.alignment.group, "
        "scan.watermark.alignment.max-drift, scan.watermark.alignment.update-interval, "
        "scan.watermark.emit.strategy, scan.watermark.idle-timeout\n"
        "Run 'streamcore describe connector nesting' to see every option."
    )


def test_deprecated_keys_are_marked_among_the_supported_ones():
    with pytest.raises(OptionError) as error:
        toy(zzz="1")
    supported = error.value.hint.splitlines()[0].split(", ")
    assert "timeout (deprecated)" in supported
    assert "sink.timeout" in supported


def test_checks_across_options_run_once_each_option_is_fine():
    assert complaints(Toy, {**GOOD, "topic-pattern": "t.*"}) == [
        "set exactly one of 'topic' and 'topic-pattern'"
    ]
    mode = {"scan.startup.mode": "earliest-offset", "topic-pattern": "t.*"}
    given = {key: text for key, text in GOOD.items() if key != "topic"} | mode
    assert complaints(Toy, given) == ["scan.startup.mode: 'earliest-offset' needs 'topic'"]


def test_a_plugin_that_fails_while_it_is_set_up_is_named_with_its_option_space():
    given = {**GOOD, "key.format": "fragile"}
    with pytest.raises(OptionError) as error:
        build(Toy, given, find)
    assert [str(problem) for problem in error.value.problems] == [
        "key.fragile.*: format 'fragile' could not be set up: ValueError: no such thing as luck"
    ]
    assert isinstance(error.value.__cause__, ValueError)


def test_options_are_declared_own_before_inherited():
    keys = [each.spec.key for each in declared(Nesting)]
    assert keys[0] == "aws.provider"
    assert keys[1:3] == ["property-version", "scan.watermark.emit.strategy"]


def test_defaults_are_shown_as_a_user_would_write_them():
    texts = {each.spec.key: each.default_text() for each in declared(Toy)}
    assert texts["scan.every"] == "10 s"
    assert texts["sink.size"] == "1 kb"
    assert texts["scan.startup.mode"] == "latest-offset"
    assert (texts["properties.*"], texts["topic"], texts["format"]) == ("", "", "")


def test_an_option_error_survives_pickling():
    import pickle

    with pytest.raises(OptionError) as error:
        toy(ratio="2")
    copy = pickle.loads(pickle.dumps(error.value))
    assert str(copy) == str(error.value)
    assert copy.problems == [Problem("ratio", "'2' must be between 0 and 1")]
