"""JSON read by msgspec into typed records, then column by column into Arrow.

msgspec is as strict as the exact reader or stricter, so what it accepts needs no second look and
what it refuses is left in doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, Any, NamedTuple, NotRequired, Required, TypedDict

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from . import texts
from .decoding import Columns, Fast, Messages, doubt_everything, size_of, weigh
from .json_exact import Rules, value_reader
from .json_tree import DEEPEST, is_deep, parse
from .numbers import FLOAT_LIMIT
from .packed import packed_flags, packer
from .texts import Finished, each_value

Values = Sequence[Any]

_CACHED = 256
"""Messages looked at twice while they are still in the processor's cache."""


class TypedField(NamedTuple):
    """How one column is decoded: its Python type, and the way from a list of values to Arrow.

    `finish` also names the positions whose value it could not read.
    """

    annotation: Any
    finish: Callable[[Values], Finished]


class TypedRows:
    """A record type for the wanted columns, and the columns of a list of such records.

    `as_text` is for producers that write every scalar as a string. `changes` is the record type of
    an object that holds only some of the columns; those it lacks are UNSET.
    """

    def __init__(self, fields: Sequence[pa.Field], rules: Rules, as_text: bool = False) -> None:
        typed = [typed_field(field, rules, as_text) for field in fields]
        names = [f"f{position}" for position in range(len(fields))]
        rename = {name: field.name for name, field in zip(names, fields, strict=True)}
        members: list[Any] = []
        for name, each, field in zip(names, typed, fields, strict=True):
            needed = rules.fail_on_missing or not field.nullable
            members.append((name, each.annotation) if needed else (name, each.annotation, None))
        self.type = msgspec.defstruct("Row", members, rename=rename, gc=False, kw_only=True)
        some = [
            (name, msgspec.Raw if each.annotation is msgspec.Raw else each.annotation | None, UNSET)
            for name, each in zip(names, typed, strict=True)
        ]
        self.changes = msgspec.defstruct("Changes", some, rename=rename, gc=False)
        self.blank = self.type(**dict.fromkeys(names))
        self._finishers = [
            (_values_of(name), each.finish, field.nullable)
            for name, each, field in zip(names, typed, fields, strict=True)
        ]

    def columns(self, records: list[Any], doubtful: set[int]) -> list[pa.Array]:
        """One array per column; positions that cannot be read are added to `doubtful`."""
        arrays = []
        for values_of, finish, nullable in self._finishers:
            array, bad = finish(values_of(records))
            arrays.append(array)
            doubtful.update(bad)
            if array.null_count and not nullable:
                doubtful.update(pc.indices_nonzero(array.is_null()).to_pylist())
        return arrays


def _values_of(name: str) -> Callable[[list[Any]], list[Any]]:
    """A loop over one attribute, as Python compiles it: twice as fast as any getter."""
    return eval(f"lambda records: [record.{name} for record in records]")  # type: ignore[no-any-return]  # noqa: S307 - our own name


def typed_reader(fields: Sequence[pa.Field], rules: Rules) -> Fast:
    """A reader of messages that are one JSON object each."""
    try:
        rows = TypedRows(fields, rules)
        decode = msgspec.json.Decoder(rows.type).decode
    except ValueError:  # msgspec takes no names with quotes, backslashes or control characters
        return doubt_everything(fields)

    def read(messages: Messages) -> Columns:
        records, doubtful = decoded(messages, decode, rows.blank)
        return Columns(rows.columns(records, doubtful), sorted(doubtful))

    return read


def decoded(
    messages: Messages, decode: Callable[[bytes], Any], blank: Any
) -> tuple[list[Any], set[int]]:
    """A record per message, `blank` for those in doubt."""
    records: list[Any] = []
    doubtful: set[int] = set()
    rest = iter(messages)
    size = 0
    for start in range(0, len(messages), _CACHED):
        end = min(start + _CACHED, len(messages))
        while len(records) < end:
            try:
                records.extend(map(decode, islice(rest, end - len(records))))  # type: ignore[arg-type]
            except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
                doubtful.add(len(records))  # extend keeps what came before the failure
                records.append(blank)
        block = messages[start:end]
        if not _may_be_deep(block):
            continue
        size += size_of(block)
        weigh(messages, size)
        for index, message in enumerate(block, start):
            if message is not None and is_deep(bytes(message)):
                doubtful.add(index)
                records[index] = blank
    return records, doubtful


def _may_be_deep(messages: Messages) -> bool:
    """Whether one of them is long enough to be nested too deeply."""
    try:
        return max(map(len, messages)) > 2 * DEEPEST  # type: ignore[arg-type]
    except TypeError:  # there is a None among them
        return max(map(len, filter(None, messages)), default=0) > 2 * DEEPEST


# --- types ------------------------------------------------------------------------------------

_PLAIN = {
    pa.string(): str,
    pa.bool_(): bool,
    pa.float64(): float,
    pa.binary(): bytes,
}


def typed_field(field: pa.Field, rules: Rules, as_text: bool = False) -> TypedField:
    """The typed reader of one column."""
    kind = field.type
    is_text = pa.types.is_temporal(kind) and not pa.types.is_duration(kind)
    if is_text or (as_text and not pa.types.is_nested(kind)):
        return TypedField(_optional(str, field), from_texts(field, rules))
    if kind == pa.float32():
        return TypedField(_optional(float, field), _floats)
    if pa.types.is_decimal(kind):
        return TypedField(msgspec.Raw, _decimals(field, rules))
    if pa.types.is_duration(kind):
        milliseconds = _whole(-texts.MOST_MILLISECONDS, texts.MOST_MILLISECONDS)
        return TypedField(_optional(milliseconds, field), _durations)
    annotation = _annotation(kind, rules)
    if annotation is None:
        return TypedField(msgspec.Raw, _by_value(field, rules))
    if pa.types.is_boolean(kind):
        return TypedField(_optional(annotation, field), _booleans)
    is_number = pa.types.is_integer(kind) or kind == pa.float64()
    return TypedField(_optional(annotation, field), _numbers(kind) if is_number else _plain(kind))


def _annotation(kind: pa.DataType, rules: Rules) -> Any | None:
    """The Python type pyarrow can take as it is; None where values need another look."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_integer(kind):
        return _whole(*texts.bounds(kind))
    if pa.types.is_list(kind):
        item = _member(kind.value_field, rules)
        return None if item is None else list[item]  # type: ignore[valid-type]
    if pa.types.is_map(kind):
        item = _member(kind.item_field, rules)
        return None if item is None else dict[str, item]  # type: ignore[valid-type]
    if pa.types.is_struct(kind):
        members = {child.name: _member(child, rules) for child in kind}
        if None in members.values():
            return None
        needed = {
            child.name: Required[members[child.name]]
            if rules.fail_on_missing or not child.nullable
            else NotRequired[members[child.name]]
            for child in kind
        }
        return TypedDict("Row", needed)  # type: ignore[operator]
    return None


def _member(field: pa.Field, rules: Rules) -> Any | None:
    annotation = _annotation(field.type, rules)
    return None if annotation is None else _optional(annotation, field)


def _optional(annotation: Any, field: pa.Field) -> Any:
    return annotation | None if field.nullable else annotation


def _whole(least: int, most: int) -> Any:
    return Annotated[int, msgspec.Meta(ge=least, le=most)]


# --- from values to Arrow -----------------------------------------------------------------------


def _plain(kind: pa.DataType) -> Callable[[Values], Finished]:
    return lambda values: (pa.array(values, kind), ())


def _booleans(values: Values) -> Finished:
    array = packed_flags(values)
    return (pa.array(values, pa.bool_()) if array is None else array), ()


def _numbers(kind: pa.DataType) -> Callable[[Values], Finished]:
    pack = packer(kind)

    def finish(values: Values) -> Finished:
        array = pack(values)
        return (pa.array(values, kind) if array is None else array), ()

    return finish


def _floats(values: Values) -> Finished:
    array = pa.array(values, pa.float64()).cast(pa.float32())
    if not pc.any(pc.is_inf(array)).as_py():
        return array, ()
    return array, [i for i, v in enumerate(values) if v is not None and abs(v) >= FLOAT_LIMIT]


def _durations(values: Values) -> Finished:
    milliseconds = pa.array(values, pa.int64())
    return pc.multiply(milliseconds, 1000).view(pa.duration("us")), ()


def from_texts(field: pa.Field, rules: Rules) -> Callable[[Values], Finished]:
    """The way from JSON strings to a column of any scalar type."""
    at_once = texts.column_of(field, iso=rules.iso)
    few = texts.short_column_of(field, iso=rules.iso)
    one = texts.value_of(field, iso=rules.iso)
    forgiving = rules.ignoring and field.nullable

    def finish(values: Values) -> Finished:
        array = few(values) if len(values) < texts.FEW and None not in values else None
        if array is None:
            array = at_once(pa.array(values, pa.string()))
        return (array, ()) if array is not None else each_value(values, one, field, forgiving)

    return finish


def _decimals(field: pa.Field, rules: Rules) -> Callable[[Values], Finished]:
    at_once = texts.column_of(field)
    by_value = _by_value(field, rules)

    def finish(values: Values) -> Finished:
        raw = pa.array([None if v is None else bytes(v) for v in values], pa.binary())
        written = raw.view(pa.string())
        if field.nullable:
            null = pc.equal(written, "null")
            written = pc.if_else(null, pa.scalar(None, pa.string()), written)
        array = at_once(written)
        # None for a text in quotes, too many digits, or no number at all
        return by_value(values) if array is None else (array, ())

    return finish


def _by_value(field: pa.Field, rules: Rules) -> Callable[[Values], Finished]:
    read = value_reader(field, rules)

    def one(raw: Any) -> Any:
        return read(parse(bytes(raw)))

    def finish(values: Values) -> Finished:
        return each_value(values, one, field, forgiving=False)

    return finish
