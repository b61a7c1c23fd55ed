"""Jobs that are killed, frozen, started twice or robbed of their checkpoint lose nothing."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
import uuid
from collections import Counter
from functools import partial

import pytest
from streamcore.testing.ledger import scenario
from streamcore.testing.services.kafka.transactions import FENCED, ending_refused
from streamcore.testing.services.listening import family, listeners
from streamcore.testing.services.proxy import END_TXN
from streamcore_kafka.planning import ROWS_PER_TASK

POINTS = ("init", "begin", "produce", "marker", "commit", "committed", "batch")


@scenario(1, small={"rows": 6_000, "kills": 2}, full={"rows": 1_000_000, "kills": 70})
def test_a_driver_killed_again_and_again_leaves_each_row_once(broker, bench, scale):
    """Half of the kills hit a random moment, the others each point of a transaction in turn."""
    dice = random.Random(scale.seed)
    bench = bench(broker)
    bench.copy.source["scan.max-rows-per-batch"] = str(max(1000, scale.rows // 200))
    bench.copy.spark |= {"spark.ui.enabled": "true", "spark.ui.port": "0"}
    bench.ledger.send(scale.rows // 2)
    bench.ledger.keep_sending(scale.rows - scale.rows // 2, pieces=scale.kills * 5, pause=0.5)
    for kill in range(scale.kills):
        if kill % 2:
            point = POINTS[(kill // 2 + scale.seed) % len(POINTS)]
            bench.ledger.send(10)  # without rows there is no transaction to be killed in
            bench.copy.start(f"{point}:kill")
            assert bench.copy.wait() == 1, f"{point}: {bench.copy.said()[-2000:]}"
        else:
            bench.copy.start()
            bench.copy.wait_batch()
            addresses = listeners(family(bench.copy.process.pid))
            assert {each.rpartition(":")[0] for each in addresses} == {"127.0.0.1"}
            time.sleep(dice.uniform(0, 6 if scale.kills > 2 else 1))
            bench.copy.signal(signal.SIGKILL)
            assert bench.copy.wait() == -signal.SIGKILL
    bench.copy.start()
    bench.ledger.finish()
    bench.wait_for_all(timeout=600)
    bench.verdict()


@scenario(
    2, small={"rows": 6_000, "kills": 3}, full={"rows": 1_000_000, "kills": 100}, always=False
)
def test_python_workers_killed_under_a_query_leave_it_alive(broker, bench, scale):
    """Spark tries a task again, here up to eight times, and the copy never ends."""
    dice = random.Random(scale.seed)
    bench = bench(broker)
    bench.copy.master = "local[2,8]"
    bench.copy.source["scan.max-rows-per-batch"] = str(max(500, scale.rows // 100))
    bench.ledger.send(scale.rows // 2)
    bench.copy.start()
    bench.copy.wait_batch()
    for _ in range(scale.kills):
        bench.ledger.send(scale.rows // 2 // scale.kills)
        time.sleep(dice.uniform(0, 2))
        deadline = time.monotonic() + 120
        while not (workers := bench.copy.workers()):
            bench.copy.check()
            assert time.monotonic() < deadline, "no worker runs"
            bench.ledger.send(20)  # workers come with work
            time.sleep(0.5)
        with contextlib.suppress(ProcessLookupError):
            os.kill(dice.choice(workers), signal.SIGKILL)
    bench.wait_for_all(timeout=600)
    bench.copy.check()
    bench.verdict()


def cuts(rows, pairs, dice):
    """Numbers of tasks, and of those that have committed: none, one, … all but one."""
    most = -(-rows // ROWS_PER_TASK)
    every = [(tasks, done) for tasks in range(most, 1, -1) for done in range(tasks)]
    return every[:pairs] if pairs > 1 else [dice.choice(every)]


def states(broker, bench):
    """What the broker says of the transaction of each task."""
    stem = bench.copy.sink["sink.transactional-id-prefix"] + "-"
    found = broker.transactions().items()
    return {int(name[len(stem) :]): state for name, state in found if name.startswith(stem)}


def cores_needed(committed):
    """Cores with which the last of these tasks is run while all that wait for it hold one."""
    return max(committed) - len(committed) + 2 if committed else 1


def wait_until(condition, check=lambda: None, timeout=300):
    deadline = time.monotonic() + timeout
    while not condition():
        check()
        assert time.monotonic() < deadline, f"nothing in {timeout} s"
        time.sleep(0.05)


@scenario(5, small={"rows": 30_000, "pairs": 1}, full={"rows": 100_000, "pairs": 10})
def test_a_batch_cut_in_two_is_finished_with_another_parallelism(broker, bench, scale):
    """Of its tasks some have committed, the others have asked for it when their driver is killed.

    A successor with another parallelism writes the rest, and only then the broker is asked.
    """
    dice, told = random.Random(scale.seed), []
    for tasks, done in cuts(scale.rows, scale.pairs, dice):
        each = bench(broker, partitions=6)
        each.copy.source["scan.max-rows-per-batch"] = str(scale.rows)
        each.ledger.send(scale.rows)
        each.copy.master = f"local[{tasks}]"
        each.copy.source["scan.parallelism"] = str(tasks)
        held = broker.proxy.hold_next(END_TXN, times=tasks - done, after=done)
        each.copy.start()
        cut = Counter({"CompleteCommit": done, "Ongoing": tasks - done})
        wait_until(partial(held.wait, 0, tasks - done), each.copy.check)
        wait_until(lambda each=each, cut=cut: Counter(states(broker, each).values()) == cut)
        each.copy.signal(signal.SIGKILL)
        assert each.copy.wait() == -signal.SIGKILL
        found = states(broker, each)
        assert Counter(found.values()) == cut, found

        other = dice.choice([number for number in range(1, 7) if number != tasks])
        committed = [task for task, state in found.items() if state == "CompleteCommit"]
        each.copy.master = f"local[{max(other, cores_needed(committed))}]"
        each.copy.source["scan.parallelism"] = str(other)
        each.copy.start()
        each.wait_for_all()
        held.release()
        assert held.wait_answered(count=tasks - done)
        assert {ending_refused(*answer) for answer in held.answers} <= {*FENCED.values()}
        each.verdict()
        told.append(f"{done} of {tasks}, then {other}")
        scale.measured["committed of the tasks, then with"] = "; ".join(told)


FROZEN = 4


@scenario(
    6,
    small={"rows": 2_000, "runs": 1, "seconds": 5},
    full={"rows": 20_000, "runs": 20, "seconds": 120},
    always=False,
)
def test_a_frozen_job_ends_soon_after_it_wakes_up_beside_its_twin(broker, bench, scale):
    """A few are frozen at a time, which costs nothing, and wake up one after another."""
    seconds = []
    for first in range(0, scale.runs, FROZEN):
        several = [bench(broker) for _ in range(first, min(first + FROZEN, scale.runs))]
        frozen = [(each, *freeze(each, scale.rows)) for each in several]
        for each, zombie, since in frozen:
            time.sleep(max(0, scale.seconds - (time.monotonic() - since)))
            os.killpg(zombie.pid, signal.SIGCONT)
            woke = time.monotonic()
            each.ledger.send(100)
            assert zombie.wait(scale.bound(10)) == 1
            seconds.append(time.monotonic() - woke)
            scale.measured["zombie ended after"] = f"{max(seconds):.1f} s"
            each.wait_for_all()
            each.verdict()
    assert len(seconds) == scale.runs


def freeze(bench, rows):
    """Stop a job in mid-transaction and let a twin go on: the stopped process, and since when."""
    bench.ledger.send(rows // 2)
    bench.copy.start("commit:sleep=2")
    bench.copy.wait_batch()
    bench.ledger.send(rows // 4)
    time.sleep(1)
    bench.copy.signal(signal.SIGSTOP)
    zombie, since = bench.copy.process, time.monotonic()
    bench.copy.start()
    bench.wait_for_all()
    bench.ledger.send(rows // 4)
    bench.wait_for_all()
    return zombie, since


@scenario(7, small={"rows": 200, "runs": 1}, full={"rows": 10_000, "runs": 10})
def test_two_queries_with_one_prefix_are_an_error_that_names_it(broker, bench, spark, scale):
    for _ in range(scale.runs):
        first, second = bench(broker, spark=spark), bench(broker, spark=spark)
        prefix = first.copy.sink["sink.transactional-id-prefix"]
        second.copy.sink = {**first.copy.sink}
        for each in (first, second):
            each.ledger.send(scale.rows)
            each.copy.start()
            each.copy.wait_batch()
        first.ledger.send(scale.rows)
        assert first.copy.wait(scale.bound(60)) == 1
        assert f"sink.transactional-id-prefix '{prefix}'" in first.copy.said()
        assert "give every query a prefix of its own" in first.copy.said()
        second.copy.check()
        second.copy.kill()
        second.copy.target = first.copy.target


@scenario(8, small={"rows": 1_000}, full={"rows": 100_000})
def test_a_lost_checkpoint_skips_no_batch_and_lost_metadata_is_refused(broker, bench, spark, scale):
    """Without its `metadata` a query has a new id: going on would not know what was written."""
    robbed = bench(broker, spark=spark)
    robbed.copy.source["scan.max-rows-per-batch"] = str(scale.rows // 2)
    robbed.ledger.send(scale.rows)
    robbed.copy.start(once=True)
    assert robbed.copy.wait() == 0
    (robbed.copy.checkpoint / "metadata").unlink()
    robbed.ledger.send(scale.rows)
    with pytest.raises(Exception, match="the metadata file is missing"):
        robbed.copy.start(once=True)
    (robbed.copy.checkpoint / "metadata").write_text(f'{{"id":"{uuid.uuid4()}"}}')
    robbed.copy.start(once=True)
    assert robbed.copy.wait(scale.bound(60)) == 1
    assert "it belongs to query" in robbed.copy.said()

    shutil.rmtree(robbed.copy.checkpoint)
    robbed.copy.start(once=True)
    assert robbed.copy.wait() == 0
    robbed.live.wait_for(robbed.ledger.rows, 60)
    rows = robbed.live.stop()
    counted = {key: sum(row.key == key for row in rows) for key in robbed.ledger.sent}
    assert sum(counted.values()) == 3 * scale.rows, "the first half twice, for it was read anew"
    assert {row[:2] for row in rows} == {
        (key, number) for key, count in robbed.ledger.sent.items() for number in range(count)
    }
