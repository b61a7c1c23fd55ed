"""The decoder of the changelog formats: an envelope around rows, read twice as `json` is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from streamcore import Format

from .changelog_metadata import Metadata, Place
from .changelog_shapes import Shape
from .decoding import (
    NO_ROWS,
    Columns,
    Exact,
    Fast,
    Messages,
    Rows,
    TwoPathDecoder,
    doubt_everything,
    wanted_fields,
)
from .json_exact import Rules, row_reader
from .json_tree import NOTHING, compact, kind_of, parse
from .json_typed import TypedRows, decoded
from .unreadable import Unreadable

Keep = Callable[[Any, Any], bool]
"""Whether the changes of this database and table are wanted."""


class Envelope(NamedTuple):
    """What a changelog format puts around its rows."""

    shape: Shape
    places: Mapping[str, Place]
    wrapped: bool = False
    """Whether the envelope is the `payload` of an object that also holds its schema."""
    as_text: bool = False
    """Whether the producer writes every scalar as a string."""
    keep: Keep | None = None


def changelog_decoder(
    plugin: Format,
    envelope: Envelope,
    schema: pa.Schema,
    columns: Sequence[str] | None,
    metadata: Sequence[str],
    rules: Rules,
) -> TwoPathDecoder:
    """A decoder of the wanted columns and metadata, with the kind of every row."""
    wanted = wanted_fields(schema, columns)
    extra = Metadata(plugin, envelope.places, metadata, rules)
    return TwoPathDecoder(
        pa.schema([*wanted, *extra.fields]),
        _fast(envelope, wanted, extra, rules),
        _exact(envelope, wanted, extra, rules),
        ignoring=rules.ignoring,
        changelog=True,
    )


def _exact(envelope: Envelope, wanted: Sequence[pa.Field], extra: Metadata, rules: Rules) -> Exact:
    read = row_reader(wanted, rules)

    def exact(message: bytes | None) -> Rows:
        found = NOTHING if message is None else parse(message)
        if found is NOTHING:
            return NO_ROWS
        root = tree = _object(found, "the message")
        if envelope.wrapped:
            tree = _object(tree.get("payload"), "'payload'")
        if envelope.keep and not _kept(tree, envelope.keep):
            return NO_ROWS
        changes = envelope.shape.read(tree, read)
        if not changes:
            return NO_ROWS
        told = extra.read(root, tree, envelope.wrapped)
        return Rows([row + told for _, row in changes], [kind for kind, _ in changes])

    return exact


def _object(tree: Any, what: str) -> dict[str, Any]:
    if type(tree) is not dict:
        raise Unreadable(f"{what} is {kind_of(tree)}, not an object")
    return tree


def _kept(tree: dict[str, Any], keep: Keep) -> bool:
    names = [tree.get("database"), tree.get("table")]
    return keep(*(name if type(name) is str or name is None else compact(name) for name in names))


def _fast(envelope: Envelope, wanted: Sequence[pa.Field], extra: Metadata, rules: Rules) -> Fast:
    try:
        rows = TypedRows(wanted, rules, envelope.as_text)
        members = envelope.shape.members(rows)
        inner, outer = extra.members(envelope.wrapped)
        members += inner
        sources = {key: attribute for attribute, key, _ in members}
        if envelope.keep:
            for name in ("database", "table"):
                if sources.setdefault(name, name) == name:
                    members.append((name, name, str | None))
        told = record_type("Envelope", members)
        whole = told
        if envelope.wrapped:
            whole = record_type("Message", [("payload", "payload", told | None), *outer])
        decode = msgspec.json.Decoder(whole).decode
    except ValueError:  # msgspec takes no names with quotes, backslashes or control characters
        return doubt_everything([*wanted, *extra.fields])
    blank, nothing = whole(), told()

    def read(messages: Messages) -> Columns:
        roots, doubtful = decoded(messages, decode, blank)
        envelopes = roots
        if envelope.wrapped:
            envelopes = [nothing if root.payload is None else root.payload for root in roots]
        skipped: set[int] = set()
        if envelope.keep:
            names = attrgetter(sources["database"], sources["table"])
            envelopes = _filtered(envelopes, envelope.keep, names, nothing, doubtful, skipped)
        emitted = envelope.shape.emit(envelopes, doubtful)
        doubtful -= skipped
        bad: set[int] = set()
        arrays = rows.columns(emitted.records, bad)
        origin, kinds = emitted.arrays()
        arrays += [array.take(origin) for array in extra.columns(roots, envelopes, doubtful)]
        doubtful.update(emitted.origin[row] for row in bad)
        if doubtful:
            mask = pa.array([index not in doubtful for index in emitted.origin], pa.bool_())
            arrays = [array.filter(mask) for array in arrays]
            origin, kinds = origin.filter(mask), kinds.filter(mask)
        return Columns(arrays, sorted(doubtful), origin, kinds)

    return read


def record_type(name: str, members: Sequence[tuple[str, str, Any]]) -> Any:
    """A record whose fields all may be missing."""
    return msgspec.defstruct(
        name,
        [(attribute, kind, None) for attribute, _, kind in members],
        rename={attribute: key for attribute, key, _ in members},
        gc=False,
    )


def _filtered(
    envelopes: Sequence[Any],
    keep: Keep,
    names: Callable[[Any], tuple[str | None, str | None]],
    nothing: Any,
    doubtful: set[int],
    skipped: set[int],
) -> list[Any]:
    kept = []
    for index, each in enumerate(envelopes):
        try:
            wanted = index in doubtful or keep(*names(each))
        except Unreadable:
            wanted = True
            doubtful.add(index)
        if not wanted:
            skipped.add(index)
        kept.append(each if wanted else nothing)
    return kept
