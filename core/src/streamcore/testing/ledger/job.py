"""The query that copies a ledger, and the process that runs it until it ends or is ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import StreamingQueryException

from streamcore.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

COLUMNS = "key STRING, seq BIGINT, pad STRING"


def start(spark: SparkSession, plan: Mapping[str, Any]) -> StreamingQuery:
    """Start copying; with `once`, only what is there."""
    rows = spark.readStream.format("streamcore").options(**plan["source"]).schema(COLUMNS).load()
    writer = (
        rows.writeStream.format("streamcore")
        .options(**plan["sink"])
        .option("checkpointLocation", plan["checkpoint"])
    )
    return writer.trigger(availableNow=True).start() if plan["once"] else writer.start()


def main(plan: Path) -> int:
    """Run the query; one line for each batch."""
    given = json.loads(plan.read_text())
    query = start(session("copy", master=given["master"], config=given["spark"]), given)
    last = -1
    try:
        while not query.awaitTermination(1):
            last = _report(query, last)
        _report(query, last)
    except StreamingQueryException as error:
        print("failed:", error, flush=True)
        return 1
    return 0


def _report(query: StreamingQuery, last: int) -> int:
    for progress in query.recentProgress:
        if progress.batchId > last and progress.numInputRows:
            last = progress.batchId
            print(f"batch {last}: {progress.numInputRows} rows", flush=True)
    return last


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
