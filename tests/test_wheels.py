"""Packages as users get them: wheels in a clean environment, put there and removed by plain pip."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MEMBERS = [ROOT / "core", ROOT / "plugins/formats", ROOT / "plugins/kafka"]
RIVAL = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "acme-json"
version = "2.1.0"
dependencies = ["streamcore>=0.1,<0.2"]
[project.entry-points.streamcore]
json = "acme_json"
[tool.setuptools]
py-modules = ["acme_json"]
""",
    "acme_json.py": '''
from streamcore import Format, hookimpl

class Json(Format):
    """Another json."""
    identifier = "json"

@hookimpl
def register_formats():
    return [Json]
''',
}


def checked(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Environment:
    """A virtual environment with pip and with what our packages depend on, but none of them."""

    def __init__(self, folder, wheels):
        self.folder, self.wheels = folder, wheels
        self.python = folder / "bin/python"
        checked(sys.executable, "-m", "venv", folder)

    def provide(self, *requirements):
        """Install what the index has; uv's cache makes it quick."""
        uv = Path(sys.executable).parent / "uv"
        constraints = ["--constraint", ROOT / "constraints.txt"]
        checked(uv, "pip", "install", "-q", "--python", self.python, *constraints, *requirements)

    def pip(self, *arguments):
        return checked(self.python, "-m", "pip", "--disable-pip-version-check", *arguments)

    def install(self, *names):
        self.pip("install", "-q", "--no-index", "--find-links", self.wheels, *names)

    def uninstall(self, *names):
        self.pip("uninstall", "-q", "-y", *names)

    def streamcore(self, *arguments, **variables):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "STREAMCORE"))}
        done = subprocess.run(
            [self.folder / "bin/streamcore", *arguments],
            env={**clean, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def listed(self, **variables):
        status, out, err = self.streamcore("list-plugins", "--json", **variables)
        rows = json.loads(out)
        return (
            status,
            {(r["kind"], r["identifier"], r["distribution"]): r["status"] for r in rows},
            err,
        )


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    rival = tmp_path_factory.mktemp("acme-json")
    for name, text in RIVAL.items():
        (rival / name).write_text(text)
    built = tmp_path_factory.mktemp("wheels")
    uv = Path(sys.executable).parent / "uv"
    for folder in [*MEMBERS, ROOT / "examples/streamcore-lines", rival]:
        copy = tmp_path_factory.mktemp("source") / folder.name  # building leaves things behind
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("build", "*.egg-info", ".*"))
        checked(uv, "build", "-q", "--wheel", "--python", sys.executable, "-o", built, copy)
    return built


@pytest.fixture(scope="module")
def environment(tmp_path_factory, wheels):
    made = Environment(tmp_path_factory.mktemp("clean") / "venv", wheels)
    made.provide(*sorted(_dependencies()))
    return made


def _dependencies():
    import tomllib

    for folder in MEMBERS:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        for requirement in project["dependencies"]:
            if not requirement.startswith("streamcore"):
                yield requirement


def test_packages_come_and_go(environment):
    environment.install("streamcore", "streamcore-lines")
    status, listed, err = environment.listed()
    assert (status, err) == (0, "")
    assert listed == {
        ("format", "lines", "streamcore-lines"): "active",
        ("partitioner", "default", "streamcore"): "active",
        ("partitioner", "fixed", "streamcore"): "active",
        ("partitioner", "round-robin", "streamcore"): "active",
    }
    status, _, err = environment.streamcore("describe", "connector", "kafka")
    assert status == 2
    assert "Install it: pip install streamcore-kafka" in err

    environment.install("streamcore-formats", "streamcore-kafka")
    status, listed, _ = environment.listed()
    assert status == 0
    assert {d for _, _, d in listed} == {
        "streamcore",
        "streamcore-lines",
        "streamcore-formats",
        "streamcore-kafka",
    }
    assert {name for kind, name, _ in listed if kind == "connector"} == {"kafka"}
    assert set(listed.values()) == {"active"}
    assert "No broken requirements found." in environment.pip("check")

    environment.install("acme-json")
    status, listed, err = environment.listed()
    assert status == 1
    assert listed["format", "json", "acme-json"] == "shadowed"
    assert listed["format", "json", "streamcore-formats"] == "active"
    assert err.rstrip() == (
        "streamcore: format 'json' is claimed by streamcore-formats 0.1.0 (active) and "
        "acme-json 2.1.0 (shadowed). Uninstall one, or set STREAMCORE_PREFER=acme-json to switch."
    )
    _, listed, _ = environment.listed(STREAMCORE_PREFER="acme-json")
    assert listed["format", "json", "acme-json"] == "active"
    status, _, err = environment.streamcore(
        "describe", "format", "json", STREAMCORE_ALLOW="streamcore-formats"
    )
    assert (status, err) == (0, "")

    environment.uninstall("streamcore-formats")
    status, listed, err = environment.listed()
    assert (status, err) == (0, "")
    assert listed["format", "json", "acme-json"] == "active"
    assert {name for kind, name, _ in listed if kind == "format"} == {"json", "lines"}

    environment.uninstall("acme-json", "streamcore-kafka", "streamcore-lines")
    assert {d for _, _, d in environment.listed()[1]} == {"streamcore"}


def test_wheels_carry_what_they_need(wheels):
    import zipfile

    for wheel in wheels.glob("streamcore*.whl"):
        names = zipfile.ZipFile(wheel).namelist()
        assert not [name for name in names if "test_" in name and "templates" not in name], (
            wheel.name
        )
        if "lines" not in wheel.name:
            assert any(name.endswith("py.typed") for name in names), wheel.name
    core = next(wheels.glob("streamcore-*.whl"))
    names = zipfile.ZipFile(core).namelist()
    assert "pyspark_streamcore.py" in names
    assert "streamcore/cli/templates/format/MODULE.py.tmpl" in names
    assert "streamcore/testing/services/kinesis/loopback.js" in names
