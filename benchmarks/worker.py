"""The process behind a Spark side: reads a job per line, runs it, answers with a line of JSON."""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module

import streamcore


def main() -> None:
    """Serve until the input ends."""
    cores, packages = sys.argv[1], sys.argv[2:]
    config = {"spark.ui.enabled": "false", "spark.driver.memory": "6g"}
    config["spark.driver.bindAddress"] = config["spark.driver.host"] = "127.0.0.1"
    if packages:
        config["spark.jars"] = packages[0]
    spark = streamcore.session("benchmark", f"local[{cores}]", config)
    spark.sparkContext.setLogLevel("OFF")
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            module, _, name = asked["job"].rpartition(".")
            jobs = import_module(f"{__package__}.{module or 'jobs'}")
            answer = getattr(jobs, name)(spark, **asked["arguments"])
        except Exception as failure:
            traceback.print_exc()
            spark.range(1).count()  # without its JVM this process ends, and another takes its place
            answer = {"failed": str(failure)[:2000]}
        print(json.dumps(answer), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
