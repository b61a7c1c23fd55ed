"""A sitting of the benchmarks, as small as it can be: one broker, no Spark, nothing downloaded."""

import json
import os
import subprocess
import sys
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from benchmarks.data import as_json, events
from benchmarks.setting import Setting

ROOT = Path(__file__).parents[1]
MARK = "STREAMCORE_TEST_SITTING"


@pytest.fixture(scope="module")
def sitting(tmp_path_factory):
    """The file of figures, what was printed, and a word that all its processes carry."""
    file, word = tmp_path_factory.mktemp("sitting") / "figures.json", uuid.uuid4().hex
    command = [sys.executable, "-m", "benchmarks", "--only", "consumer-loop", "assembly"]
    command += ["--quick", "--rows", "2000", "--runs", "2", "--json", str(file)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, MARK: word}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(file.read_text()), done.stdout, word


def test_each_case_tells_its_figures_its_time_and_its_sitting(sitting):
    found, printed, _ = sitting
    loop, assembly = found["cases"]
    assert loop["name"] == "consumer-loop"
    assert [side["side"] for side in loop["sides"]] == ["streamcore", "bare consume"]
    assert {run["rows"] for side in loop["sides"] for run in side["runs"]} == {2000}
    assert loop["runs"] == 2
    assert loop["took_seconds"] > 0
    (told,) = found["sittings"].values()
    assert told["command"].startswith("python -m benchmarks --only consumer-loop assembly --quick")
    assert {"pyspark", "Kafka broker", "Flink SQL", "Java"} <= set(told["versions"])
    assert assembly["sitting"] == loop["sitting"]
    assert "2 cases in " in printed


def test_no_process_is_left_behind(sitting):
    _, _, word = sitting
    assert not [pid for pid in Path("/proc").glob("[0-9]*") if _carries(pid, word)]


def _carries(process: Path, word: str) -> bool:
    try:
        return f"{MARK}={word}".encode() in (process / "environ").read_bytes()
    except OSError:  # it has ended meanwhile, or is not ours
        return False


def test_a_longer_topic_repeats_what_differs():
    with ExitStack() as stack:
        setting = Setting(0, 0, 0, 1, 1, 1, with_flink=False, quick=True, _open=stack)
        for rows in (250, 800):
            setting.filled("topic", as_json, rows, partitions=4, distinct=100)
        found = _messages(setting.servers, "topic", 800)
    expected = Counter({as_json(event): 7 for event in events(100)})
    expected.update(as_json(event) for event in events(50) for _ in range(2))
    assert found == expected


def _messages(servers: str, topic: str, count: int) -> Counter[bytes]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "any"})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(4)])
    found: Counter[bytes] = Counter()
    while found.total() < count:
        found.update(message.value() for message in consumer.consume(count, 1.0))
    consumer.close()
    return found
