"""Changelog messages read by msgspec: typed envelopes around typed rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from .changelog_metadata import Metadata, Place
from .changelog_shapes import Shape
from .decoding import Columns, Fast, Messages, doubt_everything
from .json_exact import Rules
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


def typed_envelopes(
    envelope: Envelope, wanted: Sequence[pa.Field], extra: Metadata, rules: Rules
) -> Fast:
    """The fast path of a changelog format."""
    try:
        return _EnvelopeReader(envelope, wanted, extra, rules)
    except ValueError:  # msgspec takes no names with quotes, backslashes or control characters
        return doubt_everything([*wanted, *extra.fields])


class _EnvelopeReader:
    """Reads messages as records that hold their rows as records."""

    def __init__(
        self, envelope: Envelope, wanted: Sequence[pa.Field], extra: Metadata, rules: Rules
    ) -> None:
        self._envelope, self._extra = envelope, extra
        self._rows = TypedRows(wanted, rules, envelope.as_text)
        inner, outer = extra.members(envelope.wrapped)
        members = envelope.shape.members(self._rows) + inner
        self._names = {key: attribute for attribute, key, _ in members}
        if envelope.keep:
            for name in ("database", "table"):
                if self._names.setdefault(name, name) == name:
                    members.append((name, name, str | None))
        told = record_type("Envelope", members)
        whole = told
        if envelope.wrapped:
            whole = record_type("Message", [("payload", "payload", told | None), *outer])
        self._decode = msgspec.json.Decoder(whole).decode
        self._no_message, self._no_envelope = whole(), told()

    def __call__(self, messages: Messages) -> Columns:
        envelope = self._envelope
        roots, doubtful = decoded(messages, self._decode, self._no_message)
        envelopes = roots
        if envelope.wrapped:
            nothing = self._no_envelope
            envelopes = [nothing if root.payload is None else root.payload for root in roots]
        skipped: set[int] = set()
        if envelope.keep:
            envelopes = self._filtered(envelopes, envelope.keep, doubtful, skipped)
        records, kinds, origin = envelope.shape.emit(envelopes, doubtful)
        doubtful -= skipped
        bad: set[int] = set()
        arrays = self._rows.columns(records, bad)
        arrays += [array.take(origin) for array in self._extra.columns(roots, envelopes, doubtful)]
        if bad:
            doubtful.update(origin.take(pa.array(sorted(bad), pa.int32())).to_pylist())
        if doubtful:
            doubts = pa.array(sorted(doubtful), pa.int32())
            mask = pc.invert(pc.is_in(origin, value_set=doubts))
            arrays = [array.filter(mask) for array in arrays]
            origin, kinds = origin.filter(mask), kinds.filter(mask)
        return Columns(arrays, sorted(doubtful), origin, kinds)

    def _filtered(
        self,
        envelopes: Sequence[Any],
        keep: Keep,
        doubtful: set[int],
        skipped: set[int],
    ) -> list[Any]:
        names = attrgetter(self._names["database"], self._names["table"])
        kept = []
        for index, each in enumerate(envelopes):
            try:
                wanted = index in doubtful or keep(*names(each))
            except Unreadable:
                wanted = True
                doubtful.add(index)
            if not wanted:
                skipped.add(index)
            kept.append(each if wanted else self._no_envelope)
        return kept


def record_type(name: str, members: Sequence[tuple[str, str, Any]]) -> Any:
    """A record whose fields all may be missing."""
    return msgspec.defstruct(
        name,
        [(attribute, kind, None) for attribute, _, kind in members],
        rename={attribute: key for attribute, key, _ in members},
        gc=False,
    )
