"""The fixtures give real, shared, private services; loading them costs nothing."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("boto3", "confluent_kafka", "hypothesis", "moto", "pyarrow", "pyspark", "rich")


def test_loading_the_fixtures_and_services_imports_no_client_and_no_spark():
    script = (
        "import sys, streamcore.testing.fixtures, streamcore.testing.services.sandbox; "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_spark_is_local_quiet_and_in_utc(spark):
    assert spark.sparkContext.master == "local[2]"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.range(3).count() == 3


def test_the_registry_is_the_installed_one(registry):
    from streamcore.registry import installed

    assert registry is installed()


def test_streams_have_names_of_their_own(kinesis, kinesis_stream):
    first, second = kinesis_stream(shards=2), kinesis_stream()
    assert first != second
    assert len(kinesis.client().list_shards(StreamName=first)["Shards"]) == 2


@pytest.mark.parametrize("service", ["kafka", "schema_registry", "kinesis"])
def test_services_listen_on_loopback_only(request, service):
    pids = request.getfixturevalue(service).pids
    addresses = {address for pid in pids for address in listening(pid)}
    assert addresses
    assert addresses <= {"127.0.0.1", "::ffff:127.0.0.1"}


def listening(pid):
    """The addresses a process listens on, out of the kernel's tables."""
    sockets = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            sockets.add(link.readlink().name)
    for table, width in (("tcp", 8), ("tcp6", 32)):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                yield readable(fields[1][:width])


def readable(address):
    words = [bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8)]
    ipv4 = ".".join(map(str, words[-1]))
    if len(words) == 1:
        return ipv4
    mapped = words[:3] == [bytes(4), bytes(4), b"\x00\x00\xff\xff"]
    return f"::ffff:{ipv4}" if mapped else b"".join(words).hex()
