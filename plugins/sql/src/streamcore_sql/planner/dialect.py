"""The one door to the query rewriter: Flink text in, Spark SQL and the tables it names out."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from ..cursor import SqlText
from ..source import Place
from ..statements import Name, Option


@dataclass(frozen=True)
class Reference:
    """A table a query names, with the options of its hint."""

    name: Name
    options: tuple[Option, ...] = ()


@dataclass(frozen=True)
class SparkQuery:
    """A query Spark can run, once each table is a view of the given name."""

    sql: str
    references: tuple[tuple[str, Reference], ...]


def spark_query(query: SqlText, view: Callable[[Reference], str]) -> SparkQuery:
    """Rewrite a query; `view` says what each table is called in Spark."""
    tree = sqlglot.parse_one(query.text, read="spark")
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    found: dict[str, Reference] = {}
    for node in list(tree.find_all(exp.Table)):
        if not node.name or (node.name in ctes and not node.db):
            continue
        parts = tuple(part for part in (node.catalog, node.db, node.name) if part)
        reference = Reference(Name(parts, place=_place(query, node.name)))
        label = view(reference)
        found[label] = reference
        alias = node.alias or node.name
        rest = {k: v for k, v in node.args.items() if k not in ("this", "db", "catalog", "alias")}
        named = exp.Table(this=exp.to_identifier(label, quoted=True), **rest)
        node.replace(exp.alias_(named, alias, table=True))
    return SparkQuery(tree.sql(dialect="spark"), tuple(found.items()))


def spark_expression(expression: SqlText) -> str:
    """Rewrite one expression, such as that of a computed column."""
    if re.fullmatch(r"(?i)proctime\s*\(\s*\)", expression.text.strip()):
        return "current_timestamp()"
    return sqlglot.parse_one(expression.text, read="spark").sql(dialect="spark")


def _place(query: SqlText, word: str) -> Place:
    match = re.search(rf"\b{re.escape(word)}\b", query.text)
    if match is None:
        return query.place
    return query.place.within(match.start(), match.end())
