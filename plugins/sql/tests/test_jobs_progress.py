"""What Spark reports becomes figures people and programs can read."""

import json
from types import SimpleNamespace

from streamcore_sql.display import lag, line
from streamcore_sql.jobs import Job, StreamJob
from streamcore_sql.progress import Progress, Watch


def progress(batch, rows, *, end=None, latest=None, watermark=None, written=-1, late=0):
    body = {
        "batchId": batch,
        "numInputRows": rows,
        "processedRowsPerSecond": rows / 2,
        "durationMs": {"triggerExecution": 2000},
        "eventTime": {"watermark": watermark} if watermark else {},
        "stateOperators": [{"numRowsTotal": 7, "numRowsDroppedByWatermark": late}],
        "sources": [{"endOffset": end, "latestOffset": latest}],
        "sink": {"numOutputRows": written},
    }
    return SimpleNamespace(json=json.dumps(body))


def look(*recent):
    query = SimpleNamespace(isActive=True, recentProgress=list(recent))
    (found,) = Watch().look(StreamJob("job", query))
    return found


def test_rows_add_up_over_batches_and_idle_triggers_count_nothing():
    found = look(progress(0, 10, written=4), progress(1, 20, written=6), progress(1, 0, written=0))
    assert (found.rows_in, found.rows_out, found.batch) == (30, 10, 1)
    assert found.batch_seconds == 2
    assert found.state_rows == 7


def test_lag_is_what_the_log_holds_beyond_the_batch():
    end = {"offsets": {"t": {"0": 5, "1": 7}}, "tasks": 2}
    latest = {"offsets": {"t": {"0": 10, "1": 7, "2": 3}}}
    assert look(progress(0, 1, end=end, latest=latest)).lag_rows == 8
    timed = look(progress(0, 1, end={"at": 1000}, latest={"at": 61000}))
    assert timed.lag_seconds == 60
    assert look(progress(0, 1, end={"row": 3})).lag_rows is None


def test_a_watermark_before_any_row_is_none():
    assert look(progress(0, 1, watermark="1970-01-01T00:00:00.000Z")).watermark is None
    found = look(progress(0, 1, watermark="2024-05-01T10:00:00.000Z", late=3))
    assert found.watermark == "2024-05-01T10:00:00.000Z"
    assert found.late_rows == 3


def test_a_job_without_a_batch_yet_is_just_running():
    assert look() == Progress("job", "running")
    assert line(look()) == "job: running"


def test_one_line_tells_all():
    text = line(
        Progress(
            "job",
            "running",
            3,
            1234567,
            10,
            5000.0,
            2.0,
            40,
            None,
            None,
            1.25,
            "2024-05-01T10:00:00Z",
        )
    )
    assert text == (
        "job: running, batch 3, 1,234,567 rows in, in 5,000 rows/s, out 2 rows/s, lag 40 rows, "
        "batch 1.2 s, watermark 2024-05-01 10:00:00"
    )


def test_lag_says_when_it_will_be_gone():
    assert lag(Progress("j", "running", lag_rows=0)) == "none"
    assert lag(Progress("j", "running", lag_rows=9, catch_up_seconds=float("inf"))).endswith(
        "growing"
    )
    assert "current at" in lag(Progress("j", "running", lag_rows=9, catch_up_seconds=60.0))


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
