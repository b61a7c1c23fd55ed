"""Every text format keeps the promises of a format, for every type it takes."""

from __future__ import annotations

import datetime as dt

from streamcore.testing import FormatContract
from streamcore_formats.canal_json import CanalJson
from streamcore_formats.csv import Csv
from streamcore_formats.debezium_json import DebeziumJson
from streamcore_formats.json import Json
from streamcore_formats.maxwell_json import MaxwellJson
from streamcore_formats.ogg_json import OggJson
from streamcore_formats.raw import Raw

MILLISECOND = dt.timedelta(milliseconds=1)


def in_milliseconds(value) -> bool:
    """Intervals are written as whole milliseconds."""
    return not (isinstance(value, dt.timedelta) and value % MILLISECOND)


class TestJson(FormatContract):
    plugin = Json()
    junk = (b"\x00\xff\xfe no such message", b"{", b"null", b"5", b'{"c0":', b"[" * 10_000)

    def storable(self, sql_type, value):
        return in_milliseconds(value)


class TestJsonOfAnotherStyle(TestJson):
    plugin = Json(
        timestamp_standard="ISO-8601",
        plain_decimals=True,
        ignore_null_fields=True,
        streaming_parser=False,
    )
    junk = (b"\x00\xff\xfe no such message",)
    examples = 8


class TestDebeziumJson(TestJson):
    plugin = DebeziumJson()
    examples = 8


class TestCanalJson(TestJson):
    plugin = CanalJson()
    examples = 8


class TestMaxwellJson(TestJson):
    plugin = MaxwellJson()
    examples = 8


class TestOggJson(TestJson):
    plugin = OggJson(ignore_null_fields=True)
    examples = 8


class TestCsv(FormatContract):
    plugin = Csv(null_literal="NULL")
    junk = (b'"', b'a,"b', b"a,b,c,d", b"")

    def storable(self, sql_type, value):
        """An empty record is none, [NULL] looks like NULL, and parts of a cell are not quoted."""
        if sql_type.startswith(("ARRAY", "ROW")) and value is not None:
            parts = list(value.values() if isinstance(value, dict) else value)
            texts = [part for part in parts if isinstance(part, str)]
            ambiguous = any(text in ("", "NULL") or ";" in text for text in texts)
            return parts not in ([], [None]) and not ambiguous
        return value not in ("", b"", "NULL") and in_milliseconds(value)


class TestTsv(TestCsv):
    plugin = Csv(field_delimiter="\\t", quote_character="'", null_literal="NULL")
    junk = (b"'", b"a\t'b", b"")
    examples = 8


class TestRaw(FormatContract):
    plugin = Raw()
    types = ("BIGINT NOT NULL", "INT NOT NULL", "DOUBLE NOT NULL", "STRING NOT NULL", "BYTES")
    columns = {"v": "BIGINT"}
    junk = (b"\x00\xff\xfe", b"123456789")
