"""ALTER TABLE: the changed table, checked as if it had been created that way."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import replace

from .checks import problems_of
from .errors import SqlError, did_you_mean
from .planner.projection import words_of
from .source import NOWHERE, Place
from .statements import (
    Alteration,
    Column,
    ComputedColumn,
    CreateTable,
    DropParts,
    Option,
    Placement,
    PutColumns,
    RenameColumn,
    ResetOptions,
    SetOptions,
)


def altered(table: CreateTable, change: Alteration) -> CreateTable:
    """The table after a change, or every reason why it cannot be made."""
    if isinstance(change, SetOptions):
        merged = {o.key: o for o in table.options} | {o.key: o for o in change.options}
        table = replace(table, options=tuple(merged.values()))
    elif isinstance(change, ResetOptions):
        table = replace(table, options=_without(table, change))
    elif isinstance(change, RenameColumn):
        table = _rename(table, change)
    elif isinstance(change, PutColumns):
        table = _put(table, change)
    elif isinstance(change, DropParts):
        table = _drop(table, change)
    if problems := list(problems_of(table)):
        raise SqlError.together(problems)
    return replace(table, place=NOWHERE)


def _without(table: CreateTable, change: ResetOptions) -> tuple[Option, ...]:
    if "connector" in change.keys:
        raise SqlError("'connector' cannot be reset", change.place, "Set it to another one.")
    known = [option.key for option in table.options]
    for key in change.keys:
        if key not in known:
            hint = did_you_mean(key, known)
            raise SqlError(f"'{table.name}' has no option '{key}'", change.place, hint)
    return tuple(option for option in table.options if option.key not in change.keys)


def _rename(table: CreateTable, change: RenameColumn) -> CreateTable:
    old, new = change.old.last, change.new
    _position(table, old, change.old.place)
    for used, where in (*_uses(table), *_made_of(table, frozenset())):
        if used == old:
            hint = f"Drop the {where} first."
            raise SqlError(f"column '{old}' is part of the {where}", change.old.place, hint)
    columns = tuple(replace(c, name=new) if c.name == old else c for c in table.columns)
    return replace(table, columns=columns)


def _put(table: CreateTable, change: PutColumns) -> CreateTable:
    columns = list(table.columns)
    for placement in change.columns:
        columns = _placed(table, columns, placement, modify=change.modify)
    for what in ("watermark", "primary_key"):
        wanted = getattr(change, what)
        if wanted and not change.modify and getattr(table, what):
            trouble = f"'{table.name}' already has a {what.replace('_', ' ')}"
            raise SqlError(trouble, wanted.place, "Write MODIFY instead of ADD.")
        if wanted and change.modify and not getattr(table, what):
            trouble = f"'{table.name}' has no {what.replace('_', ' ')}"
            raise SqlError(trouble, wanted.place, "Write ADD instead of MODIFY.")
    return replace(
        table,
        columns=tuple(columns),
        watermark=change.watermark or table.watermark,
        primary_key=change.primary_key or table.primary_key,
    )


def _placed(
    table: CreateTable, columns: list[Column], placement: Placement, *, modify: bool
) -> list[Column]:
    column, names = placement.column, [column.name for column in columns]
    at = len(columns)
    if modify:
        at = _position(table, column.name, column.place)
        columns = columns[:at] + columns[at + 1 :]
        names.remove(column.name)
    elif column.name in names:
        trouble = f"'{table.name}' already has a column '{column.name}'"
        raise SqlError(trouble, column.place, "Write MODIFY instead of ADD.")
    if placement.first:
        at = 0
    elif placement.after is not None:
        if placement.after not in names:
            hint = did_you_mean(placement.after, names)
            trouble = f"'{table.name}' has no column '{placement.after}'"
            raise SqlError(trouble, placement.place, hint)
        at = names.index(placement.after) + 1
    return [*columns[:at], column, *columns[at:]]


def _drop(table: CreateTable, change: DropParts) -> CreateTable:
    gone = {name.last for name in change.columns}
    for name in change.columns:
        _position(table, name.last, name.place)
        for used, where in (*_uses(table), *_made_of(table, gone)):
            if used == name.last:
                hint = f"Drop the {where} first."
                raise SqlError(f"column '{used}' is part of the {where}", name.place, hint)
    for wanted, what in ((change.watermark, "watermark"), (change.primary_key, "primary_key")):
        if wanted and not getattr(table, what):
            trouble = f"'{table.name}' has no {what.replace('_', ' ')}"
            raise SqlError(trouble, change.place)
    if change.constraint and (
        table.primary_key is None or table.primary_key.name != change.constraint
    ):
        raise SqlError(f"'{table.name}' has no constraint '{change.constraint}'", change.place)
    drop_key = change.primary_key or change.constraint is not None
    return replace(
        table,
        columns=tuple(column for column in table.columns if column.name not in gone),
        watermark=None if change.watermark else table.watermark,
        primary_key=None if drop_key else table.primary_key,
    )


def _position(table: CreateTable, name: str, place: Place) -> int:
    names = [column.name for column in table.columns]
    if name not in names:
        raise SqlError(f"'{table.name}' has no column '{name}'", place, did_you_mean(name, names))
    return names.index(name)


def _uses(table: CreateTable) -> list[tuple[str, str]]:
    uses = [(name.last, "primary key") for name in getattr(table.primary_key, "columns", ())]
    uses += [(name.last, "partitioning") for name in table.partitioned_by]
    if table.watermark:
        uses.append((table.watermark.column.parts[0], "watermark"))
    return uses


def _made_of(table: CreateTable, gone: Set[str]) -> Iterator[tuple[str, str]]:
    """Each column that another one is computed from, unless that one goes as well."""
    for column in table.columns:
        if isinstance(column, ComputedColumn) and column.name not in gone:
            words = words_of(column.expression)
            for other in table.columns:
                if other.name.lower() in words:
                    yield other.name, f"computed column '{column.name}'"
