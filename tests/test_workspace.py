"""What must hold for every package of the workspace."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from streamcore import Column, Table
from streamcore.description import describe
from streamcore.examples import example_options
from streamcore.registry import KINDS, installed
from streamcore.testing import PluginContract, arrow_schema

ROOT = Path(__file__).parent.parent
MEMBERS = [ROOT / "core", *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
EXAMPLES = sorted(path.parent for path in ROOT.glob("examples/*/pyproject.toml"))


def project(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def name_of(folder):
    return folder.name


CORE_VERSION = project(ROOT / "core")["version"]


@pytest.mark.parametrize("folder", [*MEMBERS[1:], *EXAMPLES], ids=name_of)
def test_every_plugin_accepts_this_core(folder):
    wishes = [Requirement(text) for text in project(folder)["dependencies"]]
    ours = [wish for wish in wishes if canonicalize_name(wish.name) == "streamcore"]
    assert len(ours) == 1
    assert ours[0].specifier.contains(CORE_VERSION)
    assert "<" in str(ours[0].specifier), "a plugin must not promise to fit the next core"


@pytest.mark.parametrize("folder", MEMBERS, ids=name_of)
def test_every_package_is_complete(folder):
    facts = project(folder)
    package = next(p for p in (folder / "src").iterdir() if (p / "__init__.py").exists())
    assert facts["name"] == package.name.replace("_", "-")
    assert (package / "py.typed").exists()
    assert facts["requires-python"] == ">=3.11"
    assert facts["license"] == "Apache-2.0"
    assert facts["description"].endswith(".")
    assert "streamcore" in facts["entry-points"]
    assert len((folder / "README.md").read_text().splitlines()) > 3
    assert any((folder / "tests").rglob("test_*.py"))
    changelog = (folder / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    assert headings
    assert headings[0] == "Unreleased" or headings[0].startswith(facts["version"])


@pytest.mark.parametrize("folder", MEMBERS, ids=name_of)
def test_what_is_installed_is_what_is_declared(folder):
    facts = project(folder)
    found = distribution(facts["name"])
    assert found.version == facts["version"], "run 'make setup' after changing a version"
    wanted = {Requirement(text).name for text in facts["dependencies"]}
    assert wanted <= {Requirement(text).name for text in found.requires or ()}


def test_constraints_pin_everything_that_is_asked_for():
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    pins = [Requirement(line) for line in lines]
    assert all(re.fullmatch(r"==[^*]+", str(pin.specifier)) for pin in pins)
    assert lines == sorted(lines)
    assert len({canonicalize_name(pin.name) for pin in pins}) == len(pins)
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = list(root["dependency-groups"]["dev"])
    for folder in MEMBERS:
        facts = project(folder)
        asked += facts["dependencies"]
        asked += [one for extra in facts.get("optional-dependencies", {}).values() for one in extra]
    pinned = {canonicalize_name(pin.name): pin for pin in pins}
    for text in asked:
        wish = Requirement(text)
        if not wish.name.startswith("streamcore"):
            pin = pinned.get(canonicalize_name(wish.name))
            assert pin is not None, f"constraints.txt does not pin {wish.name}"
            version = str(pin.specifier).removeprefix("==")
            assert wish.specifier.contains(version), f"{wish} excludes the pinned {version}"


def test_nothing_of_ours_clashes_or_is_broken():
    registry = installed()
    ours = {project(folder)["name"] for folder in MEMBERS}
    wrong = [c for c in registry.claims + registry.commands if c.distribution in ours]
    assert wrong
    assert [c for c in wrong if c.status != "active"] == []


@pytest.mark.parametrize(
    ("kind", "identifier"), sorted(key for key in installed().active if key[0] in KINDS)
)
def test_every_plugin_explains_itself_and_its_example_works(kind, identifier):
    registry = installed()
    facts = describe(registry, kind, identifier)
    cls = registry.find(kind, identifier)
    assert facts.summary.endswith(".")
    assert all(each.description.endswith(".") for each in facts.options)
    built = registry.build(kind, identifier, example_options(cls, registry))
    contract = type("Contract", (PluginContract,), {"plugin": built})()
    for check in (
        "test_its_identifier_is_lower_case_words",
        "test_every_option_is_documented_by_a_sentence",
        "test_no_key_is_declared_twice",
        "test_every_default_can_be_written_by_a_user",
        "test_options_that_look_secret_are_secrets",
        "test_it_survives_the_trip_to_a_worker",
    ):
        getattr(contract, check)()


@pytest.mark.parametrize(
    ("kind", "identifier"), sorted(key for key in installed().active if key[0] in KINDS)
)
def test_examples_are_statements_that_the_sql_front_end_understands(kind, identifier):
    from streamcore_sql import parse

    parsed = parse(describe(installed(), kind, identifier).example)
    assert [type(statement).__name__ for statement in parsed] == ["CreateTable"]


@pytest.mark.parametrize("identifier", installed().names("format"))
def test_formats_take_the_columns_of_their_example(identifier):
    cls = installed().find("format", identifier)
    plugin = installed().build("format", identifier, example_options(cls, installed()))
    plugin = plugin.written_to("orders", "value")  # as the connector of the example does
    schema = arrow_schema(dict(column.split(" ", 1) for column in cls.example_columns))
    for writing in (False, True):
        assert list(plugin.schema_problems(schema, writing=writing)) == []


@pytest.mark.parametrize("identifier", installed().names("connector"))
def test_connectors_take_the_columns_of_their_example(identifier):
    cls = installed().find("connector", identifier)
    plugin = installed().build("connector", identifier, example_options(cls, installed()))
    key = [text for text in cls.example_columns if text.startswith("PRIMARY KEY")]
    columns = [Column(*text.split(" ", 1)) for text in cls.example_columns if text not in key]
    names = re.findall(r"\w+", key[0].partition("(")[2].partition(")")[0]) if key else []
    table = Table(tuple(columns), "example", tuple(names))
    for writing, sides in (
        (False, ("reader", "stream_reader")),
        (True, ("writer", "stream_writer")),
    ):
        if any(cls.can(side) for side in sides):
            assert list(plugin.table_problems(table, writing=writing)) == []


@pytest.mark.parametrize("folder", EXAMPLES, ids=name_of)
def test_the_packages_of_examples_pass_their_own_tests(folder):
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout
