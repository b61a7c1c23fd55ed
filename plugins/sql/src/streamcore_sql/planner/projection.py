"""Which columns are read: Spark does not prune Python sources, so nobody else looks."""

from __future__ import annotations

from ..cursor import SqlText
from ..lexer import Kind, name_value, tokens
from ..source import Source
from ..statements import Column, ComputedColumn, CreateTable


def columns_read(statement: CreateTable, used: tuple[str, ...] | None) -> tuple[Column, ...]:
    """The columns a query uses and those that computed ones are made of, in declared order."""
    if used is None:
        return statement.columns
    names = {column.name for column in statement.columns}
    computed = {c.name: c.expression for c in statement.columns if isinstance(c, ComputedColumn)}
    wanted = names & set(used)
    pending = [name for name in wanted if name in computed]
    while pending:
        words = words_of(computed[pending.pop()])
        found = {name for name in names - wanted if name.lower() in words}
        wanted |= found
        pending += [name for name in found if name in computed]
    return tuple(column for column in statement.columns if column.name in wanted)


def words_of(expression: SqlText) -> set[str]:
    """Every name in an expression, in lower case; functions and keywords too, which do no harm."""
    source = Source(expression.text)
    words = set()
    for token in tokens(source):
        if token.kind is Kind.WORD:
            words.add(token.word.lower())
        elif token.kind is Kind.QUOTED:
            words.add(name_value(source.text[token.start : token.end]).lower())
    return words
