"""Few rows and many are written alike, byte for byte."""

from __future__ import annotations

from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from streamcore import RecordError
from streamcore.testing.codec import build
from streamcore.testing.strategies import SCALARS, rows
from streamcore.types import arrow_schema
from streamcore_formats import csv_write, json_few

RARE = ("FLOAT", "DECIMAL", "BYTES", "BINARY", "INTERVAL")
FLAT = [kind for kind in SCALARS if not any(word in kind for word in RARE)]
CDC = ["debezium-json", "ogg-json", "maxwell-json", "canal-json"]
STYLES = [
    ("csv", {}),
    ("csv", {"null-literal": "n/a", "field-delimiter": ";", "quote-character": "'"}),
    ("csv", {"disable-quote-character": "true"}),
    ("csv", {"escape-character": "\\"}),
    ("csv", {"quote-character": ":"}),
    ("csv", {"escape-character": "."}),
    ("json", {}),
    ("json", {"encode.ignore-null-fields": "true", "timestamp-format.standard": "ISO-8601"}),
    *((name, {}) for name in CDC),
]
ODD = st.sampled_from(['"', "\\", "a,b", "é", "😀" * 13, "x" * 25, "\x7f", "\u2028", "\t", "'", ""])
USUAL = st.floats(0.001, 9_999_999.9) | st.sampled_from([1e-3, 0.1, 9999999.5, 123.0])
DOUBLES = [USUAL, USUAL | st.none(), st.none() | st.floats() | st.sampled_from([1e7, 0.0, -0.0])]


def written(name, options, batch, kinds, few):
    """The messages, or what was wrong with the rows."""
    encoder = build(name, options).encoder(batch.schema)
    with mock.patch.object(json_few, "FEW", few), mock.patch.object(csv_write, "FEW", few):
        try:
            return encoder.encode(batch, kinds)
        except RecordError as error:
            return str(error)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
@pytest.mark.parametrize(("name", "options"), STYLES)
def test_few_rows_are_written_like_many(name, options, data):
    columns = {
        f"c{at}": kind
        for at, kind in enumerate(data.draw(st.lists(st.sampled_from(FLAT), max_size=4)))
    }
    schema = arrow_schema({**columns, "text": "STRING", "number": "DOUBLE", "id": "INT NOT NULL"})
    drawn = data.draw(st.lists(rows(schema), max_size=5))
    numbers = data.draw(st.sampled_from(DOUBLES))
    for row in drawn:
        row["text"] = data.draw(st.none() | ODD | st.just(row["text"]))
        row["number"] = data.draw(numbers)
    batch = pa.RecordBatch.from_pylist(drawn, schema=schema)
    kinds = pa.array([at % 4 for at in range(len(drawn))], pa.int8()) if name in CDC else None
    assert written(name, options, batch, kinds, 512) == written(name, options, batch, kinds, -1)
