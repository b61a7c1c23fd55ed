"""`reading_memory.py SERVERS TOPIC COUNT`: bytes read, and megabytes of memory it took."""

import sys
from pathlib import Path

import pyarrow.compute  # noqa: F401 - part of an idle worker
import pyspark.sql.datasource  # noqa: F401
import streamcore_kafka.client  # noqa: F401
from streamcore import Column, Table
from streamcore.registry import installed
from streamcore_kafka.progress import Range
from streamcore_kafka.reading import read_rows


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


servers, topic, count = sys.argv[1:]
options = {
    "properties.bootstrap.servers": servers,
    "topic": topic,
    "format": "raw",
    "scan.startup.mode": "earliest-offset",
}
kafka = installed().build("connector", "kafka", options)
table = Table((Column("v", "BYTES"),), "t")
idle, size = peak(), 0
for batch in read_rows(kafka, table, [Range(topic, 0, 0, int(count))]):
    size += batch.nbytes
    del batch
print(size, peak() - idle)
