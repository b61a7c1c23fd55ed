"""Exactly once on a real broker, without Spark: kills, zombies, replays, strangers."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace

import pytest
from streamcore_kafka.tickets import TransactionRefused


def values(messages):
    return sorted(message.value().decode() for message in messages)


def expected(*places, rows=5):
    return sorted(f"{batch}-{task}-{n}" for batch, task in places for n in range(rows))


POINTS = ("init", "begin", "produce@3", "marker", "commit", "committed")


@pytest.mark.parametrize("point", POINTS)
def test_a_writer_killed_anywhere_leaves_each_row_once(job, records, point):
    job.write(batch=0)
    name, _, times = point.partition("@")
    killed = job.start(f"{name}:kill" + (f"@{times}" if times else ""), batch=1)
    assert killed.wait(60) == -signal.SIGKILL
    job.write(batch=1, run="second")
    job.write(batch=2, run="second")
    assert values(records(job.topic)) == expected((0, 0), (1, 0), (2, 0))


def test_a_batch_that_was_committed_is_skipped_when_it_is_repeated(job, records):
    job.write()
    assert job.write(run="second").repeated
    assert values(records(job.topic)) == expected((0, 0))


def test_an_attempt_lost_after_its_commit_is_not_written_again(job, records):
    ticket = job.ticket()
    job.write(ticket=ticket)
    again = job.write(ticket=ticket)
    assert (again.repeated, again.rows) == (True, 5)
    assert values(records(job.topic)) == expected((0, 0))


def test_the_tasks_of_a_batch_that_were_not_committed_are_written_when_it_is_repeated(job, records):
    job.write(task=0)
    ticket = job.ticket()
    job.write(task=0, run="second", ticket=ticket)
    job.write(task=1, run="second", ticket=ticket)
    assert values(records(job.topic)) == expected((0, 0), (0, 1))


def test_a_zombie_writer_fails_when_it_wakes_up(job, records):
    zombie = job.start(pause=1)
    assert zombie.stdout.readline() == "half way\n"
    zombie.send_signal(signal.SIGSTOP)
    try:
        job.write(run="second")
        zombie.send_signal(signal.SIGCONT)
        _, said = zombie.communicate(timeout=30)
    finally:
        zombie.kill()
    assert zombie.returncode == 1
    assert "was taken over by a newer writer" in said.splitlines()[-1]
    assert values(records(job.topic)) == expected((0, 0))


def test_the_last_commit_of_a_killed_run_may_come_after_the_new_run_has_begun(job, records):
    job.write(batch=0)
    ticket = job.ticket()
    job.write(batch=1, task=1)  # by a worker that outlived its run
    assert not job.write(batch=1, task=0, run="second", ticket=ticket, rows=0)
    assert job.write(batch=1, task=1, run="second", ticket=ticket).repeated
    job.write(batch=2, run="second")
    assert values(records(job.topic)) == expected((0, 0), (1, 1), (2, 0))


def test_a_commit_of_another_run_is_an_error_once_the_new_run_has_written(job, records):
    job.write(batch=0, run="second")
    ticket = job.ticket()
    job.write(batch=1)
    with pytest.raises(TransactionRefused, match="run first, batch 1.* writes with it at the same"):
        job.write(batch=1, run="second", ticket=ticket)
    assert values(records(job.topic)) == expected((0, 0), (1, 0))


def test_rows_of_an_open_transaction_are_not_seen_until_they_are_written_for_good(job, records):
    killed = job.start("commit:kill", batch=0)
    assert killed.wait(60) == -signal.SIGKILL
    assert values(records(job.topic, "read_uncommitted")) == expected((0, 0))
    job.write(run="second")
    assert values(records(job.topic)) == expected((0, 0))


def test_a_task_without_rows_opens_no_transaction(job, records):
    assert job.write(rows=0) is None
    assert records(job.topic) == []


# --- what must not be written ------------------------------------------------------------------


def test_two_queries_with_one_prefix_are_an_error_for_the_older(job, kafka, records, a_job):
    job.write(batch=0)
    job.write(batch=1)
    other = a_job(kafka.bootstrap_servers, job.topic, query="other")
    other.write(batch=0, text="other-{}-{}-{}")
    with pytest.raises(TransactionRefused) as refused:
        job.write(batch=2)
    assert str(refused.value) == (
        f"sink.transactional-id-prefix 'prefix-{job.topic}': it belongs to query other "
        "(run first, batch 0), not to query query; give every query a prefix of its own"
    )
    other.write(batch=1, text="other-{}-{}-{}")
    assert len(records(job.topic)) == 20


def test_a_writer_that_appears_in_mid_batch_is_an_error(job, kafka, records, a_job):
    job.write(batch=0)
    ticket = job.ticket()
    a_job(kafka.bootstrap_servers, job.topic, query="other").write(batch=0, task=1)
    with pytest.raises(TransactionRefused, match="query other .* writes with it at the same time"):
        job.write(batch=1, ticket=ticket)


def test_a_new_checkpoint_starts_afresh_and_skips_nothing(job, kafka, records, a_job):
    job.write(batch=0)
    a_job(kafka.bootstrap_servers, job.topic, query="renewed").write(batch=0)
    assert values(records(job.topic)) == sorted(2 * expected((0, 0)))


def test_a_checkpoint_that_lost_its_metadata_is_refused(job, kafka, a_job):
    job.write(batch=0)
    with pytest.raises(TransactionRefused, match="not to query renewed"):
        a_job(kafka.bootstrap_servers, job.topic, query="renewed").write(batch=1)


def test_a_checkpoint_that_was_turned_back_is_refused(job, records):
    job.write(batch=0)
    job.write(batch=1)
    with pytest.raises(TransactionRefused, match="its checkpoint was turned back"):
        job.write(batch=0, run="second")
    assert values(records(job.topic)) == expected((0, 0), (1, 0))


def test_expired_markers_are_noticed(job, kafka, records):
    job.write(batch=0)
    job.write(batch=1)
    groups = [f"prefix-{job.topic}-marker", f"prefix-{job.topic}-marker-0"]
    admin = kafka.admin()
    for deleted in admin.delete_consumer_groups(groups).values():
        deleted.result()
    with pytest.raises(TransactionRefused) as refused:
        job.write(batch=1, run="second")
    assert str(refused.value) == (
        f"sink.transactional-id-prefix 'prefix-{job.topic}': no marker of an earlier batch, but "
        "this is batch 1. Either the query never wrote with this prefix, or its markers expired "
        "('offsets.retention.minutes' of the broker) and this batch may have been written already. "
        "If it was not, set 'sink.missing-marker' to 'write'"
    )
    assert values(records(job.topic)) == expected((0, 0), (1, 0))


def test_a_query_that_was_not_exactly_once_before_can_be_told_to_begin(
    kafka, kafka_topic, records, a_job
):
    options = {"sink.missing-marker": "write"}
    job = a_job(kafka.bootstrap_servers, kafka_topic(), **options)
    job.write(batch=7)
    assert values(records(job.topic)) == expected((7, 0))


def test_two_writes_of_one_batch_with_one_prefix_are_an_error(job):
    job.write(batch=3, ticket=replace(job.ticket(), trust=True))
    with pytest.raises(TransactionRefused, match="batch 3 was written twice"):
        job.write(batch=3)


# --- repeated with other tasks -----------------------------------------------------------------


def test_a_batch_repeated_with_another_declared_parallelism_is_refused(job, kafka, records, a_job):
    four = {"sink.parallelism": "4"}
    a_job(kafka.bootstrap_servers, job.topic, **four).write(task=0)
    changed = a_job(kafka.bootstrap_servers, job.topic, **{"sink.parallelism": "2"})
    ticket = changed.ticket()
    for task in (0, 1):
        with pytest.raises(TransactionRefused) as refused:
            changed.write(task=task, run="second", ticket=ticket)
        assert str(refused.value) == (
            "batch 0 was begun with 'sink.parallelism' = 4; set it to that again until the batch "
            "is done (it is 2 now)"
        )
    assert values(records(job.topic)) == expected((0, 0))


def test_a_repeated_task_with_other_rows_is_refused(job, records):
    job.write(task=0)
    with pytest.raises(TransactionRefused, match="had 5 rows when it was written, and has 4 rows"):
        job.write(task=0, run="second", rows=4)
    with pytest.raises(TransactionRefused, match="and has other rows now that the batch is"):
        job.write(task=0, run="second", text="other-{}-{}-{}")
    assert values(records(job.topic)) == expected((0, 0))


def test_rows_that_differ_each_time_may_be_repeated_with_a_declared_parallelism(
    kafka, kafka_topic, records, a_job
):
    job = a_job(kafka.bootstrap_servers, kafka_topic(), **{"sink.parallelism": "1"})
    job.write(task=0)
    assert job.write(task=0, run="second", text="random-{}-{}-{}").repeated
    assert values(records(job.topic)) == expected((0, 0))


def test_a_task_waits_until_tasks_committed_earlier_were_seen_with_their_rows(job, records):
    job.write(task=0)
    ticket = job.ticket()
    waiting = threading.Thread(
        target=job.write, kwargs={"task": 1, "run": "second", "ticket": ticket}, daemon=True
    )
    waiting.start()
    time.sleep(2)
    assert values(records(job.topic)) == expected((0, 0))
    job.write(task=0, run="second", ticket=ticket)
    waiting.join(30)
    assert values(records(job.topic)) == expected((0, 0), (0, 1))


def test_a_task_gives_up_when_a_task_committed_earlier_does_not_come_back(
    kafka, kafka_topic, records, a_job
):
    options = {"properties.transaction.timeout.ms": "4000"}
    job = a_job(kafka.bootstrap_servers, kafka_topic(), **options)
    job.write(task=5)
    with pytest.raises(TransactionRefused, match="task 5 had written its part of batch 0"):
        job.write(task=0, run="second")
    assert values(records(job.topic)) == expected((0, 5))


def test_more_tasks_than_declared_are_refused(kafka, kafka_topic, a_job):
    job = a_job(kafka.bootstrap_servers, kafka_topic(), **{"sink.parallelism": "2"})
    with pytest.raises(TransactionRefused, match="task 2 writes, but 'sink.parallelism' is 2"):
        job.write(task=2)


# --- batch jobs and limits ---------------------------------------------------------------------


def test_a_batch_job_writes_again_when_it_is_run_again(kafka, kafka_topic, records, a_job):
    job = a_job(kafka.bootstrap_servers, kafka_topic(), query="")
    ticket = job.ticket()
    job.write(batch=None, run="", ticket=ticket, text="{}-{}-{}")
    assert job.write(batch=None, run="", ticket=ticket).repeated
    job.write(batch=None, run="")
    assert len(records(job.topic)) == 10


def test_a_transaction_timeout_above_the_brokers_is_refused_before_any_row(
    kafka, kafka_topic, a_job
):
    options = {"properties.transaction.timeout.ms": "3600000"}
    job = a_job(kafka.bootstrap_servers, kafka_topic(), **options)
    with pytest.raises(ValueError, match="properties.transaction.timeout.ms") as refused:
        job.ticket()
    assert str(refused.value).splitlines()[-1] == (
        "  properties.transaction.timeout.ms: 3600000 is more than the broker's "
        "'transaction.max.timeout.ms' (900000); lower it, or raise the broker's"
    )
