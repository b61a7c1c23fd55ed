"""No NULL is written where the table says NOT NULL, at any depth."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from streamcore import RecordError
from streamcore.types import nullable_inside

from .unreadable import shown


def checked(array: pa.Array, field: pa.Field, start: int = 0) -> pa.Array:
    """The column in its field's type; one with a NULL where none may be is refused.

    `start` is its first row's number. What is NOT NULL inside the type is checked, not claimed.
    """
    found = _first_null(array, field)
    if found is not None:
        row, path = found
        where = f"{field.name}{path}"
        raise RecordError(f"row {start + row}, column '{where}': NULL, but it is NOT NULL")
    if array.type == field.type:
        return array
    kind = nullable_inside(field.type)
    return array if array.type == kind else array.cast(kind)


def _first_null(array: pa.Array, field: pa.Field) -> tuple[int, str] | None:
    """Where the first such NULL is, and its path from here; what is in a NULL does not count."""
    if array.null_count and not field.nullable:
        return pc.index(array.is_null(), True).as_py(), ""
    kind = field.type
    if not pa.types.is_nested(kind) or not _forbids(kind):
        return None
    inside = _in_struct if pa.types.is_struct(kind) else _in_list
    if pa.types.is_map(kind):
        inside = _in_map
    if not array.null_count:
        return inside(array, kind)
    present = pc.indices_nonzero(array.is_valid())
    found = inside(array.take(present), kind)
    return found and (present[found[0]].as_py(), found[1])


def _in_struct(array: pa.StructArray, kind: pa.StructType) -> tuple[int, str] | None:
    for child, values in zip(kind, array.flatten(), strict=True):
        found = _first_null(values, child)
        if found is not None:
            return found[0], f".{child.name}{found[1]}"
    return None


def _in_list(array: pa.ListArray, kind: pa.ListType) -> tuple[int, str] | None:
    found = _first_null(array.flatten(), kind.value_field)
    if found is None:
        return None
    place, path = found
    parents = pc.list_parent_indices(array)
    row = parents[place].as_py()
    return row, f"[{place - pc.index(parents, row).as_py()}]{path}"


def _in_map(array: pa.MapArray, kind: pa.MapType) -> tuple[int, str] | None:
    items = pa.ListArray.from_arrays(array.offsets, array.items)
    found = _first_null(items.flatten(), kind.item_field)
    if found is None:
        return None
    place, path = found
    keys = pa.ListArray.from_arrays(array.offsets, array.keys).flatten()
    return pc.list_parent_indices(items)[place].as_py(), f"[{shown(str(keys[place]))}]{path}"


def _forbids(kind: pa.DataType) -> bool:
    """Whether something inside a type is NOT NULL; the keys of a map always are."""
    if pa.types.is_map(kind):
        return not kind.item_field.nullable or _forbids(kind.item_type)
    parts = [kind.field(position) for position in range(kind.num_fields)]
    return any(not part.nullable or _forbids(part.type) for part in parts)
