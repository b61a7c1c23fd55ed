"""Bombs, slow sinks, large messages and damaged files cost little memory and no rows."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from streamcore import StreamcoreError
from streamcore.testing.codec import build
from streamcore.testing.ledger import Ledger, scenario
from streamcore.testing.services.kafka import unique_name
from streamcore.types import arrow_schema
from streamcore_sql import Session

MOST_MEGABYTES = 256
PAGE = resource.getpagesize() / 2**20
ROOT = Path(__file__).parents[2]
READ = str(ROOT / "plugins/kafka/tests/source/reading_memory.py")


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def long(number):
    return varint((number << 1) ^ (number >> 63) if number >= 0 else ((-number << 1) - 1))


ARRAY = {"a": "ARRAY<INT> NOT NULL"}
BOMBS = {
    "JSON a million deep": ("json", {"a": "STRING"}, b"[" * 1_000_000),
    "JSON objects a million deep": ("json", {"a": "STRING"}, b'{"a":' * 1_000_000),
    "an integer of 5,000 digits": ("json", {"a": "BIGINT"}, b'{"a":%s}' % (b"9" * 5000)),
    "a decimal of 5,000 digits": ("json", {"a": "DECIMAL(38, 0)"}, b'{"a":%s}' % (b"9" * 5000)),
    "an exponent of 10^9": ("json", {"a": "DECIMAL(38, 0)"}, b'{"a":1e1000000000}'),
    "Avro: 200 million items": ("avro", ARRAY, long(200_000_000) + b"\x00" * 50),
    "Avro: the least block": ("avro", ARRAY, b"\xff" * 9 + b"\x01" + b"\x00" * 50),
    "Avro: a text of 2^62 bytes": ("avro", {"a": "STRING NOT NULL"}, long(2**62) + b"x" * 50),
    "CSV: a quote never closed": ("csv", {"a": "BIGINT", "b": "INT"}, b'1,"' + b"x" * 5_000_000),
    "CSV: a million digits, no decimal": ("csv", {"a": "DECIMAL(9, 2)"}, b"0" * 1_000_000 + b"x"),
    "CSV: a million digits, no double": ("csv", {"a": "DOUBLE"}, b"0x" + b"0" * 1_000_000 + b"x"),
    "JSON: a million digits, no double": (
        "json",
        {"a": "DOUBLE"},
        b'{"a":"%sx"}' % (b"0" * 1_000_000),
    ),
    "debezium: a million deep": ("debezium-json", {"a": "STRING"}, b'{"after":' * 1_000_000),
}


def apart(work):
    """Run in a child of ours; its seconds of work, megabytes beyond ours, and how it went."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.process_time()  # of all its threads; others on this machine do not count
        try:
            told = work()
        except BaseException as error:
            told = f"{error!r:.300}"
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        os.write(writing, f"{time.process_time() - began} {grown} {told}".encode())
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        report = pipe.read().decode()
    assert status == 0, f"died with {status}"
    seconds, grown, told = report.split(" ", 2)
    return float(seconds), int(grown), told


@scenario(25, small={"bombs": len(BOMBS)}, full={"bombs": len(BOMBS)})
def test_bombs_are_rejected_soon_and_cheaply(scale):
    trouble, largest, slowest = {}, 0, 0.0
    for name, (identifier, columns, message) in BOMBS.items():
        schema = arrow_schema(columns)
        build(identifier).decoder(schema).decode([message[:1]])  # what is loaded once is not it's

        def work(identifier=identifier, schema=schema, message=message):
            decoded = build(identifier).decoder(schema).decode([message])
            return f"{len(decoded.rejected)} rejected, {decoded.rows.num_rows} rows"

        seconds, grown, told = apart(work)
        largest, slowest = max(largest, grown), max(slowest, seconds)
        if told != "1 rejected, 0 rows" or seconds > scale.bound(1) or grown > MOST_MEGABYTES:
            trouble[name] = f"{told}; {seconds:.1f} s, {grown} MB"
    assert trouble == {}
    scale.measured["most memory"] = f"{largest} MB"
    scale.measured["slowest"] = f"{slowest:.2f} s"


@scenario(30, small={"rows": 1_000, "kilobytes": 100}, full={"rows": 60_000, "kilobytes": 100})
def test_a_slow_sink_slows_the_copy_and_loses_nothing(broker, bench, spark, scale):
    """Only what is written goes through the slow line, and what waits for it stays in the topic."""
    bench = bench(broker, spark=spark)
    bench.copy.source["properties.bootstrap.servers"] = broker.direct_servers
    bench.copy.source["scan.max-rows-per-batch"] = str(max(500, scale.rows // 20))
    bench.copy.start()
    bench.ledger.send(100)
    bench.wait_for_all()
    idle, samples = largest(bench.copy.workers()), []
    broker.proxy.throttle(scale.kilobytes * 1000)
    began = time.monotonic()

    def look():
        bench.revive()
        if time.monotonic() - began > len(samples):  # once in a second
            samples.append(largest(bench.copy.workers()))

    bench.ledger.send(scale.rows, pad=200)
    bench.live.wait_for(bench.ledger.rows, 3600, look)
    grown = max(samples) - idle
    scale.measured["memory over idle"] = f"{grown:.0f} MB"
    assert grown <= 300
    scale.measured["took"] = f"{time.monotonic() - began:.0f} s"
    scale.measured["restarts of the job"] = str(bench.restarts)
    broker.proxy.heal()
    bench.verdict()


def largest(pids):
    """Megabytes of the largest of these processes."""
    return max((resident(pid) for pid in pids), default=0.0)


def resident(pid):
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return 0.0


def truncated(path, dice):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path, dice):
    data = bytearray(path.read_bytes())
    at = dice.randrange(len(data))
    data[at] ^= 1 << dice.randrange(8)
    path.write_bytes(bytes(data))


def removed(path, dice):
    path.unlink()


DAMAGES = (truncated, flipped, removed)


def chosen(folder, turn, dice):
    """A file of a checkpoint: each kind of them in turn, and of a kind the newest or any."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]
    kinds = {}
    for path in sorted(files, key=lambda path: (path.stat().st_mtime_ns, path)):
        kinds.setdefault((path.relative_to(folder).parts[0], path.suffix), []).append(path)
    alike = kinds[sorted(kinds)[turn % len(kinds)]]
    return alike[-1] if dice.random() < 0.5 else dice.choice(alike)


class Job:
    """A job as `streamcore run --once` runs it, and its checkpoint."""

    def __init__(self, spark, home, target, script):
        self._spark, self._home, self._script = spark, home, script
        self.checkpoint = home / target

    def run(self):
        """Why it was refused; nothing if it was not."""
        session = Session(self._spark, name="job", checkpoint=str(self._home), once=True)
        try:
            session.execute(self._script)
        except StreamcoreError as error:
            return str(error)
        return ""


def damage_again_and_again(job, scale, before, after):
    """Damage a file before each run: it goes on, or is refused and goes on once that is mended.

    `before` each run there is more to read, and `after` it all that must have been written.
    """
    dice, kept, refused = random.Random(scale.seed), job.checkpoint.with_name("kept"), []
    for number in range(scale.damages):
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(job.checkpoint, kept)
        path, damage = chosen(job.checkpoint, scale.seed + number // 3, dice), DAMAGES[number % 3]
        what = f"{path.relative_to(job.checkpoint)} {damage.__name__}"
        damage(path, dice)
        before()
        began = time.monotonic()
        told = job.run()
        if told:
            refused.append(what)
            assert time.monotonic() - began < scale.bound(60), what
            assert str(job.checkpoint) in told, f"{what}: {told}"
            assert "\tat " not in told, f"{what}: {told}"
            shutil.rmtree(job.checkpoint)
            shutil.copytree(kept, job.checkpoint)
            assert job.run() == "", what
        after(what)
    scale.measured["refused"] = f"{len(refused)} of {scale.damages}"


def table(name, columns, options):
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({listed});\n"


ROWS = "key STRING, seq BIGINT, pad STRING"


@scenario(34, small={"rows": 300, "damages": 3}, full={"rows": 2_000, "damages": 60})
def test_a_damaged_checkpoint_goes_on_exactly_or_is_refused(broker, bench, spark, scale, tmp_path):
    """Whatever becomes of a file, no row is written twice and none is passed over."""
    bench = bench(broker, partitions=1, spark=spark)
    bench.copy.source["scan.max-rows-per-batch"] = str(scale.rows)
    tables = table("rows_in", ROWS, bench.copy.source) + table("copy", ROWS, bench.copy.sink)
    job = Job(spark, tmp_path, "copy", f"{tables} INSERT INTO copy SELECT * FROM rows_in;")
    for _ in range(2):
        bench.ledger.send(scale.rows)
        assert job.run() == ""
    damage_again_and_again(
        job,
        scale,
        before=lambda: bench.ledger.send(scale.rows),
        after=lambda _: bench.live.wait_for(bench.ledger.rows, 120),
    )
    bench.verdict()


def latest(servers, topic):
    """The last count of each key, as other clients see it."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "check", "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    counts = {}
    while (message := consumer.poll(30.0)) is not None and message.error() is None:
        row = json.loads(message.value())
        counts[row["key"]] = row["n"]
    consumer.close()
    return counts


@scenario(34, small={"rows": 200, "damages": 3}, full={"rows": 1_000, "damages": 60}, always=False)
def test_damaged_state_counts_on_exactly_or_is_refused(broker, spark, scale, tmp_path):
    """The same with what a query keeps of the rows it has read: no count is ever wrong."""
    servers, source, target = broker.direct_servers, unique_name("words"), unique_name("counts")
    broker.create_topic(source, 1)
    broker.create_topic(target, 1)
    ledger = Ledger(servers, source, seed=scale.seed)
    read = {
        "connector": "kafka",
        "topic": source,
        "properties.bootstrap.servers": servers,
        "scan.startup.mode": "earliest-offset",
        "format": "json",
    }
    written = {
        "connector": "upsert-kafka",
        "topic": target,
        "properties.bootstrap.servers": servers,
        "key.format": "json",
        "value.format": "json",
        "sink.delivery-guarantee": "exactly-once",
        "sink.transactional-id-prefix": target,
    }
    keyed = "key STRING, n BIGINT, PRIMARY KEY (key) NOT ENFORCED"
    tables = table("words", ROWS, read) + table("counts", keyed, written)
    counting = "INSERT INTO counts SELECT key, COUNT(*) FROM words GROUP BY key;"
    job = Job(spark, tmp_path, "counts", tables + counting)

    def counted(what):
        assert latest(servers, target) == ledger.sent, what

    for _ in range(2):
        ledger.send(scale.rows)
        assert job.run() == ""
    counted("nothing yet")
    assert any(job.checkpoint.glob("state/0/*/*.zip")), "there are files of state"
    damage_again_and_again(job, scale, before=lambda: ledger.send(scale.rows), after=counted)


@scenario(29, small={"messages": 30}, full={"messages": 2_000}, always=False)
def test_messages_of_ten_megabytes_do_not_fill_memory(broker, scale):
    most = 12_000_000
    topic = broker.create_topic(unique_name("large"), 1, {"max.message.bytes": str(most)})
    producer = Producer({"bootstrap.servers": broker.direct_servers, "message.max.bytes": most})
    record = os.urandom(10_000_000)
    for _ in range(scale.messages):
        producer.produce(topic, record)
        producer.flush(60)
    arguments = [broker.direct_servers, topic, str(scale.messages)]
    done = subprocess.run(
        [sys.executable, READ, *arguments], capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stderr
    size, grown = (int(word) for word in done.stdout.split())
    broker.delete_topic(topic)
    assert size >= scale.messages * len(record)
    scale.measured["memory over idle"] = f"{grown} MB"
    assert grown <= 300


def bomb(broker, codec, messages):
    """A topic whose only batch holds zeros, and is far smaller on its way than when expanded."""
    topic = broker.create_topic(unique_name("bomb"), 1)
    producer = Producer(
        {
            "bootstrap.servers": broker.direct_servers,
            "compression.type": codec,
            "message.max.bytes": 1_000_000_000,
            "batch.size": 2_000_000_000,
            "queue.buffering.max.kbytes": 2_000_000,
            "linger.ms": 60_000,
        }
    )
    for _ in range(messages):
        producer.produce(topic, bytes(10_000_000))
    assert producer.flush(120) == 0
    return topic


def read_apart(broker, topic, messages):
    return subprocess.run(
        [sys.executable, READ, broker.direct_servers, topic, str(messages)],
        capture_output=True,
        text=True,
        timeout=600,
    )


@scenario(25, small={"messages": 8}, full={"messages": 60})
def test_a_batch_that_expands_a_thousandfold_takes_the_memory_of_one_batch(broker, scale):
    """Brokers take it by its size on the wire; the client expands it as a whole, and only once."""
    topic = bomb(broker, "gzip", scale.messages)
    done = read_apart(broker, topic, scale.messages)
    assert done.returncode == 0, done.stderr
    size, grown = (int(word) for word in done.stdout.split())
    expanded = scale.messages * 10
    assert size >= expanded * 1_000_000
    assert grown <= expanded + 150
    scale.measured["memory over idle"] = f"{grown} MB for a batch of {expanded} MB"


@scenario(25, small={"messages": 12}, full={"messages": 90})
def test_a_zstd_batch_beyond_what_may_be_received_is_refused_with_its_offset(broker, scale):
    topic = bomb(broker, "zstd", scale.messages)
    done = read_apart(broker, topic, scale.messages)
    assert done.returncode == 1
    told = done.stderr.splitlines()[-1]
    assert f"topic '{topic}' partition 0 offset 0: " in told
    assert "'properties.receive.message.max.bytes'" in told
