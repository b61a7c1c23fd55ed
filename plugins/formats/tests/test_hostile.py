"""Messages made to hurt: they cost themselves, a moment and a reason, and nothing else."""

from __future__ import annotations

import json
import time
import tracemalloc
from datetime import timedelta

import pyarrow as pa
import pytest
from streamcore.testing.codec import build
from streamcore.types import arrow_field
from streamcore_formats.decoding import TwoPathDecoder, chunks, size_of

SCHEMA = pa.schema(
    [
        arrow_field("id", "BIGINT"),
        arrow_field("text", "STRING"),
        arrow_field("amount", "DECIMAL(10, 2)"),
        arrow_field("real", "DOUBLE"),
    ]
)
SECONDS = 20  # far more than any of these takes, far less than a hang


def around(identifier: str, body: str | bytes) -> bytes:
    """A message of this format whose row is `body`."""
    body = body if isinstance(body, bytes) else body.encode()
    envelopes = {
        "json": b"%s",
        "debezium-json": b'{"before":null,"after":%s,"op":"c"}',
        "ogg-json": b'{"before":null,"after":%s,"op_type":"I"}',
        "maxwell-json": b'{"data":%s,"type":"insert"}',
        "canal-json": b'{"data":[%s],"type":"INSERT"}',
    }
    return envelopes[identifier] % body


JSON_FORMATS = ["json", "debezium-json", "ogg-json", "maxwell-json", "canal-json"]


def decode_among_neighbours(identifier: str, message: bytes, options=None):
    good = around(identifier, '{"id":"7","text":"fine"}')
    started = time.monotonic()
    decoded = build(identifier, options).decoder(SCHEMA).decode([good, message, good])
    assert time.monotonic() - started < SECONDS
    rows = decoded.rows.to_pylist()
    assert [row["id"] for row in (rows[0], rows[-1])] == [7, 7]
    return decoded, rows[1:-1]


def reason(identifier: str, message: bytes) -> str:
    decoded, rows = decode_among_neighbours(identifier, message)
    assert rows == []
    [rejected] = decoded.rejected
    assert rejected.index == 1
    assert len(rejected.reason) < 300
    rejected.reason.encode()
    ignored, rows = decode_among_neighbours(identifier, message, {"ignore-parse-errors": "true"})
    assert ignored.ignored + len(rows) == 1
    return rejected.reason


@pytest.mark.parametrize(
    ("identifier", "depth"), [*((name, 10_000) for name in JSON_FORMATS), ("json", 1_000_000)]
)
@pytest.mark.parametrize("shape", ["[", '{"a":', "[{"])
def test_deep_nesting_is_rejected_with_its_place(identifier, depth, shape):
    closing = {"[": "]", '{"a":': "}", "[{": "}]"}[shape]
    inner = shape * depth if shape != "[{" else '[{"a":' * depth
    ends = "1" + closing * depth
    for key in ("text", "other"):
        message = around(identifier, f'{{"{key}":{inner}{ends}}}')
        assert reason(identifier, message).startswith("nested deeper than 500 levels at byte ")
    cut = around(identifier, f'{{"text":{inner}')
    assert reason(identifier, cut).startswith("nested deeper than 500 levels")


@pytest.mark.parametrize("identifier", JSON_FORMATS)
def test_brackets_in_text_are_not_nesting(identifier):
    text = "[{" * 5000
    message = around(identifier, json.dumps({"id": 1, "text": text}))
    _, [row] = decode_among_neighbours(identifier, message)
    assert row["text"] == text


@pytest.mark.parametrize("filling", ["x", "\\n"])
def test_brackets_in_long_texts_are_looked_through_in_little_memory(filling):
    text = "[" * 501 + filling * (4_000_000 // len(filling))
    message = f'{{"id":"1","text":"{text}"}}'.encode()
    decoder = build("json").decoder(SCHEMA)
    tracemalloc.start()
    try:
        assert decoder.decode([message]).rows["id"].to_pylist() == [1]
        assert tracemalloc.get_traced_memory()[1] < 6 * len(message)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("identifier", "sql", "message"),
    [
        ("json", "INT", b'"\xff"'),
        ("json", "ROW<b INT>", b'{"a":"\xff"}'),
        ("json", "ARRAY<INT>", b'{"a":"\\ud800"}'),
        ("json", "MAP<STRING, INT>", b'{"a":{"\xff":1}}'),
        ("debezium-json", "INT", b'{"op":"\xff"}'),
        ("debezium-json", "INT", b'{"op":"c","after":"\xff"}'),
        ("canal-json", "INT", b'{"type":"UPDATE","data":[{}],"old":["\xff"]}'),
        ("csv", "INT", b"\xff"),
        ("csv", "STRING", b'"a"\xff'),
    ],
)
def test_reasons_are_text_whatever_they_quote(identifier, sql, message):
    decoder = build(identifier).decoder(pa.schema([arrow_field("a", sql)]))
    [(_, why)] = decoder.decode([message]).rejected
    assert why.encode()


@pytest.mark.parametrize("identifier", JSON_FORMATS)
def test_megabytes_of_text_are_a_row_or_a_reason(identifier):
    size = 10_000_000 if identifier == "json" else 1_000_000
    text = "x" * size
    _, [row] = decode_among_neighbours(identifier, around(identifier, json.dumps({"text": text})))
    assert len(row["text"]) == size
    why = reason(identifier, around(identifier, json.dumps({"id": text})))
    assert "'... is not a BIGINT" in why
    assert "not JSON" in reason(identifier, around(identifier, f'{{"text":"{text}'))
    many = around(identifier, json.dumps({"other": [{"a": 1}] * (size // 20), "id": "3"}))
    _, [row] = decode_among_neighbours(identifier, many)
    assert row["id"] == 3


@pytest.mark.parametrize(
    ("identifier", "digits"), [*((name, 5_000) for name in JSON_FORMATS), ("json", 1_000_000)]
)
def test_numbers_of_thousands_of_digits_do_not_stall(identifier, digits):
    number = "9" * digits
    for column in ("id", "real"):
        why = reason(identifier, around(identifier, f'{{"{column}":{number}}}'))
        assert "is out of range for" in why
    for text in (number, f'"{number}"', f"1e{digits}"):
        why = reason(identifier, around(identifier, f'{{"amount":{text}}}'))
        assert "is out of range for DECIMAL(10, 2)" in why
    _, [row] = decode_among_neighbours(identifier, around(identifier, f'{{"amount":0.{number}}}'))
    assert row["amount"] == 1
    _, [row] = decode_among_neighbours(identifier, around(identifier, f'{{"other":{number}}}'))
    assert row["id"] is None


ZEROS = "0" * 5_000  # more digits than Python converts


@pytest.mark.parametrize("identifier", JSON_FORMATS)
def test_leading_zeros_are_counted_for_nothing(identifier):
    for text, number in ((ZEROS, 0), (f"-{ZEROS}12", -12), (f"+{ZEROS}7", 7)):
        _, [row] = decode_among_neighbours(identifier, around(identifier, f'{{"id":"{text}"}}'))
        assert row["id"] == number
    why = reason(identifier, around(identifier, f'{{"id":"-{ZEROS}{"9" * 40}"}}'))
    assert "is out of range for BIGINT" in why


@pytest.mark.parametrize(
    ("identifier", "sql", "message", "value"),
    [
        ("json", "INTERVAL DAY TO SECOND(3)", f'{{"a":"{ZEROS}5"}}', timedelta(milliseconds=5)),
        ("csv", "INT", f"{ZEROS}5", 5),
        ("csv", "ARRAY<INT>", f"1;{ZEROS}5", [1, 5]),
        ("csv", "ROW<b INT, c INT>", f"{ZEROS};-{ZEROS}5", {"b": 0, "c": -5}),
    ],
)
@pytest.mark.parametrize("options", [{}, {"ignore-parse-errors": "true"}])
def test_leading_zeros_are_counted_for_nothing_in_any_type(
    identifier, sql, message, value, options
):
    decoder = build(identifier, options).decoder(pa.schema([arrow_field("a", sql)]))
    assert decoder.decode([message.encode()]).rows["a"].to_pylist() == [value]


def test_leading_zeros_are_counted_for_nothing_in_metadata():
    schema = pa.schema([arrow_field("id", "BIGINT")])
    decoder = build("maxwell-json").decoder(schema, None, ["ingestion-timestamp"])
    message = f'{{"type":"insert","data":{{"id":1}},"ts":"{ZEROS}"}}'.encode()
    decoded = decoder.decode([message])
    assert decoded.rows.num_rows + len(decoded.rejected) == 1


@pytest.mark.parametrize("exponent", ["1e999999999", "1e-999999999", "1e99999999999999999999"])
def test_huge_exponents_do_not_stall(exponent):
    for column in ("id", "amount", "real"):
        decoded, rows = decode_among_neighbours("json", f'{{"{column}":{exponent}}}'.encode())
        assert len(rows) + len(decoded.rejected) == 1


@pytest.mark.parametrize("identifier", JSON_FORMATS)
@pytest.mark.parametrize(
    "bytes_", [b"\xff", b"\xc3(", b"\xe2\x82", b"\xf0\x28\x8c\xbc", b"\xed\xa0\x80", b"\xc0\x80"]
)
def test_invalid_utf8_is_rejected_where_it_is_wanted(identifier, bytes_):
    why = reason(identifier, around(identifier, b'{"text":"a' + bytes_ + b'"}'))
    assert "is not UTF-8" in why
    _, [row] = decode_among_neighbours(
        identifier, around(identifier, b'{"other":"' + bytes_ + b'","id":"1"}')
    )
    assert row["id"] == 1


@pytest.mark.parametrize("identifier", JSON_FORMATS)
def test_nul_bytes_are_data_inside_text_and_wrong_elsewhere(identifier):
    _, [row] = decode_among_neighbours(identifier, around(identifier, b'{"text":"a\x00b"}'))
    assert row["text"] == "a\0b"
    assert "not JSON" in reason(identifier, around(identifier, b'{\x00"text":"a"}'))


@pytest.mark.parametrize("identifier", ["json", "debezium-json", "ogg-json", "maxwell-json"])
def test_nothing_but_rubbish_is_rejected_message_by_message(identifier):
    rubbish = [
        b"\x00" * 50,
        b"\xff" * 50,
        b"{" * 400,
        b'"',
        b"\\",
        b"}",
        b"nul",
        b"\x80\x01\x00\x01",
    ]
    decoded = build(identifier).decoder(SCHEMA).decode(rubbish * 500)
    assert decoded.rows.num_rows == 0
    assert len(decoded.rejected) == len(rubbish) * 500


def test_csv_takes_the_same_without_harm():
    schema = pa.schema([arrow_field("id", "BIGINT"), arrow_field("text", "STRING")])
    long = b"x" * 10_000_000
    hostile = {
        b"1," + long: None,
        b'1,"' + long: "the quote at character 2 is never closed",
        b'1,"' + long + b'"x': "'x' follows a closing quote at character 10000004",
        b"9" * 1_000_000 + b",a": "is out of range for BIGINT",
        b"," * 1_000_000: "2 fields expected, the message has 1000001",
        b"1,\xff": "column 'text': byte 0xff is not UTF-8",
        b"1,\x00": None,
        b"": "the message holds no record",
        b"\n" * 1_000_000: "2 fields expected, the message has 1",
    }
    for crowd in (1, 1500):
        for message, why in hostile.items():
            started = time.monotonic()
            messages = [b"7,a"] * crowd + [message] + [b"7,a"] * crowd
            decoded = build("csv").decoder(schema).decode(messages)
            assert time.monotonic() - started < SECONDS
            assert decoded.rows["id"].to_pylist().count(7) == 2 * crowd
            if why is None:
                assert decoded.rows.num_rows == 2 * crowd + 1
            else:
                [(index, told)] = decoded.rejected
                assert index == crowd
                assert why in told


def test_a_flood_of_comments_costs_no_more_than_its_bytes():
    decoder = build("csv", {"allow-comments": "true"}).decoder(
        pa.schema([arrow_field("id", "BIGINT")])
    )
    started = time.monotonic()
    flood = b"#\n \r\n" * 1_000_000
    decoded = decoder.decode([b"7", flood + b"8", flood, b"# 9", b" # 9\r10\n"])
    assert time.monotonic() - started < SECONDS
    assert decoded.rows["id"].to_pylist() == [7, 8, 10]
    assert [tuple(each) for each in decoded.rejected] == [
        (2, "the message holds no record"),
        (3, "the message holds no record"),
    ]


def test_raw_takes_what_is_too_long_or_too_short():
    schema = pa.schema([arrow_field("id", "BIGINT")])
    messages = [b"\0" * 8, b"x" * 10_000_000, b"", b"\0" * 8]
    decoded = build("raw").decoder(schema).decode(messages)
    assert decoded.rows.num_rows == 2
    assert [index for index, _ in decoded.rejected] == [1, 2]


@pytest.mark.parametrize("sizes", [[5, 9_000_000, 5, 5], [3_000_000] * 5, [1] * 40_000, [2**22, 0]])
def test_batches_are_cut_into_chunks_without_a_gap_or_an_overlap(sizes):
    messages = [bytes(size) if size else None for size in sizes]
    cut = list(chunks(messages))
    parts = [chunk for _, chunk in cut]
    assert [start for start, _ in cut] == [sum(map(len, parts[:n])) for n in range(len(cut))]
    assert [message for chunk in parts for message in chunk] == messages
    assert max(map(len, parts)) <= 16_384


@pytest.mark.parametrize("identifier", ["csv", "json", "debezium-json", "raw"])
def test_large_messages_between_small_ones_are_read_a_few_at_a_time(identifier):
    texts = [f"{n}{'x' * (n % 64 == 7) * 1_000_000}" for n in range(2_560)]
    written = {"csv": "%s", "raw": "%s", "json": '{"text":"%s"}'}
    body = written.get(identifier, '{"before":null,"after":{"text":"%s"},"op":"c"}')
    schema = pa.schema([arrow_field("text", "STRING")])
    read: list[int] = []

    class Watched(TwoPathDecoder):
        def _fast_part(self, columns, start, count):
            read.append(size_of(messages[start : start + count]))
            return super()._fast_part(columns, start, count)

    decoder = build(identifier).decoder(schema)
    decoder.__class__ = Watched
    messages = [(body % text).encode() for text in texts]
    decoded = decoder.decode(messages)
    assert decoded.rows["text"].to_pylist() == texts
    assert sum(read) == size_of(messages)
    assert max(read) <= 16 * 2**20 < size_of(messages)
