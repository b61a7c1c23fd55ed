"""What tasks report reaches the driver once, whatever is retried, lost or forged."""

import logging
import time

from streamcore.reports import Collector, Report, Word, send


def arrived(collector, table, side, name, expected):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if collector.totals(table, side).get(name) == expected:
            return True
        time.sleep(0.01)
    return False


def test_reports_of_all_tasks_and_batches_add_up():
    collector = Collector()
    try:
        for batch in range(5):
            for task in range(2):
                assert send(
                    collector.address, Report("t", "source", "q", batch, task, {"rows": 10})
                )
        assert arrived(collector, "t", "source", "rows", 100)
        assert collector.sides() == [("t", "source")]
    finally:
        collector.close()


def test_a_task_tried_again_replaces_its_report():
    collector = Collector()
    try:
        send(collector.address, Report("t", "sink", "q", 0, 0, {"rows": 7}))
        assert arrived(collector, "t", "sink", "rows", 7)
        send(collector.address, Report("t", "sink", "q", 0, 0, {"rows": 9}))
        assert arrived(collector, "t", "sink", "rows", 9)
    finally:
        collector.close()


def test_a_table_read_twice_or_in_parts_is_counted_in_full_and_a_repeated_batch_once():
    collector = Collector()

    def told(rows, stage, attempt, run, expected):
        report = Report("t", "source", "q", 4, 0, {"rows": rows}, {}, (), stage, attempt, run)
        send(collector.address, report)
        assert arrived(collector, "t", "source", "rows", expected)

    try:
        told(7, stage=1, attempt=10, run="first", expected=7)
        told(7, stage=2, attempt=11, run="first", expected=14)  # the other side of a self-join
        told(5, stage=2, attempt=11, run="first", expected=19)  # a second part, same task
        told(7, stage=2, attempt=12, run="first", expected=14)  # tried again
        told(7, stage=8, attempt=20, run="second", expected=7)  # the batch is repeated
    finally:
        collector.close()


def test_marks_are_those_of_the_latest_batch_and_of_its_slowest_task():
    collector = Collector()
    try:
        told = [(0, 0, 90), (1, 0, 5), (1, 1, 7), (0, 1, 80)]
        for count, (batch, task, mark) in enumerate(told, 1):
            marks, note = {"send-ms": mark}, [f"task {task}"]
            send(collector.address, Report("t", "sink", "q", batch, task, {"rows": 1}, marks, note))
            assert arrived(collector, "t", "sink", "rows", count)
        send(collector.address, Report("t", "sink", "q", 2, 0, {"rows": 1}))
        assert arrived(collector, "t", "sink", "rows", 5)
        assert collector.heard("q")["t", "sink"].marks == {"send-ms": 7}
        assert collector.heard("other") == {}
        assert collector.totals("t", "sink", "other") == {}
        *note, came = collector.notes("q")[-1]
        assert note == ["t", 0, "task 1"]
        assert 0 <= time.time() - came < 60
    finally:
        collector.close()


def test_memory_stays_flat_over_many_batches():
    collector = Collector()
    try:
        for batch in range(200):
            send(collector.address, Report("t", "source", "q", batch, 0, {"rows": 1}))
        assert arrived(collector, "t", "source", "rows", 200)
        assert len(collector._reports) <= 3
    finally:
        collector.close()


def test_a_stranger_without_the_token_is_not_counted():
    collector = Collector()
    try:
        forged = collector.address.partition("/")[0] + "/guess"
        send(forged, Report("t", "source", "q", 0, 0, {"rows": 1}))
        send(collector.address, Report("t", "source", "q", 0, 1, {"rows": 2}))
        assert arrived(collector, "t", "source", "rows", 2)
    finally:
        collector.close()


def test_nobody_listening_costs_the_task_nothing():
    collector = Collector()
    address = collector.address
    collector.close()
    assert send(address, Report("t", "source", "q", 0, 0)) is False
    assert send("", Report("t", "source", "q", 0, 0)) is False


def test_what_a_logger_says_elsewhere_is_said_again_with_its_ids(caplog):
    collector = Collector()
    word = Word("streamcore.kafka", logging.WARNING, "50% gone", "copies", "q", 7)
    try:
        forged = f"{collector.address.partition('/')[0]}/{'0' * 32}"
        assert send(forged, word)
        assert send(collector.address, word)
        deadline = time.monotonic() + 5
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        collector.close()
    (record,) = caplog.records
    assert (record.name, record.levelname, record.getMessage()) == (
        "streamcore.kafka",
        "WARNING",
        "50% gone",
    )
    assert (record.job, record.query, record.batch) == ("copies", "q", 7)


def test_a_word_that_nobody_hears_is_not_sent():
    assert not send("", Word("streamcore.kafka", logging.WARNING, "gone"))
