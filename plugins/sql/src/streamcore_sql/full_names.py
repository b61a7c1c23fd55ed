"""A view's query with full table names, so that it means the same in every database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from .catalog import Catalog
from .cursor import SqlText
from .lexer import name_literal
from .rewrite.context import Context
from .source import NOWHERE, Place, Source
from .statements import CreateView

_QUALIFIER = re.compile(r"(?:(?:[\w$]+|`(?:[^`]|``)+`)\s*\.\s*)+$")


def spelt_out(view: CreateView, catalog: Catalog) -> CreateView:
    """The view as it would be written by somebody who trusts no current database."""
    query, start = view.query.text, view.query.place.start
    found = {_begin(query, place.start - start): parts for parts, place in _names(view)}
    for at in sorted(found, reverse=True):
        lead = catalog.current[: max(3 - len(found[at]), 0)]
        prefix = "".join(f"{name_literal(part)}." for part in lead)
        query = query[:at] + prefix + query[at:]
    text = SqlText(query, Place(Source(query), 0, len(query)))
    return replace(view, query=text, place=NOWHERE)


def _begin(query: str, at: int) -> int:
    """Where a dotted name begins, from where any of its parts does."""
    match = _QUALIFIER.search(query, 0, at)
    return match.start() if match else at


def _names(view: CreateView) -> Iterator[tuple[tuple[str, ...], Place]]:
    """Every table name in the query, and where it begins."""
    context = Context(lambda name: None)
    tree = context.parse(view.query)
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        parts = tuple(part.name for part in table.parts)
        is_name = isinstance(table.this, exp.Identifier) and context.reference_of(table) is None
        if is_name and not (len(parts) == 1 and parts[0] in ctes):
            yield parts, context.place(table)
    for reference in context.aside.references:
        if reference.name.parts[0] not in ctes:
            yield reference.name.parts, reference.name.place
