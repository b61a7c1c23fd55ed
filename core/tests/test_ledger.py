"""The checker is checked: each fault planted into a good history is found, and only that one."""

import os
import random
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from streamcore.testing.ledger import Ledger, LiveReader, Seen, compare, read_to_end
from streamcore.testing.ledger.lanes import dealt
from streamcore.testing.ledger.report import BEGIN, END, FILE, Line, name_of, seconds, write
from streamcore.testing.ledger.scenario import Scale, seeded
from streamcore.testing.services.kinesis.faults import Fate

SENT = {"a": 40, "b": 25, "c": 1}


def history(seed=7):
    """All rows, keys interleaved, each key in its order."""
    dice, left, rows = random.Random(seed), dict(SENT), []
    while left:
        key = dice.choice(sorted(left))
        rows.append(Seen(key, SENT[key] - left[key], (0, len(rows))))
        left[key] -= 1
        if not left[key]:
            del left[key]
    return rows


def kinds(findings):
    return {kind: len(rows) for kind, rows in vars(findings).items() if rows}


def index(rows, key, sequence):
    return next(i for i, row in enumerate(rows) if row[:2] == (key, sequence))


def test_a_good_history_has_no_findings():
    findings = compare(SENT, history(), history())
    assert not findings
    assert str(findings) == "nothing wrong"


@pytest.mark.parametrize("row", [("a", 0), ("a", 39), ("b", 12), ("c", 0)])
def test_one_lost_row_is_found(row):
    rows = [each for each in history() if each[:2] != row]
    findings = compare(SENT, rows)
    assert kinds(findings) == {"lost": 1}
    assert f"1 lost ({row[0]}/{row[1]})" in str(findings)


@pytest.mark.parametrize("at", [0, 30, 66])
def test_one_duplicate_is_found_wherever_it_lands(at):
    rows = history()
    rows.insert(at, Seen("c", 0, (0, 99)))
    assert kinds(compare(SENT, rows)) == {"duplicated": 1}


def test_a_swap_within_a_key_is_found_and_one_between_keys_is_none():
    rows = history()
    first, second = index(rows, "a", 11), index(rows, "a", 12)
    rows[first], rows[second] = rows[second], rows[first]
    assert kinds(compare(SENT, rows)) == {"reordered": 1}
    assert not compare(SENT, rows, ordered=False)
    rows = history()
    at = next(i for i in range(len(rows)) if rows[i].key != rows[i + 1].key)
    rows[at], rows[at + 1] = rows[at + 1], rows[at]
    assert not compare(SENT, rows)


def test_a_row_that_was_shown_and_taken_back_is_found():
    rows = history()
    findings = compare(SENT, [row for row in rows if row[:2] != ("b", 3)], live=rows)
    assert kinds(findings) == {"lost": 1, "aborted": 1}


def test_a_row_of_an_aborted_transaction_is_found():
    assert kinds(compare(SENT, [*history(), Seen("a", -1)])) == {"aborted": 1}


def test_a_live_reader_that_saw_a_row_twice_or_late_is_told():
    rows = history()
    assert kinds(compare(SENT, rows, live=[*rows, Seen("a", 3)])) == {
        "duplicated": 1,
        "reordered": 1,
    }


def test_a_row_nobody_sent_is_found():
    assert kinds(compare(SENT, [*history(), Seen("a", 40), Seen("z", 0)])) == {"unknown": 2}


def test_a_real_topic_is_read_live_and_to_its_end_without_aborted_rows(kafka, kafka_topic):
    topic = kafka_topic(3)
    ledger = Ledger(kafka.bootstrap_servers, topic, keys=5, seed=3)
    live = LiveReader(kafka.bootstrap_servers, topic)
    ledger.send(300)
    ledger.send_and_abort(50)
    ledger.keep_sending(200, pieces=4, pause=0.01)
    ledger.finish()
    live.wait_for(500, 30)
    final = read_to_end(kafka.bootstrap_servers, topic)
    assert ledger.rows == len(final) == 500
    assert not compare(ledger.sent, final, live.stop())
    assert kinds(compare(ledger.sent, final[1:])) == {"lost": 1}


def test_equal_seeds_give_equal_ledgers(kafka, kafka_topic):
    sent = []
    for seed in (5, 5, 6):
        ledger = Ledger(kafka.bootstrap_servers, kafka_topic(), seed=seed)
        ledger.send(100)
        sent.append(ledger.sent)
    assert sent[0] == sent[1] != sent[2]


def test_pinned_keys_stay_in_their_partition_and_new_partitions_get_keys(monkeypatch):
    homes = {}

    class Producer:
        def produce(self, topic, value, key, partition):
            homes.setdefault(key, set()).add(partition)

        def poll(self, timeout): ...

        def flush(self, timeout):
            return 0

    ledger = Ledger("", "t", keys=20, seed=1)
    monkeypatch.setattr(ledger, "_producer", Producer)
    ledger.pin(2)
    ledger.send(200)
    assert {frozenset(each) for each in homes.values()} == {frozenset({0}), frozenset({1})}
    ledger.pin(4)
    ledger.send(400)
    assert {len(each) for each in homes.values()} == {1}
    assert set.union(*homes.values()) == {0, 1, 2, 3}


def test_a_bound_is_what_was_promised_in_a_soak_and_more_beside_other_tests(monkeypatch):
    monkeypatch.setenv("STREAMCORE_SEED", "5")
    small, full = seeded(Scale(1, {"rows": 1})), seeded(Scale(1, {"rows": 1}, soak=True))
    assert (small.bound(60), full.bound(60)) == (600, 60)
    assert small.seed == full.seed == 5


def test_faults_of_kinesis_are_drawn_again_from_an_equal_seed():
    fate = Fate()

    def drawn(seed):
        fate.draw_from(seed)
        return [fate.happens(0.5, "throttle") for _ in range(50)]

    assert drawn(5) == drawn(5) != drawn(6)


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ("full", "late ends"),
        ("debezium-json-full", "late ends (debezium-json)"),
        ("small-INT", "late ends (INT)"),
    ],
)
def test_the_report_tells_apart_what_one_test_is_run_with(chosen, shown):
    item = SimpleNamespace(originalname="test_late_ends", callspec=SimpleNamespace(id=chosen))
    assert name_of(item) == shown


def test_the_report_replaces_its_own_rows_and_keeps_the_rest(tmp_path):
    file = tmp_path / "reliability.md"
    file.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    write(file, [Line(12, "late", "5 rows", "passed", 1), Line(2, "kill", "9 rows", "FAILED", 2)])
    write(file, [Line(2, "kill", "9 rows", "passed | twice", 3)])
    text = file.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and line[2].isdigit()]
    assert [row.split(" | ")[1] for row in rows] == ["kill", "late"]
    assert "passed / twice | 3 |" in rows[0]
    assert text.startswith("before\n")
    assert text.endswith(f"{END}\nafter\n")


def test_the_report_tells_how_long_each_test_took_last_time(tmp_path):
    file = tmp_path / "reliability.md"
    file.write_text(f"before\n{BEGIN}\n{END}\nafter\n")
    lines = [Line(12, "late", "5 rows", "passed in 39 s: 2 seen in 5 s", 1)]
    write(file, [*lines, Line(2, "kill", "9 rows", "stopped", 2)])
    assert seconds(file) == {"late": 39}


@pytest.mark.parametrize(
    ("lanes", "parts"),
    [
        (1, [[20, 1, 8, 7, 6, 5, 4, 3, 2]]),
        (2, [[20, 1, 5, 3], [8, 2, 7, 6, 4]]),
        (10, [[], *([n] for n in (20, 8, 7, 6, 5, 4, 3, 2, 1))]),
    ],
)
def test_lanes_take_as_long_and_begin_with_a_long_test_and_a_short_one(lanes, parts):
    seconds = [4, 8, 1, 20, 6, 5, 7, 3, 2]
    assert dealt(seconds, seconds, lanes) == [test for part in parts for test in part]


TIMED = """
import pytest
from streamcore.testing.ledger import scenario

@pytest.mark.parametrize("case", range(3))
@scenario(7, full={"rows": 9}, small={"rows": 3})
def test_a_job_is_killed(scale, case): pass
"""


def test_lanes_begin_with_what_took_longest(tmp_path):
    file, test = tmp_path / "reliability.md", tmp_path / "test_timed.py"
    rows = [f"| 7 | a job is killed ({n}) | 9 rows | passed in {n} s | 1 | - |\n" for n in range(3)]
    file.write_text(f"{BEGIN}\n{''.join(rows)}{END}\n")
    test.write_text(TIMED)
    command = [sys.executable, "-m", "pytest", "-v", "-m", "soak", "-n", "1", "--dist", "worksteal"]
    plugins = ["-p", "streamcore.testing.ledger.lanes", "-p", "streamcore.testing.ledger.report"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *plugins, str(test)],
        cwd=tmp_path,
        env={**os.environ, FILE: str(file)},
        capture_output=True,
        text=True,
    )
    assert re.findall(r"PASSED .*\[(?:full-)?(\d)", done.stdout) == ["2", "0", "1"], done.stdout


BROKEN = """
import pytest
from streamcore.testing.ledger import scenario

@pytest.fixture
def broker():
    raise RuntimeError("did not start")

@scenario(7, full={"rows": 9}, small={"rows": 3})
def test_a_job_is_killed(broker, scale): pass

@scenario(8, full={"rows": 9}, small={"rows": 3})
def test_a_job_is_left_alone(scale): scale.measured["seen"] = "3"
"""


@pytest.mark.parametrize("lanes", [0, 2])
def test_a_service_that_does_not_start_is_a_failure_in_the_report(tmp_path, lanes):
    file, test = tmp_path / "reliability.md", tmp_path / "test_broken.py"
    row = "| 7 | a job is killed | 9 rows | passed in 5 s | 1 | 2024-01-01 |"
    file.write_text(f"{BEGIN}\n{row}\n{END}\n")
    test.write_text(BROKEN)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "soak or not soak", "-k", "full"]
    command += ["-n", str(lanes)]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-p", "streamcore.testing.ledger.report", str(test)],
        cwd=tmp_path,
        env={**os.environ, FILE: str(file)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout
    failed, passed = [line for line in file.read_text().splitlines() if line.startswith("| ")][1:]
    assert failed.startswith("| 7 | a job is killed | 9 rows | FAILED (setup) in ")
    assert passed.startswith("| 8 | a job is left alone | 9 rows | passed in 0 s: seen 3 |")
    assert "a job is killed · 9 rows · FAILED (setup)" in done.stdout
