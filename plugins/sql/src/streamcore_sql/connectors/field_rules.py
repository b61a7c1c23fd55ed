"""What `fields.<column>.*` says about one generated column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from streamcore import Problem
from streamcore.values import parse_duration

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("random", "sequence")


@dataclass(frozen=True)
class FieldRule:
    """How the values of one column are made; None means the type's own default."""

    kind: str = "random"
    min: Decimal | None = None
    max: Decimal | None = None
    max_past: timedelta = timedelta()
    length: int | None = None
    var_len: bool = False
    start: int | None = None
    end: int | None = None
    null_rate: float = 0.0

    @property
    def rows(self) -> int | None:
        """How many rows a sequence has; None when it never ends."""
        if self.kind != "sequence" or self.start is None or self.end is None:
            return None
        return max(self.end - self.start + 1, 0)


_KEYS = {each.name.replace("_", "-"): each.name for each in fields(FieldRule)}


def rules_of(given: Mapping[str, str]) -> dict[str, FieldRule]:
    """The rules by column, from options without their `fields.` prefix; problems are left out."""
    return _read(given)[0]


def rule_problems(given: Mapping[str, str]) -> Iterator[Problem]:
    """Complain about rules that cannot be read."""
    yield from _read(given)[1]


def column_problems(rules: Mapping[str, FieldRule], schema: pa.Schema) -> Iterator[Problem]:
    """Complain about rules for columns that do not exist or are of another type."""
    import pyarrow as pa

    types = dict(_paths(schema))
    for path, rule in rules.items():
        key = f"fields.{path}"
        kind = types.get(path)
        if kind is None:
            yield Problem(key, f"no such column; choose from {', '.join(types)}")
        elif rule.kind == "sequence" and not _countable(kind):
            yield Problem(f"{key}.kind", f"a sequence cannot be {kind}; numbers and texts can")
        elif (rule.min or rule.max) is not None and not _numeric(kind):
            yield Problem(key, f"'min' and 'max' are for numbers, and this column is {kind}")
        elif rule.max_past and not pa.types.is_timestamp(kind):
            yield Problem(f"{key}.max-past", f"is for timestamps, and this column is {kind}")


def _read(given: Mapping[str, str]) -> tuple[dict[str, FieldRule], list[Problem]]:
    values: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    for key, text in given.items():
        path, _, what = key.rpartition(".")
        if not path or what not in _KEYS:
            known = ", ".join(sorted(_KEYS))
            problems.append(Problem(f"fields.{key}", f"'{what}' is not one of {known}"))
            continue
        try:
            values.setdefault(path, {})[_KEYS[what]] = _value(what, text)
        except (ValueError, ArithmeticError, KeyError):
            problems.append(Problem(f"fields.{key}", f"'{text}' is not {_WANTED[what]}"))
    rules = {path: FieldRule(**found) for path, found in values.items()}
    for path, rule in rules.items():
        problems += _contradictions(f"fields.{path}", rule)
    return rules, problems


def _contradictions(key: str, rule: FieldRule) -> Iterator[Problem]:
    if rule.kind == "sequence":
        for name in ("start", "end"):
            if getattr(rule, name) is None:
                yield Problem(f"{key}.{name}", "required when the kind is 'sequence'")
        if rule.rows == 0:
            yield Problem(f"{key}.end", f"{rule.end} is before the start, {rule.start}")
    if rule.min is not None and rule.max is not None and rule.min > rule.max:
        yield Problem(f"{key}.min", f"{rule.min} is more than the max, {rule.max}")
    if not 0 <= rule.null_rate <= 1:
        yield Problem(f"{key}.null-rate", f"{rule.null_rate:g} is not between 0 and 1")


_WANTED = {
    "kind": "one of random, sequence",
    "min": "a number",
    "max": "a number",
    "max-past": "a duration such as '10 s'",
    "length": "a whole number",
    "var-len": "true or false",
    "start": "a whole number",
    "end": "a whole number",
    "null-rate": "a number from 0 to 1",
}


def _value(what: str, text: str) -> Any:
    if what == "kind":
        if text.lower() not in KINDS:
            raise ValueError
        return text.lower()
    if what in ("min", "max"):
        return Decimal(text)
    if what == "max-past":
        return parse_duration(text)
    if what == "var-len":
        return {"true": True, "false": False}[text.lower()]
    if what == "null-rate":
        return float(text)
    number = int(text)
    if what == "length" and number < 1:
        raise ValueError
    return number


def _paths(schema: Any, prefix: str = "") -> Iterator[tuple[str, pa.DataType]]:
    import pyarrow as pa

    for field in schema:
        yield prefix + field.name, field.type
        if pa.types.is_struct(field.type):
            yield from _paths(field.type, f"{prefix}{field.name}.")


def _numeric(kind: pa.DataType) -> bool:
    import pyarrow as pa

    test = pa.types
    return bool(test.is_integer(kind) or test.is_floating(kind) or test.is_decimal(kind))


def _countable(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return _numeric(kind) or bool(pa.types.is_string(kind))
