"""The table of the changelog test data, with its messages and rows from files."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from streamcore.testing import decode
from streamcore.testing.codec import build
from streamcore.types import arrow_field

DATA = Path(__file__).parent / "data"

SCHEMA = pa.schema(
    [
        arrow_field("id", "INT", nullable=False),
        arrow_field("name", "STRING"),
        arrow_field("description", "STRING"),
        arrow_field("weight", "FLOAT"),
    ]
)


def messages(name: str) -> list[bytes]:
    return (DATA / f"{name}.txt").read_bytes().splitlines()


def expected(name: str) -> list[tuple[str, dict]]:
    lines = (DATA / "expected" / f"{name}.jsonl").read_text().splitlines()
    return _rounded([(told["kind"], told["row"]) for told in map(json.loads, lines)])


def rows(identifier: str, given, options=None) -> list[tuple[str, dict]]:
    return _rounded(decode(identifier, SCHEMA, given, options))


def metadata(identifier: str, given, options=None) -> list[dict]:
    """The metadata of every row."""
    keys = list(build(identifier, options).metadata_keys)
    found = decode(identifier, SCHEMA, given, options, keys)
    return [{key: row[key] for key in keys} for _, row in found]


def rejection(identifier: str, message: bytes, options=None, keys=()) -> str:
    decoded = build(identifier, options).decoder(SCHEMA, None, keys).decode([message])
    assert decoded.rows.num_rows == 0
    [rejected] = decoded.rejected
    return rejected.reason


def tuples(found: list[tuple[str, dict]]) -> list[tuple]:
    return [(kind, *row.values()) for kind, row in found]


def _rounded(found: list[tuple[str, dict]]) -> list[tuple[str, dict]]:
    """Weights that compare as decimals, not as floats."""
    return [(kind, {**row, "weight": _short(row["weight"])}) for kind, row in found]


def _short(weight: float | None) -> float | None:
    return None if weight is None else round(weight, 4)


@pytest.fixture
def products() -> SimpleNamespace:
    return SimpleNamespace(
        schema=SCHEMA,
        messages=messages,
        expected=expected,
        rows=rows,
        metadata=metadata,
        rejection=rejection,
        tuples=tuples,
    )
