"""The decoder of the changelog formats: an envelope around rows, read twice as `json` is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from streamcore import Format

from .changelog_metadata import Metadata
from .changelog_typed import Envelope, Keep, typed_envelopes
from .decoding import NO_ROWS, Exact, Rows, TwoPathDecoder, wanted_fields
from .json_exact import Rules, row_reader
from .json_tree import NOTHING, compact, kind_of, parse
from .unreadable import Unreadable


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
        typed_envelopes(envelope, wanted, extra, rules),
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
