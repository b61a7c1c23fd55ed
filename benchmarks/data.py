"""The messages everyone reads: the same bytes for every side, made once per sitting."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

COLUMNS = {
    "user_id": "BIGINT",
    "item_id": "BIGINT",
    "category_id": "BIGINT",
    "behavior": "STRING",
    "price": "DOUBLE",
    "ts": "TIMESTAMP(3)",
    "city": "STRING",
    "ok": "BOOLEAN",
}
AVRO_SCHEMA = {
    "type": "record",
    "name": "record",
    "namespace": "org.apache.flink.avro.generated",
    "fields": [
        {"name": name, "type": ["null", kind], "default": None}
        for name, kind in zip(
            COLUMNS,
            (
                "long",
                "long",
                "long",
                "string",
                "double",
                {"type": "long", "logicalType": "timestamp-millis"},
                "string",
                "boolean",
            ),
            strict=True,
        )
    ],
}
WIDE = {f"c{at}": ("BIGINT", "DOUBLE", "STRING", "BOOLEAN")[at % 4] for at in range(40)}
_BEHAVIOR = ("pv", "buy", "cart", "fav")
_CITY = ("Berlin", "Paris", "München", "New York", "São Paulo", "Tokyo", "Nairobi", "Lima")
_START = datetime(2024, 1, 1)


@dataclass(frozen=True)
class Event:
    """One row of the benchmark table."""

    user_id: int
    item_id: int
    category_id: int
    behavior: str
    price: float
    ts: datetime
    city: str
    ok: bool


def events(count: int, seed: int = 1) -> Iterator[Event]:
    """A repeatable stream of events."""
    dice = random.Random(seed)
    for n in range(count):
        yield Event(
            dice.randrange(1_000_000),
            dice.randrange(10_000_000),
            n % 1000,
            _BEHAVIOR[n & 3],
            round(dice.random() * 1000, 2),
            _START + timedelta(milliseconds=n),
            _CITY[n % 8],
            n % 3 == 0,
        )


def as_json(event: Event) -> bytes:
    return (
        f'{{"user_id":{event.user_id},"item_id":{event.item_id},"category_id":{event.category_id},'
        f'"behavior":"{event.behavior}","price":{event.price},"ts":"{_text(event.ts)}",'
        f'"city":"{event.city}","ok":{"true" if event.ok else "false"}}}'
    ).encode()


def as_csv(event: Event) -> bytes:
    return (
        f"{event.user_id},{event.item_id},{event.category_id},{event.behavior},{event.price},"
        f"{_text(event.ts)},{event.city},{'true' if event.ok else 'false'}"
    ).encode()


def as_debezium(event: Event) -> bytes:
    return b'{"before":null,"after":' + as_json(event) + b',"op":"c","ts_ms":1700000000000}'


def as_wide(event: Event) -> bytes:
    """Forty columns, most of which nobody will ask for."""
    cells = []
    for at, kind in enumerate(WIDE.values()):
        value = {
            "BIGINT": event.item_id + at,
            "DOUBLE": event.price,
            "STRING": f'"{event.city} {at}"',
            "BOOLEAN": "true" if event.ok else "false",
        }[kind]
        cells.append(f'"c{at}":{value}')
    return ("{" + ",".join(cells) + "}").encode()


def sized(size: int) -> Callable[[Event], bytes]:
    """JSON of just this many bytes: the usual columns, or five if they take more, and padding."""

    def write(event: Event) -> bytes:
        plain = as_json(event)
        if len(plain) > size:
            plain = (
                f'{{"user_id":{event.user_id},"item_id":{event.item_id},'
                f'"category_id":{event.category_id},"behavior":"{event.behavior}","city":""}}'
            ).encode()
        start = plain.index(b'"city":"') + len(b'"city":"')
        return plain[:start] + b"x" * (size - len(plain)) + plain[start:]

    return write


def avro_writer() -> Callable[[Event], bytes]:
    import fastavro

    schema = fastavro.parse_schema(AVRO_SCHEMA)

    def as_avro(event: Event) -> bytes:
        out = io.BytesIO()
        plain = vars(event) | {"ts": int((event.ts - datetime(1970, 1, 1)).total_seconds() * 1000)}
        fastavro.schemaless_writer(out, schema, plain)
        return out.getvalue()

    return as_avro


def encoder(name: str, schema_id: int | None = None) -> Callable[[Event], bytes]:
    """How one event is written in a format; `json-1000` is JSON of that many bytes."""
    simple = {"json": as_json, "csv": as_csv, "debezium-json": as_debezium, "wide": as_wide}
    if name in simple:
        return simple[name]
    if name.startswith("json-"):
        return sized(int(name.removeprefix("json-")))
    write = avro_writer()
    if schema_id is None:
        return write
    header = b"\0" + schema_id.to_bytes(4, "big")
    return lambda event: header + write(event)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"


def sums(shape: dict[str, str], columns: Sequence[str], *, spark: bool) -> list[str]:
    """What rows add up to, whatever their order: the same SQL for Spark and Flink, but for times.

    Texts count by the first digits of their MD5.
    """
    ms = "TIMESTAMPDIFF(SECOND, TIMESTAMP '2024-01-01 00:00:00', {0})"
    if spark:
        ms = ms.replace("TIMESTAMP '", "TIMESTAMP_NTZ '")
    digits = " + ".join(f"{256**at} * ASCII(SUBSTRING(MD5({{0}}), {at + 1}, 1))" for at in range(3))
    by_kind = {
        "BIGINT": "SUM({0})",
        "DOUBLE": "SUM(CAST(ROUND({0} * 100) AS BIGINT))",
        "STRING": f"SUM(CAST({digits} AS BIGINT))",
        "TIMESTAMP(3)": f"SUM({ms} * 1000 + CAST(DATE_FORMAT({{0}}, 'SSS') AS BIGINT))",
        "BOOLEAN": "SUM(CASE WHEN {0} THEN 1 ELSE 0 END)",
    }
    return ["COUNT(*)", *(by_kind[shape[name]].format(name) for name in columns)]
