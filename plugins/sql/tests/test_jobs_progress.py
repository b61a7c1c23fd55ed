"""What Spark reports becomes figures people and programs can read."""

import itertools
import json
import re
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from streamcore_sql.display import JsonDisplay, line
from streamcore_sql.jobs import Job, StreamJob
from streamcore_sql.monitoring import wording
from streamcore_sql.monitoring.about import About, table_about
from streamcore_sql.monitoring.events import Events
from streamcore_sql.monitoring.history import POINTS, History
from streamcore_sql.monitoring.rates import CatchUp
from streamcore_sql.progress import Progress, Watch

ABOUT = About((table_about("t", "source", "kafka", {}), table_about("o", "sink", "kafka", {})))
stamps = itertools.count()


def idle(batch):
    """What Spark tells every ten seconds while nothing comes."""
    told = json.loads(progress(batch, 0).json)
    told["durationMs"] = {"triggerExecution": 3, "latestOffset": 3}
    return SimpleNamespace(json=json.dumps(told))


def progress(batch, rows, *, end=None, latest=None, watermark=None, written=-1, late=0):
    body = {
        "timestamp": f"2024-05-01T10:00:00.{next(stamps):03d}Z",
        "batchId": batch,
        "numInputRows": rows,
        "durationMs": {"triggerExecution": 2000, "addBatch": 1500, "walCommit": 500},
        "eventTime": {"watermark": watermark} if watermark else {},
        "stateOperators": [{"numRowsTotal": 7, "numRowsDroppedByWatermark": late}],
        "sources": [{"numInputRows": rows, "endOffset": end, "latestOffset": latest}],
        "sink": {"numOutputRows": written},
    }
    return SimpleNamespace(json=json.dumps(body))


class Query:
    """What Spark keeps of a query: its last pieces of progress, of which it counts the asking."""

    isActive, id = True, "q"

    def __init__(self, recent):
        self.recent, self.asked = list(recent), 0

    @property
    def lastProgress(self):
        return self.recent[-1] if self.recent else None

    @property
    def recentProgress(self):
        self.asked += 1
        return self.recent[-100:]


def running(*recent):
    return StreamJob("job", Query(recent), ABOUT)


def look(*recent):
    (found,) = Watch().look(running(*recent))
    return found


def test_rows_add_up_over_batches_and_idle_triggers_count_nothing():
    found = look(progress(0, 10, written=4), progress(1, 20, written=6), progress(1, 0, written=0))
    assert (found.rows_in, found.rows_out, found.batch) == (30, 10, 1)
    assert found.batch_seconds == 2
    assert found.state_rows == 7


def test_the_last_batch_is_not_forgotten_while_nothing_comes():
    found = look(progress(0, 10), idle(1), idle(1))
    assert (found.batch, found.batch_seconds) == (0, 2)
    assert found.phases == {"addBatch": 1500, "walCommit": 500}


def test_progress_that_was_seen_is_not_counted_again():
    first, second = progress(0, 10), progress(1, 5)
    job = running(first)
    assert job.metrics().source("t")["numRecordsIn"] == 10
    job.query.recent.append(second)
    job.monitor.sample(now=True)
    job.monitor.sample(now=True)
    assert job.metrics().source("t")["numRecordsIn"] == 15


def test_a_query_that_has_told_nothing_new_is_asked_for_one_piece_only():
    job = running(progress(0, 10))
    for _ in range(5):
        job.monitor.sample(now=True)
    assert job.metrics().source("t")["numRecordsIn"] == 10
    assert job.query.asked == 1


@pytest.mark.parametrize(
    ("known", "then", "asked", "rows"),
    [
        (progress(4, 1), [progress(5, 10)], 0, 10),
        (progress(4, 1), [idle(5)], 0, 0),
        (idle(5), [progress(5, 10)], 0, 10),
        (idle(5), [progress(5, 10), idle(6)], 1, 10),
        (progress(4, 1), [progress(5, 10), idle(6)], 1, 10),
        (progress(4, 1), [progress(5, 10), progress(6, 20)], 1, 30),
        (progress(4, 1), [progress(5, 10), progress(6, 20), idle(7)], 1, 30),
    ],
    ids=["next", "idle", "idle-next", "idle-next-idle", "next-idle", "two", "two-idle"],
)
def test_all_that_spark_keeps_is_asked_for_only_if_batches_were_passed_by(known, then, asked, rows):
    job = running(known)
    before = job.metrics().source("t").get("numRecordsIn", 0)
    first = job.query.asked
    job.query.recent += then
    job.monitor.sample(now=True)
    assert job.query.asked - first == asked
    assert job.metrics().source("t").get("numRecordsIn", 0) - before == rows


def told_to_log_and_programs(job, events, display, capsys):
    """What a look tells, as (number, rows, how many were passed over) of each batch."""
    job.monitor.sample(now=True)
    before = len(events.path.read_text().splitlines()) if events.path.exists() else 0
    events.look([job])
    display.progress(list(Watch().look(job)))
    lines = [json.loads(each) for each in events.path.read_text().splitlines()[before:]]
    objects = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    logged = [(x["batch"], x["rows"], x.get("passed_over")) for x in lines if x["event"] == "batch"]
    shown = [(x["batch"], x["batch_rows"], x.get("passed_over")) for x in objects if "batch" in x]
    return logged, shown


def test_every_batch_between_two_looks_is_told_once_and_in_order(tmp_path, capsys):
    job, events, display = running(), Events(tmp_path / "log.jsonl"), JsonDisplay()

    def look():
        return told_to_log_and_programs(job, events, display, capsys)

    assert look() == ([], [])
    job.query.recent += [progress(7, 1), progress(8, 2), idle(9)]
    assert look() == ([(7, 1, None), (8, 2, None)],) * 2
    assert look() == ([], [])
    job.query.recent += [progress(number, number) for number in range(9, 19)]
    assert look() == ([(number, number, None) for number in range(9, 19)],) * 2
    job.query.recent += [progress(number, 1) for number in range(19, 150)]
    told = [(50, 1, 31), *((number, 1, None) for number in range(51, 150))]
    assert look() == (told, told)


def test_the_end_is_told_after_the_batches_before_it(tmp_path, capsys):
    job, events, display = running(progress(0, 1)), Events(tmp_path / "log.jsonl"), JsonDisplay()
    told_to_log_and_programs(job, events, display, capsys)
    job.query.recent += [progress(1, 10), progress(2, 20)]
    job.query.isActive, job.query.exception = False, lambda: None
    events.look([job])
    display.progress(list(Watch().look(job)))
    lines = [json.loads(each) for each in events.path.read_text().splitlines()]
    assert [(x["event"], x["batch"]) for x in lines] == [
        ("started", None),
        ("batch", 0),
        ("batch", 1),
        ("batch", 2),
        ("finished", 2),
    ]
    objects = [json.loads(each) for each in capsys.readouterr().out.splitlines()]
    assert [(x["status"], x["batch"], x["batch_rows"]) for x in objects] == [
        ("running", 1, 10),
        ("finished", 2, 20),
    ]
    assert objects[0]["phases"] == {"addBatch": 1500, "walCommit": 500}


def test_each_topic_tells_when_it_will_have_caught_up(monkeypatch):
    clock = SimpleNamespace(time=time.time, monotonic=lambda: clock.now, now=1000.0)
    monkeypatch.setattr("streamcore_sql.monitoring.monitor.time", clock)
    job = running()
    for second, (fast, slow) in enumerate([(600, 50), (400, 50), (200, 50)]):
        clock.now = 1000.0 + second
        end = {"offsets": {"fast": {"0": 0}, "slow": {"0": 0}, "done": {"0": 9}}}
        latest = {"fast": {"0": fast}, "slow": {"0": slow}, "done": {"0": 9}}
        job.query.recent.append(progress(second, 1, end=end, latest={"offsets": latest}))
        job.monitor.sample(now=True)
    (found,) = Watch().look(job)
    assert found.drain_by_topic == {"fast": 200, "slow": 0, "done": 0}
    assert found.catch_up_seconds_by_topic == {"fast": 1, "slow": float("inf")}
    assert found.to_json()["catch_up_seconds_by_topic"]["slow"] == "never at this rate"
    (fast, text), *others = wording.topics(found)
    assert (fast, text.rpartition(" ")[0]) == ("fast", "200 behind, draining 200/s, current at")
    assert others == [("slow", "50 behind, never at this rate"), ("done", "none")]


def test_lag_is_what_the_log_holds_beyond_the_batch():
    end = {"offsets": {"t": {"0": 5, "1": 7}}, "tasks": 2}
    latest = {"offsets": {"t": {"0": 10, "1": 7, "2": 3}}, "table": "t"}
    found = look(progress(0, 1, end=end, latest=latest))
    assert found.lag_rows == 8
    assert found.lag_by_topic == {"t": 8}
    assert look(progress(0, 1, end={"row": 3})).lag_rows is None


def test_shards_are_behind_by_the_time_of_their_position():
    shards = {"a": {"seq": "1", "at": 1000}, "b": {"ts": 31000}, "c": {"end": 1}, "d": {"trim": 1}}
    job = running(progress(0, 1, end={"shards": shards}, latest={"at": 61000, "table": "t"}))
    lags = {lag.place: lag.seconds for lag in job.metrics().source("t").lags}
    assert lags == {"a": 60, "b": 30}
    assert job.metrics().source()["lagSeconds"] == 60
    (found,) = Watch().look(job)
    assert found.lag_seconds_by_topic == {"a": 60, "b": 30}


def test_shards_of_two_streams_are_told_apart_by_their_tables():
    told = json.loads(progress(0, 1).json)
    told["sources"] = [
        {
            "numInputRows": 1,
            "endOffset": {"shards": {"shard-0": {"at": 1000}}},
            "latestOffset": {"at": 1000 + 1000 * late, "table": table},
        }
        for table, late in (("ticks", 3), ("trades", 60))
    ]
    found = look(SimpleNamespace(json=json.dumps(told)))
    assert found.lag_seconds_by_topic == {"ticks shard-0": 3, "trades shard-0": 60}
    assert wording.topics(found) == [
        ("trades shard-0", "60 s behind"),
        ("ticks shard-0", "3.0 s behind"),
    ]


def test_what_is_not_known_is_absent():
    figures = running(progress(0, 5)).metrics()
    source, sink = figures.source(), figures.sink()
    assert dict(source)["numRecordsIn"] == 5
    assert not {"numBytesIn", "pendingRecords", "currentEmitEventTimeLag"} & set(source)
    assert dict(sink) == {}
    assert dict(running().metrics()) == {}
    with pytest.raises(KeyError, match="no single source 'nope'; there are: 't'"):
        figures.source("nope")


def test_a_watermark_before_any_row_is_none():
    assert look(progress(0, 1, watermark="1970-01-01T00:00:00.000Z")).watermark is None
    found = look(progress(0, 1, watermark="2024-05-01T10:00:00.000Z", late=3))
    assert found.watermark == "2024-05-01T10:00:00.000Z"
    assert found.late_rows == 3


def test_a_watermark_tells_how_far_it_is_behind_the_clock():
    behind = datetime.now(UTC) - timedelta(minutes=12)
    found = look(progress(0, 1, watermark=behind.strftime("%Y-%m-%dT%H:%M:%S.000Z")))
    assert wording.times(found) == f"watermark {behind:%Y-%m-%d %H:%M:%S} (12 min ago)"


def test_a_job_without_a_batch_yet_is_just_running():
    assert line(look()) == "job: running"


def test_one_line_tells_all():
    text = line(
        Progress(
            "job",
            "running",
            3,
            1234567,
            rate_in=5000.0,
            bytes_in=2_500_000,
            rate_out=2.0,
            lag_rows=40,
            batch_seconds=1.25,
            phases={"addBatch": 900, "walCommit": 200, "getBatch": 1},
            watermark="2024-05-01T10:00:00.000Z",
            event_seconds=3.0,
            dead_lettered=2,
            retries=1,
        )
    )
    assert text == (
        "job: running, batch 3, 1,234,567 rows in, in 5.0 k rows/s, 2.5 MB/s, out 2 rows/s, "
        "lag 40 behind, took 1.2 s (work 0.9, log 0.2), "
        "time watermark 2024-05-01 10:00:00, events 3.0 s old, let go 2 dead-lettered, 1 retry"
    )


def test_lag_says_when_it_will_be_gone():
    behind = {"lag_rows": 4_200_000, "lag_seconds": 720.0}
    assert wording.lag(Progress("j", "running", lag_rows=0)) == "none"
    stuck = Progress("j", "running", **behind, drain=-5.0, catch_up_seconds=float("inf"))
    assert wording.lag(stuck) == "4.2 M (12 min) behind, never at this rate"
    soon = Progress("j", "running", **behind, drain=18_000.0, catch_up_seconds=233.0)
    at = time.strftime("%H:%M", time.localtime(time.time() + 233))
    assert wording.lag(soon).startswith("4.2 M (12 min) behind, draining 18 k/s, current at ")
    assert at[:2] in wording.lag(soon)
    timed = Progress("j", "running", lag_seconds=90.0)
    assert wording.lag(timed) == "90 s behind"
    ends = Progress("j", "running", lag_seconds=90.0, drain=0.5, catch_up_seconds=180.0)
    assert re.fullmatch(r"90 s behind, current at \d\d:\d\d:\d\d", wording.lag(ends))
    assert stuck.to_json()["catch_up_seconds"] == "never at this rate"


def test_the_pace_is_that_of_the_last_minute():
    lag = CatchUp()
    assert (lag.drain, lag.seconds) == (None, None)
    for second in range(200):
        lag.add(second, 10_000 - 10 * second)
    assert lag.drain == pytest.approx(10)
    assert lag.seconds == pytest.approx((10_000 - 1990) / 10)
    lag.add(200, 20_000)
    assert lag.seconds == float("inf")
    lag.add(201, 0)
    assert lag.seconds is None


def test_an_hour_is_kept_and_no_more():
    history = History()
    for second in range(5 * POINTS * 3):
        history.add((float(second), 1.0, None, 2, None, 3))
    points = history.to_json()["points"]
    assert len(points) == POINTS
    assert points[0][0] == 5 * POINTS * 2
    assert history.to_json(since=points[-2][0])["points"] == [points[-1]]


def test_a_job_that_is_over_runs_what_waited_for_it_once():
    class Over(Job):
        def _over(self):
            return True

        def _failure(self):
            return None

    calls = []
    job = Over("done")
    job.when_over(lambda: calls.append(1))
    assert job.wait()
    assert job.wait()
    assert calls == [1]
