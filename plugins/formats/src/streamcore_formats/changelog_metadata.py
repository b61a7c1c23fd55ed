"""What an envelope tells beside its rows: the metadata columns of the changelog formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from streamcore import Format, PluginError
from streamcore.types import arrow_field

from .json_exact import Rules, value_reader
from .json_tree import kind_of, parse
from .json_typed import typed_field
from .texts import Finished, each_value
from .unreadable import Unreadable

Member = tuple[str, str, Any]


class Place(NamedTuple):
    """Where in the envelope a metadata key is found, and what it looks like there."""

    path: tuple[str, ...]
    wire: pa.DataType
    iso: bool = False
    scale: int = 1
    any_value: bool = False
    """Whether any JSON value may stand there, to be taken as text."""
    beside: bool = False
    """Whether it stands beside the payload rather than in it."""


class _Wanted(NamedTuple):
    place: Place
    field: pa.Field
    read: Callable[[Any], Any]


class Metadata:
    """Reads the wanted keys, from typed envelopes or from parsed ones."""

    def __init__(
        self, plugin: Format, places: Mapping[str, Place], keys: Sequence[str], rules: Rules
    ) -> None:
        self._wanted: list[_Wanted] = []
        self._rules = rules
        for key in keys:
            if key not in places:
                known = ", ".join(places)
                raise PluginError(
                    f"format '{plugin.identifier}' has no metadata '{key}'; it has {known}."
                )
            place = places[key]
            field = arrow_field(key, plugin.metadata_keys[key].type)
            wire = pa.field(key, place.wire)
            read = value_reader(wire, rules._replace(iso=place.iso))
            self._wanted.append(_Wanted(place, field, read))
        self.fields = [wanted.field for wanted in self._wanted]
        self._columns: list[Callable[[Sequence[Any], Sequence[Any]], Finished]] = []

    # --- from a parsed message --------------------------------------------------------------

    def read(self, root: dict[str, Any], payload: dict[str, Any], wrapped: bool) -> list[Any]:
        """The wanted values of one message."""
        values: list[Any] = []
        for wanted in self._wanted:
            tree: Any = root if wanted.place.beside else payload
            if wanted.place.beside and not wrapped:
                values.append(None)
            else:
                values.append(self._one(wanted, tree, wanted.place.path))
        return values

    def _one(self, wanted: _Wanted, tree: Any, path: tuple[str, ...]) -> Any:
        for step in path:
            if tree is None:
                return None
            if type(tree) is not dict:
                raise Unreadable(f"expected an object, found {kind_of(tree)}", wanted.field.name)
            tree = tree.get(step)
        value = wanted.read(tree)
        scale = wanted.place.scale
        if value is not None and scale != 1:
            value *= scale
            if not -(2**63) <= value < 2**63:
                raise Unreadable(f"{value} milliseconds are out of range", wanted.field.name)
        return value

    # --- from typed envelopes ---------------------------------------------------------------

    def members(self, wrapped: bool) -> tuple[list[Member], list[Member]]:
        """The fields these keys need in the envelope, and beside it."""
        inner: dict[str, Any] = {}
        outer: dict[str, Any] = {}
        self._columns = []
        for position, wanted in enumerate(self._wanted):
            place = wanted.place
            if place.beside and not wrapped:
                self._columns.append(_nothing(wanted.field))
                continue
            side = outer if place.beside else inner
            root = place.path[0]
            crowded = sum(other.place.path[0] == root for other in self._wanted) > 1
            whole = any(
                other.place.path == (root,) and (other.place.any_value or crowded)
                for other in self._wanted
            )
            if whole:
                side[root] = msgspec.Raw
                self._columns.append(self._raw(wanted))
            else:
                typed = typed_field(
                    pa.field(wanted.field.name, place.wire), self._rules._replace(iso=place.iso)
                )
                if len(place.path) == 1:
                    side[root] = typed.annotation
                else:
                    side.setdefault(root, []).append((f"m{position}", place.path[1], typed))
                self._columns.append(self._typed(wanted, typed.finish, position))
        return _members(inner), _members(outer)

    def columns(
        self, roots: Sequence[Any], payloads: Sequence[Any], doubtful: set[int]
    ) -> list[pa.Array]:
        """One array per key with a value for every message."""
        arrays = []
        for column in self._columns:
            array, bad = column(roots, payloads)
            arrays.append(array)
            doubtful.update(bad)
        return arrays

    def _raw(self, wanted: _Wanted) -> Callable[[Sequence[Any], Sequence[Any]], Finished]:
        get = attrgetter(_attribute(wanted.place.path[0]))
        rest = wanted.place.path[1:]

        @lru_cache(maxsize=64)  # schemas are long, and the same in every message
        def one(raw: bytes) -> Any:
            return self._one(wanted, parse(raw), rest)

        def column(roots: Sequence[Any], payloads: Sequence[Any]) -> Finished:
            side = roots if wanted.place.beside else payloads
            values = [None if raw is None else bytes(raw) for raw in map(get, side)]
            return each_value(values, one, wanted.field, forgiving=False)

        return column

    def _typed(
        self, wanted: _Wanted, finish: Callable[[Sequence[Any]], Finished], position: int
    ) -> Callable[[Sequence[Any], Sequence[Any]], Finished]:
        get = attrgetter(_attribute(wanted.place.path[0]))
        nested = len(wanted.place.path) > 1
        leaf = attrgetter(f"m{position}")

        def column(roots: Sequence[Any], payloads: Sequence[Any]) -> Finished:
            values = list(map(get, roots if wanted.place.beside else payloads))
            if nested:
                values = [None if value is None else leaf(value) for value in values]
            array, bad = finish(values)
            if wanted.place.scale != 1:
                try:
                    array = pc.multiply_checked(array, wanted.place.scale)
                except pa.ArrowInvalid:
                    return pa.nulls(len(values), wanted.field.type), range(len(values))
            kind = wanted.field.type
            return array if array.type == kind else array.view(kind), bad

        return column


def _nothing(field: pa.Field) -> Callable[[Sequence[Any], Sequence[Any]], Finished]:
    return lambda roots, payloads: (pa.nulls(len(payloads), field.type), ())


def _attribute(key: str) -> str:
    return f"told_{key}"


def _members(sides: dict[str, Any]) -> list[Member]:
    members = []
    for key, kind in sides.items():
        if isinstance(kind, list):
            kind = (
                msgspec.defstruct(
                    key.capitalize(),
                    [(name, typed.annotation, None) for name, _, typed in kind],
                    rename={name: leaf for name, leaf, _ in kind},
                    gc=False,
                )
                | None
            )
        members.append((_attribute(key), key, kind))
    return members
