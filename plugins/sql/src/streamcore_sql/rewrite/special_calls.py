"""Calls that need more than a template to become Spark's."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from ..cursor import Cursor, SqlText
from ..errors import SqlError
from ..source import Source
from ..typename import TypeName, parse_type
from .context import Context, spark_sql
from .durations import duration, milliseconds
from .placeholders import Call
from .spark_text import spark_literal, spark_type
from .whole_numbers import is_whole

_EXTRACTS = {
    "SECOND": "second({0})",
    "MILLISECOND": "CAST(unix_millis(CAST({0} AS TIMESTAMP)) % 1000 AS BIGINT)",
    "EPOCH": "unix_timestamp({0})",
    "ISODOW": "extract(DAYOFWEEK_ISO FROM {0})",
    "ISOYEAR": "extract(YEAROFWEEK FROM {0})",
}
_MAKERS = {"0": "timestamp_seconds", "3": "timestamp_millis", "6": "timestamp_micros"}
_BOUNDS = {"START": "{}.start", "END": "{}.end", "ROWTIME": "({}.end - INTERVAL '0.001' SECOND)"}


@dataclass(frozen=True)
class Site:
    """A call with its arguments, as nodes and as Spark's text."""

    call: Call
    nodes: list[exp.Expr]
    args: list[str]
    context: Context

    def literal(self, index: int) -> str | None:
        """The text of an argument that is a string literal."""
        node = self.nodes[index] if index < len(self.nodes) else None
        return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None

    def plain(self) -> str:
        return f"{self.call.written}({', '.join(map(spark_sql, self.nodes))})"


def _cast(site: Site) -> str:
    kind = site.literal(1)
    if match := re.fullmatch(r"(CHAR|VARCHAR)\((\d+)\)", kind or ""):
        text = f"{site.call.name}({site.args[0]} AS STRING)"
        return f"{'rpad' if match[1] == 'CHAR' else 'left'}({text}, {match[2]})"
    return f"{site.call.name}({site.args[0]} AS {kind})"


def _extract(site: Site) -> str:
    unit = site.literal(0)
    return _EXTRACTS.get(str(unit), f"extract({unit} FROM {{0}})").format(site.args[1])


def _round_to_unit(site: Site) -> str:
    """`CEIL(ts TO HOUR)`; with a number it is the plain function."""
    unit = site.literal(1)
    if unit is None:
        return site.plain()
    value = site.args[0]
    floor = f"date_trunc('{unit}', {value})"
    if site.call.name == "FLOOR":
        return floor
    return f"CASE WHEN {floor} = {value} THEN {value} ELSE timestampadd({unit}, 1, {floor}) END"


def _trim(site: Site) -> str:
    if len(site.args) == 3:
        return f"trim({site.literal(0)} {site.args[1]} FROM {site.args[2]})"
    if len(site.args) == 2:
        return f"trim(BOTH {site.args[0]} FROM {site.args[1]})"
    return site.plain()


def _to_timestamp_ltz(site: Site) -> str:
    """From a number and its precision, or from a text, its pattern and its zone."""
    count = len(site.args)
    if count == 3:  # the zone as a part of the text: else that of the session would count, too
        first, pattern, zone = site.args
        return f"try_to_timestamp(concat({first}, ' ', {zone}), concat({pattern}, ' VV'))"
    if site.literal(0) is not None or site.literal(1) is not None:
        return f"try_to_timestamp({', '.join(site.args)})"
    text = _is_text(site.nodes[0], site.context)
    if count == 1 and text:
        return f"try_to_timestamp({site.args[0]})"
    precision = site.args[1] if count == 2 else "3"
    if precision not in _MAKERS:
        hint = "Write 0 for seconds or 3 for milliseconds."
        trouble = f"TO_TIMESTAMP_LTZ: precision {precision} is not known"
        raise SqlError(trouble, site.call.place, hint)
    whole = is_whole(site.nodes[0], site.context)
    value = site.args[0] if whole else f"CAST({site.args[0]} AS BIGINT)"
    if count == 1 and not whole and text is None:
        read = f"try_to_timestamp(CAST({site.args[0]} AS STRING))"
        number = f"timestamp_millis(try_cast({site.args[0]} AS BIGINT))"
        return f"IF(typeof({site.args[0]}) = 'string', {read}, {number})"
    return f"{_MAKERS[precision]}({value})"


def _is_text(node: exp.Expr, context: Context) -> bool | None:
    """Whether a value is a text; None where only Spark knows."""
    if not isinstance(node, exp.Column):
        return None
    kinds = {kind.name for kind in context.types_of(node.name)}
    return kinds <= {"STRING", "VARCHAR", "CHAR"} if kinds else None


def _date_format(site: Site) -> str:
    pattern = re.sub(r"'[^']*'", "", site.literal(1) or "")
    if "Y" in pattern:
        trouble = "'Y' is the year of the week, which Spark does not format"
        raise SqlError(trouble, site.call.place, "Write 'yyyy' for the year.")
    return site.plain()


def _grouping_id(site: Site) -> str:
    """Of any of the keys: Spark's takes all of them, in their order, and the window is one."""
    bits = [f"CAST(grouping({arg}) AS BIGINT)" for arg in site.args]
    return "(" + " + ".join(f"{bit} * {2**at}" for at, bit in enumerate(reversed(bits))) + ")"


def _null_if_any_is_null(site: Site) -> str:
    """Spark leaves NULLs out; in Flink one of them makes the result NULL."""
    nulls = " OR ".join(f"{arg} IS NULL" for arg in site.args)
    return f"CASE WHEN {nulls} THEN NULL ELSE {site.plain()} END"


def _json(site: Site) -> str:
    """JSON_VALUE, JSON_QUERY and JSON_EXISTS; the third argument is what followed the path."""
    value = f"get_json_object({site.args[0]}, {_json_path(site)})"
    if site.call.name == "JSON_EXISTS":
        return f"({value} IS NOT NULL)"
    return _apply_tail(value, Cursor(Source(site.literal(2) or "")), site)


def _apply_tail(found: str, tail: Cursor, site: Site) -> str:
    """Apply `RETURNING type`, `WITH WRAPPER` and what is to be `ON EMPTY` and `ON ERROR`."""
    value, kind = found, None
    if tail.accept("RETURNING"):
        kind = parse_type(tail)
        target = spark_type(kind)
        nested = kind.items or kind.fields
        value = f"from_json({found}, '{target}')" if nested else f"try_cast({found} AS {target})"
    if tail.accept("WITH"):
        value = _wrapped(found, site)
        if tail.accept("CONDITIONAL"):
            value = f"CASE WHEN {found} LIKE '[%' THEN {found} ELSE {value} END"
    while not tail.at_end() and tail.token.word in ("WITHOUT", "UNCONDITIONAL", "ARRAY", "WRAPPER"):
        tail.advance()
    instead = {"EMPTY": "", "ERROR": ""}
    while not tail.at_end():
        text = _instead(tail, kind, site)
        tail.expect("ON")
        instead[tail.advance().word] = text
    if not instead["ERROR"]:
        return f"coalesce({value}, {instead['EMPTY']})" if instead["EMPTY"] else value
    document = site.args[0]
    wrong = f"{found} IS NOT NULL OR {document} IS NOT NULL AND try_parse_json({document}) IS NULL"
    empty = f" ELSE {instead['EMPTY']}" if instead["EMPTY"] else ""
    return f"coalesce({value}, CASE WHEN {wrong} THEN {instead['ERROR']}{empty} END)"


def _json_path(site: Site) -> str:
    """The path without its mode, which Spark does not know."""
    path = site.literal(1)
    return site.args[1] if path is None else spark_literal(re.sub(r"^(lax|strict) +", "", path))


def _wrapped(found: str, site: Site) -> str:
    """What was found in an array; Spark takes text out of its quotes, and here they are needed."""
    wrapped = f"concat('[', {found}, ']')"
    if "*" in (site.literal(1) or "*"):  # which finds arrays
        return wrapped
    found_there = f"try_variant_get(try_parse_json({site.args[0]}), {_json_path(site)}, 'variant')"
    kind = f"schema_of_variant({found_there})"
    return f"CASE WHEN {kind} = 'STRING' THEN to_json(array({found})) ELSE {wrapped} END"


def _instead(tail: Cursor, kind: TypeName | None, site: Site) -> str:
    """What stands before `ON EMPTY` or `ON ERROR`: nothing for NULL."""
    if tail.at("ON"):
        return ""  # `RETURNING INT NULL ON EMPTY`: the type took the NULL along
    first = tail.advance()
    if first.word == "ERROR":
        return f"raise_error('{site.call.name} found nothing')"
    if first.word == "EMPTY":
        empty = "'[]'" if tail.advance().word == "ARRAY" else "'{}'"
        return f"from_json({empty}, '{spark_type(kind)}')" if kind else empty
    if first.word != "DEFAULT":
        return ""
    start, depth = tail.token.start, 0
    while not tail.at_end() and (depth or not (tail.at("ON", "EMPTY") or tail.at("ON", "ERROR"))):
        word = tail.advance().word
        depth += (word == "(") - (word == ")")
    from .functions import render_calls  # which calls us

    given = SqlText(tail.source.text[start : tail.previous.end])
    return spark_sql(render_calls(site.context.parse(given), site.context))


def _json_object(site: Site) -> str:
    """`JSON_OBJECT('key' VALUE value, ...)`; an odd argument is `NULL|ABSENT ON NULL`."""
    pairs = len(site.args) - len(site.args) % 2
    tail = site.literal(pairs) or ""
    ignore = "true" if tail.upper().startswith("ABSENT") else "false"
    struct = f"named_struct({', '.join(site.args[:pairs])})"
    return f"to_json({struct}, map('ignoreNullFields', '{ignore}'))"


def _group_window(site: Site) -> str:
    """`TUMBLE(ts, INTERVAL ..)` of GROUP BY, and `TUMBLE_START(..)` of SELECT."""
    kind, _, part = site.call.name.partition("_")
    if part == "PROCTIME":
        return "current_timestamp()"
    lengths = [milliseconds(node, "window length", site.call.place) for node in site.nodes[1:]]
    texts = [f"'{duration(length)}'" for length in reversed(lengths)]  # Spark's size comes first
    function = "session_window" if kind == "SESSION" else "window"
    return _BOUNDS.get(part, "{}").format(f"{function}({', '.join([site.args[0], *texts])})")


_PARTS = ("", "_START", "_END", "_ROWTIME", "_PROCTIME")
SPECIAL: dict[str, Callable[[Site], str]] = {
    "CAST": _cast,
    "TRY_CAST": _cast,
    "EXTRACT": _extract,
    "CEIL": _round_to_unit,
    "CEILING": _round_to_unit,
    "FLOOR": _round_to_unit,
    "TRIM": _trim,
    "TO_TIMESTAMP_LTZ": _to_timestamp_ltz,
    "DATE_FORMAT": _date_format,
    "GROUPING_ID": _grouping_id,
    "GREATEST": _null_if_any_is_null,
    "LEAST": _null_if_any_is_null,
    "JSON_VALUE": _json,
    "JSON_QUERY": _json,
    "JSON_EXISTS": _json,
    "JSON_OBJECT": _json_object,
    **{kind + part: _group_window for kind in ("TUMBLE", "HOP", "SESSION") for part in _PARTS},
}
