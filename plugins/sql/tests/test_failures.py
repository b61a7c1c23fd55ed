"""Errors from inside Spark become one paragraph, the cause in its own words."""

import pytest
from streamcore_sql import parse
from streamcore_sql.failures import located, message_of, with_checkpoint

OURS = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted, stage failure:
Task 0 in stage 1.0 failed 1 times: org.apache.spark.api.python.PythonException: Traceback (most
recent call last):
  File "worker.py", line 1, in main
streamcore.errors.RecordError: topic 't' partition 0 offset 5: 'x' is not a number. Set
'scan.deser.failure-handler' to 'skip' to go on without it.
\tat org.apache.spark.api.python.BasePythonRunner.foo(PythonRunner.scala:1)
\tat java.base/java.lang.Thread.run(Thread.java:840)

Driver stacktrace: SQLSTATE: XXKST"""
PYTHON = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "udf.py", line 3, in f
    return 1 / x
ZeroDivisionError: division by zero
\tat org.apache.spark.Foo(Foo.scala:1)"""
SPARK = """[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate it. SQLSTATE: 22012
== SQL (line 1, position 8) ==
SELECT 1 / 0
       ^^^^^"""
SOURCES = """assertion failed: There are [2] sources in the checkpoint offsets and now there are [3]
sources requested by the query. Cannot continue."""
PLAN = """[UNSUPPORTED] LEFT join is not supported with _q12_orders;
~Join LeftOuter, (id#62L = id#63L)
:- ~SubqueryAlias a"""


PLUGIN = """Failed to generate read partitions: Traceback (most recent call last):
  File "source.py", line 133, in partitions
    start = driver.tracker.initial()
            ^^^^^^^^^^^^^^^^^^^^^^^^
streamcore_kafka.discovery.TopicGone: topic 't' does not exist at localhost:9092; create it.
SQLSTATE: 38000"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PLUGIN, "topic 't' does not exist at localhost:9092; create it."),
        (
            OURS,
            "topic 't' partition 0 offset 5: 'x' is not a number. Set\n"
            "'scan.deser.failure-handler' to 'skip' to go on without it.",
        ),
        (PYTHON, "ZeroDivisionError: division by zero"),
        (SPARK, "Division by zero. Use `try_divide` to tolerate it."),
        (PLAN, "LEFT join is not supported with orders"),
        ("plain words", "plain words"),
        (
            SOURCES,
            "the checkpoint has 2 sources, and the query 3. A table with "
            "'scan.watermark.per-partition' has one for each partition: if partitions were added, "
            "set its 'scan.watermark.lanes' to the number there was",
        ),
    ],
)
def test_only_the_cause_is_told(text, told):
    assert message_of(RuntimeError(text)) == told


def test_the_last_of_our_own_errors_wins_over_what_wraps_it():
    inner = RuntimeError(OURS)
    outer = RuntimeError("[STREAM_FAILED] the query failed")
    outer.__cause__ = inner
    assert message_of(outer).startswith("topic 't' partition 0 offset 5")


REFUSED = """Traceback (most recent call last):
  File "tickets.py", line 1, in check
streamcore_kafka.tickets.TransactionRefused: batch 3 is over; batch 4 is there
\tat org.apache.spark.Foo(Foo.scala:1)"""


STATE = """An exception was raised by the Python Proxy: Traceback (most recent call last):
  File "write_batch.py", line 1, in __call__
py4j.protocol.Py4JJavaError: An error occurred while calling o250.save.
: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.
\tat org.apache.spark.Foo(Foo.scala:1)
Caused by: org.apache.hadoop.fs.ChecksumException: Checksum error: file:/{}/state/2.zip at 15
\tat org.apache.hadoop.Foo(Foo.java:1)
\t... 7 more
"""
START = """An error occurred while calling o12.start.
: com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input
\tat org.apache.spark.sql.execution.streaming.StreamMetadata$.read(StreamMetadata.scala:1)"""


class Java(Exception):
    """An error of Spark's, with where it came from."""

    def __init__(self, text, stack):
        super().__init__(text)
        self._stackTrace = stack


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError(REFUSED), "batch 3 is over; batch 4 is there. The checkpoint is in '/kept'."),
        (
            RuntimeError("Failed to read log file file:/kept/offsets/3. Incomplete log file"),
            "Failed to read log file file:/kept/offsets/3. Incomplete log file",
        ),
        (
            Java("Unexpected end-of-input.", "at org.json4s.Foo\n at StreamMetadata$.read(a:1)"),
            "Unexpected end-of-input. The checkpoint is in '/kept'.",
        ),
        (
            RuntimeError(STATE.format("kept")),
            "ChecksumException: Checksum error: file:/kept/state/2.zip at 15",
        ),
        (
            RuntimeError(STATE.format("local")),
            "ChecksumException: Checksum error: file:/local/state/2.zip at 15. The checkpoint is "
            "in '/kept'.",
        ),
        (
            Java("Invalid UUID string: 9a3d%b7e3", "at java.util.UUID.fromString(UUID.java:1)"),
            "Invalid UUID string: 9a3d%b7e3. The checkpoint is in '/kept'.",
        ),
        (
            Java(
                'Error at index 2 in: "47!7"',
                "at java.base/java.util.UUID.fromString1(UUID.java:1)",
            ),
            "Error at index 2 in: \"47!7\". The checkpoint is in '/kept'.",
        ),
        (
            Java(
                "malformed input around byte 76", "at a.state.SchemaHelper$SchemaReader.read(a:1)"
            ),
            "malformed input around byte 76. The checkpoint is in '/kept'.",
        ),
        (
            RuntimeError(START),
            "JsonEOFException: Unexpected end-of-input. The checkpoint is in '/kept'.",
        ),
        (
            Java("batch 8 doesn't exist", "at a.MicroBatchExecution.constructNextBatch(a:1)"),
            "batch 8 doesn't exist. The checkpoint is in '/kept'.",
        ),
        (
            Java("[STREAM_FAILED] [DIVIDE_BY_ZERO] Division by zero.", "at StateStoreRDD.a(a:1)"),
            "[DIVIDE_BY_ZERO] Division by zero.",
        ),
        (
            RuntimeError(OURS.split(". Set")[0]),
            "topic 't' partition 0 offset 5: 'x' is not a number",
        ),
    ],
)
def test_a_failure_of_a_checkpoint_is_told_with_its_folder(error, told):
    assert with_checkpoint(error, "file:///kept") == told
    assert with_checkpoint(error, None) == message_of(error)


class Said(Exception):
    """What Spark says, by its condition and parameters."""

    def __init__(self, text, condition, **parameters):
        super().__init__(text)
        self._condition, self._parameters = condition, parameters

    def getCondition(self):
        return self._condition

    def getMessageParameters(self):
        return self._parameters


@pytest.mark.parametrize(
    ("query", "said", "place", "trouble", "hint"),
    [
        (
            "SELECT SUBSTRNG(a) FROM t",
            Said("no", "UNRESOLVED_ROUTINE", routineName="`SUBSTRNG`"),
            "SUBSTRNG",
            "no function called 'SUBSTRNG'",
            "Did you mean 'SUBSTRING'? Both Flink's functions and Spark's are known; "
            "CREATE FUNCTION adds one in Python.",
        ),
        (
            "SELECT w FROM t, LATERAL TABLE(cut(a)) AS x (w)",
            Said("no", "UNRESOLVABLE_TABLE_VALUED_FUNCTION", name="`cut`"),
            "cut",
            "no table function called 'cut'",
            "CREATE FUNCTION one that returns an array, and CROSS JOIN UNNEST(cut(x)) AS t (y).",
        ),
        (
            "SELECT a FROM t WHERE a NOT IN (SELECT b FROM u)",
            Said("Invalid: Streaming query is not allowed in subquery expressions.", "X"),
            "NOT IN",
            "Spark cannot look a row up in a subquery of a stream",
            "Join it, such as JOIN (SELECT DISTINCT k FROM b) AS b ON a.k = b.k, or bound it.",
        ),
        (
            "SELECT a, b, COUNT(*) FROM t GROUP BY a",
            Said("b is not grouped", "MISSING_AGGREGATION", expression='"b"'),
            "b",
            "b is not grouped",
            "",
        ),
    ],
)
def test_what_spark_says_points_at_its_place_and_what_to_write(query, said, place, trouble, hint):
    error = located(said, parse(query)[0].query)
    assert (error.place.text, error.trouble, error.hint) == (place, trouble, hint)


class Unresolved(Exception):
    def getCondition(self):
        return "UNRESOLVED_COLUMN.WITH_SUGGESTION"

    def getMessageParameters(self):
        return {"objectName": "`o`.`nmae`", "proposal": "`id`"}


def test_an_unknown_column_points_at_its_place_and_the_nearest_name():
    (statement,) = parse("SELECT o.id,\n  o.nmae FROM orders AS o")
    error = located(Unresolved("no"), statement.query, ["id", "name"])
    assert (error.line, error.column) == (2, 5)
    assert error.trouble == "no column called 'nmae'"
    assert error.hint == "Did you mean 'name'?"
