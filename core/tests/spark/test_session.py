"""What the user has told Spark is left alone, wherever it was told."""

import json
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession
from streamcore.spark import session as module

SCRIPT = """
import json
import streamcore

spark = streamcore.session()
wanted = ("spark.master", "spark.sql.session.timeZone", "spark.sql.timeType.enabled")
print("told:", json.dumps([spark.conf.get(key) for key in wanted]))
spark.stop()
"""


@pytest.fixture
def told(monkeypatch, tmp_path):
    """Settings as a user has them: a file of defaults and arguments for spark-submit."""
    for name in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    def tell(defaults="", arguments=""):
        (tmp_path / "spark-defaults.conf").write_text(defaults)
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        return module._submitted()

    return tell


def test_defaults_are_read_however_key_and_value_are_parted(told):
    assert told("# a comment\n\nspark.a 1\nspark.b=2\nspark.c: 3\n  spark.d  =  x=y\n! no\n") == {
        "spark.a": "1",
        "spark.b": "2",
        "spark.c": "3",
        "spark.d": "x=y",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        "--master yarn --conf spark.a=1 pyspark-shell",
        "--master=yarn --conf=spark.a=1 pyspark-shell",
        "--master yarn -c 'spark.a=1' pyspark-shell",
        '--master "yarn" --conf "spark.a=1" --name x pyspark-shell',
    ],
)
def test_arguments_are_read_in_every_spelling(told, arguments):
    assert told("spark.a 0", arguments) == {"spark.master": "yarn", "spark.a": "1"}


def test_what_spark_submit_was_told_is_left_alone(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = ("spark.sql.session.timeZone=Europe/Berlin", "spark.ui.enabled=false")
    done = subprocess.run(
        [submit, "--master", "local[1]", *(w for s in settings for w in ("--conf", s)), script],
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", **_java()},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("told:")] or [done]
    assert json.loads(line.removeprefix("told:")) == ["local[1]", "Europe/Berlin", "true"]


def _java():
    import os

    return {name: os.environ[name] for name in ("JAVA_HOME", "HOME") if name in os.environ}


@pytest.mark.parametrize("by", ["argument", "setting", "environment"])
def test_a_remote_session_is_taken_wherever_it_is_named(monkeypatch, by):
    asked = []

    class Builder:
        def appName(self, name):
            return self

        def remote(self, url):
            asked.append(url)
            return self

        def getOrCreate(self):
            return "a remote session"

    monkeypatch.setattr(SparkSession, "builder", Builder())
    given = {}
    if by == "argument":
        given = {"remote": "sc://there"}
    elif by == "setting":
        given = {"config": {"spark.remote": "sc://there"}}
    else:
        monkeypatch.setenv("SPARK_REMOTE", "sc://there")
    assert module.session(**given) == "a remote session"
    assert asked == ["sc://there"]
