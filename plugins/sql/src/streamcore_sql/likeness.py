"""CREATE TABLE ... LIKE: the new table and the one it is like, merged by the rules given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .errors import SqlError
from .source import NOWHERE
from .statements import (
    Column,
    ComputedColumn,
    CreateTable,
    LikeRule,
    MetadataColumn,
    Option,
    PhysicalColumn,
)

_FEATURES = (
    "CONSTRAINTS",
    "DISTRIBUTION",
    "GENERATED",
    "METADATA",
    "OPTIONS",
    "PARTITIONS",
    "WATERMARKS",
)


def resolve_like(table: CreateTable, base: CreateTable) -> CreateTable:
    """The table that stands alone: everything taken over, LIKE gone."""
    assert table.like is not None
    rules = _rules(table.like.rules)
    problems: list[SqlError] = []
    columns = _columns(table, base, rules, problems)
    watermark = _one(table, base, "watermark", rules["WATERMARKS"], problems)
    key = _one(table, base, "primary_key", rules["CONSTRAINTS"], problems)
    partitions = _one(table, base, "partitioned_by", rules["PARTITIONS"], problems)
    distribution = _one(table, base, "distribution", rules["DISTRIBUTION"], problems)
    options = _options(table, base, rules["OPTIONS"], problems)
    if problems:
        raise SqlError.together(problems)
    return replace(
        table,
        columns=columns,
        watermark=watermark,
        primary_key=key,
        partitioned_by=partitions,
        distribution=distribution,
        options=options,
        like=None,
        place=NOWHERE,
    )


def _rules(given: tuple[LikeRule, ...]) -> dict[str, str]:
    whole = next((rule.action for rule in given if rule.feature == "ALL"), "INCLUDING")
    rules = dict.fromkeys(_FEATURES, whole)
    if whole == "INCLUDING":
        rules["OPTIONS"] = "OVERWRITING"
    return rules | {rule.feature: rule.action for rule in given if rule.feature != "ALL"}


def _columns(
    table: CreateTable, base: CreateTable, rules: dict[str, str], problems: list[SqlError]
) -> tuple[Column, ...]:
    own = {column.name: column for column in table.columns}
    kept: list[Column] = []
    for column in base.columns:
        action = _action(column, rules)
        if action == "EXCLUDING":
            continue
        mine = own.get(column.name)
        if mine is None:
            kept.append(column)
        elif action == "OVERWRITING" and type(mine) is type(column):
            kept.append(own.pop(column.name))
        else:
            trouble = f"column '{column.name}' is also a column of '{base.name}'"
            hint = "Leave it out, or write OVERWRITING if it is computed or metadata."
            problems.append(SqlError(trouble, mine.place, hint))
    return (*kept, *(column for column in table.columns if own.get(column.name) is column))


def _action(column: Column, rules: dict[str, str]) -> str:
    if isinstance(column, PhysicalColumn):
        return "INCLUDING"
    if isinstance(column, MetadataColumn):
        return rules["METADATA"]
    assert isinstance(column, ComputedColumn)
    return rules["GENERATED"]


def _one(
    table: CreateTable, base: CreateTable, what: str, action: str, problems: list[SqlError]
) -> Any:
    mine, theirs = getattr(table, what), getattr(base, what)
    if action == "EXCLUDING" or not theirs:
        return mine
    if mine and action == "INCLUDING":
        trouble = f"'{base.name}' already has a {what.replace('_', ' ')}"
        problems.append(SqlError(trouble, table.name.place, "Exclude or overwrite it in LIKE."))
    return mine or theirs


def _options(
    table: CreateTable, base: CreateTable, action: str, problems: list[SqlError]
) -> tuple[Option, ...]:
    if action == "EXCLUDING":
        return table.options
    theirs = {option.key: option for option in base.options}
    if action == "INCLUDING":
        for option in table.options:
            if option.key in theirs:
                trouble = f"option '{option.key}' is also set by '{base.name}'"
                problems.append(SqlError(trouble, option.place, "Write OVERWRITING OPTIONS."))
    return tuple((theirs | {option.key: option for option in table.options}).values())
