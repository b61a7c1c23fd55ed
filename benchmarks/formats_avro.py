"""`python -m benchmarks.formats_avro`: rows per CPU second of the Avro formats, beside fastavro."""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import io
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
from streamcore import Decoder, Format
from streamcore.types import arrow_schema
from streamcore_formats.avro import client
from streamcore_formats.avro.confluent import AvroConfluent
from streamcore_formats.avro.debezium import DebeziumAvroConfluent
from streamcore_formats.avro.plain import Avro
from streamcore_formats.avro.schema import Type, parse

from .formats import Comparison

NARROW = {"user_id": "BIGINT", "item_id": "BIGINT", "behavior": "STRING", "ts": "TIMESTAMP(3)"}
WIDE = {
    "id": "BIGINT NOT NULL",
    "name": "STRING",
    "kind": "INT",
    "price": "DOUBLE",
    "amount": "DECIMAL(10, 2)",
    "on": "DATE",
    "ts": "TIMESTAMP(3)",
    "ok": "BOOLEAN",
}
AIMS = {"avro decode": 20, "avro-confluent decode": 10, "avro encode": 20}
MOST_FOR_SMALL = 3.0


class KnownSchemas:
    """Stands in for a registry, so that only decoding is measured."""

    def __init__(self) -> None:
        self.known: dict[int, Type] = {}

    def schema(self, identifier: int) -> Type:
        return self.known[identifier]

    def register(self, subject: str, text: str) -> int:
        identifier = len(subject)
        self.known[identifier] = parse(text)
        return identifier


def rows(schema: pa.Schema, count: int) -> pa.RecordBatch:
    """Rows as a shop would have them."""
    noise = random.Random(1)
    start = dt.datetime(2024, 1, 1)
    makers: dict[str, Callable[[int], Any]] = {
        "user_id": lambda n: noise.randrange(10**6),
        "item_id": lambda n: noise.randrange(10**7),
        "behavior": lambda n: noise.choice(("pv", "buy", "cart", "fav")),
        "ts": lambda n: start + dt.timedelta(milliseconds=n),
        "id": lambda n: n,
        "name": lambda n: f"customer {n % 1000}",
        "kind": lambda n: n % 7,
        "price": lambda n: n / 8,
        "amount": lambda n: Decimal(n % 100_000).scaleb(-2),
        "on": lambda n: start.date(),
        "ok": lambda n: n % 3 == 0,
    }
    columns = {
        field.name: pa.array([makers[field.name](n) for n in range(count)], field.type)
        for field in schema
    }
    return pa.RecordBatch.from_pydict(columns, schema=schema)


def cpu_seconds(work: Callable[[], Any], runs: int) -> float:
    """The median CPU time of a few runs, the collector kept out of it."""
    found = []
    gc.disable()
    for _ in range(runs + 1):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    gc.enable()
    return statistics.median(found[1:])


def in_batches(decoder: Decoder, messages: Sequence[bytes | None], size: int) -> None:
    for start in range(0, len(messages), size):
        decoder.decode(messages[start : start + size])


def fastavro_decode(messages: Sequence[bytes], parsed: Any, header: int) -> list[Any]:
    return [
        fastavro.schemaless_reader(io.BytesIO(message[header:]), parsed) for message in messages
    ]


def fastavro_encode(values: list[dict[str, Any]], parsed: Any) -> list[bytes]:
    found = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        found.append(out.getvalue())
    return found


def comparisons() -> list[Comparison]:
    """The Avro formats beside fastavro, for the one runner."""
    schema = arrow_schema(WIDE)
    plain, framed = Avro(), AvroConfluent(url="http://127.0.0.1", subject="s")
    changes = DebeziumAvroConfluent(url="http://127.0.0.1", subject="changes")
    for each in (framed, changes):
        stand_in: Any = KnownSchemas()
        client._registries[each.settings()] = stand_in
    raw = fastavro.parse_schema(_without_logical(json.loads(plain.derived(schema)[0])))

    def messages(plugin: Format) -> Callable[[int], list[Any]]:
        return lambda count: list(plugin.encoder(schema).encode(rows(schema, count)))

    def decode(plugin: Format) -> Callable[[Any], Any]:
        decoder = plugin.decoder(schema)
        return lambda given: decoder.decode(given).rows

    def loop(header: int) -> Callable[[Any], Any]:
        return lambda given: fastavro_decode(given, raw, header)

    values: dict[tuple[int, int], list[Any]] = {}

    def encode(batch: pa.RecordBatch) -> list[bytes]:
        key = batch["id"][0].as_py(), batch.num_rows
        if key not in values:  # fastavro at its fastest: what it is given is made once
            values[key] = [_numbers(row) for row in batch.to_pylist()]
        return fastavro_encode(values[key], raw)

    def batch(count: int) -> list[Any]:
        return [rows(schema, count)]

    write = plain.encoder(schema).encode
    return [
        Comparison("avro decode", "fastavro", 20, messages(plain), decode(plain), loop(0)),
        Comparison(
            "avro-confluent decode", "fastavro", 10, messages(framed), decode(framed), loop(5)
        ),
        Comparison("avro encode", "fastavro", 20, batch, write, encode, False),
    ]


def measure(name: str, columns: dict[str, str], count: int, runs: int) -> dict[str, float]:
    """Print one table; return the ratio of each case to fastavro."""
    schema = arrow_schema(columns)
    batch = rows(schema, count)
    sample = count // 10
    plain = Avro()
    text, _ = plain.derived(schema)
    raw = fastavro.parse_schema(_without_logical(json.loads(text)))
    framed = AvroConfluent(url="http://127.0.0.1", subject="s")
    stand_in: Any = KnownSchemas()
    client._registries[framed.settings()] = stand_in
    stand_in.register("s", text)

    messages = plain.encoder(schema).encode(batch)
    with_header = framed.encoder(schema).encode(batch)
    values = [_numbers(row) for row in batch.slice(0, sample).to_pylist()]
    assert fastavro_encode(values[:10], raw) == messages[:10]

    plain_decoder, framed_decoder = plain.decoder(schema), framed.decoder(schema)
    assert plain_decoder.decode(messages).rows.equals(batch)
    assert framed_decoder.decode(with_header).rows.equals(batch)
    changes = DebeziumAvroConfluent(url="http://127.0.0.1", subject="changes")
    envelopes = changes.encoder(schema).encode(batch)
    changes_decoder = changes.decoder(schema)

    slow_decode = sample / cpu_seconds(lambda: fastavro_decode(messages[:sample], raw, 0), runs)
    slow_framed = sample / cpu_seconds(lambda: fastavro_decode(with_header[:sample], raw, 5), runs)
    slow_encode = sample / cpu_seconds(lambda: fastavro_encode(values, raw), runs)
    cases: list[tuple[str, Callable[[], Any], float]] = [
        ("avro decode", lambda: in_batches(plain_decoder, messages, 10_000), slow_decode),
        (
            "avro-confluent decode",
            lambda: in_batches(framed_decoder, with_header, 10_000),
            slow_framed,
        ),
        ("avro encode", lambda: plain.encoder(schema).encode(batch), slow_encode),
        ("avro-confluent encode", lambda: framed.encoder(schema).encode(batch), slow_encode),
        (
            "debezium-avro-confluent decode",
            lambda: in_batches(changes_decoder, envelopes, 10_000),
            slow_framed,
        ),
    ]
    print(f"\n{name}: {count:,} messages, {len(schema)} columns, {len(messages[0])} bytes each")
    ratios = {}
    for case, work, slow in cases:
        rate = count / cpu_seconds(work, runs)
        ratios[case] = rate / slow
        aim = f"   aim {AIMS[case]}" if case in AIMS else ""
        beside = f"fastavro {slow:>9,.0f}   {rate / slow:5.1f}x{aim}"
        print(f"  {case:32} {rate:>12,.0f} rows/CPU s   {beside}")
    for label, decoder, of in (
        ("avro", plain_decoder, messages),
        ("avro-confluent", framed_decoder, with_header),
    ):
        small = cpu_seconds(lambda d=decoder, m=of: in_batches(d, m, 100), runs)
        large = cpu_seconds(lambda d=decoder, m=of: in_batches(d, m, 10_000), runs)
        ratios[f"{label} small batches"] = small / large
        print(
            f"  {label + ' in batches of 100':32} {small / count * 1e6:9.3f} us a row; of 10,000 "
            f"{large / count * 1e6:.3f}: {small / large:.1f}x   aim at most {MOST_FOR_SMALL:.0f}"
        )
    return ratios


def _without_logical(plain: Any) -> Any:
    """fastavro at its fastest: numbers and bytes as they are on the wire."""
    if isinstance(plain, dict):
        dropped = ("logicalType", "precision", "scale")
        return {key: _without_logical(value) for key, value in plain.items() if key not in dropped}
    return [_without_logical(each) for each in plain] if isinstance(plain, list) else plain


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    def number(value: Any) -> Any:
        if isinstance(value, dt.datetime):
            return int((value - dt.datetime(1970, 1, 1)) / dt.timedelta(milliseconds=1))
        if isinstance(value, dt.date):
            return (value - dt.date(1970, 1, 1)).days
        if isinstance(value, Decimal):
            whole = int(value.scaleb(2))
            return whole.to_bytes(max(1, whole.bit_length() // 8 + 1), "big", signed=True)
        return value

    return {name: number(value) for name, value in row.items()}


def main() -> int:
    """Measure both tables; fail if an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.formats_avro")
    parser.add_argument("--quick", action="store_true", help="fewer messages and runs")
    quick = parser.parse_args().quick
    count, runs = (20_000, 2) if quick else (200_000, 5)
    missed = []
    for name, columns in (("narrow", NARROW), ("wide", WIDE)):
        ratios = measure(name, columns, count, runs)
        missed += [f"{name} {case}" for case, aim in AIMS.items() if ratios[case] < aim]
        missed += [
            f"{name} {case}"
            for case, ratio in ratios.items()
            if case.endswith("small batches") and ratio > MOST_FOR_SMALL
        ]
    print("\nmissed: " + ", ".join(missed) if missed else "\nall aims met")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
