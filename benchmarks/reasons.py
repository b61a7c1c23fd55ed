"""Why ours is slower than a peer, where it is: by case, for the report."""

from __future__ import annotations

ENOUGH = 0.8
"""Of the best peer; a case below needs its reason here."""

CEILINGS = ("bare consume", "bare boto3")
"""Loops that decode nothing: what the client can do, not what a table can."""

OWN = (
    "at least once",
    "kafka",
    "every row",
    "DataFrame",
    "SELECT *",
    "ours, all columns",
    "ours, 100 at a time",
    "1 table",
    "1 table, in SQL",
    "unseen",
)
"""Sides that are ours, too: shown beside, never a peer."""

REASONS = {
    "source-json": "Bare consume decodes nothing, and hands nothing to Spark.",
    "consumer-loop": "Bare consume makes no Arrow of its messages, and knows no end to stop at.",
    "kinesis-source": "Bare boto3 decodes nothing.",
    "kinesis-sink": "Bare boto3 is given its records ready; ours encodes rows, sees to the limits "
    "of a call and sends again what was refused.",
    "latency-10": "Every micro-batch writes its offsets and commits before the next one, and ours "
    "also asks a Python process to plan it.",
    "latency-1000": "Every micro-batch writes its offsets and commits before the next one, and "
    "ours also asks a Python process to plan it.",
    "upsert-to-upsert": "Ours keeps its state in RocksDB and commits it with every micro-batch; "
    "Flink's is in memory here, and no checkpoint is taken.",
}
