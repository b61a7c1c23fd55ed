"""What Spark reports becomes figures people and programs can read."""

import itertools
import json
import time
from types import SimpleNamespace

import pytest
from streamcore_sql.display import line
from streamcore_sql.jobs import Job, StreamJob
from streamcore_sql.monitoring import wording
from streamcore_sql.monitoring.about import About, table_about
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


def running(*recent):
    query = SimpleNamespace(isActive=True, id="q", recentProgress=list(recent))
    return StreamJob("job", query, ABOUT)


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
    job.query.recentProgress.append(second)
    job.monitor.sample(now=True)
    job.monitor.sample(now=True)
    assert job.metrics().source("t")["numRecordsIn"] == 15


def test_a_query_that_has_told_nothing_new_is_asked_for_one_piece_only():
    class Remote:
        isActive, id, asked = True, "q", 0
        lastProgress = progress(0, 10)

        @property
        def recentProgress(self):
            self.asked += 1
            return [self.lastProgress]

    job = StreamJob("job", Remote(), ABOUT)
    for _ in range(5):
        job.monitor.sample(now=True)
    assert job.metrics().source("t")["numRecordsIn"] == 10
    assert job.query.asked == 1


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
