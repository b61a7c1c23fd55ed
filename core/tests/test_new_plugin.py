"""A package that `new-plugin` writes works before a line of it is changed."""

import json
import os
import subprocess
import sys
import tomllib

import pytest
from streamcore.cli import main
from streamcore.registry import KINDS


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_its_own_tests_pass_at_once(kind, tmp_path, capsys):
    status = main(["new-plugin", f"my-{kind}", "--kind", kind, "--dir", str(tmp_path), "--json"])
    written = json.loads(capsys.readouterr().out)
    folder = tmp_path / f"streamcore-my-{kind}"
    assert status == 0
    assert written["folder"] == str(folder)
    assert set(written["files"]) == {str(p) for p in folder.rglob("*") if p.is_file()}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    module = f"streamcore_my_{kind}"
    assert project["project"]["entry-points"]["streamcore"] == {f"my-{kind}": module}
    assert module in project["tool"]["setuptools"]["py-modules"]


def test_a_written_format_stays_within_thirty_lines(tmp_path):
    main(["new-plugin", "streamcore-lines", "--kind", "format", "--dir", str(tmp_path)])
    source = (tmp_path / "streamcore-lines" / "streamcore_lines.py").read_text()
    assert len(source.splitlines()) <= 30


@pytest.mark.parametrize(
    ("name", "kind", "complaint"),
    [
        (
            "kafka",
            "connector",
            "connector 'kafka' belongs to streamcore-kafka; choose another name.",
        ),
        ("../evil", "format", "'../evil' is not lower-case ASCII words joined by '-'"),
        ("two_words", "format", "'two_words' is not lower-case ASCII words joined by '-'"),
        ("", "format", "'' is not lower-case ASCII words joined by '-'"),
        ("taken", "format", "exists and is not empty; choose another name or --dir."),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(
    name, kind, complaint, tmp_path, capsys
):
    (tmp_path / "streamcore-taken").mkdir()
    (tmp_path / "streamcore-taken" / "mine.py").write_text("mine = True\n")
    status = main(["new-plugin", name, "--kind", kind, "--dir", str(tmp_path)])
    assert status == 2
    assert complaint in capsys.readouterr().err
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["mine.py"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("none", "format"),
        ("secret", "credentials"),
        ("path", "credentials"),
        ("target", "partitioner"),
    ],
)
def test_a_name_that_means_something_in_python_or_here_is_told_apart(name, kind, tmp_path):
    assert main(["new-plugin", name, "--kind", kind, "--dir", str(tmp_path)]) == 0
    source = tmp_path / f"streamcore-{name}" / f"streamcore_{name}.py"
    assert f"class {name.capitalize()}Plugin(" in source.read_text()
