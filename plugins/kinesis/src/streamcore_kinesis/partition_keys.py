"""The partition key of a row: what PARTITIONED BY columns spell, cut to what the service takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from streamcore import Problem, Table

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST = 256
_SPELLABLE = (
    "CHAR",
    "VARCHAR",
    "STRING",
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
)


def partition_problems(table: Table) -> Iterator[Problem]:
    """Complain about PARTITIONED BY columns that have no well-defined text."""
    keys = table.partition_keys
    for name in dict.fromkeys(key for key in keys if keys.count(key) > 1):
        yield Problem("PARTITIONED BY", f"column '{name}' is listed twice")
    for name in dict.fromkeys(keys):
        column = table.by_name.get(name)
        if column is None or column.metadata is not None:
            yield Problem("PARTITIONED BY", f"column '{name}' is not a physical column")
        elif column.type.split("(")[0].split()[0].upper() not in _SPELLABLE:
            yield Problem(
                "PARTITIONED BY",
                f"column '{name}' is {column.type}, which has no partition key text; "
                f"choose a column of {', '.join(_SPELLABLE)}",
            )


def spelled_keys(rows: pa.RecordBatch, columns: Sequence[str], delimiter: str) -> list[str]:
    """One key per row: the columns' texts in clause order, joined, at most 256 characters long.

    A static value of `INSERT INTO … PARTITION` is a column like any other by now.
    """
    texts = [_texts(rows.column(name)) for name in columns]
    return [_joined(values, delimiter) for values in zip(*texts, strict=True)]


def _joined(values: Sequence[str], delimiter: str) -> str:
    short = delimiter.join(values)
    if short.isascii() and len(short) + len(delimiter) < LONGEST:
        return short  # nothing is cut: no need to count as Java does
    built = ""
    for value in values:
        built += value + delimiter
        if _length(built) >= LONGEST:
            break
    return _cut(built, min(_length(built) - _length(delimiter), LONGEST))


def _length(text: str) -> int:
    """How long Java finds a text: characters beyond the first 65,536 count twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _cut(text: str, length: int) -> str:
    """The first so many of Java's characters; half of one that counts twice is left out."""
    if text.isascii():
        return text[:length]
    return text.encode("utf-16-le")[: 2 * length].decode("utf-16-le", errors="ignore")


def _texts(column: pa.Array) -> list[str]:
    import pyarrow as pa

    if pa.types.is_floating(column.type):
        narrow = pa.types.is_float32(column.type)
        return ["null" if v is None else java_float(v, narrow) for v in column.to_pylist()]
    if pa.types.is_boolean(column.type):
        return ["null" if v is None else str(v).lower() for v in column.to_pylist()]
    return ["null" if v is None else str(v) for v in column.to_pylist()]


def java_float(value: float, narrow: bool = False) -> str:
    """A float as Java prints it: `1.0`, `1.0E10`, `1.0E-5`."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if str(value).startswith("-") else "0.0"
    sign = "-" if value < 0 else ""
    digits, exponent = _shortest(abs(value), narrow)
    if -3 <= exponent < 7:
        whole = digits.ljust(exponent + 1, "0") if exponent >= 0 else ""
        if exponent >= 0:
            return f"{sign}{whole[: exponent + 1]}.{whole[exponent + 1 :] or '0'}"
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float, narrow: bool) -> tuple[str, int]:
    """The fewest digits that give the value back, but the nearest of two, and its exponent."""
    import pyarrow as pa

    text = pa.scalar(value, pa.float32()).cast(pa.string()).as_py() if narrow else repr(value)
    _, digits, exponent = Decimal(text).normalize().as_tuple()
    if len(digits) == 1:  # 5E-324 is Java's 4.9E-324
        two = f"{value:.1e}"
        if (pa.scalar(float(two), pa.float32()).as_py() if narrow else float(two)) == value:
            _, digits, exponent = Decimal(two).normalize().as_tuple()
    assert isinstance(exponent, int)
    return "".join(map(str, digits)), len(digits) - 1 + exponent
