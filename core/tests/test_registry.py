"""Who provides what: five states, one winner per identifier, and errors that say what to do."""

import re
import sys
import threading
import time
import types
import warnings

import click
import pytest
from streamcore import ClashWarning, Connector, Format, Partitioner, PluginError, hookimpl, option
from streamcore import registry as registry_module
from streamcore.registry import Provider, Registry


class Json(Format):
    """One json."""

    identifier = "json"


class OtherJson(Format):
    """Another json."""

    identifier = "json"


class Lines(Format):
    """Lines."""

    identifier = "lines"


def named(name, base=Format):
    return type("Named", (base,), {"identifier": name, "__doc__": "Named."})


def module(hook="register_formats", returns=()):
    made = types.ModuleType("acme_plugin")
    setattr(made, hook, hookimpl(lambda: returns))
    return made


def provider(distribution, *formats, name="plugin", hook="register_formats", requires=()):
    made = module(hook, list(formats))
    return Provider(distribution, "1.0", name, lambda: made, requires)


def loading(distribution, load):
    return Provider(distribution, "1.0", "plugin", load)


def states(registry):
    return {(c.distribution, c.identifier): c.status for c in registry.claims}


def reason(registry, distribution):
    return next(c.reason for c in registry.claims if c.distribution == distribution)


@pytest.fixture(autouse=True)
def clashes_are_errors_unless_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ClashWarning)
        yield


# --- clashes -----------------------------------------------------------------------


def test_owner_wins_and_the_clash_is_reported():
    for order in (1, -1):
        providers = [provider("acme-json", OtherJson), provider("streamcore-formats", Json)][
            ::order
        ]
        with pytest.warns(ClashWarning) as warned:
            registry = Registry(providers)
        assert registry.find("format", "json") is Json
        assert states(registry) == {
            ("streamcore-formats", "json"): "active",
            ("acme-json", "json"): "shadowed",
        }
        assert [str(w.message) for w in warned] == [
            "format 'json' is claimed by streamcore-formats 1.0 (active) and acme-json 1.0 "
            "(shadowed). Uninstall one, or set STREAMCORE_PREFER=acme-json to switch."
        ]
        assert reason(registry, "acme-json") == "streamcore-formats 1.0 is active"


def test_preference_wins_over_the_owner():
    providers = [provider("streamcore-formats", Json), provider("acme-json", OtherJson)]
    with pytest.warns(ClashWarning, match=r"acme-json 1.0 \(active\)"):
        registry = Registry(providers, prefer=["Acme_JSON"])
    assert registry.find("format", "json") is OtherJson


def test_the_first_preference_counts_most():
    providers = [provider("b", named("x")), provider("a", named("x")), provider("c", named("x"))]
    with pytest.warns(ClashWarning):
        registry = Registry(providers, prefer=["c", "a"])
    assert registry.active["format", "x"].distribution == "c"


def test_among_strangers_the_name_decides_and_never_the_install_order():
    one, two = provider("zeta", named("x")), provider("alpha", named("x"))
    for providers in ([one, two], [two, one]):
        with pytest.warns(ClashWarning):
            registry = Registry(providers)
        assert registry.active["format", "x"].distribution == "alpha"


def test_strict_turns_every_clash_into_one_error():
    providers = [
        provider("acme", OtherJson, named("csv")),
        provider("streamcore-formats", Json, named("csv")),
    ]
    with pytest.raises(PluginError) as error:
        Registry(providers, strict=True)
    assert [line.partition(" is ")[0] for line in str(error.value).splitlines()] == [
        "format 'csv'",
        "format 'json'",
    ]


def test_no_false_clash():
    same = provider("streamcore-formats", Json)
    again = Provider("streamcore-formats", "1.0", "second", same.load)
    registry = Registry([same, again, provider("two", Lines, named("other"))])
    assert registry.names("format") == ["json", "lines", "other"]
    assert [c.status for c in registry.claims] == ["active"] * 3


def test_one_identifier_of_two_kinds_is_no_clash():
    both = [
        provider("acme", named("raw")),
        provider("acme2", named("raw", Connector), hook="register_connectors"),
    ]
    assert {c.status for c in Registry(both).claims} == {"active"}


def test_a_distribution_that_clashes_with_itself_is_told_so():
    with pytest.warns(ClashWarning) as warned:
        registry = Registry([provider("acme", Json, OtherJson)])
    assert registry.find("format", "json") is Json
    assert str(warned[0].message) == (
        "format 'json' is claimed twice by acme 1.0; one class is ignored. "
        "Report it to its authors."
    )


# --- broken, incompatible, blocked --------------------------------------------------


def fail():
    raise ModuleNotFoundError("No module named 'confluent_kafka'")


def leave():
    sys.exit(3)


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (fail, "ModuleNotFoundError: No module named 'confluent_kafka'"),
        (leave, "called sys.exit(3)"),
        (lambda: module("register_format"), "unknown hook 'register_format'"),
        (lambda: types.ModuleType("empty"), "implements no hook; is @hookimpl missing?"),
        (lambda: module(returns=None), "register_formats returned NoneType, not a list"),
        (lambda: module(returns=Json), "register_formats returned type, not a list"),
    ],
)
def test_a_broken_plugin_is_named_and_takes_nobody_down(load, expected):
    registry = Registry([loading("acme", load), provider("fine", Lines)])
    assert registry.find("format", "lines") is Lines
    assert states(registry)["acme", "plugin"] == "broken"
    assert reason(registry, "acme") == expected


def test_a_hook_that_raises_breaks_only_its_own_distribution():
    broken = types.ModuleType("raises")

    @hookimpl
    def register_formats():
        raise RuntimeError("no licence")

    broken.register_formats = register_formats
    registry = Registry([loading("acme", lambda: broken), provider("fine", Lines)])
    assert reason(registry, "acme") == "RuntimeError: no licence"
    assert registry.names("format") == ["lines"]


@pytest.mark.parametrize(
    ("offer", "expected"),
    [
        (object(), "register_formats returned object, which is not a Format class"),
        (Json(), "register_formats returned Json, which is not a Format class"),
        (
            named("tail", Partitioner),
            "register_formats returned Named, which is not a Format class",
        ),
        (named(""), "identifier '' is not lower-case ASCII words joined by '-'"),
        (named("two words"), "identifier 'two words' is not lower-case ASCII words joined by '-'"),
        (named("my_json"), "identifier 'my_json' is not lower-case ASCII words joined by '-'"),
    ],
)
def test_a_wrong_offer_is_broken_and_its_siblings_work(offer, expected):
    registry = Registry([provider("acme", offer, Lines)])
    broken = next(c for c in registry.claims if c.status == "broken")
    assert (broken.kind, broken.reason) == ("format", expected)
    assert registry.find("format", "lines") is Lines


@pytest.mark.parametrize(
    "name",
    ["Json", "JSON", "jsоn", "ｊson", "json\u200b", "ĵson", "json "],  # noqa: RUF001
)
def test_look_alikes_of_a_known_name_are_flagged(name):
    registry = Registry([provider("evil", named(name)), provider("streamcore-formats", Json)])
    assert registry.find("format", "json") is Json
    assert reason(registry, "evil").endswith("; it looks like 'json' of streamcore-formats")


def test_an_underscore_is_a_look_alike_too():
    upsert = provider("evil", named("upsert_kafka", Connector), hook="register_connectors")
    assert reason(Registry([upsert]), "evil").endswith("'upsert-kafka' of streamcore-upsert-kafka")


def test_plugins_that_hang_are_named_within_five_seconds_however_many():
    release = threading.Event()
    try:
        started = time.monotonic()
        hanging = [loading(name, lambda: release.wait(30)) for name in ("hang-1", "hang-2")]
        registry = Registry([*hanging, provider("fine", Lines)])
        elapsed = time.monotonic() - started
    finally:
        release.set()
    assert elapsed < 6.5
    for name in ("hang-1", "hang-2"):
        assert reason(registry, name) == (
            "did not load within 4.5 s; "
            "if it is slow and does not hang, raise STREAMCORE_LOAD_SECONDS"
        )
    assert registry.find("format", "lines") is Lines


def test_many_that_hang_cost_little_more_than_one(monkeypatch):
    monkeypatch.setenv("STREAMCORE_LOAD_SECONDS", "0.5")
    release = threading.Event()
    try:
        started = time.monotonic()
        hanging = [loading(f"hang-{n}", lambda: release.wait(30)) for n in range(12)]
        registry = Registry([*hanging, provider("fine", Lines)])
        elapsed = time.monotonic() - started
    finally:
        release.set()
    assert elapsed < 3.5  # six seconds if each were waited for
    assert registry.find("format", "lines") is Lines


def test_a_wrong_number_of_seconds_is_a_sentence(monkeypatch):
    monkeypatch.setenv("STREAMCORE_LOAD_SECONDS", "abc")
    expected = "STREAMCORE_LOAD_SECONDS: 'abc' is not a number of seconds, such as 10."
    with pytest.raises(PluginError, match=re.escape(expected)):
        Registry([provider("fine", Lines)])


def test_options_that_cannot_be_read_break_one_plugin_only():
    class Wrong(Format):
        """Its annotation was imported for the type checker alone."""

        identifier = "wrong"
        size: "Elsewhere" = option("size", "How large.", default=1)  # noqa: F821

    registry = Registry([provider("acme", Wrong), provider("fine", Lines)])
    assert states(registry) == {("acme", "wrong"): "broken", ("fine", "lines"): "active"}
    assert reason(registry, "acme") == (
        "the options of Wrong cannot be read: NameError: name 'Elsewhere' is not defined"
    )


def test_what_a_plugin_prints_is_no_part_of_our_output(capsys):
    def load():
        print("hello")
        return module(returns=[Lines])

    assert Registry([loading("acme", load)]).names("format") == ["lines"]
    assert capsys.readouterr() == ("", "hello\n")


def test_half_an_installation_breaks_itself_only(tmp_path, monkeypatch):
    (tmp_path / "acme_half-1.0.dist-info").mkdir()
    half = tmp_path / "acme_half-1.0.dist-info" / "entry_points.txt"
    half.write_text("[streamcore]\nhalf = acme_half\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = registry_module.load(strict=False)
    (claim,) = [claim for claim in registry.claims if claim.identifier == "half"]
    assert (claim.status, claim.reason) == (
        "broken",
        "its installation is damaged, its metadata cannot be read: install it again",
    )
    assert "default" in registry.names("partitioner")


@pytest.mark.parametrize("name", ["run", "sql", "check", "infer", "why", "jobs", "stop", "lag"])
def test_a_stranger_does_not_take_a_command_of_ours(name):
    assert registry_module.OWNERS["command", name] == "streamcore-sql"


def test_a_plugin_for_another_core_is_incompatible_and_not_imported():
    def never():
        raise AssertionError("imported")

    requires = ("click>=8", "streamcore[spark]>=0.9,<1; extra == 'x'", "Streamcore >=2,<3")
    old = Provider("acme", "1.0", "acme", never, requires)
    registry = Registry([old, provider("fine", Lines)], core_version="0.1.0")
    assert states(registry)["acme", "acme"] == "incompatible"
    assert reason(registry, "acme") == "needs Streamcore>=2,<3, this is streamcore 0.1.0"


def test_a_plugin_for_this_core_is_active_also_when_core_is_a_pre_release():
    fits = provider("acme", Lines, requires=("streamcore>=0.1.dev0,<0.2", "not a requirement!!"))
    for version in ("0.1.0", "0.1.3.dev2", "0.1.0rc1"):
        assert Registry([fits], core_version=version).names("format") == ["lines"]


def test_only_listed_distributions_are_imported_and_core_always_is():
    def never():
        raise AssertionError("imported")

    allowed = [provider("Streamcore_Formats", Json), provider("streamcore", Lines)]
    registry = Registry([*allowed, loading("acme", never)], allow=["streamcore-formats"])
    assert states(registry)["acme", "plugin"] == "blocked"
    assert reason(registry, "acme") == "not in STREAMCORE_ALLOW"
    assert registry.names("format") == ["json", "lines"]


# --- what is said when nothing is found --------------------------------------------


def missing(registry, kind, name):
    with pytest.raises(PluginError) as error:
        registry.find(kind, name)
    return str(error.value)


def test_a_missing_plugin_names_the_package_to_install():
    assert missing(Registry([provider("acme", Lines)]), "connector", "kinesis") == (
        "no connector called 'kinesis'.\n"
        "Install it: pip install streamcore-kinesis\n"
        "Installed: none"
    )


def test_a_misspelt_plugin_gets_the_nearest_name_and_the_list():
    registry = Registry([provider("acme", Lines, named("csv"))])
    assert missing(registry, "format", "line") == (
        "no format called 'line'.\nDid you mean 'lines'?\nInstalled: csv, lines"
    )


def test_a_plugin_that_did_not_load_is_said_to_be_broken_not_missing():
    assert missing(Registry([loading("streamcore-kafka", fail)]), "connector", "kafka") == (
        "no connector called 'kafka'.\n"
        "streamcore-kafka 1.0 should provide it but is broken: "
        "ModuleNotFoundError: No module named 'confluent_kafka'.\n"
        "Installed: none"
    )


def test_an_owner_that_is_too_old_should_be_upgraded():
    text = missing(Registry([provider("streamcore-formats", Json)]), "format", "avro")
    assert "streamcore-formats 1.0 lacks it: pip install --upgrade streamcore-formats" in text


def test_a_stranger_that_did_not_load_is_suspected():
    text = missing(Registry([loading("acme-xml", fail)]), "format", "xml")
    assert "acme-xml 1.0 might provide it but is broken: ModuleNotFoundError" in text


def test_an_unknown_kind_lists_the_kinds():
    assert missing(Registry([]), "sink", "kafka") == (
        "no kind of plugin called 'sink'.\nKinds: connector, credentials, format, partitioner"
    )


def test_identifiers_are_found_in_other_spellings():
    registry = Registry([provider("acme", named("debezium-json"))])
    for name in ("debezium-json", "DEBEZIUM-JSON", " debezium_json "):
        assert registry.find("format", name).identifier == "debezium-json"


# --- classes by dotted path ----------------------------------------------------------


@pytest.mark.parametrize("path", ["streamcore.partitioners.Fixed", "streamcore.partitioners:Fixed"])
def test_a_partitioner_can_be_named_by_its_dotted_path(path):
    assert Registry([]).find("partitioner", path).identifier == "fixed"
    assert Registry([], allow=[]).find("partitioner", path).identifier == "fixed"


@pytest.fixture
def my_module(monkeypatch):
    made = types.ModuleType("my_partitioners")
    made.Nameless = type("Nameless", (Partitioner,), {"__doc__": "No name."})
    made.Wrong = Lines
    monkeypatch.setitem(sys.modules, "my_partitioners", made)


@pytest.mark.usefixtures("my_module")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "nowhere.to.Go",
            "could not find and load class 'nowhere.to.Go': "
            "ModuleNotFoundError: No module named 'nowhere'.",
        ),
        (
            "my_partitioners.Absent",
            "could not find and load class 'my_partitioners.Absent': "
            "AttributeError: module 'my_partitioners' has no attribute 'Absent'.",
        ),
        ("my_partitioners.Wrong", "class 'my_partitioners.Wrong' is not a streamcore Partitioner."),
        (
            "my_partitioners.Nameless",
            "class 'my_partitioners.Nameless' has no identifier; its options could not be named.",
        ),
    ],
)
def test_a_dotted_path_that_leads_nowhere_says_why(path, expected):
    assert missing(Registry([]), "partitioner", path) == expected


@pytest.mark.usefixtures("my_module")
def test_a_dotted_path_obeys_the_allow_list():
    assert missing(Registry([], allow=["acme"]), "partitioner", "my_partitioners.Wrong") == (
        "class 'my_partitioners.Wrong' is not allowed: "
        "STREAMCORE_ALLOW does not list 'my_partitioners'."
    )


def test_only_partitioners_can_be_named_by_path():
    assert missing(Registry([]), "format", "os.path").startswith("no format called 'os.path'.")


# --- commands --------------------------------------------------------------------------


def test_commands_are_loaded_only_when_asked_for_and_a_broken_one_breaks_no_plugin():
    calls = []
    made = types.ModuleType("with_commands")
    made.register_formats = hookimpl(lambda: [Lines])

    def commands():
        calls.append(1)
        raise RuntimeError("no terminal")

    made.register_commands = hookimpl(commands)
    other = module("register_commands", [click.Command("run"), "not a command"])
    registry = Registry([loading("acme", lambda: made), loading("streamcore-sql", lambda: other)])
    assert registry.names("format") == ["lines"]
    assert calls == []
    found = {(c.identifier, c.status, c.reason) for c in registry.commands}
    assert found == {
        ("run", "active", ""),
        ("plugin", "broken", "RuntimeError: no terminal"),
        ("plugin", "broken", "register_commands returned str, which is not a click command"),
    }


# --- the environment -----------------------------------------------------------------


def test_the_environment_chooses(monkeypatch):
    class Distribution:
        def __init__(self, name):
            self.name, self.version, self.requires = name, "1.0", None

    class EntryPoint:
        def __init__(self, distribution, offer):
            self.dist, self.name, self.value = Distribution(distribution), "p", "m"
            self.load = lambda: module(returns=[offer])

    found = [EntryPoint("streamcore-formats", Json), EntryPoint("acme", OtherJson)]
    monkeypatch.setattr(registry_module, "entry_points", lambda group: found)
    monkeypatch.setenv("STREAMCORE_PREFER", "acme")
    with pytest.warns(ClashWarning):
        assert registry_module.load().find("format", "json") is OtherJson
    monkeypatch.setenv("STREAMCORE_ALLOW", "streamcore-formats")
    assert registry_module.load().find("format", "json") is Json
    monkeypatch.delenv("STREAMCORE_ALLOW")
    monkeypatch.setenv("STREAMCORE_STRICT", "1")
    with pytest.raises(PluginError, match="is claimed by acme"):
        registry_module.load()


def test_what_is_installed_here_has_cores_own_partitioners():
    assert {"default", "fixed", "round-robin"} <= set(
        registry_module.installed().names("partitioner")
    )
