"""A table back to the CREATE TABLE that makes it: what SHOW CREATE TABLE prints."""

from __future__ import annotations

from collections.abc import Iterator

from streamcore.values import masked

from .lexer import name_literal, text_literal
from .masking import MASK
from .statements import (
    Column,
    ComputedColumn,
    CreateTable,
    CreateView,
    Distribution,
    MetadataColumn,
    Name,
    Option,
)


def create_table(table: CreateTable, *, mask: bool = False) -> str:
    """The statement; `mask` hides the values of options that look secret."""
    words = [
        "CREATE",
        "OR REPLACE" if table.or_replace else "",
        "TEMPORARY" if table.temporary else "",
        "TABLE",
        "IF NOT EXISTS" if table.if_not_exists else "",
        table.name.sql(),
    ]
    head = " ".join(word for word in words if word)
    elements = list(_elements(table))
    if elements:
        head += " (\n  " + ",\n  ".join(elements) + "\n)"
    return "\n".join([head, *_clauses(table, mask)])


def create_view(view: CreateView) -> str:
    """The statement that makes a view."""
    words = [
        "CREATE",
        "OR REPLACE" if view.or_replace else "",
        "TEMPORARY" if view.temporary else "",
        "VIEW",
        "IF NOT EXISTS" if view.if_not_exists else "",
        view.name.sql(),
        _list(view.columns) if view.columns else "",
    ]
    head = " ".join(word for word in words if word)
    return f"{head}{_comment(view.comment)} AS\n{view.query}"


def _elements(table: CreateTable) -> Iterator[str]:
    yield from map(_column, table.columns)
    if table.watermark:
        column = table.watermark.column.sql()
        yield f"WATERMARK FOR {column} AS {table.watermark.expression}"
    if key := table.primary_key:
        owner = f"CONSTRAINT {name_literal(key.name)} " if key.name else ""
        yield f"{owner}PRIMARY KEY {_list(key.columns)} NOT ENFORCED"


def _column(column: Column) -> str:
    text = name_literal(column.name)
    if isinstance(column, ComputedColumn):
        text += f" AS {column.expression}"
    else:
        text += f" {column.type.sql()}"
    if isinstance(column, MetadataColumn):
        text += " METADATA"
        text += f" FROM {text_literal(column.key)}" if column.key != column.name else ""
        text += " VIRTUAL" if column.virtual else ""
    return text + _comment(column.comment)


def _clauses(table: CreateTable, mask: bool) -> Iterator[str]:
    if table.comment is not None:
        yield _comment(table.comment).lstrip()
    if table.distribution:
        yield _distribution(table.distribution)
    if table.partitioned_by:
        yield f"PARTITIONED BY {_list(table.partitioned_by)}"
    if table.options:
        yield "WITH (\n  " + ",\n  ".join(_option(each, mask) for each in table.options) + "\n)"
    if table.like:
        rules = "".join(f"\n  {rule.action} {rule.feature}" for rule in table.like.rules)
        yield f"LIKE {table.like.table.sql()}" + (f" ({rules}\n)" if rules else "")
    if table.query:
        yield f"AS {table.query}"


def _distribution(distribution: Distribution) -> str:
    text = "DISTRIBUTED"
    if distribution.columns:
        kind = f" {distribution.kind}" if distribution.kind else ""
        text += f" BY{kind} {_list(distribution.columns)}"
    if distribution.buckets is not None:
        text += f" INTO {distribution.buckets} BUCKETS"
    return text


def _option(option: Option, mask: bool) -> str:
    value = option.value
    if mask:
        value = MASK if option.secret else masked(option.key, value)
    return f"{text_literal(option.key)} = {text_literal(value)}"


def _comment(comment: str | None) -> str:
    return "" if comment is None else f" COMMENT {text_literal(comment)}"


def _list(names: tuple[Name, ...]) -> str:
    return f"({', '.join(name.sql() for name in names)})"
