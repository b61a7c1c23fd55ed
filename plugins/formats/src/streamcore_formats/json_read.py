"""The decoder of `json`: which path reads a chunk, and what a message as a whole may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from .decoding import NO_ROWS, Rows, TwoPathDecoder, wanted_fields
from .json_exact import Rules, row_reader
from .json_layout import layout_reader
from .json_tree import NOTHING, kind_of, parse
from .json_typed import typed_reader
from .unreadable import Unreadable


def json_decoder(schema: pa.Schema, columns: Sequence[str] | None, rules: Rules) -> TwoPathDecoder:
    """A decoder of the wanted columns."""
    wanted = wanted_fields(schema, columns)
    return TwoPathDecoder(
        pa.schema(wanted),
        layout_reader(wanted, rules, typed_reader(wanted, rules)),
        exact_reader(wanted, rules),
        ignoring=rules.ignoring,
    )


def exact_reader(fields: Sequence[pa.Field], rules: Rules) -> Callable[[bytes | None], Rows]:
    """A reader of one message: an object is a row, an array its elements."""
    read = row_reader(fields, rules)

    def exact(message: bytes | None) -> Rows:
        tree = NOTHING if message is None else parse(message)
        if tree is NOTHING or (tree is None and rules.tree):
            return NO_ROWS
        if type(tree) is list:
            return _elements(tree, read, rules.ignoring)
        if type(tree) is not dict:
            raise Unreadable(f"expected an object or an array of objects, found {kind_of(tree)}")
        return Rows([read(tree)])

    return exact


def _elements(tree: list[Any], read: Callable[[Any], list[Any]], ignoring: bool) -> Rows:
    rows, dropped = [], 0
    for position, element in enumerate(tree):
        try:
            rows.append(read(element))
        except Unreadable as error:
            if not ignoring:
                raise Unreadable(f"element {position} of the array: {error}") from None
            dropped += 1
    return Rows(rows, dropped=dropped)
