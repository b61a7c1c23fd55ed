"""The sandbox runs on by itself, is found again, and takes down its own processes only."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from streamcore.testing.services import ServiceError, sandbox
from streamcore.testing.services.kinesis.address import ExistingKinesis
from streamcore.testing.services.watchdog import birth


@pytest.fixture
def apart(tmp_path, monkeypatch):
    """A sandbox of its own, beside any the user has running."""
    monkeypatch.setenv("STREAMCORE_STATE", str(tmp_path))
    yield tmp_path
    sandbox.down()


def in_another_process(code):
    script = f"from streamcore.testing.services import sandbox; {code}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_services_outlive_their_starter_and_end_with_down(apart):
    told = []
    in_another_process("sandbox.up(['kinesis', 'kafka'])")
    box = sandbox.up(["kinesis"], told.append)
    assert told == ["kinesis is running"]
    assert [each.alive for each in box.services] == [True, True]
    assert set(box.environment) == {"STREAMCORE_KINESIS", "STREAMCORE_KAFKA"}
    assert sandbox.logs("kafka").read_text()
    streams = ExistingKinesis(box.environment["STREAMCORE_KINESIS"])
    streams.create_stream("answered-by-a-proxy-of-its-own", 1)
    assert "answered-by-a-proxy-of-its-own" in streams.client().list_streams()["StreamNames"]
    ended = sandbox.down()
    assert [each.alive for each in ended.services] == [False, False]
    assert sandbox.status().services == ()


def test_a_recycled_pid_is_never_killed(apart):
    with subprocess.Popen(["sleep", "60"]) as stranger:
        assert birth(stranger.pid)
        row = {"name": "kafka", "address": "", "log": "", "processes": [[stranger.pid, "long ago"]]}
        (apart / "sandbox").mkdir()
        (apart / "sandbox" / "state.json").write_text(json.dumps([row]))
        assert not sandbox.status().services[0].alive
        sandbox.down()
        assert stranger.poll() is None
        stranger.kill()


def test_an_unknown_service_is_named_with_the_known_ones(apart):
    with pytest.raises(ServiceError) as caught:
        sandbox.up(["redis"])
    assert str(caught.value) == (
        "no service called 'redis'. There are: kafka, schema-registry, kinesis"
    )
    with pytest.raises(ServiceError, match="sandbox up"):
        sandbox.logs("kafka")
