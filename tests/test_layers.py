"""Who may import whom: the map of the house, enforced."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core/src/streamcore"
KERNEL = (
    "errors",
    "values",
    "options",
    "filling",
    "table",
    "api",
    "claims",
    "versions",
    "hookspecs",
    "loading",
    "registry",
)
"""Lowest first; a module imports only those before it."""
DOCUMENTED = {
    "streamcore",
    "streamcore.checks",
    "streamcore.cli.output",
    "streamcore.cli.status",
    "streamcore.errors",
    "streamcore.failpoints",
    "streamcore.failures",
    "streamcore.reports",
    "streamcore.rows",
    "streamcore.spark",
    "streamcore.table",
    "streamcore.types",
    "streamcore.values",
}
"""What plugins may build on; `core/README.md` describes it."""
FRONT_END = {"streamcore.registry", "streamcore.description", "streamcore.options"}
"""What the SQL front end needs beyond that, because it is no table's plugin but runs them all."""
HEAVY = {"pyspark", "pyarrow", "numpy", "pandas", "polars", "confluent_kafka", "boto3", "botocore"}
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))


def modules(folder):
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def imports(path, *, everywhere=True):
    """Absolute names of what a module imports, also inside functions unless told otherwise."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = ast.walk(tree) if everywhere else _at_import_time(tree.body)
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found.add(base)
            found |= {base.rstrip(".") + "." + alias.name for alias in node.names if node.level}
    return found


def _at_import_time(statements):
    for node in statements:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        if isinstance(node, ast.If | ast.Try | ast.ClassDef | ast.With):
            yield from _at_import_time(
                [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)]
            )


@pytest.mark.parametrize("name", KERNEL)
def test_the_kernel_imports_only_what_lies_below(name):
    siblings = {
        imported.lstrip(".").partition(".")[0]
        for imported in imports(CORE / f"{name}.py", everywhere=False)
        if imported.startswith(".")
    } - {""}
    ours = {sibling for sibling in siblings if (CORE / f"{sibling}.py").exists()}
    below = set(KERNEL[: KERNEL.index(name)])
    assert ours <= below, f"{name} imports {sorted(ours - below)}"


def test_the_kernel_imports_neither_spark_nor_arrow():
    code = "import streamcore.registry, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


def test_nothing_below_the_command_line_imports_it():
    for path in modules(CORE):
        if "cli" not in path.relative_to(CORE).parts:
            above = {n for n in imports(path) if re.match(r"(\.+|streamcore\.)cli\b", n)}
            assert not above, f"{path.relative_to(ROOT)} imports {above}"


def source(plugin):
    return next(path for path in (plugin / "src").iterdir() if (path / "__init__.py").exists())


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_plugins_build_on_documented_modules_only(plugin):
    allowed = DOCUMENTED | (FRONT_END if plugin.name == "sql" else set())
    for path in modules(source(plugin)):
        for name in imports(path):
            if name == "streamcore" or name.startswith("streamcore."):
                fits = name in allowed or any(
                    name.startswith(each + ".") for each in allowed - {"streamcore"}
                )
                assert fits, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_plugins_of_one_package_do_not_reach_into_another(plugin):
    project = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]
    needed = {
        requirement.split(">")[0].split("[")[0].strip().replace("-", "_")
        for requirement in project["dependencies"]
    }
    own = source(plugin).name
    for path in modules(source(plugin)):
        strangers = {
            name.partition(".")[0] for name in imports(path) if name.startswith("streamcore_")
        } - {own}
        assert strangers <= needed, f"{path.relative_to(ROOT)} imports {strangers - needed}"


CLIENTS = {
    "kafka": {"confluent_kafka"},
    "kinesis": {"boto3", "botocore", "urllib3"},
    "upsert_kafka": {"confluent_kafka"},
}


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_only_client_py_imports_the_client_library(plugin):
    client = CLIENTS.get(plugin.name, set())
    for path in modules(source(plugin)):
        touched = {name.partition(".")[0] for name in imports(path, everywhere=True)}
        if path.name != "client.py":
            assert not touched & client, f"{path.relative_to(ROOT)} imports {touched & client}"


def test_listing_plugins_imports_no_spark_no_arrow_and_no_client_library():
    code = (
        "import sys; from streamcore.cli import main; main(['list-plugins', '--json'])\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "streamcore" in loaded
    assert not loaded & HEAVY, "import these inside the functions that need them"


def test_no_module_is_too_long_to_read():
    for path in modules(ROOT / "core/src") + [m for p in PLUGINS for m in modules(source(p))]:
        if "templates" not in path.parts and "_pb2" not in path.name:
            lines = len(path.read_text(encoding="utf-8").splitlines())
            assert lines <= 400, f"{path.relative_to(ROOT)} has {lines} lines"
