"""Formats side by side with the loops one would write by hand; rows per second of CPU.

python -m benchmarks.formats [--quick] [name ...]
"""

from __future__ import annotations

import csv
import gc
import io
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from streamcore import Format
from streamcore.testing.codec import build
from streamcore.types import arrow_field

ROWS, QUICK_ROWS = 200_000, 20_000
LARGE, SMALL = 10_000, 100
SEED = 20240610

VIEWS = pa.schema(
    [
        arrow_field("user_id", "BIGINT"),
        arrow_field("item_id", "BIGINT"),
        arrow_field("category_id", "BIGINT"),
        arrow_field("behavior", "STRING"),
        arrow_field("price", "DOUBLE"),
        arrow_field("ts", "TIMESTAMP(3)"),
        arrow_field("city", "STRING"),
        arrow_field("ok", "BOOLEAN"),
    ]
)
PRODUCTS = pa.schema(
    [
        arrow_field("id", "INT"),
        arrow_field("name", "STRING"),
        arrow_field("description", "STRING"),
        arrow_field("weight", "DOUBLE"),
    ]
)


class Comparison(NamedTuple):
    """One format doing one thing, and the loop it is measured against."""

    name: str
    against: str
    least: float
    """How many times faster than the loop it has to be."""
    make: Callable[[int], list[Any]]
    """Messages to decode, or a list of one batch to encode."""
    ours: Callable[[list[Any]], Any]
    loop: Callable[[list[Any]], Any]
    decodes: bool = True


# --- data -----------------------------------------------------------------------------------


def views(count: int) -> Iterator[dict[str, Any]]:
    """Page views as a shop would log them, about 150 bytes each."""
    rng = random.Random(SEED)
    for _ in range(count):
        yield {
            "user_id": rng.randrange(10**6),
            "item_id": rng.randrange(10**7),
            "category_id": rng.randrange(10**5),
            "behavior": rng.choice(("pv", "buy", "cart", "fav")),
            "price": round(rng.random() * 1000, 2),
            "ts": f"2024-01-{rng.randrange(1, 29):02} {rng.randrange(24):02}:"
            f"{rng.randrange(60):02}:{rng.randrange(60):02}.{rng.randrange(1000):03}",
            "city": rng.choice(("Berlin", "São Paulo", "Tokyo", "New York")),
            "ok": rng.random() < 0.5,
        }


def json_messages(count: int) -> list[bytes]:
    return [
        json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode() for row in views(count)
    ]


def uneven_json_messages(count: int) -> list[bytes]:
    """The same rows as several producers would write them: other orders, NULLs, commas in text."""
    rng = random.Random(SEED)
    messages = []
    for row in views(count):
        row["city"] = rng.choice((row["city"], None, "Washington, D.C."))
        order = rng.sample(list(row), k=len(row))
        messages.append(orjson.dumps({key: row[key] for key in order}))
    return messages


def csv_messages(count: int) -> list[bytes]:
    return [
        ",".join(str(v).lower() if isinstance(v, bool) else str(v) for v in row.values()).encode()
        for row in views(count)
    ]


def quoted_csv_messages(count: int) -> list[bytes]:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in views(count):
        row["city"] = f"{row['city']}, {row['behavior']}"
        writer.writerow(str(v).lower() if isinstance(v, bool) else v for v in row.values())
    return out.getvalue().encode().splitlines()


def debezium_messages(count: int) -> list[bytes]:
    """Changes with all that Debezium 2.7 tells of them, about 560 bytes each."""
    rng = random.Random(SEED)
    messages = []
    for number in range(count):
        row = {
            "id": number,
            "name": rng.choice(("scooter", "car battery", "hammer")),
            "description": "12-pack of drill bits",
            "weight": round(rng.random() * 100, 3),
        }
        op = rng.choice("ccud")
        moment = 1_700_000_000_000 + number
        message = {
            "before": None if op == "c" else row,
            "after": None if op == "d" else {**row, "weight": round(rng.random() * 100, 3)},
            "source": {
                "version": "2.7.0.Final",
                "connector": "mysql",
                "name": "dbserver1",
                "ts_ms": moment,
                "snapshot": "false",
                "db": "inventory",
                "sequence": None,
                "ts_us": moment * 1000,
                "ts_ns": moment * 1_000_000,
                "table": "products",
                "server_id": 223344,
                "gtid": None,
                "file": "mysql-bin.000003",
                "pos": 4 * number,
                "row": 0,
                "thread": 7,
                "query": None,
            },
            "transaction": None,
            "op": op,
            "ts_ms": moment + 123,
            "ts_us": moment * 1000 + 123_456,
            "ts_ns": moment * 1_000_000 + 123_456_789,
        }
        messages.append(json.dumps(message, separators=(",", ":")).encode())
    return messages


def view_batch(count: int) -> list[pa.RecordBatch]:
    return [build("json").decoder(VIEWS).decode(json_messages(count)).rows]


# --- the loops ------------------------------------------------------------------------------


def json_loop(messages: Sequence[bytes]) -> pa.RecordBatch:
    rows = [orjson.loads(message) for message in messages]
    return _columns({name: [row.get(name) for row in rows] for name in VIEWS.names}, VIEWS)


def debezium_loop(messages: Sequence[bytes]) -> pa.RecordBatch:
    rows, kinds, origin = [], [], []
    for index, message in enumerate(messages):
        change = orjson.loads(message)
        if change["op"] in "cr":
            rows.append(change["after"])
            kinds.append(0)
            origin.append(index)
        elif change["op"] == "u":
            rows += (change["before"], change["after"])
            kinds += (1, 2)
            origin += (index, index)
        else:
            rows.append(change["before"])
            kinds.append(3)
            origin.append(index)
    pa.array(kinds, pa.int8())
    pa.array(origin, pa.int32())
    return _columns({name: [row.get(name) for row in rows] for name in PRODUCTS.names}, PRODUCTS)


def csv_loop(messages: Sequence[bytes]) -> pa.RecordBatch:
    rows = csv.reader([message.decode() for message in messages])
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(column, pa.string()).cast(field.type)
        for column, field in zip(columns, VIEWS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=VIEWS)


def _columns(values: dict[str, list[Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in schema:
        if pa.types.is_timestamp(field.type):
            arrays.append(pa.array(values[field.name], pa.string()).cast(field.type))
        else:
            arrays.append(pa.array(values[field.name], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def dumps_loop(batch: pa.RecordBatch) -> list[bytes]:
    return [orjson.dumps(row) for row in batch.to_pylist()]


def csv_writer_loop(batch: pa.RecordBatch) -> list[bytes]:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(row.values() for row in batch.to_pylist())
    return out.getvalue().encode().splitlines()


# --- the cases ------------------------------------------------------------------------------


def decoding(plugin: Format, schema: pa.Schema) -> Callable[[Sequence[bytes]], Any]:
    """Our decoder, built once as a task would."""
    decoder = plugin.decoder(schema)

    def run(messages: Sequence[bytes]) -> Any:
        decoded = decoder.decode(messages)
        assert not decoded.rejected
        return decoded.rows

    return run


def encoding(plugin: Format, schema: pa.Schema) -> Callable[[pa.RecordBatch], Any]:
    return plugin.encoder(schema).encode


def comparisons() -> list[Comparison]:
    json_, csv_ = build("json"), build("csv")
    read_json, read_csv = decoding(json_, VIEWS), decoding(csv_, VIEWS)
    write_json, write_csv = encoding(json_, VIEWS), encoding(csv_, VIEWS)
    return [
        Comparison("json decode", "orjson.loads", 1.8, json_messages, read_json, json_loop),
        Comparison(
            "json decode, uneven", "orjson.loads", 1.0, uneven_json_messages, read_json, json_loop
        ),
        Comparison(
            "debezium-json decode",
            "orjson.loads",
            2.5,
            debezium_messages,
            decoding(build("debezium-json"), PRODUCTS),
            debezium_loop,
        ),
        Comparison("csv decode", "csv.reader", 5, csv_messages, read_csv, csv_loop),
        Comparison("csv decode, quoted", "csv.reader", 1, quoted_csv_messages, read_csv, csv_loop),
        Comparison("json encode", "orjson.dumps", 4, view_batch, write_json, dumps_loop, False),
        Comparison("csv encode", "csv.writer", 1, view_batch, write_csv, csv_writer_loop, False),
    ]


# --- measuring ------------------------------------------------------------------------------


def portions(case: Comparison, data: list[Any], size: int) -> list[Any]:
    if case.decodes:
        return [data[start : start + size] for start in range(0, len(data), size)]
    [batch] = data
    return [batch.slice(start, size) for start in range(0, batch.num_rows, size)]


def rate(run: Callable[[Any], Any], parts: list[Any], rows: int) -> float:
    """Rows per second of CPU in one pass."""
    gc.collect()
    gc.disable()
    start = time.process_time()
    for part in parts:
        run(part)
    spent = time.process_time() - start
    gc.enable()
    return rows / spent


def main(arguments: Sequence[str]) -> None:
    from .format_cases import peak

    quick = "--quick" in arguments
    wanted = [argument for argument in arguments if argument != "--quick"]
    rows, passes = (QUICK_ROWS, 2) if quick else (ROWS, 5)
    print(f"{rows:,} rows; thousands per second of CPU, best of {passes} passes")
    header = ("", "ours", "loop", "", "ratio", "needs", "small/large", "peak")
    print("{:24}{:>8}{:>8}  {:14}{:>6}{:>7}{:>13}{:>7}".format(*header))
    for case in comparisons():
        if wanted and not any(case.name.startswith(name) for name in wanted):
            continue
        data = case.make(rows)
        print(row(case, rates(case, data, rows, passes), peak(case.name, rows)), flush=True)


def rates(case: Comparison, data: list[Any], rows: int, passes: int) -> list[float]:
    """Ours and the loop on everything at once, then ours on large and on small batches."""
    whole, large, small = (portions(case, data, size) for size in (rows, LARGE, SMALL))
    sides = [(case.ours, whole), (case.loop, whole), (case.ours, large), (case.ours, small)]
    best = [0.0] * len(sides)
    for _ in range(passes):  # in turns, so that a busy moment falls on all of them
        best = [max(so_far, rate(*side, rows)) for so_far, side in zip(best, sides, strict=True)]
    return best


def row(case: Comparison, found: Sequence[float], memory: float) -> str:
    """One line of the table."""
    ours, loop, large, small = found
    return (
        f"{case.name:24}{ours / 1e3:8.0f}{loop / 1e3:8.0f}  {case.against:14}"
        f"{ours / loop:5.1f}x{case.least:6.1f}x{large / small:12.1f}x{memory:6.1f}x"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
